"""A finished run, opened: its model, its tokenizer and its recipe, checked against each other."""

from dataclasses import dataclass
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model
from headstart.model.config import LanguageModelingConfig, MaskedNextSentenceConfig
from headstart.model.model import Model
from headstart.text.tokenizer import Tokenizer, load_tokenizer


@dataclass(frozen=True)
class Run:
    folder: Path
    model: Model
    tokenizer: Tokenizer

    @property
    def causal(self) -> bool:
        return self.model.base.config.attention == "causal"


def open_run(folder: Path) -> Run:
    """Load a run's model and tokenizer; their vocabularies must agree."""
    if not folder.is_dir():
        raise HeadstartError("there is no such run", where=folder, fix="check the path")
    model = load_model(folder).eval()
    tokenizer = load_tokenizer(folder)
    if tokenizer.vocab_size != model.base.config.vocab_size:
        raise HeadstartError(
            f"the tokenizer has {tokenizer.vocab_size:,} pieces, the model "
            f"{model.base.config.vocab_size:,}: they do not belong together",
            where=folder,
        )
    return Run(folder, model, tokenizer)


def open_language_model(folder: Path, *, causal: bool, to: str) -> Run:
    """A run that can `to` (write, fill …); if it cannot, the message says why and which can."""
    run = open_run(folder)
    kinds = (LanguageModelingConfig, MaskedNextSentenceConfig)
    if not isinstance(run.model.head_config, kinds):
        raise HeadstartError(
            f"this run has no language-modelling head, so it cannot {to}",
            where=folder,
            fix="name a run of headstart pretrain",
        )
    if causal and not run.causal:
        raise HeadstartError(
            f"a masked base cannot {to}: it was trained to read hidden words off both sides of "
            "them, and has never had to go on from the left side alone",
            where=folder,
            fix="use headstart fill with it, or pretrain with --objective causal",
        )
    if not causal and run.causal:
        raise HeadstartError(
            f"a causal base cannot {to}: the square mask keeps it from seeing what stands to the "
            "right of the gap",
            where=folder,
            fix="use headstart generate with it, or pretrain with --objective masked",
        )
    return run
