"""Compare the held-out loss with and without co-occurrence initialisation, for two objectives.

Losses are compared at equal numbers of tokens, not minutes, so that other programs on the machine
do not change the result. The vectors are computed once, in seconds (`bench/cooccurrence.py`).

    python bench/start.py --tokens 120000
"""

import argparse
import json
import tempfile
from pathlib import Path

from headstart.config import PretrainConfig
from headstart.training.callbacks import read_metrics
from headstart.training.pretrain import pretrain

TRIES = [
    (objective, start) for objective in ("causal", "masked") for start in ("random", "cooccurrence")
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="imdb")
    parser.add_argument("--tokens", type=int, default=120_000)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    for objective, start in TRIES:
        config = PretrainConfig.create(
            corpus=[given.corpus],
            objective=objective,
            embedding_init=start,
            tokens=given.tokens,
            learning_rate=given.learning_rate,
            threads=given.threads,
            evaluations=4,
        )
        with tempfile.TemporaryDirectory() as folder:
            summary = pretrain(config, Path(folder) / "run").summary
            lines = read_metrics(Path(folder) / "run" / "metrics.jsonl")
        curve = {
            line["tokens"]: round(line["held_out"]["loss"], 3)
            for line in lines
            if "held_out" in line
        }
        print(
            f"{objective:7} {start:12} {json.dumps(curve)} "
            f"unigram perplexity {summary['unigram_perplexity']:.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
