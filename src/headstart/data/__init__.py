"""From files to rows, splits, tokens and batches."""
