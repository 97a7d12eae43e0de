"""Runs for stock `transformers`: `AutoModelFor…` and `pipeline` open them, without custom code.

Four of our networks equal one of theirs by renaming (`FORMS`). A run whose base came from
`transformers` is put together again. Each export is opened again and compared with the run.
"""

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import processors
from torch import nn

from headstart.config import FinetuneConfig, is_run
from headstart.data.tokenizers import LabTokenizer
from headstart.errors import HeadstartError
from headstart.files import write_text
from headstart.interop.export import Exported, OutputDifference, pipeline_tag, trial_batches
from headstart.interop.huggingface import (
    TASK,
    StockLayers,
    TransformersBase,
    library,
    open_base,
)
from headstart.model.config import BaseConfig, ClassificationConfig, LanguageModelingConfig
from headstart.model.heads import MaskedNextSentenceHead
from headstart.model.model import swap_head
from headstart.model.presets import stock_head
from headstart.run import NetworkRun
from headstart.tasks.examples import between_texts
from headstart.training.callbacks import Callback
from headstart.training.initialization import fit_head, read_splits

PADDING = "[PAD]"
ALLOWED = 1e-4  # of the outputs' size: rounding adds up over the layers
PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "pairs": "single_label_classification",
    "multi-label": "multi_label_classification",
}
ENDINGS = {
    "": "Model",
    "masked_next_sentence": "ForPreTraining",
    "classification": "ForSequenceClassification",
    "tagging": "ForTokenClassification",
    "spans": "ForQuestionAnswering",
}
REFITTED = (
    "the run's head does not exist there: the stock head was fitted to the run's frozen network, "
    "on its training rows (fine-tune with --head stock to train it together with the base)"
)
TEXTS = [
    "A short one.",
    "Le café était déjà fermé — dommage, n'est-ce pas ? (Oui.)",
    "ÄÖÜ ß; Straße 12,50 €\nund\teine neue Zeile   mit Abständen",
    "Москва не сразу строилась. 東京は日本の首都です。 مرحبا بالعالم 🙂",
    "don't stop: they'll re-read it, we've seen 1,000.5 e-mails @ 10:30",
]


@dataclass(frozen=True)
class Form:
    """A network of ours that `transformers` has under other names.

    `base` and `head` are tables: their modules, and the module of ours whose weights they hold.
    Several modules of theirs share one of ours, in equal parts.
    """

    name: str  # how the names of its classes begin
    language_model: str  # and how that of its language model ends
    requires: dict[str, Any]  # settings of our base
    settings: dict[str, str]  # their names of our settings
    base: dict[str, str]
    head: dict[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)  # further settings of theirs

    def config(self, base: BaseConfig, head: Any) -> dict[str, Any]:
        """Return their settings for a base of ours."""
        found = {theirs: getattr(base, ours) for theirs, ours in self.settings.items()}
        rotary = {"rope_type": "default", "rope_theta": float(base.rotary_base)}
        if self.name == "Llama":
            found["rope_parameters"] = rotary
        if self.name == "ModernBert":
            found["layer_types"] = ["full_attention"] * base.layers
            found["rope_parameters"] = {"full_attention": rotary, "sliding_attention": rotary}
            mean = isinstance(head, ClassificationConfig) and head.pooling == "mean"
            found["classifier_pooling"] = "mean" if mean else "cls"
        tied = not isinstance(head, LanguageModelingConfig) or head.tied
        return {**found, **self.more, "tie_word_embeddings": tied}


SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "feed_forward_width",
    "max_position_embeddings": "max_length",
    "attention_dropout": "dropout",
}
PLAIN = {"embedding_scale": False, "token_types": 0, "biases": False}
LEARNED = {**PLAIN, "positions": "learned", "norm": "layer", "biases": True}
FORMS = [
    Form(
        name="Llama",
        language_model="ForCausalLM",
        requires={
            **PLAIN,
            "attention": "causal",
            "positions": "rotary",
            "norm": "rms",
            "norm_place": "before",
            "feed_forward": "swiglu",
            "embedding_norm": False,
        },
        settings={**SIZES, "rms_norm_eps": "norm_epsilon"},
        base={
            "embed_tokens": "embedding",
            "norm": "final_norm",
            "layers.{}.self_attn.q_proj layers.{}.self_attn.k_proj layers.{}.self_attn.v_proj": (
                "blocks.{}.attention.query_key_value"
            ),
            "layers.{}.self_attn.o_proj": "blocks.{}.attention.output",
            "layers.{}.mlp.gate_proj layers.{}.mlp.up_proj": "blocks.{}.feed_forward.up",
            "layers.{}.mlp.down_proj": "blocks.{}.feed_forward.down",
            "layers.{}.input_layernorm": "blocks.{}.attention_norm",
            "layers.{}.post_attention_layernorm": "blocks.{}.feed_forward_norm",
        },
    ),
    Form(
        name="ModernBert",
        language_model="ForMaskedLM",
        requires={
            **PLAIN,
            "attention": "bidirectional",
            "positions": "rotary",
            "norm": "layer",
            "norm_place": "before",
            "feed_forward": "geglu",
            "embedding_norm": True,
        },
        settings={
            **SIZES,
            "norm_eps": "norm_epsilon",
            "embedding_dropout": "dropout",
            "mlp_dropout": "dropout",
            # Version 4 has these.
            "global_rope_theta": "rotary_base",
            "local_rope_theta": "rotary_base",
        },
        base={
            "embeddings.tok_embeddings": "embedding",
            "embeddings.norm": "embedding_norm",
            "final_norm": "final_norm",
            "layers.{}.attn.Wqkv": "blocks.{}.attention.query_key_value",
            "layers.{}.attn.Wo": "blocks.{}.attention.output",
            "layers.{}.mlp.Wi": "blocks.{}.feed_forward.up",
            "layers.{}.mlp.Wo": "blocks.{}.feed_forward.down",
            "layers.{}.attn_norm": "blocks.{}.attention_norm",
            "layers.{}.mlp_norm": "blocks.{}.feed_forward_norm",
        },
        head={"head.dense": "transform.dense", "head.norm": "transform.norm"},
        more={"global_attn_every_n_layers": 1},
    ),
    Form(
        name="Bert",
        language_model="ForMaskedLM",
        requires={
            **LEARNED,
            "attention": "bidirectional",
            "norm_place": "after",
            "feed_forward": "gelu",
            "embedding_norm": True,
            "token_types": 2,
        },
        settings={
            **SIZES,
            "layer_norm_eps": "norm_epsilon",
            "type_vocab_size": "token_types",
            "hidden_dropout_prob": "dropout",
            "attention_probs_dropout_prob": "dropout",
        },
        base={
            "embeddings.word_embeddings": "embedding",
            "embeddings.position_embeddings": "positions",
            "embeddings.token_type_embeddings": "token_types",
            "embeddings.LayerNorm": "embedding_norm",
            "encoder.layer.{}.attention.self.query encoder.layer.{}.attention.self.key "
            "encoder.layer.{}.attention.self.value": "blocks.{}.attention.query_key_value",
            "encoder.layer.{}.attention.output.dense": "blocks.{}.attention.output",
            "encoder.layer.{}.attention.output.LayerNorm": "blocks.{}.attention_norm",
            "encoder.layer.{}.intermediate.dense": "blocks.{}.feed_forward.up",
            "encoder.layer.{}.output.dense": "blocks.{}.feed_forward.down",
            "encoder.layer.{}.output.LayerNorm": "blocks.{}.feed_forward_norm",
        },
        head={
            "cls.predictions.transform.dense": "transform.dense",
            "cls.predictions.transform.LayerNorm": "transform.norm",
            "bert.pooler.dense": "dense",
        },
    ),
    Form(
        name="GPT2",
        language_model="LMHeadModel",
        requires={
            **LEARNED,
            "attention": "causal",
            "norm_place": "before",
            "feed_forward": "gelu-tanh",
            "embedding_norm": False,
        },
        settings={
            "vocab_size": "vocab_size",
            "n_embd": "width",
            "n_layer": "layers",
            "n_head": "heads",
            "n_inner": "feed_forward_width",
            "n_positions": "max_length",
            "layer_norm_epsilon": "norm_epsilon",
            "resid_pdrop": "dropout",
            "embd_pdrop": "dropout",
            "attn_pdrop": "dropout",
        },
        base={
            "wte": "embedding",
            "wpe": "positions",
            "ln_f": "final_norm",
            "h.{}.attn.c_attn": "blocks.{}.attention.query_key_value",
            "h.{}.attn.c_proj": "blocks.{}.attention.output",
            "h.{}.mlp.c_fc": "blocks.{}.feed_forward.up",
            "h.{}.mlp.c_proj": "blocks.{}.feed_forward.down",
            "h.{}.ln_1": "blocks.{}.attention_norm",
            "h.{}.ln_2": "blocks.{}.feed_forward_norm",
        },
    ),
]


