"""Models of `transformers` as bases: `hf:PATH` or `hf:owner/name`, whatever their family.

`TransformersBase` runs a model of `transformers` in the place of our `Transformer`, so that every
command works with it. Weights are read from safetensors only, and no code of a model is ever run.
The config is compared with the sizes of the stored tensors before anything is allocated.

What `config.json` does not say is found by trying: whether a model is causal, and which token its
classifier reads. A head that cannot be separated from its model is left out.
"""

import copy
import hashlib
import inspect
import json
import re
import tempfile
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from headstart.config import Pooling
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError, need_packages
from headstart.interop.hub import find_folder
from headstart.model.attention import take
from headstart.model.base import Transformer
from headstart.model.config import (
    BaseConfig,
    ClassificationConfig,
    HeadConfig,
    LanguageModelingConfig,
    TaggingConfig,
)
from headstart.model.heads import HEADS
from headstart.model.model import Model
from headstart.run import NetworkRun
from headstart.tasks import find_task
from headstart.tasks.task import Task

CONFIG, WEIGHTS = "config.json", "model.safetensors"
TASK = "headstart_task"  # in the config.json of our exports
AGAIN = "download the folder again, with all of its files"
LONGEST = 512  # tokens that a task reads at once
TRIED_TOKENS = 7
SLACK = 1_000_000  # parameters that a file may lack, such as those of a new head
# The automatic class and the kind of our head, by how the class in config.json ends.
ARCHITECTURES = {
    "ForMaskedLM": ("AutoModelForMaskedLM", "language_modeling"),
    "ForPreTraining": ("AutoModelForMaskedLM", "language_modeling"),
    "ForCausalLM": ("AutoModelForCausalLM", "language_modeling"),
    "LMHeadModel": ("AutoModelForCausalLM", "language_modeling"),
    "ForSequenceClassification": ("AutoModelForSequenceClassification", "classification"),
    "ForTokenClassification": ("AutoModelForTokenClassification", "tagging"),
}
AUTO_CLASSES = {
    "language_modeling": "AutoModelForMaskedLM",
    "classification": "AutoModelForSequenceClassification",
    "tagging": "AutoModelForTokenClassification",
    "spans": "AutoModelForQuestionAnswering",
}
# Signs of a classifier of pairs: labels of natural language inference, and tasks of GLUE.
INFERENCE = {"entailment", "contradiction", "neutral", "not_entailment"}
PAIR_TASKS = {"mnli", "mrpc", "qnli", "qqp", "rte", "snli", "stsb", "sts-b", "wnli"}
# Whose layers end with a feed-forward network after a module `attention`. In the last one it is
# computed only for the positions that are read, which saves a tenth of MiniLM's time.
NARROWED = ("bert", "camembert", "electra", "roberta", "xlm-roberta")
_only_at: ContextVar[Tensor | None] = ContextVar("only_at", default=None)
NO_MATCH = ("no match", "match")  # of a cross-encoder with a single score


