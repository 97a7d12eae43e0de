"""Data: from files to rows, splits, tokens and batches."""
