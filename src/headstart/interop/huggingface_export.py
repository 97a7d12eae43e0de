"""Runs for stock `transformers`: `AutoModelFor…` and `pipeline` open them, without custom code.

Four of our networks equal one of theirs by renaming (`FORMS`). A run whose base came from
`transformers` is put together again. Each export is opened again and compared with the run.
"""

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tokenizers
import torch
from tokenizers import processors
from torch import nn

from headstart.config import FinetuneConfig, is_run
from headstart.errors import HeadstartError
from headstart.files import write_json, write_text
from headstart.interop.export import Exported, OutputDifference, pipeline_tag, trial_batches
from headstart.interop.huggingface import (
    ENDINGS,
    TASK,
    StockLayers,
    TransformersBase,
    library,
    open_base,
)
from headstart.model.config import BaseConfig, ClassificationConfig, LanguageModelingConfig
from headstart.model.model import swap_head
from headstart.model.presets import stock_head
from headstart.run import NetworkRun
from headstart.training.callbacks import Callback
from headstart.training.initialization import fit_head, read_splits

PADDING = "[PAD]"
ALLOWED = 1e-4  # of the outputs' size: rounding adds up over the layers
PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "pairs": "single_label_classification",
    "multi-label": "multi_label_classification",
}
# Their names of our special tokens.
ROLES = {"bos": "begin", "cls": "begin", "eos": "end", "sep": "separator", "pad": "pad"}
USAGE = """
from transformers import pipeline

model = pipeline("{tag}", model="PATH OF THIS FOLDER")
model({call})
"""
CALLS = {
    "pairs": '{"text": "first text", "text_pair": "second text"}',
    "spans": 'question="a question", context="a text"',
}
REFITTED = (
    "transformers has no head like the run's, so a standard head was fitted to the run's frozen "
    "network, on its training rows; for an exact export, fine-tune with --head stock"
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
    """A network of ours that `transformers` has under other names."""

    name: str  # how the names of its classes begin
    language_model: str  # and how that of its language model ends
    requires: dict[str, Any]  # settings of our base
    settings: dict[str, str]  # their names of our settings
    base: dict[str, str]  # their modules (several in equal parts), and ours with the weights
    head: dict[str, str] = field(default_factory=dict)

    def config(self, base: BaseConfig, head: Any) -> dict[str, Any]:
        """Return their settings for a base of ours."""
        found = {theirs: getattr(base, ours) for theirs, ours in self.settings.items()}
        rotary = {"rope_type": "default", "rope_theta": float(base.rotary_base)}
        if self.name == "Llama":
            found["rope_parameters"] = rotary
        if self.name == "ModernBert":
            found |= {
                "layer_types": ["full_attention"] * base.layers,
                "global_attn_every_n_layers": 1,
                "rope_parameters": {"full_attention": rotary, "sliding_attention": rotary},
            }
            mean = isinstance(head, ClassificationConfig) and head.pooling == "mean"
            found["classifier_pooling"] = "mean" if mean else "cls"
        tied = not isinstance(head, LanguageModelingConfig) or head.tied
        return {**found, "tie_word_embeddings": tied}


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
            fix="omit --int8, or export with --to onnx --int8",
        )
    written = with_stock_head(run)
    notes = [] if written is run else [REFITTED]
    model = _their_model(written)
    tokenizer = tokenizers.Tokenizer.from_str(run.tokenizer.to_json())
    pad = run.tokenizer.pad_id
    if run.task is not None and pad is None:
        # To pad with the end of text would hide a text's own end, which a classifier may read.
        tokenizer.add_special_tokens([PADDING])
        pad = tokenizer.get_vocab_size() - 1
        model.resize_token_embeddings(max(model.config.vocab_size, pad + 1), mean_resizing=False)
    if model.config.pad_token_id is None or pad != run.tokenizer.pad_id:
        model.config.pad_token_id = pad
    model.config.update(_labels(run))
    model.save_pretrained(folder)
    _write_tokenizer(written, tokenizer, pad, folder)
    windows = run.task is not None and run.long == "windows"
    if windows:
        notes.append(
            f"the run reads longer texts in windows of {run.length} tokens and pools them all; "
            "here they are cut (truncation=True)"
        )
    name = "" if run.task is None else run.task.name
    scored = name not in ("", "spans")
    opened = replace(open_base(str(folder)), task=run.task, length=run.length) if scored else None
    return Exported(
        model=type(model).__name__,
        library="transformers",
        pipeline=pipeline_tag(run),
        usage=USAGE.format(tag=pipeline_tag(run), call=CALLS.get(name, '"a text"')),
        notes=notes,
        comparisons=_compare(written, type(model).from_pretrained(folder), folder, pad or 0),
        run=opened,
        same_metric=not windows and written is run,
    )


