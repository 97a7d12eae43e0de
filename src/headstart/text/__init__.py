"""From files to batches: read, check, split, tokenize, store, pack."""
