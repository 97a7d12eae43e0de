"""The lab: its files, vocabulary, checkpoints, and the settings of its training protocol."""

from typing import Any

PRESET = "lab"
# Its norms come after the sums, and at twice this rate such a network does not get past the
# unigram model (research/recipes.md); the vocabulary's rows can take more.
PRETRAINING: dict[str, Any] = {"learning_rate": 1e-3, "embedding_learning_rate": 2e-3}
# Adam (which is AdamW without decay) at one rate, evaluated every epoch, with a head drawn at
# random. Two things are not the lab's: a third of each text's tokens is dropped, and the weights
# of the last epochs are averaged. In a trial without them, a pretrained network was at its best
# after two epochs and lost three points by the eighth (docs/lab.md).
FINETUNING: dict[str, Any] = {
    "pooling": "last",
    "new_head": "drawn",
    "epochs": 15,
    "batch_size": 8,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "weight_decay": 0.0,
    "token_dropout": 0.35,
    "average": 0.5,
}