def export(run: NetworkRun, folder: Path, *, int8: bool = False) -> Exported:
    """Write a run for stock `transformers`, open it again and compare it."""
    if int8:
        raise HeadstartError(
            "transformers has no 8-bit form that opens everywhere",
            fix="leave --int8 out, or export with --to onnx --int8",
        )
    if isinstance(run.tokenizer, LabTokenizer):
        raise HeadstartError(
            "transformers reads tokenizers of the form tokenizer.json, and this run has another",
            where=run.folder,
            fix="export it with --to onnx, or pretrain without --tokenizer",
        )
    written, notes = run, []
    if not _has_counterpart(run):
        written, notes = fit_stock_head(run), [REFITTED]
    model = _their_model(written)
    tokenizer = tokenizers.Tokenizer.from_str(run.tokenizer.to_json())
    pad = run.tokenizer.pad_id
    if run.task is not None and pad is None:
        # To pad with the end of text would hide a text's own end, which a classifier may read.
        tokenizer.add_special_tokens([PADDING])
        pad = tokenizer.get_vocab_size() - 1
        rows = max(model.config.vocab_size, pad + 1)
        model.resize_token_embeddings(rows, mean_resizing=False)
        notes.append(f"the tokenizer had no padding: a token {PADDING} was added")
    if model.config.pad_token_id is None or pad != run.tokenizer.pad_id:
        model.config.pad_token_id = pad
    model.config.update(_labels(run))
    if model.can_generate():
        model.generation_config = library().GenerationConfig(**_special_ids(run, pad))
    model.save_pretrained(folder)
    _write_tokenizer(written, tokenizer, pad, folder)
    if written.temperature != 1.0:
        notes.append(
            f"scores are divided by {written.temperature:.4g}, the temperature that fits "
            "validation: the same labels with better calibrated probabilities"
        )
    windows = run.task is not None and run.long == "windows"
    if windows:
        notes.append(
            f"the run reads longer texts in windows of {run.length} tokens and pools them all; "
            "here they are cut (truncation=True)"
        )
    opened = None
    if run.task is not None and run.task.name != "spans":
        opened = replace(open_base(str(folder)), task=run.task, length=run.length)
    return Exported(
        model=type(model).__name__,
        library="transformers",
        pipeline=pipeline_tag(run),
        usage=_usage(run),
        notes=notes,
        comparisons=_compare(written, folder, pad or 0),
        run=opened,
        same_metric=not windows and written is run,
    )


def _has_counterpart(run: NetworkRun) -> bool:
    """Whether the head of a classifier exists in `transformers` for its base."""
    head, base = run.model.head_config, run.model.base.config
    if not isinstance(head, ClassificationConfig) or head.stock:
        return True
    if base.transformers is not None:
        return False
    _form(run)
    return head == stock_head(head, base, chosen_pooling=True)


def fit_stock_head(run: NetworkRun) -> NetworkRun:
    """Fit the classification head of stock transformers to the run's frozen network.

    It is a linear probe on the run's own training rows, read as stock models read them: truncated
    to one window. The temperature is fitted on its validation rows.
    """
    base, own, task = run.model.base.config, run.model.head_config, run.require_task()
    assert own is not None
    if not is_run(run.folder):
        raise HeadstartError(
            "this run's head does not exist in transformers, and the run does not know its "
            "training rows, which another head could be fitted to",
            where=run.folder,
            fix="fine-tune with --head stock, or export with --to onnx",
        )
    splits = read_splits(FinetuneConfig.load(run.folder), Callback())
    model, _ = swap_head(copy.deepcopy(run.model), stock_head(own, base), seed=0)
    stock = replace(run, model=model.eval(), long="truncate", temperature=1.0)
    train = task.encode(splits.train, stock.encoding)
    fit_head(model, train, train.weights)
    scores = stock.scores(splits.validation).values
    temperature = task.fit_temperature(task.validation_arrays(scores, splits.validation))
    return replace(stock, temperature=temperature)


def _form(run: NetworkRun) -> Form:
    base = run.model.base.config
    for form in FORMS:
        if all(getattr(base, name) == value for name, value in form.requires.items()):
            return form
    raise HeadstartError(
        "no model of transformers has the structure of this run's network",
        where=run.folder,
        fix="export it with --to onnx; the presets small, bert and gpt2 have counterparts",
    )


