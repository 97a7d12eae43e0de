"""Ids on disk and the batches that are drawn from them."""
