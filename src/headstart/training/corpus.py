"""From a corpus to data that can be trained on: tokenizer, token stores, task text."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstart.config import PretrainConfig
from headstart.data.batches import TokenSource, choose_held_out, store_corpus, text_hash
from headstart.data.columns import ReadOptions
from headstart.data.corpus import Corpus, read_corpus, with_progress
from headstart.data.splits import guess_task, read_texts
from headstart.data.tokenizers import Tokenizer, hash_of, load_tokenizer, train_tokenizer
from headstart.errors import HeadstartError
from headstart.files import cache_folder, write_text
from headstart.model.presets import Preset, PresetObjective, preset
from headstart.objectives import OBJECTIVES
from headstart.run import NetworkRun
from headstart.tasks import find_task
from headstart.training.callbacks import Callback

SMALL_CORPUS = 2_000_000  # bytes
BYTES_PER_TOKEN = 8  # more than any language has on average
TASK_TEXT_SHARE = 0.2  # of the steps, at the end
MAX_TASK_PASSES = 4


@dataclass(frozen=True)
class PretrainData:
    """A corpus that is ready to train on; `identity` has the fingerprints of its inputs."""

    tokenizer: Tokenizer
    train: TokenSource
    held_out: TokenSource
    held_out_bytes: int
    identity: dict[str, str]
    rows: int  # of a step
    task_text: TokenSource | None = None

    def source(self, step: int, steps: int) -> tuple[TokenSource, int]:
        """Return where the batch of a step comes from, and the number of that batch there.

        Towards the end of a run every second batch is task text: what is read last is remembered
        best. A small dataset is read at most `MAX_TASK_PASSES` times. Steps that are timed, before
        their number is known (0), read the corpus.
        """
        if self.task_text is None or not steps:
            return self.train, step
        first = round((1 - TASK_TEXT_SHARE) * steps)
        batches = max(1, MAX_TASK_PASSES * self.task_text.num_rows() // self.rows)
        every = max(2, -(-(steps - first) // batches))
        if step < first or (step - first) % every != every - 1:
            return self.train, step
        return self.task_text, (step - first) // every


def prepare_corpus(
    config: PretrainConfig,
    *,
    callback: Callback | None = None,
    corpus: Corpus | None = None,  # by default, the config's is read
    tokenizer: Tokenizer | None = None,  # of a run that is resumed
) -> PretrainData:
    """Read, tokenize and store the corpus; every part is cached by its content."""
    callback = callback or Callback()
    corpus = corpus or open_corpus(config)
    tokenizer = tokenizer or find_tokenizer(config, corpus, callback)
    small = corpus.size is not None and corpus.size < SMALL_CORPUS
    share = config.held_out or (0.1 if small else 0.01)
    limit = choose_held_out(corpus, share, min_bytes=BYTES_PER_TOKEN * config.length)
    train, held_out = store_corpus(
        with_progress(corpus, callback.stage("tokenizing")),
        tokenizer,
        cache_folder() / "stores",
        fingerprint=corpus.fingerprint,
        held_out=limit,
    )
    if min(train.tokens, held_out.tokens) <= config.length:
        raise HeadstartError(
            f"the corpus is too small: {train.tokens:,} tokens to train on and "
            f"{held_out.tokens:,} held out; each needs more than one row of {config.length}",
            where=corpus.name,
            fix="give more text, more documents (--documents line), a larger --held-out share or a "
            "smaller --length",
        )
    return PretrainData(
        tokenizer,
        TokenSource(train, tokenizer, length=config.length),
        TokenSource(held_out, tokenizer, length=config.length),
        sum(len(tokenizer.decode(document.tolist()).encode()) for document in held_out),
        {"corpus": corpus.fingerprint, "tokenizer": tokenizer.fingerprint},
        config.rows,
        _task_source(config, corpus, tokenizer, limit),
    )


def _task_source(
    config: PretrainConfig, corpus: Corpus, tokenizer: Tokenizer, held_out: int
) -> TokenSource | None:
    """The task's training texts, without those that are held out."""
    if not corpus.task_text or corpus.is_task_text:
        return None
    kept = [text for text in corpus.task_text if text_hash(text) >= held_out]
    store, _ = store_corpus(
        kept,
        tokenizer,
        cache_folder() / "stores",
        fingerprint=hash_of(*(text.encode("utf-8", "surrogatepass") for text in kept)),
    )
    if store.tokens <= config.length:  # not one row
        return None
    return TokenSource(store, tokenizer, length=config.length)


def open_corpus(config: PretrainConfig) -> Corpus:
    """Open the config's corpus, with the training texts of its task where it names one."""
    corpus = read_corpus(
        config.corpus,
        text_column=config.text_column,
        encoding=config.encoding,
        documents=config.documents,
    )
    if config.test:
        corpus = corpus.without(read_texts(config.test, encoding=config.encoding))
    if not config.task_text:
        return corpus
    name, _ = guess_task([config.task_text], ReadOptions(encoding=config.encoding))
    parts: Any = find_task(name).read([config.task_text], encoding=config.encoding)
    task = find_task(name).from_rows(parts.train)
    held_out = [*task.texts(parts.validation)]
    if parts.test is not None:
        held_out += task.texts(parts.test)
    return corpus.without(held_out).with_task_text(task.texts(parts.train))


def find_tokenizer(config: PretrainConfig, corpus: Corpus, callback: Callback) -> Tokenizer:
    """Load the given tokenizer or the base's, or train one on the corpus and cache it."""
    if config.tokenizer:
        return load_tokenizer(Path(config.tokenizer))
    if config.base is not None:
        return NetworkRun.open(config.base).tokenizer
    vocab_size = network_preset(config).base.vocab_size
    name = hash_of(corpus.fingerprint.encode(), f"bpe {vocab_size}".encode())[:32]
    path = cache_folder() / "tokenizers" / f"{name}.json"
    checksum = path.with_suffix(".sha256")
    with suppress(OSError, UnicodeDecodeError, HeadstartError):  # not trained yet, or damaged
        tokenizer = load_tokenizer(path)
        if checksum.read_text(encoding="utf-8").strip() == tokenizer.fingerprint:
            return tokenizer
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = with_progress(corpus, callback.stage("training the tokenizer"))
    train_tokenizer(texts, vocab_size=vocab_size).save(path)
    tokenizer = load_tokenizer(path)
    write_text(checksum, tokenizer.fingerprint + "\n")
    return tokenizer


def network_preset(config: PretrainConfig, *, vocab_size: int | None = None) -> Preset:
    """The config's network, for its objective and sizes."""
    sizes = config.sizes() | ({} if vocab_size is None else {"vocab_size": vocab_size})
    attention = OBJECTIVES[config.objective].attention
    kind: PresetObjective = "causal" if attention == "causal" else "masked"
    return preset(config.preset, objective=kind, **sizes)
