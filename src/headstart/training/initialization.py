"""The weights before the first step: random, PPMI-SVD, those of a base, or a linear probe."""

import json
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headstart.checksums import load_arrays, save_arrays
from headstart.config import (
    ORIGIN,
    FinetuneConfig,
    Pooling,
    PretrainConfig,
    hf_name,
    is_run,
    read_settings,
)
from headstart.data.cooccurrence import ppmi_svd, scale_columns
from headstart.data.dataset import Splits
from headstart.data.splits import take_budget
from headstart.data.tokenizers import Tokenizer, hash_of, load_tokenizer, train_tokenizer
from headstart.errors import HeadstartError
from headstart.files import cache_folder, replacing, write_text
from headstart.folds import make_folds
from headstart.linear import POOLED_CS, FoldFeatures, fit_regression, pooled_scale, select_C
from headstart.model.attention import SelfAttention
from headstart.model.checkpoint import CONFIG
from headstart.model.config import (
    ClassificationConfig,
    MaskedNextSentenceConfig,
)
from headstart.model.heads import ClassificationHead, Transform
from headstart.model.model import Model, SwapRow, add_projection, build_model, new_head, swap_head
from headstart.model.presets import preset, preset_of, stock_head
from headstart.objectives import OBJECTIVES
from headstart.progress import ProgressCallback
from headstart.run import NetworkRun
from headstart.tasks import find_task
from headstart.tasks.task import Examples, Task, TextEncoding, run_network
from headstart.training.callbacks import Callback
from headstart.training.corpus import PretrainData, network_preset

EMBEDDING_STD = 0.05  # of PPMI-SVD embeddings
NEIGHBOURS = 0.5  # share of the neighbours' mean that attention adds at first
VECTORS_FORMAT = 1  # raise it when other vectors are computed from the same tokens
PRETRAINING_LENGTH = 128  # of a base that does not say
MAX_LENGTH = 512  # of texts that are truncated
Floats = NDArray[np.float64]
UNSEEN = 5.0  # how far below the others the bias of a class without training texts starts
MAX_EXAMPLES = 10_000  # more make the regression slow, and no better a start


def initial_model(config: PretrainConfig, data: PretrainData, callback: Callback) -> Model:
    """Build the model of a pretraining: the base's weights, or new ones."""
    if config.base is not None:
        model = _continued_model(config)
    else:
        chosen = network_preset(config, vocab_size=data.tokenizer.vocab_size)
        head = OBJECTIVES[config.objective].head(chosen)
        model = build_model(chosen.base, head, seed=config.seed)
        if config.embedding_init == "cooccurrence":
            vectors = cooccurrence_vectors(
                data, width=chosen.base.width, power=0.5, seed=config.seed, callback=callback
            )
            initialize_embedding(model, vectors)
    if "contrastive" in config.objective:
        add_projection(model, seed=config.seed)
    return model.to(torch.device(config.device or "cpu"))


@torch.no_grad()
def initialize_embedding(model: Model, vectors: NDArray[np.float32]) -> None:
    """Start the embedding, and an untied output layer, from PPMI-SVD vectors.

    A causal base sees the token whose neighbour it must predict, so the vectors help at once. A
    masked base sees them only through attention: there the value and output matrices start as
    multiples of the identity, so that the neighbours' vectors reach the head.
    """
    scaled = torch.from_numpy(vectors * np.float32(EMBEDDING_STD / (float(vectors.std()) or 1.0)))
    known = torch.from_numpy(np.abs(vectors).sum(axis=1) > 0)
    for weight in model.vocabulary_rows:
        if weight.ndim == 2:
            weight[known] = scaled[known].to(weight.dtype)
    base = model.base.config
    if base.attention == "causal":
        return
    for module in model.modules():
        if isinstance(module, SelfAttention):
            module.query_key_value.weight[2 * base.width :] = torch.eye(base.width)
            module.output.weight.copy_(NEIGHBOURS * torch.eye(base.width))
        elif isinstance(module, Transform):
            module.dense.weight.copy_(torch.eye(base.width))