class TransformersBase(Transformer):
    """A model of `transformers` without its head, in the place of our own base.

    Parameters
    ----------
    config : BaseConfig
        With `transformers`, the model's config as JSON.
    inner : nn.Module, optional
        The model; by default one with random weights.
    """

    def __init__(self, config: BaseConfig, inner: Any = None) -> None:
        nn.Module.__init__(self)
        self.config = config
        if inner is None:
            inner = make_model("AutoModel", _read_json(config))
        # The pooler belongs to the classification head (see `Given`).
        if getattr(inner, "pooler", None) is not None:
            inner.pooler = None
        inner.config.use_cache = False
        self.embedding = inner.get_input_embeddings()
        self.inner = inner
        self.narrows = inner.config.model_type in NARROWED
        if self.narrows:
            inner.encoder.layer[-1].attention.register_forward_hook(_narrow)

    def forward(
        self,
        tokens: Tensor,
        segments: Tensor | None = None,
        token_types: Tensor | None = None,
        cache: Any = None,
        only_at: Tensor | None = None,
    ) -> Tensor:
        """Compute hidden states as `Transformer.forward`; packed texts are read row by row."""
        past = 0 if cache is None else int(cache.get_seq_length())
        if self.config.positions == "learned" and past + tokens.size(1) > self.config.max_length:
            raise HeadstartError(
                f"a text of {past + tokens.size(1)} tokens; this base has "
                f"{self.config.max_length} positions",
                fix=f"cut the texts to {self.config.max_length} tokens, or read them in windows",
            )
        given: dict[str, Any] = {"input_ids": tokens}
        if token_types is not None and self.config.token_types > 1:
            given["token_type_ids"] = token_types
        if cache is not None:
            given |= {"past_key_values": cache, "use_cache": True}
        elif segments is not None and not bool((segments == 1).all()):
            segments = segments.to(torch.int64)
            if bool((segments > 1).any()) or bool((segments[:, 1:] > segments[:, :-1]).any()):
                hidden = self._unpacked(tokens, segments, token_types)
                return hidden if only_at is None else take(hidden, only_at)
            if self.config.attention != "causal":  # nothing sees padding behind it
                given["attention_mask"] = segments
                padding = self.inner.config.pad_token_id
                given["input_ids"] = tokens.where(segments > 0, padding or 0)
        token = _only_at.set(only_at)
        try:
            hidden = self.inner(**given).last_hidden_state
        finally:
            _only_at.reset(token)
        return hidden if only_at is None or self.narrows else take(hidden, only_at)

    def _unpacked(self, tokens: Tensor, segments: Tensor, token_types: Tensor | None) -> Tensor:
        """Read each text of packed rows, or of rows padded on the left, in a row of its own."""
        rows = torch.arange(len(tokens), device=tokens.device).unsqueeze(1)
        texts = (rows * (int(segments.max()) + 1) + segments).flatten()
        (place,) = (segments > 0).flatten().nonzero(as_tuple=True)  # of each real token
        _, row, counts = texts[place].unique_consecutive(return_inverse=True, return_counts=True)
        column = torch.arange(len(place), device=tokens.device)
        column = column - (counts.cumsum(0) - counts)[row]

        def spread(values: Tensor) -> Tensor:
            found = values.new_zeros(len(counts), int(counts.max()))
            found[row, column] = values.flatten()[place]
            return found

        types = None if token_types is None else spread(token_types)
        hidden = self(spread(tokens), spread((segments > 0).long()), types)
        joined = hidden.new_zeros(tokens.numel(), hidden.size(-1))
        joined = joined.index_put((place,), hidden[row, column])
        return joined.view(*tokens.shape, -1)

    def new_cache(self) -> Any:
        return library().DynamicCache(config=self.inner.config)

    def stock_layers(self, kind: str, outputs: int) -> tuple[nn.Module, nn.Linear]:
        """Make the layers that `transformers` has for a task, with random weights."""
        auto = AUTO_CLASSES[kind]
        if kind == "language_modeling" and self.config.attention == "causal":
            auto = "AutoModelForCausalLM"
        values = _read_json(self.config)
        if kind != "language_modeling":
            values.num_labels = outputs
        return split_head(make_model(auto, values), kind)


def _narrow(module: nn.Module, given: Any, output: Any) -> Any:
    """Select the positions that are read, after the last attention."""
    positions = _only_at.get()
    if positions is None:
        return output
    return (take(output[0], positions), *output[1:])


class Given(nn.Module):
    """In the place of a model's base: returns the hidden states that it is given."""

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        hidden: Any = inputs_embeds
        return BaseModelOutputWithPoolingAndCrossAttentions(hidden, pooled)