@torch.no_grad()
def _their_model(run: NetworkRun) -> Any:
    """Return the run's network as a model of `transformers`; scores include the temperature."""
    head, base = run.model.head, run.model.base
    output = None if head is None else head.output
    if output is not None and run.temperature != 1.0:
        output = copy.deepcopy(output)
        for parameter in output.parameters():
            parameter.div_(run.temperature)
    if isinstance(base, TransformersBase):
        return _joined(run, base, output)
    form = _form(run)
    kind = "" if head is None else head.config.kind
    ending = form.language_model if kind == "language_modeling" else ENDINGS[kind]
    name = f"{form.name}{ending}"
    if not hasattr(library(), name):
        raise HeadstartError(
            f"transformers has no {name}", where=run.folder, fix="export it with --to onnx"
        )
    labels = {"num_labels": len(run.labels)} if run.labels else {}
    values = form.config(base.config, run.model.head_config)
    ids = _special_ids(run, run.tokenizer.pad_id)
    config = getattr(library(), f"{form.name}Config")(**values, **labels, **ids)
    model = getattr(library(), name)(config)
    _rename(form.base, base, model.base_model, base.config.layers)
    if head is None:
        return model
    _rename(form.head, head, model, 1)
    assert output is not None
    if isinstance(head, MaskedNextSentenceHead):
        _copy(head.next_sentence.dense, [model.bert.pooler.dense])
        last = copy.deepcopy(head.next_sentence.output)
        for parameter in last.parameters():  # there 0 means "follows", here 1 does
            parameter.copy_(parameter.flip(0))
        _copy(last, [model.cls.seq_relationship])
    there = model.get_output_embeddings()
    if there is None:
        names = ("score", "classifier", "qa_outputs")
        there = next(getattr(model, name) for name in names if hasattr(model, name))
    _copy(output, [there])
    return model


def _joined(run: NetworkRun, base: TransformersBase, output: Any) -> Any:
    """Put a base that came from `transformers` together with its head again."""
    head = run.model.head
    if head is None:
        return copy.deepcopy(base.inner)
    layers = head.transform
    if not isinstance(layers, StockLayers):
        made, _ = base.stock_layers(head.config.kind, len(run.labels) or 2)
        assert isinstance(made, StockLayers)
        vectors = torch.randn(3, base.config.width)
        same = isinstance(layers, nn.Identity) and bool(torch.equal(made(vectors), vectors))
        if not same or isinstance(head.config, LanguageModelingConfig):
            raise HeadstartError(
                f"transformers has no such head for {type(base.inner).__name__}",
                where=run.folder,
                fix="fine-tune with --head stock, or export it with --to onnx",
            )
        layers = made
    return layers.join(base.inner, output)


def _rename(table: dict[str, str], ours: nn.Module, theirs: nn.Module, layers: int) -> None:
    """Copy the weights of our modules to theirs."""
    own, known = dict(ours.named_modules()), dict(theirs.named_modules())
    for names, name in table.items():
        for layer in range(layers if "{}" in name else 1):
            targets = [one.format(layer) for one in names.split()]
            source = own.get(name.format(layer))
            if source is not None and known.keys() >= set(targets):
                _copy(source, [known[one] for one in targets])


@torch.no_grad()
def _copy(ours: nn.Module, theirs: list[nn.Module]) -> None:
    """Copy weight and bias, in equal parts; GPT-2's matrices are transposed."""
    for name, value in ours.named_parameters():
        for module, part in zip(theirs, value.chunk(len(theirs)), strict=True):
            transposed = type(module).__name__ == "Conv1D" and name == "weight"
            target = getattr(module, name, None)
            if target is None or target.shape != (part.t() if transposed else part).shape:
                raise HeadstartError(
                    f"transformers has no such {name} in {type(module).__name__}",
                    fix="fine-tune with --head stock, or export it with --to onnx",
                )
            target.copy_(part.t() if transposed else part)


def _special_ids(run: NetworkRun, pad: int | None) -> dict[str, int]:
    """Return every id: the defaults of large models are outside of small vocabularies."""
    named = {"bos": "begin", "cls": "begin", "eos": "end", "sep": "separator"}
    specials = run.tokenizer.specials
    found = {f"{name}_token_id": specials[role] for name, role in named.items() if role in specials}
    return {**found, "pad_token_id": specials.get("end", 0) if pad is None else pad}


def _labels(run: NetworkRun) -> dict[str, Any]:
    if run.task is None:
        return {}
    found: dict[str, Any] = {TASK: run.task.name}
    if run.labels:
        found["id2label"] = dict(enumerate(run.labels))
        found["label2id"] = {label: number for number, label in enumerate(run.labels)}
    if run.task.name in PROBLEM_TYPES:
        found["problem_type"] = PROBLEM_TYPES[run.task.name]
    return found