def cooccurrence_vectors(
    data: PretrainData,
    *,
    width: int,
    power: float,
    seed: int = 0,
    callback: Callback | None = None,
) -> NDArray[np.float32]:
    """Compute PPMI-SVD vectors of the training text: U·S^power, (vocab_size, width).

    The decomposition is cached; `power` is applied afterwards, so that the initialisation of a
    base (0.5) and a classifier on the vectors (1) share it.
    """
    store = data.train.store
    settings = json.dumps([width, seed, VECTORS_FORMAT])
    name = hash_of(store.key.encode(), settings.encode())[:32]
    path = cache_folder() / "cooccurrences" / f"{name}.safetensors"
    with suppress(OSError, HeadstartError, KeyError):  # not computed yet, or damaged
        cached: dict[str, Any] = load_arrays(path, fix="delete the file")[0]
        return scale_columns(cached["vectors"], cached["values"], power=power)
    report = (callback or Callback()).stage("counting co-occurrences")
    bytes_per_token = data.held_out_bytes / data.held_out.store.tokens
    vectors, values = ppmi_svd(
        store,
        vocab_size=data.tokenizer.vocab_size,
        width=width,
        ignore=sorted(data.tokenizer.specials.values()),
        seed=seed,
        progress=lambda done, total: report(
            round(done * bytes_per_token), round(store.tokens * bytes_per_token)
        ),
    )
    with replacing(path) as temporary:
        save_arrays({"vectors": vectors, "values": values}, temporary)
    return scale_columns(vectors, values, power=power)


def _continued_model(config: PretrainConfig) -> Model:
    """The base with its own head where that fits the objective, else with a new one."""
    run = NetworkRun.open(str(config.base))
    objective, base = OBJECTIVES[config.objective], run.model.base.config
    if base.attention != objective.attention:
        raise HeadstartError(
            f"the base's attention is {base.attention}, and the objective {config.objective} needs "
            f"{objective.attention} attention",
            where=config.base,
            fix=f"use --objective {base_objective(str(config.base))}, or another base",
        )
    check_length(config.length, run.model)
    usual = objective.head(preset_of(base))
    if type(run.model.head_config) is type(usual):
        return run.model.train()
    head = None if usual is None else new_head(run.model.base, usual, seed=config.seed)
    return Model(run.model.base, head).train()


def base_objective(base: str) -> str:
    """Return the objective that continues what a base has learned."""
    run = NetworkRun.open(base)
    if run.task is None and is_run(run.folder):
        return str(PretrainConfig.load(run.folder).objective)
    if run.causal:
        return "causal"
    both = isinstance(run.model.head_config, MaskedNextSentenceConfig)
    return "masked+next-sentence" if both else "masked"


class StartModel(NamedTuple):
    """A tokenizer, and a model with a new head.

    Parameters
    ----------
    swap : what became of the base's parts; empty from scratch.
    length : tokens of a row that the base was pretrained on.
    """

    tokenizer: Tokenizer
    model: Model
    swap: list[SwapRow]
    length: int


def start_model(config: FinetuneConfig, task: Task[Any], texts: Sequence[str]) -> StartModel:
    """Build the model of a fine-tuning: the base, or a new network, with a head for the task."""
    length = PRETRAINING_LENGTH
    if config.base is None:
        chosen = preset(config.preset, objective=config.objective, **config.sizes())
        if config.tokenizer:
            tokenizer = load_tokenizer(Path(config.tokenizer))
        else:
            tokenizer = train_tokenizer(texts, vocab_size=chosen.base.vocab_size)
        base = replace(chosen.base, vocab_size=tokenizer.vocab_size)
        headless = build_model(base, seed=config.seed)
    else:
        run = _open_base(config.base, _weights_version(config.base))
        tokenizer, headless = run.tokenizer, deepcopy(run.model)
        length = reading_length(run)
        chosen = preset_of(headless.base.config)
        if config.fresh:
            headless = build_model(headless.base.config, seed=config.seed)
    head = task.head(chosen, config.pooling)
    if config.head == "stock":
        head = stock_head(head, chosen.base)
        if config.pooling not in (None, getattr(head, "pooling", None)):
            raise HeadstartError(
                f"this base's stock head cannot pool with {config.pooling}",
                fix="omit --pooling, or omit --head stock",
                code="config",
            )
    swapped, rows = swap_head(headless, head, seed=config.seed)
    swapped = swapped.to(config.device or "cpu")
    swapped.base.embedding.sparse = True  # rows that no text of a step uses cost nothing
    if config.freeze:
        swapped.base.requires_grad_(False)
    return StartModel(
        tokenizer, swapped, [] if config.base is None or config.fresh else rows, length
    )


