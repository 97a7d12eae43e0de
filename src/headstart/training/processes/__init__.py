"""One training in several processes, on one machine or many, by PyTorch's process groups."""
