"""Other people's files: read, checked, and never run."""
