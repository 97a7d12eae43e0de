"""Metrics from labels and probabilities; knows neither texts' files nor networks."""
