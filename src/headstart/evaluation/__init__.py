"""Metrics, calibration and intervals from labels and scores; independent of files and networks."""
