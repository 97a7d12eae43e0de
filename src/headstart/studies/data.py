"""The data of a study: labelled parts, the corpus without held-out texts, and warnings."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.errors import HeadstartError
from headstart.studies.recipe import DEFAULT_LABELS, StudyRecipe
from headstart.text.checking.inspect import inspect_data
from headstart.text.checking.splits import take_budget
from headstart.text.reading.corpus import Corpus, read_corpus
from headstart.text.reading.dataset import Dataset, Splits
from headstart.text.reading.read import read_dataset
from headstart.text.tokenizers.tokenizer import hash_of
from headstart.training.prepare import Stages, open_corpus
from headstart.training.recipe import read_recipe

FEW_TEST_ROWS = 100


@dataclass(frozen=True)
class StudyData:
    """What a study reads: labelled parts, the corpus, and the label budgets."""

    splits: Splits
    test: Dataset
    corpus: Corpus | None  # without validation and test rows, and with the training texts
    overlap_dropped: int
    warnings: list[str]
    budgets: list[int]

    @property
    def identity(self) -> dict[str, str]:
        parts = [[part.texts, part.labels] for part in self.splits.parts().values()]
        identity = {"dataset": hash_of(json.dumps(parts).encode())}
        if self.corpus is not None:
            identity["corpus"] = self.corpus.fingerprint
        return identity


def read_data(recipe: StudyRecipe, stages: Stages) -> StudyData:
    """Read and check everything; nothing is written."""
    stage = stages("reading the dataset")
    splits = read_dataset(recipe.dataset, **recipe.reading(), progress=stage)
    notes = []
    if splits.test is None:
        splits = _with_test(splits, recipe.split_seed)
        assert splits.test is not None
        notes.append(
            f"there is no test part: half of the validation part, {len(splits.test):,} rows, "
            "became one (--test FILE)"
        )
    assert splits.test is not None
    budgets = find_budgets(recipe, splits.train)
    _check_parts(splits)
    if len(splits.test) < FEW_TEST_ROWS:
        notes.append(
            f"the test part has only {len(splits.test):,} rows: each of them is "
            f"{100 / len(splits.test):.1f} points of accuracy"
        )
    held_out = [*splits.validation.texts, *splits.test.texts]
    corpus = None
    if recipe.corpus:
        documents: Any = recipe.documents or None
        corpus = read_corpus(recipe.corpus, encoding=recipe.encoding, documents=documents)
        corpus = corpus.without(held_out)
    found = inspect_data(splits, corpus, progress=stages("looking at the data"))
    dropped = (corpus.left_out or 0) if corpus is not None else 0
    if corpus is not None and recipe.task_text == "on":
        corpus = corpus.with_task_text(splits.train.texts)
    if recipe.base:
        notes += _seen_by_base(Path(recipe.base), held_out)
    return StudyData(splits, splits.test, corpus, dropped, [*notes, *found.warnings], budgets)


def find_budgets(recipe: StudyRecipe, train: Dataset) -> list[int]:
    """The numbers of labelled rows, ascending; the usual ones as far as there are rows."""
    if recipe.labels:
        return sorted({len(take_budget(train, budget, 0)) for budget in recipe.labels})
    rows = len(take_budget(train, "all", 0))
    usual = [int(n) for n in DEFAULT_LABELS if n.isdigit()]
    return [n for n in usual if 2 * len(train.label_names) <= n < rows] + [rows]


def _with_test(splits: Splits, seed: int) -> Splits:
    """Half of validation becomes the test part; training rows stay as they were given."""
    part = splits.validation
    if len(part) < 2 * len(part.label_names):
        raise HeadstartError(
            f"there is no test part, and the {len(part):,} validation rows are too few to share",
            fix="give one with --test FILE",
        )
    test = take_budget(part, "50%", seed)
    taken = set(test.texts)
    rest = part.pick([row for row, text in enumerate(part.texts) if text not in taken])
    return Splits(splits.train, rest, test, splits.found)


def _check_parts(splits: Splits) -> None:
    for name, part in splits.parts().items():
        if not len(part):
            raise HeadstartError(
                f"the {name} part has no rows: there are too few texts to split",
                fix="label more texts, or give the parts as files: --validation FILE --test FILE",
            )


def _seen_by_base(base: Path, held_out: list[str]) -> list[str]:
    """Whether a base that exists already was pretrained on texts of validation or test."""
    try:
        corpus = open_corpus(read_recipe(base)).without(held_out)
    except (HeadstartError, KeyError):
        return ["the base's corpus is not here, so whether it holds test rows is not known"]
    for _ in corpus:
        pass
    if not corpus.left_out:
        return []
    return [
        f"the base was pretrained on {corpus.left_out:,} texts that are also in validation or "
        "test: its results may look too good"
    ]
