"""Runs as ONNX graphs: written operator by operator, checked, and opened again to predict."""
