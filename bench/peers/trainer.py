"""Hugging Face `Trainer` with a Llama (causal) or a BERT (masked) of the same size.

At its best settings on a CPU: documents joined and cut into full rows of the same length (no
padding), the same batch, bf16 where it helps, no logging, no saving.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

MASK = 5


def make_model(kind: str, sizes: dict[str, int], length: int, attention: str) -> Any:
    common = {
        "vocab_size": sizes["vocab_size"],
        "hidden_size": sizes["width"],
        "num_hidden_layers": sizes["layers"],
        "num_attention_heads": sizes["heads"],
        "intermediate_size": sizes["feed_forward_width"],
        "max_position_embeddings": max(512, length),
    }
    if kind == "causal":
        config = LlamaConfig(**common, tie_word_embeddings=True, attn_implementation=attention)
        return LlamaForCausalLM(config)
    # Without a gate, BERT's feed-forward needs 3/2 of the width for as many weights.
    common["intermediate_size"] = common["intermediate_size"] * 3 // 2
    return BertForMaskedLM(BertConfig(**common, attn_implementation=attention))


class _Clock(TrainerCallback):
    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, *arguments: Any, **options: Any) -> None:
        self.times.append(time.monotonic())


def train(
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
) -> Iterator[tuple[int, float]]:
    """Train for `steps`; yields the tokens and the end time of each step."""
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

    clock = _Clock()
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=steps,
        per_device_train_batch_size=rows,
        bf16=bf16,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        dataloader_num_workers=0,
        remove_unused_columns=False,
    )
    model = make_model(kind, sizes, length, attention)
    trainer = Trainer(
        model=model, args=arguments, train_dataset=data, data_collator=collate, callbacks=[clock]
    )
    trainer.train()
    for moment in clock.times:
        yield rows * length, moment