def _write_tokenizer(
    run: NetworkRun, inner: tokenizers.Tokenizer, pad: int | None, folder: Path
) -> None:
    """Write the tokenizer so that it puts the same tokens around a text as the run."""
    encoding = run.encoding
    after = [] if run.causal and run.task is None else encoding.after  # a prompt has no end
    frame = (encoding.before, between_texts(encoding), after)
    one, two = (inner.encode(text, add_special_tokens=False).ids for text in ("a", "b"))
    pair = [*frame[0], *one, *frame[1], *two, *frame[2]]
    if inner.encode("a").ids != frame[0] + one + frame[2] or inner.encode("a", "b").ids != pair:
        before, between, behind = ([str(inner.id_to_token(i)) for i in ids] for ids in frame)
        template = processors.TemplateProcessing(
            single=[*before, "$A", *behind],
            pair=[*before, "$A", *between, "$B:1", *(f"{name}:1" for name in behind)],
            special_tokens=[(str(inner.id_to_token(i)), i) for i in {*frame[0], *frame[1], *after}],
        )
        own: Any = inner.post_processor
        # Byte-level tokenizers keep theirs, which only says where in the text a token is.
        byte_level = own is not None and type(own).__name__ == "ByteLevel"
        inner.post_processor = processors.Sequence([own, template]) if byte_level else template
    named = {"bos": "begin", "cls": "begin", "eos": "end", "sep": "separator", "mask": "mask"}
    ids = {name: run.tokenizer.specials.get(role) for name, role in named.items()}
    ids |= {"pad": pad, "unk": run.tokenizer.unknown_id}
    types = run.model.base.config.token_types > 1
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",  # version 4 knows it, too
        "model_max_length": run.model.base.config.max_length if run.task is None else run.length,
        "model_input_names": ["input_ids", *["token_type_ids"][: int(types)], "attention_mask"],
        "padding_side": "right",
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": inner.id_to_token(i) for name, i in ids.items() if i is not None},
    }
    write_text(folder / "tokenizer.json", inner.to_str(pretty=True))
    content = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    write_text(folder / "tokenizer_config.json", content)


def _usage(run: NetworkRun) -> str:
    call = 'model("a text")'
    if run.task is not None and run.task.name == "pairs":
        call = 'model({"text": "first text", "text_pair": "second text"})'
    elif run.task is not None and run.task.name == "spans":
        call = 'model(question="a question", context="a text")'
    return (
        "from transformers import pipeline\n\n"
        f'model = pipeline("{pipeline_tag(run)}", model="PATH OF THIS FOLDER")\n{call}\n'
    )


def _compare(run: NetworkRun, folder: Path, pad: int) -> list[OutputDifference]:
    """Compare ids and outputs, over batch sizes, lengths and paddings."""
    auto = library()
    architecture = auto.AutoConfig.from_pretrained(folder).architectures[0]
    theirs = getattr(auto, architecture).from_pretrained(folder).eval()
    found = [_compare_ids(run, auto.AutoTokenizer.from_pretrained(folder))]
    for batch in trial_batches(run):
        if batch.owners is not None or "left" in batch.words:
            continue  # texts are truncated there, and padded on the right
        given = {"input_ids": batch.tokens.where(batch.real > 0, pad), "attention_mask": batch.real}
        if batch.token_types is not None:
            given["token_type_ids"] = batch.token_types
        with torch.no_grad():
            output = theirs(**given)
        if hasattr(output, "start_logits"):
            scores = torch.stack([output.start_logits, output.end_logits], dim=-1)
        else:
            names = ("logits", "prediction_logits", "last_hidden_state")
            scores = next(getattr(output, name) for name in names if hasattr(output, name))
        ours = batch.outputs(run)
        found.append(batch.compare(ours, scores[..., : ours.size(-1)], ALLOWED))
    return found


def _compare_ids(run: NetworkRun, theirs: Any) -> OutputDifference:
    """Count the texts and pairs that the exported tokenizer has other ids for."""
    encoding = run.encoding
    after = [] if run.causal and run.task is None else encoding.after
    ids = run.tokenizer.encode(TEXTS)
    wrong = sum(
        theirs(text)["input_ids"] != [*encoding.before, *one, *after]
        for text, one in zip(TEXTS, ids, strict=True)
    )
    pair = [*encoding.before, *ids[0], *between_texts(encoding), *ids[1], *after]
    wrong += theirs(TEXTS[0], TEXTS[1])["input_ids"] != pair
    return OutputDifference(f"the ids of {len(TEXTS)} texts and a pair", float(wrong), 0.0)
