"""Small trained runs, for tests of what comes after."""

from pathlib import Path

from headstart.config import PretrainConfig
from headstart.training.pretrain import pretrain
from tests.corpora import write_corpus
from tests.labelled import MACHINE

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
    **MACHINE,
}


def options(**more: object) -> list[str]:
    """The same for the command line."""
    settings = SMALL | more
    named = ((f"--{name.replace('_', '-')}", str(value)) for name, value in settings.items())
    return [word for pair in named for word in pair]


def small_config(folder: Path, objective: str = "causal", **changes) -> PretrainConfig:
    corpus = folder / "corpus.txt"
    if not corpus.exists():
        write_corpus(corpus)
    return PretrainConfig.create(
        **{"corpus": [str(corpus)], "objective": objective, **SMALL, **changes}
    )


def small_run(folder: Path, objective: str = "causal", **changes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pretrain(small_config(folder, objective, **{"steps": 150, **changes}), folder / "run")
    return folder / "run"
