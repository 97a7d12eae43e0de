"""Models of `transformers` as bases: `hf:PATH` or `hf:owner/name`, whatever their family.

`TransformersBase` runs a model of `transformers` in place of our `Transformer`, so that every
command works with it. Weights are read from safetensors only, and no code of a model is ever run.
The config is compared with the sizes of the stored tensors before anything is allocated.

One request finds the current revision of a model of the Hub, so that a run can be repeated after
the model has changed. Its files are in the cache that all tools of Hugging Face share.

What `config.json` does not say is determined by running the model: whether it is causal, and which
token its classifier reads. A head that cannot be separated from its model is dropped.
"""

import copy
import inspect
import json
import math
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from headstart.checksums import checksum
from headstart.data.tokenizers import Tokenizer
from headstart.errors import HeadstartError, need_packages
from headstart.files import Form, read_object
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

NAME = re.compile(r"(?P<name>\w[\w.-]*(?:/[\w.-]+)?)(?:@(?P<revision>[\w./-]+))?")
FILES = [
    *("config.json", "tokenizer*", "special_tokens_map.json", "vocab.*", "merges.txt", "*.model"),
    *("*.safetensors", "*.safetensors.index.json"),
]
NOT_SENT = "there is no such folder, and the Hugging Face Hub did not send this model"
CHECK_NETWORK = (
    "check the name and the network, and start the same command again: what was downloaded is "
    "kept; for a gated model, accept its terms on its page and run: hf auth login"
)
CONFIG, WEIGHTS = "config.json", "model.safetensors"
TASK = "headstart_task"  # in the config.json of our exports
AGAIN = "download the folder again, with all of its files"
CHECK = (
    "check its config.json, or choose a model that this version of transformers knows; a run of "
    "Headstart is named without “hf:”"
)
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
# How the names of classes end, by the kind of our head; those of language models differ.
ENDINGS = {
    "": "Model",
    "classification": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "spans": "ForQuestionAnswering",
}
INDEX_FORMS: dict[str, Form] = {
    "weight_map": lambda value: (
        isinstance(value, dict) and all(isinstance(name, str) for name in value.values())
    )
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
    """A model of `transformers` used in place of our base; by default, with random weights."""

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
                given["input_ids"] = tokens.where(segments > 0, self.inner.config.pad_token_id or 0)
        token = _only_at.set(only_at)
        try:
            hidden = self.inner(**given).last_hidden_state
        finally:
            _only_at.reset(token)
        return hidden if only_at is None or self.narrows else take(hidden, only_at)

    def _unpacked(self, tokens: Tensor, segments: Tensor, token_types: Tensor | None) -> Tensor:
        """Read each text of packed rows, or of rows padded on the left, in a separate row."""
        real = segments > 0
        rows = torch.arange(len(tokens), device=tokens.device).unsqueeze(1).expand_as(tokens)
        texts = torch.stack([rows[real], segments[real]])
        sizes = texts.unique_consecutive(dim=1, return_counts=True)[1].tolist()

        def unpack(values: Tensor) -> Tensor:
            return pad_sequence(values[real].split(sizes), batch_first=True)

        mask = unpack(torch.ones_like(tokens))
        types = None if token_types is None else unpack(token_types)
        hidden = self(unpack(tokens), mask, types)
        packed = hidden.new_zeros(*tokens.shape, hidden.size(-1))
        packed[real] = hidden[mask > 0]
        return packed

    def new_cache(self) -> Any:
        return library().DynamicCache(config=self.inner.config)

    def stock_layers(self, kind: str, outputs: int) -> tuple[nn.Module, nn.Linear]:
        """Make the layers that `transformers` has for a task, with random weights."""
        language_model = f"For{'Causal' if self.config.attention == 'causal' else 'Masked'}LM"
        values = _read_json(self.config)
        if kind != "language_modeling":
            values.num_labels = outputs
        return split_head(make_model(f"AutoModel{ENDINGS.get(kind, language_model)}", values), kind)


def _narrow(module: nn.Module, given: Any, output: Any) -> Any:
    """Select the positions that are read, after the last attention."""
    positions = _only_at.get()
    if positions is None:
        return output
    return (take(output[0], positions), *output[1:])


class Given(nn.Module):
    """Replaces the base of a model; returns the hidden states that are passed to it."""

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        hidden: Any = inputs_embeds
        return BaseModelOutputWithPoolingAndCrossAttentions(hidden, pooled)


class StockLayers(nn.Module):
    """The layers of a model of `transformers` between its base and its output layer."""

    def __init__(self, outer: nn.Module, output: str) -> None:
        super().__init__()
        self.outer = outer  # with `Given` as its base, and an identity as its output layer
        self.output = output  # the name of that layer

    def forward(self, hidden: Tensor) -> Tensor:
        """Compute (…, d) → (…, d'), each vector alone."""
        logits: Tensor = self.outer(inputs_embeds=hidden.reshape(-1, 1, hidden.size(-1))).logits
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
    output = outer.get_output_embeddings() if kind == "language_modeling" else None
    setattr(outer, outer.base_model_prefix, Given(getattr(outer.base_model, "pooler", None)))
    names = [
        name
        for name, layer in outer.named_modules()
        if isinstance(layer, nn.Linear)
        and (layer is output or (output is None and layer.out_features == outer.num_labels))
    ]
    if not names:
        raise HeadstartError(f"{type(outer).__name__} has no separate output layer")
    output = outer.get_submodule(names[-1])
    outer.set_submodule(names[-1], nn.Identity())
    outer.config = copy.deepcopy(outer.config)
    outer.config.pad_token_id = outer.config.pad_token_id or 0  # else batches are rejected
    return StockLayers(outer, names[-1]), output


def find_folder(given: str) -> Path:
    """Return the folder that follows `hf:`, or the one with the downloaded files of the Hub."""
    folder = Path(given).expanduser()
    if folder.exists():
        return folder
    name, _, revision = pin(given).partition("@")
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    with _explained(f"hf:{name}", CHECK_NETWORK, NOT_SENT):
        return Path(snapshot_download(name, revision=revision, allow_patterns=FILES))


def pin(given: str) -> str:
    """Return the name to save in a config: a folder as given, `owner/name` with its revision."""
    if Path(given).expanduser().exists():
        return given
    found = NAME.fullmatch(given)
    if found is None:
        raise HeadstartError(
            "there is no such folder",
            where=given,
            fix="name a folder (hf:PATH) or a model of the Hub (hf:owner/name)",
        )
    need_packages("hf", "huggingface_hub", "transformers")
    if found["revision"]:
        return given
    from huggingface_hub import HfApi

    with _explained(f"hf:{given}", CHECK_NETWORK, NOT_SENT):
        return f"{given}@{HfApi().model_info(given, timeout=10).sha}"


def open_base(name: str) -> NetworkRun:
    """Open `PATH` or `owner/name`, the part of a name after `hf:`."""
    folder = find_folder(name)
    values = _read_config(folder)
    architecture = str((values.architectures or [""])[0])
    known = (one for ending, one in ARCHITECTURES.items() if architecture.endswith(ending))
    auto, kind = next(known, ("AutoModel", None))
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
    return NetworkRun(
        folder,
        Model(base, head).eval(),
        tokenizer,
        length=min(base.config.max_length, LONGEST),
        task=None if head is None else _find_task(values, head.config),
    )


def fingerprint(name: str) -> str:
    """Hash the weights of a base by its name after `hf:`."""
    return checksum({f.name: np.memmap(f, mode="r") for f in _weight_files(find_folder(name))})


@torch.no_grad()
def _take_apart(outer: Any, kind: str | None) -> tuple[TransformersBase, Any]:
    """Split a model into base and head; the head is None if ours would compute other outputs."""
    inner = outer.base_model
    config = _describe(inner)
    if kind is None:
        return TransformersBase(config, inner), None
    tokens = _few_tokens(config.vocab_size, config.max_length)
    wanted = outer(input_ids=tokens).logits
    layers, output = split_head(outer, kind)
    base = TransformersBase(config, inner).eval()
    if kind == "classification" and output.out_features == 1:
        # One score s becomes two classes: softmax(0, s) is the sigmoid of s.
        output.out_features, wanted = 2, torch.cat([torch.zeros_like(wanted), wanted], dim=-1)
        for parameter in output.parameters():
            parameter.data = torch.cat([torch.zeros_like(parameter), parameter])
    for head_config in _possible_heads(kind, output, output.weight is base.embedding.weight):
        # With random layers, which are then replaced.
        head = HEADS[kind][1](base, replace(head_config, stock=False))
        head.config, head.transform, head.output = head_config, layers, output
        try:
            found = head.eval()(base(tokens))
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            continue  # a head of another form
        if found.shape == wanted.shape and torch.allclose(found, wanted, 1e-4, 1e-4):
            return base, head
    return base, None


def _possible_heads(kind: str, output: nn.Linear, tied: bool) -> list[Any]:
    bias, outputs = output.bias is not None, output.out_features
    if kind == "language_modeling":
        return [LanguageModelingConfig(tied=tied, bias=bias, stock=True)]
    if kind == "tagging":
        return [TaggingConfig(tags=outputs, stock=True)]
    made = ClassificationConfig(classes=outputs, pooling="first", bias=bias, stock=True)
    return [made, replace(made, pooling="last"), replace(made, pooling="mean")]


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
    pairs = (
        getattr(values, TASK, "") == "pairs"
        or {label.lower() for label in labels} <= INFERENCE
        or str(getattr(values, "finetuning_task", "")).lower() in PAIR_TASKS
        or labels == NO_MATCH
        or hasattr(values, "sentence_transformers")  # a cross-encoder
    )
    return find_task("pairs" if pairs else "classification")(labels)


def _describe(inner: Any) -> BaseConfig:
    """Describe a model by our own settings."""
    values, words = inner.config, inner.get_input_embeddings()
    accepted = inspect.signature(inner.forward).parameters
    rotary = getattr(values, "rope_parameters", None) is not None
    dropouts = ("hidden_dropout_prob", "resid_pdrop", "dropout", "embedding_dropout")
    dropout = [float(getattr(values, name)) for name in dropouts if hasattr(values, name)]
    positions = int(getattr(values, "max_position_embeddings", 0) or 0)
    # RoBERTa's positions start behind the number of its padding.
    tables = [one for one in inner.modules() if isinstance(one, nn.Embedding) and one is not words]
    offset = max([0, *(one.padding_idx + 1 for one in tables if one.padding_idx is not None)])
    max_length = max(1, positions - offset) if positions else LONGEST
    tokens = _few_tokens(words.num_embeddings, max_length)
    other = tokens.clone()
    other[0, -1] = tokens[0, 0]
    first, second = (inner(input_ids=one).last_hidden_state[0, 0] for one in (tokens, other))
    causal = torch.equal(first, second)  # the first token's vector ignores the last token
    return BaseConfig(
        vocab_size=words.num_embeddings,
        width=values.hidden_size,
        layers=values.num_hidden_layers,
        heads=getattr(values, "num_attention_heads", 1),
        feed_forward_width=getattr(values, "intermediate_size", None) or 4 * values.hidden_size,
        attention="causal" if causal else "bidirectional",
        positions="learned" if positions and not rotary else "rotary",
        max_length=max_length,
        norm="layer",
        norm_place="before" if causal or rotary else "after",
        biases=True,
        token_types=getattr(values, "type_vocab_size", 0) if "token_type_ids" in accepted else 0,
        dropout=dropout[0] if dropout else 0.0,
        transformers=values.to_json_string(use_diff=False),
    )


def _few_tokens(vocab_size: int, max_length: int) -> Tensor:
    """Return a few different ids, without those in front, where special tokens are."""
    last = vocab_size - 1
    return torch.arange(last, last - min(TRIED_TOKENS, max_length, last), -1).unsqueeze(0)


def library() -> Any:
    """Import `transformers`, set to log only errors."""
    need_packages("hf", "transformers")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@contextmanager
def _explained(
    where: object = None, fix: str = CHECK, what: str = "transformers cannot open this model"
) -> Iterator[None]:
    """Turn errors of `transformers` or the Hub, whose kinds have no common base, into one."""
    try:
        yield
    except HeadstartError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise HeadstartError(f"{what}: {reason}", where=where, fix=fix) from None


def make_model(auto: str, values: Any) -> Any:
    """Make a model with random weights; without `False` the library asks whether to run code."""
    return getattr(library(), auto).from_config(values, trust_remote_code=False)


def _read_json(config: BaseConfig) -> Any:
    """Make the config of `transformers` that a base was saved with."""
    with _explained():
        values = json.loads(str(config.transformers))
        made = library().AutoConfig.for_model(values.pop("model_type"), **values)
        made._attn_implementation = None  # see `_read_config`
        if made.num_hidden_layers != config.layers:  # which has bounds
            raise ValueError(f"{made.num_hidden_layers} layers are not {config.layers}")
    return made


def _read_config(folder: Path) -> Any:
    with _explained(folder):
        found = library().AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    found._attn_implementation = None  # a name there can be that of code on the Hub
    sizes = ("hidden_size", "num_hidden_layers", "vocab_size")
    if found.is_encoder_decoder or not all(hasattr(found, name) for name in sizes):
        raise HeadstartError(
            f"{found.model_type!r} is neither an encoder nor a decoder of text",
            where=folder / CONFIG,
            fix="choose a model such as BERT, RoBERTa, ModernBERT, GPT-2 or Llama",
        )
    return found


def _check_sizes(values: Any, auto: str, folder: Path) -> None:
    """Reject a config that does not fit the tensors in the files' headers."""
    stored: dict[str, tuple[int, ...]] = {}
    for file in _weight_files(folder):
        with _explained(file, AGAIN), safe_open(file, framework="pt") as content:
            for name in content.keys():  # noqa: SIM118
                stored[name] = tuple(content.get_slice(name).get_shape())
    layers, total = values.num_hidden_layers, sum(map(math.prod, stored.values()))
    if not isinstance(layers, int) or not 0 < layers <= len(stored):
        raise _misfit(
            [f"config.json has {layers} layers, the file {len(stored)} tensors in all"], folder
        )
    with _explained(folder / CONFIG), torch.device("meta"):
        model = make_model(auto, values)
    wanted = {name: tuple(value.shape) for name, value in model.named_parameters()}
    problems = [
        f"{name} is {stored[name]} in the file, {shape} in config.json"
        for name, shape in wanted.items()
        if stored.get(name, shape) != shape
    ]
    count = sum(map(math.prod, wanted.values()))
    if problems or count > 2 * total + SLACK:
        problems.append(f"config.json has {count:,} parameters, the file {total:,}")
        raise _misfit(problems, folder)


def _load(auto: str, values: Any, folder: Path) -> Any:
    with _explained(folder):
        outer, info = getattr(library(), auto).from_pretrained(
            folder,
            config=values,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    prefix = f"{outer.base_model_prefix}."
    surplus = [name for name in info["unexpected_keys"] if name.startswith(prefix)]
    broken = [name for name, one in outer.named_parameters() if not bool(one.isfinite().all())]
    problems = [
        *(f"{name} is missing" for name in info["missing_keys"]),
        *(f"{name} is not expected" for name in surplus),
        *(f"{name} holds NaN or infinite numbers" for name in broken),
    ]
    if problems := [problem for problem in problems if "pooler." not in problem]:
        raise _misfit(problems, folder)
    return outer.eval()


def _misfit(problems: list[str], folder: Path) -> HeadstartError:
    return HeadstartError(
        f"the weights do not fit config.json, in {len(problems)} places:\n  "
        + "\n  ".join(sorted(problems)[:6]),
        where=folder,
        fix="put the config.json that belongs to these weights there",
    )


def _weight_files(folder: Path) -> list[Path]:
    """List the files that hold the weights."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    index = folder / f"{WEIGHTS}.index.json"
    if not index.is_file():
        raise HeadstartError(
            f"there is no {WEIGHTS} here, and other formats of weights can run code",
            where=folder,
            fix="get the model with safetensors, or convert it: "
            "AutoModel.from_pretrained(NAME).save_pretrained(FOLDER)",
        )
    known = read_object(index, fix=AGAIN, needs=INDEX_FORMS, forms=INDEX_FORMS)["weight_map"]
    files = sorted(folder.glob("*.safetensors"))
    if missing := set(known.values()) - {file.name for file in files}:
        raise HeadstartError(
            f"the download is not complete: {', '.join(sorted(missing))} is missing",
            where=folder,
            fix=AGAIN,
        )
    return files


def read_tokenizer(folder: Path) -> Tokenizer:
    """Read `tokenizer.json`; where there is none, `AutoTokenizer` makes it from older files."""
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.read(folder / "tokenizer.json")
    fix = "save one there: AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)"
    with _explained(folder, fix), tempfile.TemporaryDirectory() as temporary:
        if not any(any(folder.glob(name)) for name in ("vocab.*", "*.model")):
            # `transformers` would make an empty one.
            raise ValueError("there is no tokenizer.json here, and no other vocabulary")
        made = library().AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        made.backend_tokenizer.save(f"{temporary}/tokenizer.json")
        return Tokenizer.read(Path(temporary) / "tokenizer.json")
