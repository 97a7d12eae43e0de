"""Hugging Face's form of a model: folders read as bases, runs written for stock `transformers`."""
