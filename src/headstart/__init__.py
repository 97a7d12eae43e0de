"""Headstart: pretrain a small Transformer on your own text, swap its head, and measure the gain."""
