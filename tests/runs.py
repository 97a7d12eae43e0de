"""Small trained runs, for tests of what comes after."""

from pathlib import Path

from headstart.training.pretrain import pretrain
from headstart.training.recipe import PretrainRecipe
from tests.corpora import write_corpus

SMALL = {
    "vocab_size": 300,
    "width": 32,
    "layers": 2,
    "heads": 2,
    "feed_forward_width": 64,
    "length": 32,
    "batch_tokens": 512,
    "held_out": 0.1,
    "learning_rate": 5e-3,
    "evaluations": 2,
    "threads": 1,
    "output": "full",  # what is faster here may be chance
}


def options(**more: object) -> list[str]:
    """The same for the command line, which has no word for the number of evaluations."""
    settings = {name: value for name, value in SMALL.items() if name != "evaluations"} | more
    settings["feed_forward"] = settings.pop("feed_forward_width")
    named = ((f"--{name.replace('_', '-')}", str(value)) for name, value in settings.items())
    return [word for pair in named for word in pair]


def small_recipe(folder: Path, objective: str = "causal", **changes) -> PretrainRecipe:
    corpus = folder / "corpus.txt"
    if not corpus.exists():
        write_corpus(corpus)
    return PretrainRecipe(**{"corpus": [str(corpus)], "objective": objective, **SMALL, **changes})


def small_run(folder: Path, objective: str = "causal", **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pretrain(small_recipe(folder, objective, **{"steps": 150, **changes}), folder / "run")
    return folder / "run"
