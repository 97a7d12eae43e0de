"""What this machine can do, looked up and measured, and what Headstart does with it."""