@lru_cache(maxsize=1)
def _open_base(base: str, version: tuple[int, ...]) -> NetworkRun:
    """Open a base, or return the one that was opened last: a job of a study uses one five times."""
    return NetworkRun.open(base)


def _weights_version(base: str) -> tuple[int, ...]:
    """Return what changes with the files of a base: their times and sizes."""
    files = [path.stat() for path in sorted(Path(hf_name(base) or base).glob("*"))]
    return tuple(one.st_mtime_ns + one.st_size for one in files)


def read_splits(config: FinetuneConfig, callback: Callback) -> Splits[Any]:
    """Read the config's dataset; the same parts every time."""
    parts: Any = find_task(config.task).read(
        config.dataset, **config.read_options(), progress=callback.stage("reading the dataset")
    )
    if config.labels:
        parts = replace(parts, train=take_budget(parts.train, config.labels, config.seed))
    return parts


def text_encoding(config: FinetuneConfig, task: Task[Any], start: StartModel) -> TextEncoding:
    """Return how texts are read: by default in windows as long as the rows of pretraining."""
    long = config.long or ("windows" if task.supports_windows else "truncate")
    length = config.length or (start.length if long == "windows" else MAX_LENGTH)
    base = start.model.base.config
    if config.length is None and base.positions == "learned":
        length = min(length, base.max_length)
    check_length(length, start.model)
    return TextEncoding(start.tokenizer, length, long)


def reading_length(base: NetworkRun) -> int:
    """Return the length of the rows that a base was pretrained, or fine-tuned, on."""
    config = base.model.base.config
    if base.task is not None and base.long == "windows":
        return base.length
    if base.task is None and is_run(base.folder):
        return int(read_settings(base.folder).get("length", PRETRAINING_LENGTH))
    foreign = config.transformers is not None and not is_run(base.folder)
    return min(config.max_length, MAX_LENGTH) if foreign else PRETRAINING_LENGTH


def embedding_run(
    run: NetworkRun, pooling: Pooling | None = None, length: int | None = None
) -> NetworkRun:
    """Return a run whose outputs are the pooled vectors of texts, which it reads in windows.

    Parameters
    ----------
    run : NetworkRun
        A base, or a run with any task.
    pooling : str, optional
        By default the run's, or that of its preset.
    length : int, optional
        Tokens of a window; by default as many as the run was trained on.
    """
    base, own = run.model.base, run.model.head_config
    if pooling is None:
        usual = own if isinstance(own, ClassificationConfig) else preset_of(base.config)
        pooling = usual.pooling
    with torch.random.fork_rng(devices=[]):  # the head's first weights are not used
        head = ClassificationHead(base, ClassificationConfig(classes=2, pooling=pooling))
    head.output = nn.Identity()  # type: ignore[assignment]
    return replace(
        run,
        model=Model(base, head).eval(),
        task=None,
        length=length or reading_length(run),
        long="windows",
        temperature=1.0,
    )


def local_base(base: str, folder: Path) -> Path:
    """Return the folder of a base: its own, or for a Hugging Face model that of a copy."""
    if hf_name(base) is None:
        return Path(base)
    if not (folder / CONFIG).is_file():  # which is written last
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / ORIGIN, json.dumps({"base": base}) + "\n")
        NetworkRun.open(base).save(folder)
    return folder


def check_length(length: int, model: Model) -> None:
    """Reject rows that are longer than a base has learned positions."""
    base = model.base.config
    if base.positions == "learned" and length > base.max_length:
        raise HeadstartError(
            f"a length of {length} is more than this base has positions: {base.max_length}",
            fix=f"give --length {base.max_length} or less",
            code="config",
        )


