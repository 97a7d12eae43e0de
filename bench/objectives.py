"""Compare pretraining objectives by what a base's vectors are worth with few labels.

Each `--try name=value,…` pretrains a base as large as that of a study on the corpus of a task, with
the task's training texts. Then, for several draws of the labels, a logistic regression on the
frozen base (C selected in folds of the drawn rows) and, with `--finetuned`, fine-tuned networks
predict training rows that were not drawn, and the validation rows. The test part is not used.
Accuracy in per cent, mean ± standard error over the draws; all bases have the same draws.

Names in capitals are constants of `headstart.objectives` (SPAN, VIEW_DROPOUT, TEMPERATURE);
DOCUMENTS is the number of documents of a contrastive step, and ATTENTION its direction.

    python bench/objectives.py rotten-tomatoes --corpus imdb --finetuned 400 4000 \\
        --try objective=causal --try objective=contrastive --try objective=masked+contrastive
    python bench/development_sets.py sets
    python bench/objectives.py sets/newsgroups --corpus sets/newsgroups/corpus.txt \\
        --labels 100 400 --try objective=causal --try objective=contrastive
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from headstart import objectives
from headstart.config import STUDY_LAYERS, STUDY_WIDTH, FinetuneConfig, PretrainConfig
from headstart.data.dataset import Splits
from headstart.data.splits import read_dataset, take_budget
from headstart.estimators import HeadstartEmbedder
from headstart.objectives import OBJECTIVES
from headstart.run import read_summary
from headstart.training.finetune import finetune
from headstart.training.pretrain import pretrain
from others import regression
from recipes import parse
from transfer import epochs_for

CONSTANTS = ("SPAN", "VIEW_DROPOUT", "TEMPERATURE")
HELD_OUT = 2_000  # rows at most that a fine-tuned network predicts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dataset")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--try", dest="tries", action="append", required=True)
    parser.add_argument("--tokens", type=int, default=2_600_000)
    parser.add_argument("--labels", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--finetuned", type=int, nargs="+", default=[], metavar="LABELS")
    parser.add_argument("--seeds", type=int, default=3, help="draws of the fine-tuned networks")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--width", type=int, default=STUDY_WIDTH)
    parser.add_argument("--layers", type=int, default=STUDY_LAYERS)
    given = parser.parse_args()
    splits = read_dataset(given.dataset)
    usual = {name: getattr(objectives, name) for name in CONSTANTS}
    documents = {name: getattr(one, "documents", 0) for name, one in OBJECTIVES.items()}
    attention = OBJECTIVES["contrastive"].attention
    for text in given.tries:
        settings = parse(text)
        for name, value in usual.items():
            setattr(objectives, name, settings.pop(name, value))
        number = settings.pop("DOCUMENTS", None)
        for name, one in OBJECTIVES.items():
            one.documents = number or documents[name]
        OBJECTIVES["contrastive"].attention = settings.pop("ATTENTION", attention)
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder) / "base"
            pretrain(pretrain_config(given, settings), base)
            found = read_summary(base)
            print(f"{text}: {found['tokens']:,} tokens, {found['seconds']:.0f} s", flush=True)
            print("  frozen     ", *frozen(given, splits, base), sep="  ", flush=True)
            if given.finetuned:
                print("  fine-tuned ", *finetuned(given, splits, base), sep="  ", flush=True)


def pretrain_config(given: Any, settings: dict[str, Any]) -> PretrainConfig:
    return PretrainConfig.create(
        **{
            "corpus": [given.corpus],
            "task_text": given.dataset,
            "tokens": given.tokens,
            "threads": given.threads,
            "width": given.width,
            "layers": given.layers,
            "evaluations": 1,
            **settings,
        }
    )


def cell(labels: int, accuracies: list[float]) -> str:
    error = statistics.stdev(accuracies) / len(accuracies) ** 0.5
    return f"{labels:,}: {100 * statistics.mean(accuracies):.1f} ± {100 * error:.1f}"


def frozen(given: Any, splits: Splits, base: Path) -> list[str]:
    """Fit logistic regressions on the vectors of the base."""
    texts = [*splits.train.texts, *splits.validation.texts]
    labels = np.array([*splits.train.labels, *splits.validation.labels])
    vectors = np.asarray(HeadstartEmbedder(base).fit().transform(texts), dtype=np.float64)
    place = {text: row for row, text in enumerate(texts)}
    cells = []
    for budget in given.labels:
        accuracies = []
        for seed in range(given.draws):
            drawn = take_budget(splits.train, str(budget), seed).texts
            rows = np.array([place[text] for text in drawn])
            rest = np.setdiff1d(np.arange(len(texts)), rows)
            found = regression(vectors[rows], labels[rows], vectors[rest], halves=True)
            accuracies.append(float((found == labels[rest]).mean()))
        cells.append(cell(budget, accuracies))
    return cells


def finetuned(given: Any, splits: Splits, base: Path) -> list[str]:
    """Fine-tune with the usual settings; the last epoch counts."""
    cells = []
    for budget in given.finetuned:
        accuracies = []
        for seed in range(given.seeds):
            drawn = take_budget(splits.train, str(budget), seed)
            own = set(drawn.texts)
            rest = [row for row, text in enumerate(splits.train.texts) if text not in own]
            np.random.default_rng(seed).shuffle(rest)
            held = splits.train.pick(rest[:HELD_OUT])
            config = FinetuneConfig.create(
                dataset=[given.dataset],
                base=str(base),
                seed=seed,
                threads=given.threads,
                selection_metric="last",
                epochs=epochs_for(budget),
            )
            run = finetune(config, None, splits=Splits(drawn, held, None))
            accuracies.append(run.require_task().metrics(run.validation_scores, held)["accuracy"])
        cells.append(cell(budget, accuracies))
    return cells


if __name__ == "__main__":
    main()