class StockLayers(nn.Module):
    """What a model of `transformers` has between its base and its output layer."""

    def __init__(self, outer: nn.Module, output: str) -> None:
        super().__init__()
        self.outer = outer  # with `Given` as its base, and an identity as its output layer
        self.output = output  # the name of that layer

    def forward(self, hidden: Tensor) -> Tensor:
        """Compute (…, d) → (…, d'), each vector alone."""
        rows = hidden.reshape(-1, 1, hidden.size(-1))
        logits: Tensor = self.outer(inputs_embeds=rows).logits
        return logits.reshape(*hidden.shape[:-1], -1)

    def join(self, base: Any, output: nn.Linear) -> Any:
        """Return the whole model: the base, these layers and the output layer."""
        whole: Any
        whole, base, output = copy.deepcopy((self.outer, base, output))  # they share weights
        given = whole.base_model
        if given.pooler is not None:
            base.pooler = given.pooler
        setattr(whole, whole.base_model_prefix, base)
        whole.set_submodule(self.output, output)
        return whole


def split_head(outer: Any, kind: str) -> tuple[StockLayers, nn.Linear]:
    """Take a model of `transformers` apart: the layers before its output layer, and that layer."""
    base, output = outer.base_model, outer.get_output_embeddings()
    setattr(outer, outer.base_model_prefix, Given(getattr(base, "pooler", None)))
    layers = {name: one for name, one in outer.named_modules() if isinstance(one, nn.Linear)}
    if kind == "language_modeling":
        name = next((name for name, one in layers.items() if one is output), None)
    else:
        sizes = {name: one.out_features for name, one in layers.items()}
        name = next((one for one in reversed(sizes) if sizes[one] == outer.num_labels), None)
    if name is None:
        raise HeadstartError(f"{type(outer).__name__} has no output layer of its own")
    outer.set_submodule(name, nn.Identity())
    outer.config = copy.deepcopy(outer.config)
    outer.config.pad_token_id = outer.config.pad_token_id or 0  # else batches are rejected
    return StockLayers(outer, name), layers[name]


def open_base(name: str) -> NetworkRun:
    """Open `PATH` or `owner/name`, the part of a name after `hf:`."""
    folder = find_folder(name)
    values = _read_config(folder)
    architecture = str((values.architectures or [""])[0])
    found = [one for ending, one in ARCHITECTURES.items() if architecture.endswith(ending)]
    auto, kind = found[0] if found else ("AutoModel", None)
    _check_sizes(values, auto, folder)
    base, head = _take_apart(_load(auto, values, folder), kind)
    tokenizer = read_tokenizer(folder)
    spare = base.config.vocab_size - tokenizer.vocab_size
    if spare < 0:
        raise HeadstartError(
            f"the tokenizer has {tokenizer.vocab_size:,} tokens, the embedding only "
            f"{base.config.vocab_size:,}: they do not belong together",
            where=folder,
            fix="put the model's own tokenizer.json there",
        )
    base.config = replace(base.config, vocab_padding=spare)
    task = None if head is None else _find_task(values, head.config)
    length = min(base.config.max_length, LONGEST)
    return NetworkRun(folder, Model(base, head).eval(), tokenizer, task=task, length=length)


def fingerprint(name: str) -> str:
    """Hash the weights of a base by its name after `hf:`."""
    digest = hashlib.sha256()
    for file in _weight_files(find_folder(name)):
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def _take_apart(outer: Any, kind: str | None) -> tuple[TransformersBase, Any]:
    """Make our base and head of a model; no head if ours would not compute the same."""
    inner = outer.base_model
    config = _describe(inner)
    if kind is None:
        return TransformersBase(config, inner), None
    tokens = _tokens(config)
    with torch.no_grad():
        wanted = outer(input_ids=tokens).logits
    layers, output = split_head(outer, kind)
    base = TransformersBase(config, inner).eval()
    if kind == "classification" and output.out_features == 1:
        output = _two_classes(output)
        wanted = torch.cat([torch.zeros_like(wanted), wanted], dim=-1)
    for head_config in _possible_heads(kind, output, output.weight is base.embedding.weight):
        # With random layers of its own, which are then replaced.
        head = HEADS[kind][1](base, replace(head_config, stock=False))
        head.config, head.transform, head.output = head_config, layers, output
        try:
            with torch.no_grad():
                found = head.eval()(base(tokens))
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            continue  # a head of another form
        if found.shape == wanted.shape and torch.allclose(found, wanted, 1e-4, 1e-4):
            return base, head
    return base, None


