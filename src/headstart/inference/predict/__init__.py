"""Predictions of a fine-tuned run: classes, tags of words, answers in a text, or a whole file."""

from headstart.inference.predict.classes import Prediction, predict, predict_scores
from headstart.inference.predict.predictor import Predictor, predict_file, predictor_of
from headstart.inference.predict.spans import SpanPrediction, predict_spans
from headstart.inference.predict.tags import PredictedEntity, TaggedText, predict_tags

__all__ = [
    "PredictedEntity",
    "Prediction",
    "Predictor",
    "SpanPrediction",
    "TaggedText",
    "predict",
    "predict_file",
    "predict_scores",
    "predict_spans",
    "predict_tags",
    "predictor_of",
]