def with_stock_head(run: NetworkRun) -> NetworkRun:
    """Fit a stock head to the frozen network of a classifier with another, as a linear probe."""
    base, own = run.model.base.config, run.model.head_config
    if not isinstance(own, ClassificationConfig) or own.stock or own == stock_head(own, base):
        return run
    if not is_run(run.folder):
        raise HeadstartError(
            "this run's head does not exist in transformers, and the run does not know its "
            "training rows, which another head could be fitted to",
            where=run.folder,
            fix="fine-tune with --head stock, or export with --to onnx",
        )
    task = run.require_task()
    splits = read_splits(FinetuneConfig.load(run.folder), Callback())
    model, _ = swap_head(copy.deepcopy(run.model), stock_head(own, base), seed=0)
    stock = replace(run, model=model.eval(), long="truncate", temperature=1.0)
    train = task.encode(splits.train, stock.encoding)
    fit_head(model, train, train.weights)
    scores = stock.scores(splits.validation)
    return replace(stock, temperature=task.fit_temperature(scores, splits.validation))


@torch.no_grad()
def _their_model(run: NetworkRun) -> Any:
    """Return the run's network as a model of `transformers`; scores include the temperature."""
    head, base = run.model.head, run.model.base
    kind = "" if head is None else head.config.kind
    model: Any
    if isinstance(base, TransformersBase):
        if head is None:
            return copy.deepcopy(base.inner)
        layers: Any = head.transform
        if not isinstance(layers, StockLayers):  # equal, or the comparison finds the difference
            known = kind if kind in ENDINGS else "language_modeling"
            layers = base.stock_layers(known, len(run.labels) or 2)[0]
        model, output = layers.join(base.inner, head.output), layers.output
    else:
        settings = vars(base.config).items()
        form = next((one for one in FORMS if one.requires.items() <= settings), None)
        if form is None:
            raise HeadstartError(
                "no model of transformers has the structure of this run's network",
                where=run.folder,
                fix="export it with --to onnx; the presets small, bert and gpt2 have counterparts",
            )
        name = f"{form.name}{ENDINGS.get(kind, form.language_model)}"
        specials = run.tokenizer.specials
        # Every id, because the defaults of large models are outside of small vocabularies.
        ids = {f"{one}_token_id": specials[role] for one, role in ROLES.items() if role in specials}
        values = {"pad_token_id": specials.get("end", 0), **ids, **_labels(run)}
        values |= form.config(base.config, run.model.head_config)
        model = getattr(library(), name)(getattr(library(), f"{form.name}Config")(**values))
        _copy_weights(form.base, base, model.base_model)
        if head is None:
            return model
        output = [name for name, one in model.named_modules() if isinstance(one, nn.Linear)][-1]
        _copy_weights({**form.head, output: "output"}, head, model)
    for parameter in model.get_submodule(output).parameters():
        parameter.div_(run.temperature)
    return model