def _possible_heads(kind: str, output: nn.Linear, tied: bool) -> Iterable[Any]:
    bias, outputs = output.bias is not None, output.out_features
    if kind == "language_modeling":
        return [LanguageModelingConfig(tied=tied, bias=bias, stock=True)]
    if kind == "tagging":
        return [TaggingConfig(tags=outputs, stock=True)]
    poolings: tuple[Pooling, ...] = ("first", "last", "mean")
    return [
        ClassificationConfig(classes=outputs, pooling=one, bias=bias, stock=True)
        for one in poolings
    ]


def _two_classes(output: nn.Linear) -> nn.Linear:
    """Turn a single score into two classes: softmax(0, s) is the sigmoid of s."""
    made = nn.Linear(output.in_features, 2, bias=output.bias is not None)
    with torch.no_grad():
        for name, value in output.named_parameters():
            made.get_parameter(name).copy_(torch.cat([torch.zeros_like(value), value]))
    return made


def _find_task(values: Any, head: HeadConfig) -> Task[Any] | None:
    """Return the task of a classifier or tagger, so that it predicts as it is."""
    labels = tuple(str(values.id2label[key]) for key in sorted(values.id2label or {}))
    if isinstance(head, TaggingConfig):
        return find_task("tagging")(labels)
    if not isinstance(head, ClassificationConfig):
        return None
    labels = NO_MATCH if len(labels) == 1 else labels
    if values.problem_type == "multi_label_classification":
        return find_task("multi-label")(labels)
    inference = {label.lower() for label in labels} <= INFERENCE
    known = str(getattr(values, "finetuning_task", "")).lower() in PAIR_TASKS
    cross_encoder = labels == NO_MATCH or hasattr(values, "sentence_transformers")
    pairs = getattr(values, TASK, "") == "pairs" or inference or known or cross_encoder
    return find_task("pairs" if pairs else "classification")(labels)


def _describe(inner: Any) -> BaseConfig:
    """Describe a model by our own settings."""
    values = inner.config
    accepted = inspect.signature(inner.forward).parameters
    rotary = getattr(values, "rope_parameters", None) is not None
    dropouts = ("hidden_dropout_prob", "resid_pdrop", "dropout", "embedding_dropout")
    dropout = [float(getattr(values, name)) for name in dropouts if hasattr(values, name)]
    positions = int(getattr(values, "max_position_embeddings", 0) or 0)
    tables = [one for one in inner.modules() if isinstance(one, nn.Embedding)]
    # RoBERTa's positions start behind the number of its padding.
    offsets = [one.padding_idx for one in tables if one is not inner.get_input_embeddings()]
    offset = max((one + 1 for one in offsets if one is not None), default=0)
    config = BaseConfig(
        vocab_size=inner.get_input_embeddings().num_embeddings,
        width=values.hidden_size,
        layers=values.num_hidden_layers,
        heads=getattr(values, "num_attention_heads", 1),
        feed_forward_width=getattr(values, "intermediate_size", None) or 4 * values.hidden_size,
        positions="learned" if positions and not rotary else "rotary",
        max_length=max(1, positions - offset) if positions else LONGEST,
        norm="layer",
        biases=True,
        token_types=getattr(values, "type_vocab_size", 0) if "token_type_ids" in accepted else 0,
        dropout=dropout[0] if dropout else 0.0,
        transformers=values.to_json_string(use_diff=False),
    )
    if not _is_causal(inner, config):
        config = replace(config, attention="bidirectional")
        config = config if rotary else replace(config, norm_place="after")
    return config