def fit_head(
    model: Model,
    examples: Examples,
    weights: NDArray[np.float32],
    *,
    progress: ProgressCallback | None = None,
) -> None:
    """Start a classification head as a linear probe of the frozen base; others stay as they are.

    A random head sends noise into the base until it has learned something itself, and damages what
    pretraining has learned there. So its output layer is fitted first, with the base frozen, and
    then both are trained together (Kumar et al. 2022, "Fine-Tuning can Distort Pretrained Features
    and Underperform Out-of-Distribution").

    The regularisation is selected among the examples themselves, in folds. Classes that exclude
    each other are one regression; labels that do not are one each, and a label that all or no
    text has stays random.
    """
    head = model.head
    if not isinstance(head, ClassificationHead):
        return
    targets = np.asarray(examples.targets)
    if len(examples) > MAX_EXAMPLES:  # always the same, with at least one of every class
        drawn = np.random.default_rng(0).choice(len(examples), MAX_EXAMPLES, replace=False)
        rows = np.union1d(drawn, np.unique(targets, return_index=True, axis=0)[1])
        examples, weights, targets = examples.picked(rows), weights[rows], targets[rows]
    if len(np.unique(targets)) < 2:
        return
    features = probe_features(model, examples, progress)
    center = features.mean(axis=0)
    features -= center
    scale = pooled_scale(features, halves=head.config.pooling == "mean+max" and not head.dense)
    features *= scale
    if targets.ndim == 1:
        fitted = _fit(features, targets, weights)
        coefficients, intercepts = _for_every_class(fitted, head.output.out_features)
        _set_output(head.output, slice(None), coefficients * scale, intercepts, center)
        return
    for label in range(targets.shape[1]):
        positive = targets[:, label] > 0.5
        if positive.any() and not positive.all():
            fitted = _fit(features, positive, weights, POOLED_CS[1::3])
            _set_output(head.output, [label], fitted.coef_ * scale, fitted.intercept_, center)


def probe_features(
    model: Model, examples: Examples, progress: ProgressCallback | None = None
) -> Floats:
    """Return the input of the head's output layer for each example: (examples, features)."""
    head = model.head
    assert isinstance(head, ClassificationHead)
    output, training = head.output, model.training
    head.output = nn.Identity()  # type: ignore[assignment]
    model.eval()
    try:
        return np.asarray(run_network(model, examples, progress=progress), dtype=np.float64)
    finally:
        head.output = output
        model.train(training)


def _fit(
    features: Floats,
    targets: NDArray[Any],
    weights: NDArray[np.float32],
    values: Sequence[float] = POOLED_CS,
) -> Any:
    folds = [
        FoldFeatures(
            features[fold.train],
            targets[fold.train],
            features[fold.held],
            targets[fold.held],
            weights[fold.train],
        )
        for fold in make_folds(targets)
    ]
    # Too few rows to select on take the middle value.
    best = select_C(folds, values)[0] if folds else values[len(values) // 2]
    return fit_regression(features, targets, best, weights=weights)


def _for_every_class(fitted: Any, classes: int) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of every class, also of those without a training text."""
    rows, biases = fitted.coef_, fitted.intercept_
    if len(fitted.classes_) == 2:  # scikit-learn has one row for two classes: half of it for each
        rows = np.concatenate([-rows, rows]) / 2
        biases = np.concatenate([-biases, biases]) / 2
    coefficients = np.zeros((classes, rows.shape[1]))
    intercepts = np.full(classes, biases.min() - UNSEEN)
    coefficients[fitted.classes_], intercepts[fitted.classes_] = rows, biases
    return coefficients, intercepts


@torch.no_grad()
def _set_output(
    output: nn.Linear, rows: Any, coefficients: Floats, intercepts: Floats, center: Floats
) -> None:
    """Put a regression on centred features into rows of the output layer.

    If the layer has no bias, a multiple of the mean features is added to the weights instead.
    """
    bias = intercepts - coefficients @ center
    if hasattr(output.bias, "dtype"):
        output.bias[rows] = torch.from_numpy(bias).to(output.bias)
    else:
        coefficients = coefficients + np.outer(bias, center) / np.square(center).sum()
    output.weight[rows] = torch.from_numpy(coefficients).to(output.weight)
