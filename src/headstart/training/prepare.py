"""From a corpus to something that can be trained on: tokenizer, token stores, first weights."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.files import cache_folder, mark_used, write_text
from headstart.model.presets import Preset, PresetObjective, preset
from headstart.objectives import find_objective
from headstart.progress import ProgressCallback
from headstart.text.reading.corpus import Corpus, ProgressCorpus, TextList, read_corpus
from headstart.text.reading.read import read_dataset
from headstart.text.store.corpus_split import CorpusSplit, choose_split
from headstart.text.store.token_source import TokenSource
from headstart.text.store.write_store import store_corpus, store_corpus_split
from headstart.text.tokenizers.tokenizer import Tokenizer, hash_of, load_tokenizer
from headstart.text.tokenizers.train_tokenizer import train_tokenizer
from headstart.training.bases import base_fingerprint
from headstart.training.further import base_tokenizer
from headstart.training.recipe import NONE, PretrainRecipe

SMALL_CORPUS = 2_000_000  # bytes
BYTES_PER_TOKEN = 8  # more than any language has on average
TASK_TEXT_SHARE = 0.2  # of the steps, at the end
MOST_TASK_PASSES = 4
CHECKSUM = ".sha256"  # beside a tokenizer in the cache: its fingerprint

# Takes a stage's name; returns the callback for its progress in bytes of text (done, total).
Stages = Callable[[str], ProgressCallback]


def quiet(stage: str) -> ProgressCallback:
    """Stages whose progress is not shown."""
    return lambda done, total: None


@dataclass(frozen=True)
class Prepared:
    """A corpus that is ready to train on: the result of `prepare`."""

    tokenizer: Tokenizer
    train: TokenSource
    held_out: TokenSource
    held_out_bytes: int
    corpus_fingerprint: str
    rows: int = 1  # of a step
    task_text: TokenSource | None = None  # training texts of the task, which are read most last
    base_fingerprint: str = ""  # of the base whose pretraining goes on

    @property
    def identity(self) -> dict[str, str]:
        """Fingerprints of what a run is made of."""
        own = {"corpus": self.corpus_fingerprint, "tokenizer": self.tokenizer.fingerprint}
        return {**own, "base": self.base_fingerprint} if self.base_fingerprint else own

    def source(self, step: int, steps: int) -> tuple[TokenSource, int]:
        """Where the batch of a step comes from, and the number of that batch there.

        Towards the end of a run every second batch is task text: what is read last is
        remembered best. Where the task has little text, the batches are fewer: these read it
        `MOST_TASK_PASSES` times at most.
        """
        if self.task_text is None:
            return self.train, step
        first = round((1 - TASK_TEXT_SHARE) * steps)
        batches = max(1, MOST_TASK_PASSES * len(self.task_text.packed()) // self.rows)
        every = max(2, -(-(steps - first) // batches))
        if step < first or (step - first) % every != every - 1:
            return self.train, step
        return self.task_text, (step - first) // every


def held_out_share(size: int | None) -> float:
    """A hundredth measures well enough, but for a small corpus it would be a few lines."""
    return 0.1 if size is not None and size < SMALL_CORPUS else 0.01


def prepare(
    recipe: PretrainRecipe,
    *,
    stages: Stages = quiet,
    corpus: Corpus | None = None,
    tokenizer: Tokenizer | None = None,
) -> Prepared:
    """Read, tokenize and store the corpus; every part is cached by its content.

    `tokenizer` is that of a run which is resumed; else it is the recipe's, or a new one.
    """
    corpus = corpus or open_corpus(recipe)
    tokenizer = tokenizer or find_tokenizer(recipe, corpus, stages)
    folder = cache_folder() / "stores"
    share = recipe.held_out or held_out_share(corpus.size)
    split = choose_split(corpus, share, least_bytes=BYTES_PER_TOKEN * recipe.length)
    counted = ProgressCorpus(corpus, stages("tokenizing"))
    stores = store_corpus_split(counted, tokenizer, folder, split=split)
    if any(store.tokens <= recipe.length for store in stores):
        raise HeadstartError(
            f"the corpus is too small: {stores[0].tokens:,} tokens to train on and "
            f"{stores[1].tokens:,} held out, where a row has {recipe.length}",
            where=corpus.name,
            fix="give more text with --corpus, a larger --held-out share or a smaller --length",
        )
    sources = [
        TokenSource(store, tokenizer, length=recipe.length, separate=recipe.separate)
        for store in stores
    ]
    size = sum(len(tokenizer.decode(document.tolist()).encode()) for document in stores[1])
    return Prepared(
        tokenizer,
        sources[0],
        sources[1],
        size,
        corpus.fingerprint,
        recipe.rows,
        _task_source(recipe, corpus, tokenizer, split),
        base_fingerprint(recipe.base) if recipe.base != NONE else "",
    )


def _task_source(
    recipe: PretrainRecipe, corpus: Corpus, tokenizer: Tokenizer, split: CorpusSplit
) -> TokenSource | None:
    if not corpus.task_text or corpus.is_task_text:
        return None
    # Texts that are held out are not trained on here either.
    documents = split.documents(corpus.task_text)
    kept = TextList(text for text in documents if not split.holds_out(text))
    if not kept:
        return None
    store = store_corpus(kept, tokenizer, cache_folder() / "stores")
    if store.tokens <= recipe.length:  # not one row
        return None
    return TokenSource(store, tokenizer, length=recipe.length, separate=recipe.separate)


def open_corpus(recipe: PretrainRecipe) -> Corpus:
    """The recipe's corpus, with the training texts of its task where it names one."""
    corpus = read_corpus(
        recipe.corpus,
        text_column=recipe.text_column or None,
        encoding=recipe.encoding,
        documents=recipe.documents or None,  # type: ignore[arg-type]
    )
    if not recipe.task_text:
        return corpus
    task = read_dataset(recipe.task_text, encoding=recipe.encoding)
    held_out = [*task.validation.texts, *(task.test.texts if task.test is not None else [])]
    return corpus.without(held_out).with_task_text(task.train.texts)