def _copy_weights(table: dict[str, str], ours: nn.Module, theirs: nn.Module) -> None:
    """Copy weights to theirs, in equal parts; the comparison finds what does not fit."""
    own, known = dict(ours.named_modules()), dict(theirs.named_modules())
    for names, name in table.items():
        for layer in range(len(known) if "{}" in name else 1):
            source = own.get(name.format(layer))
            targets: list[Any] = [known.get(one.format(layer)) for one in names.split()]
            if source is None or None in targets:
                break
            for key, value in source.named_parameters():
                for module, part in zip(targets, value.chunk(len(targets)), strict=True):
                    weights = part.t() if type(module).__name__ == "Conv1D" else part  # GPT-2's
                    target = getattr(module, key, None)
                    if target is not None and target.shape == weights.shape:
                        target.copy_(weights)


def _labels(run: NetworkRun) -> dict[str, Any]:
    if run.task is None:
        return {}
    found: dict[str, Any] = {TASK: run.task.name, "problem_type": PROBLEM_TYPES.get(run.task.name)}
    if run.labels:
        found["id2label"] = dict(enumerate(run.labels))
        found["label2id"] = {label: number for number, label in enumerate(run.labels)}
    return found


def _frame(run: NetworkRun) -> tuple[list[int], list[int], list[int]]:
    """Return the ids before, between and after texts; a prompt has no end."""
    after = [] if run.causal and run.task is None else run.encoding.after
    return run.encoding.before, run.encoding.between, after


def _write_tokenizer(
    run: NetworkRun, inner: tokenizers.Tokenizer, pad: int | None, folder: Path
) -> None:
    """Write the tokenizer so that it puts the same tokens around a text as the run."""
    before, between, after = _frame(run)
    one, two = (inner.encode(text, add_special_tokens=False).ids for text in ("a", "b"))
    framed = [[*before, *one, *after], [*before, *one, *between, *two, *after]]
    if [inner.encode("a").ids, inner.encode("a", "b").ids] != framed:
        names = [[str(inner.id_to_token(i)) for i in ids] for ids in (before, between, after)]
        template = processors.TemplateProcessing(
            single=[*names[0], "$A", *names[2]],
            pair=[*names[0], "$A", *names[1], "$B:1", *(f"{name}:1" for name in names[2])],
            special_tokens=[(str(inner.id_to_token(i)), i) for i in {*before, *between, *after}],
        )
        # Byte-level tokenizers keep theirs, which only says where in the text a token is.
        own: Any = inner.post_processor
        byte_level = own is not None and type(own).__name__ == "ByteLevel"
        inner.post_processor = processors.Sequence([own, template]) if byte_level else template
    ids = {name: run.tokenizer.specials.get(role) for name, role in ROLES.items()}
    ids |= {"pad": pad, "unk": run.tokenizer.unknown_id, "mask": run.tokenizer.mask_id}
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
    write_json(folder / "tokenizer_config.json", config)


def _compare(run: NetworkRun, theirs: Any, folder: Path, pad: int) -> list[OutputDifference]:
    """Compare ids and outputs, over batch sizes, lengths and paddings."""
    tokenizer = library().AutoTokenizer.from_pretrained(folder)
    before, between, after = _frame(run)
    ids = run.tokenizer.encode(TEXTS)
    wanted = [[*before, *one, *after] for one in ids]
    wanted.append([*before, *ids[0], *between, *ids[1], *after])
    given = [*map(tokenizer, TEXTS), tokenizer(*TEXTS[:2])]
    wrong = sum(ours != one["input_ids"] for ours, one in zip(wanted, given, strict=True))
    found = [OutputDifference(f"the ids of {len(TEXTS)} texts and a pair", float(wrong), 0.0)]
    for batch in trial_batches(run):
        if batch.owners is not None or "left" in batch.words:
            continue  # texts are truncated there, and padded on the right
        inputs = {"input_ids": batch.tokens.where(batch.real > 0, pad)}
        if batch.token_types is not None:
            inputs["token_type_ids"] = batch.token_types
        with torch.no_grad():
            output = theirs.eval()(**inputs, attention_mask=batch.real)
        if "start_logits" in output:
            scores = torch.stack([output.start_logits, output.end_logits], dim=-1)
        else:
            scores = output.logits if "logits" in output else output.last_hidden_state
        found.append(batch.compare(batch.outputs(run), scores, ALLOWED))
    return found
