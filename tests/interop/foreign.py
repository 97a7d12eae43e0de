"""Small models of `transformers` with random weights, saved as on the Hub."""

import json
from pathlib import Path

import torch

from headstart.data.tokenizers import train_tokenizer

TEXTS = ["the cat sat on the mat", "le café était fermé", "Straße und Bäume", "東京は日本の首都"]
LONGEST = 40
BERT = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": LONGEST,
}
GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": LONGEST}
DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
RELATIVE = {"type_vocab_size": 0, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
# By name: the class of settings and of models, and the settings.
KINDS = {
    "bert": ("Bert", BERT),
    "bert-relu": ("Bert", {**BERT, "hidden_act": "relu", "type_vocab_size": 3}),
    "roberta": ("Roberta", {**BERT, "max_position_embeddings": LONGEST + 2, "type_vocab_size": 1}),
    "camembert": ("Camembert", {**BERT, "type_vocab_size": 1}),
    "xlm-roberta": ("XLMRoberta", {**BERT, "type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "distilbert": ("DistilBert", {**DISTILBERT, "max_position_embeddings": LONGEST}),
    "gpt2": ("GPT2", GPT2),
    "deberta": ("DebertaV2", {**BERT, **RELATIVE}),
    "electra": ("Electra", {**BERT, "embedding_size": 16}),
    "qwen2": ("Qwen2", {**BERT, "num_key_value_heads": 1}),
    "qwen3": ("Qwen3", {**BERT, "num_key_value_heads": 1, "head_dim": 4}),
    "llama": ("Llama", {**BERT, "tie_word_embeddings": True}),
    "llama-grouped": ("Llama", {**BERT, "num_attention_heads": 4, "num_key_value_heads": 2}),
    "mistral": ("Mistral", {**BERT, "num_key_value_heads": 1, "sliding_window": None}),
    "modernbert": ("ModernBert", {**BERT, "layer_types": ["full_attention"] * 2}),
    "modernbert-local": ("ModernBert", {**BERT, "num_hidden_layers": 4, "local_attention": 6}),
}
# Whose heads are of another form than ours.
OTHERS = {"gemma2": ("Gemma2", {**BERT, "num_key_value_heads": 1, "head_dim": 8})}
CAUSAL = ("gpt2", "llama", "llama-grouped", "mistral", "qwen2", "qwen3")


def tokenizer():
    return train_tokenizer(TEXTS, vocab_size=300)


def make(kind: str, ending: str = "", seed: int = 0, **more):
    """Make a model with weights so large that a mistake is visible in its outputs."""
    import transformers

    own = tokenizer()
    name, settings = {**KINDS, **OTHERS}[kind]
    ids = {"pad_token_id": 1 if "bert" in kind else 0, "bos_token_id": 2, "eos_token_id": 3}
    if kind.startswith("modernbert"):
        ids |= {"cls_token_id": 2, "sep_token_id": 3}
    values = {"vocab_size": own.vocab_size, **ids, **settings, **more}
    config = getattr(transformers, f"{name}Config")(**values)
    torch.manual_seed(seed)
    model = getattr(transformers, f"{name}{ending or 'Model'}")(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model.eval()


def save(model, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer().save(folder)
    return folder


def language_model(kind: str) -> str:
    """Return the name of the class with a language-modelling head."""
    if kind == "gpt2":
        return "LMHeadModel"
    return "ForCausalLM" if kind in CAUSAL else "ForMaskedLM"


def change_config(folder: Path, **changes) -> Path:
    path = folder / "config.json"
    values = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in values.items() if v is not ...}))
    return folder