def check_corpus(recipe: PretrainRecipe, *, stages: Stages = quiet) -> list[str]:
    """What `headstart inspect` would warn of."""
    from headstart.text.checking.inspect import inspect_data

    found = inspect_data(None, open_corpus(recipe), progress=stages("looking at the corpus"))
    return list(found.warnings)


def find_tokenizer(recipe: PretrainRecipe, corpus: Corpus, stages: Stages) -> Tokenizer:
    """The one given or the base's, or one trained on the corpus (kept for the next time)."""
    if recipe.base != NONE:
        return base_tokenizer(recipe)
    if recipe.tokenizer:
        return load_tokenizer(Path(recipe.tokenizer))
    vocab_size = find_preset(recipe).base.vocab_size
    settings = json.dumps([recipe.tokenizer_kind, vocab_size, 1])
    name = hash_of(corpus.fingerprint.encode(), settings.encode())[:32]
    path = cache_folder() / "tokenizers" / f"{name}.json"
    if (kept := _kept_tokenizer(path)) is not None:
        return kept
    trained = train_tokenizer(
        ProgressCorpus(corpus, stages("training the tokenizer")),
        vocab_size=vocab_size,
        kind=recipe.tokenizer_kind,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    trained.save(path)
    tokenizer = load_tokenizer(path)
    write_text(path.with_suffix(CHECKSUM), tokenizer.fingerprint + "\n")
    return tokenizer


def _kept_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer in the cache, if it is what was saved there."""
    try:
        tokenizer = load_tokenizer(path)
        saved = path.with_suffix(CHECKSUM).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError, HeadstartError):
        return None
    if saved != tokenizer.fingerprint:
        return None
    mark_used(path)
    return tokenizer


def find_preset(recipe: PretrainRecipe, *, vocab_size: int | None = None) -> Preset:
    """The recipe's network, for its objective and sizes."""
    sizes = recipe.sizes()
    if vocab_size is not None:
        sizes["vocab_size"] = vocab_size
    objective = find_objective(recipe.objective)
    kind: PresetObjective = "causal" if objective.attention == "causal" else "masked"
    return preset(recipe.preset, objective=kind, **sizes)
