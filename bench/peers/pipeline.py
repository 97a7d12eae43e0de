"""Hugging Face `pipeline("text-classification")` with a BERT of random weights."""

from pathlib import Path

from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    pipeline,
)

from peers.documents import make_tokenizer


class Predictor:
    def __init__(self, sizes: dict[str, int], batch: int, attention: str, folder: Path) -> None:
        config = BertConfig(
            vocab_size=sizes["vocab_size"],
            hidden_size=sizes["width"],
            num_hidden_layers=sizes["layers"],
            num_attention_heads=sizes["heads"],
            intermediate_size=sizes["feed_forward_width"],
            attn_implementation=attention,
        )
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=str(make_tokenizer(sizes["vocab_size"], folder)),
            pad_token="[PAD]",
            unk_token="[UNK]",
        )
        model = BertForSequenceClassification(config).eval()
        self.pipeline = pipeline(
            "text-classification", model=model, tokenizer=tokenizer, device="cpu"
        )
        self.batch = batch

    def __call__(self, texts: list[str]) -> None:
        answers = self.pipeline(texts, batch_size=self.batch, truncation=True, max_length=512)
        assert len(answers) == len(texts)