@torch.no_grad()
def _is_causal(inner: Any, config: BaseConfig) -> bool:
    """Find out whether the first token's vector depends on the last token."""
    one = _tokens(config)
    other = one.clone()
    other[0, -1] = one[0, 0]
    first, second = (inner(input_ids=tokens).last_hidden_state[0, 0] for tokens in (one, other))
    return torch.equal(first, second)


def _tokens(config: BaseConfig) -> Tensor:
    """Return a few different ids, without those in front, where special tokens are."""
    last = config.vocab_size - 1
    return torch.arange(last, last - min(TRIED_TOKENS, config.max_length, last), -1).unsqueeze(0)


def library() -> Any:
    """Import `transformers`, which speaks only of errors."""
    need_packages("hf", "transformers")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


def make_model(auto: str, values: Any) -> Any:
    """Make a model with random weights; without `False` the library asks whether to run code."""
    return getattr(library(), auto).from_config(values, trust_remote_code=False)


def _read_json(config: BaseConfig) -> Any:
    """Make the config of `transformers` that a base was saved with."""
    try:
        values = json.loads(str(config.transformers))
        made = library().AutoConfig.for_model(values.pop("model_type"), **values)
        made._attn_implementation = None  # see `_read_config`
        if made.num_hidden_layers != config.layers:  # which has bounds
            raise ValueError(f"{made.num_hidden_layers} layers are not {config.layers}")
    except HeadstartError:
        raise
    except Exception as error:
        raise _rejected(error) from None
    return made


