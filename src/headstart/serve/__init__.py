"""`headstart serve`: a run behind an HTTP address."""
