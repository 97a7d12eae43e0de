"""Hugging Face `Trainer` with a Llama (causal) or a BERT (masked) of the same size.

The settings are the best ones on a CPU: the same batch, bf16 where it is faster, no logging, no
saving. For pretraining, documents are joined and cut into full rows without padding. For
fine-tuning, texts of similar length share a batch, which is padded to its longest text.
"""

import time
from typing import Any

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

PAD, MASK = 0, 5
Ends = list[tuple[int, float]]  # the count and the end time of each step


def make_config(kind: str, sizes: dict[str, int], length: int, attention: str) -> Any:
    common = {
        "vocab_size": sizes["vocab_size"],
        "hidden_size": sizes["width"],
        "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "intermediate_size": sizes["feed_forward_width"],
        "max_position_embeddings": max(512, length),
        "attn_implementation": attention,
        "pad_token_id": PAD,
    }
    if kind == "causal":
        return LlamaConfig(**common, tie_word_embeddings=True)
    # Without a gate, BERT's feed-forward needs 3/2 of the width for as many weights.
    common["intermediate_size"] = common["intermediate_size"] * 3 // 2
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}  # as in Headstart
    return BertConfig(**common, **dropout)


class _Clock(TrainerCallback):
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, *arguments: Any, **options: Any) -> None:
        self.times.append(time.monotonic())


def _train(model: Any, data: list[Any], collate: Any, rows: int, **settings: Any) -> list[float]:
    """Train; return the count and the end time of each step."""
    clock = _Clock()
    arguments = TrainingArguments(
        per_device_train_batch_size=rows,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_num_workers=0,
        remove_unused_columns=False,
        **settings,
    )
    trainer = Trainer(
        model=model, args=arguments, train_dataset=data, data_collator=collate, callbacks=[clock]
    )
    trainer.train()
    return clock.times


def pretrain(
    documents: list[np.ndarray],
    *,
    kind: str,
    sizes: dict[str, int],
    length: int,
    rows: int,
    steps: int,
    bf16: bool,
    attention: str,
    folder: str,
) -> Ends:
    """Pretrain for `steps` steps; the count of a step is its tokens."""
    stream = torch.from_numpy(np.concatenate(documents)).long()
    count = len(stream) // length
    data = [{"input_ids": row} for row in stream[: count * length].view(count, length)]
    generator = torch.Generator().manual_seed(0)

    def collate(batch: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        tokens = torch.stack([row["input_ids"] for row in batch])
        if kind == "causal":
            return {"input_ids": tokens, "labels": tokens}
        chosen = torch.rand(tokens.shape, generator=generator) < 0.3
        return {
            "input_ids": torch.where(chosen, MASK, tokens),
            "labels": torch.where(chosen, tokens, -100),
        }

    network = LlamaForCausalLM if kind == "causal" else BertForMaskedLM
    model = network(make_config(kind, sizes, length, attention))
    times = _train(model, data, collate, rows, output_dir=folder, max_steps=steps, bf16=bf16)
    return [(rows * length, moment) for moment in times]


def finetune(
    documents: list[np.ndarray],
    labels: list[int],
    *,
    kind: str,
    sizes: dict[str, int],
    rows: int,
    steps: int,
    bf16: bool,
    attention: str,
    folder: str,
) -> Ends:
    """Fine-tune for `steps` steps; the count of a step is its texts."""
    data = [
        {"input_ids": torch.from_numpy(document).long(), "labels": label}
        for document, label in zip(documents, labels, strict=True)
    ]

    def collate(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        texts = [row["input_ids"] for row in batch]
        tokens = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=PAD)
        return {
            "input_ids": tokens,
            "attention_mask": (tokens != PAD).long(),
            "labels": torch.tensor([row["labels"] for row in batch]),
        }

    network = LlamaForSequenceClassification if kind == "causal" else BertForSequenceClassification
    model = network(make_config(kind, sizes, 512, attention))
    times = _train(
        model,
        data,
        collate,
        rows,
        output_dir=folder,
        max_steps=steps,
        bf16=bf16,
        train_sampling_strategy="group_by_length",
    )
    return [(rows, moment) for moment in times]