def _read_config(folder: Path) -> Any:
    path = folder / CONFIG
    if not path.is_file():
        raise HeadstartError(
            "there is no config.json here, so this is not a model in Hugging Face's form",
            where=folder,
            fix="name the folder that holds config.json, model.safetensors and tokenizer.json",
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise HeadstartError(f"config.json is damaged: {error}", where=path) from None
    if isinstance(values, dict) and "base" in values and "format" in values:
        raise HeadstartError(
            "this is a run of Headstart, not a model in Hugging Face's form",
            where=folder,
            fix=f"name it without “hf:”: --base {folder}",
        )
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise HeadstartError(
            "this config.json names no model_type, so it is not one of transformers", where=path
        )
    auto = library().AutoConfig
    try:
        found = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        raise _rejected(error, path) from None
    found._attn_implementation = None  # a name there can be that of code on the Hub
    sizes = ("hidden_size", "num_hidden_layers", "vocab_size")
    if found.is_encoder_decoder or not all(hasattr(found, name) for name in sizes):
        raise HeadstartError(
            f"{found.model_type!r} is neither an encoder nor a decoder of text",
            where=path,
            fix="choose a model such as BERT, RoBERTa, ModernBERT, GPT-2 or Llama",
        )
    return found


def _check_sizes(values: Any, auto: str, folder: Path) -> None:
    """Reject a config that does not fit the tensors in the files' headers."""
    stored: dict[str, tuple[int, ...]] = {}
    for file in _weight_files(folder):
        try:
            with safe_open(file, framework="pt") as content:
                for name in content.keys():  # noqa: SIM118
                    stored[name] = tuple(content.get_slice(name).get_shape())
        except SafetensorError as error:
            raise HeadstartError(
                f"{file.name} is damaged or cut short: {error}", where=file, fix=AGAIN
            ) from None
    total = sum(torch.Size(shape).numel() for shape in stored.values())
    layers = values.num_hidden_layers
    problems = []
    if not isinstance(layers, int) or not 0 < layers <= len(stored):
        problems.append(f"config.json has {layers} layers, the file {len(stored)} tensors in all")
    else:
        try:
            with torch.device("meta"):
                model = make_model(auto, values)
        except HeadstartError:
            raise
        except Exception as error:
            raise _rejected(error, folder / CONFIG) from None
        wanted = {name: tuple(value.shape) for name, value in model.named_parameters()}
        problems += [
            f"{name} is {stored[name]} in the file, {shape} in config.json"
            for name, shape in wanted.items()
            if stored.get(name, shape) != shape
        ]
        count = sum(value.numel() for value in model.parameters())
        if count > 2 * total + SLACK:
            problems.append(f"config.json has {count:,} parameters, the file {total:,}")
    if problems:
        raise _misfit(problems, folder)


def _load(auto: str, values: Any, folder: Path) -> Any:
    try:
        outer, info = getattr(library(), auto).from_pretrained(
            folder,
            config=values,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as error:
        raise _rejected(error, folder) from None
    prefix = f"{outer.base_model_prefix}."
    problems = [f"{name} is missing" for name in info["missing_keys"] if "pooler." not in name]
    problems += [
        f"{name} has no place here"
        for name in info["unexpected_keys"]
        if name.startswith(prefix) and "pooler." not in name
    ]
    if problems:
        raise _misfit(problems, folder)
    broken = [name for name, one in outer.named_parameters() if not bool(one.isfinite().all())]
    if broken:
        raise HeadstartError(
            f"the weights hold NaN or infinite numbers: {', '.join(broken[:6])}",
            where=folder,
            fix=AGAIN,
        )
    return outer.eval()


def _misfit(problems: list[str], folder: Path) -> HeadstartError:
    more = [f"… and {len(problems) - 6} more"] if len(problems) > 6 else []
    return HeadstartError(
        "the weights do not fit config.json:\n  " + "\n  ".join(sorted(problems)[:6] + more),
        where=folder,
        fix="put the config.json that belongs to these weights there",
    )


def _rejected(error: Exception, where: object = None) -> HeadstartError:
    """Say what `transformers` has against a folder; its kinds of errors have no common base."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return HeadstartError(
        f"transformers cannot open this model: {' '.join(lines[:2])[:300] or type(error).__name__}",
        where=where,
        fix="check its config.json, or choose a model that this version of transformers knows",
    )


def _weight_files(folder: Path) -> list[Path]:
    """List the files that hold the weights."""
    index = folder / f"{WEIGHTS}.index.json"
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not index.is_file():
        others = [path.name for path in folder.iterdir() if path.suffix in (".bin", ".h5", ".pt")]
        raise HeadstartError(
            f"there is no {WEIGHTS} here"
            + (f", only {', '.join(sorted(others))}, which can carry code" if others else ""),
            where=folder,
            fix="get the model with safetensors, or convert it: "
            "AutoModel.from_pretrained(NAME).save_pretrained(FOLDER)",
        )
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        if any(Path(name).name != name or not name.endswith(".safetensors") for name in names):
            raise ValueError("a name of another folder, or of another form")
        files = [folder / name for name in names]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HeadstartError(f"{index.name} is damaged", where=index, fix=AGAIN) from None
    if missing := [file.name for file in files if not file.is_file()]:
        raise HeadstartError(
            f"the download is not complete: {', '.join(missing)} is missing",
            where=folder,
            fix=AGAIN,
        )
    return files


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read `tokenizer.json`; where there is none, `AutoTokenizer` makes it from older files."""
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.read(folder / "tokenizer.json")
    try:
        if not any(any(folder.glob(name)) for name in ("vocab.*", "*.model")):
            raise ValueError("its folder has no vocabulary")  # transformers would make an empty one
        auto = library().AutoTokenizer
        made = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        with tempfile.TemporaryDirectory() as temporary:
            made.backend_tokenizer.save(f"{temporary}/tokenizer.json")
            return Tokenizer.read(Path(temporary) / "tokenizer.json")
    except Exception as error:
        first = re.split(r"[\n.]", str(error).strip())[0]
        raise HeadstartError(
            f"there is no tokenizer.json here, and no other tokenizer can be read ({first[:200]})",
            where=folder,
            fix="save it there: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)",
        ) from None
