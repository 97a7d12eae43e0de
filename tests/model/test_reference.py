"""The lab's network equals `torch.nn.TransformerEncoder` with the same weights."""

import math

import pytest
import torch
from torch import nn

from headstart.model.positions import sinusoids
from tests.model.networks import tiny, tokens

REAL = torch.tensor([[1] * 9, [1] * 5 + [0] * 4, [1] * 1 + [0] * 8])


class Reference(nn.Module):
    """The lab's base in plain PyTorch: embedding × √width, sinusoids, encoder."""

    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.width)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, config.feed_forward_width, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.width = config.width

    def forward(self, ids, causal, real):
        x = self.embedding(ids) * math.sqrt(self.width) + sinusoids(ids.size(1), self.width)
        future = nn.Transformer.generate_square_subsequent_mask(ids.size(1)) if causal else None
        padding = None if real is None else torch.zeros(real.shape).masked_fill(real == 0, -1e9)
        return self.encoder(x, mask=future, src_key_padding_mask=padding)


def pair(objective):
    model = tiny("lab", objective)
    reference = Reference(model.base.config)
    ours = dict(model.base.named_parameters())
    with torch.no_grad():
        reference.embedding.weight.copy_(ours["embedding.weight"])
        for number, layer in enumerate(reference.encoder.layers):
            names = matching_names(number)
            for theirs, parameter in layer.named_parameters():
                parameter.copy_(ours[names[theirs]])
    return model, reference


def matching_names(number):
    block = f"blocks.{number}"
    return {
        f"{theirs}{kind}": f"{block}.{our}.{kind.strip('._')}"
        for theirs, our in [
            ("self_attn.in_proj", "attention.query_key_value"),
            ("self_attn.out_proj", "attention.output"),
            ("linear1", "feed_forward.up"),
            ("linear2", "feed_forward.down"),
            ("norm1", "attention_norm"),
            ("norm2", "feed_forward_norm"),
        ]
        for kind in (("_weight", "_bias") if theirs.endswith("in_proj") else (".weight", ".bias"))
    }


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("objective", ["causal", "masked"])
@pytest.mark.parametrize("padded", [False, True])
def test_outputs_and_gradients_equal_the_pytorch_encoder(mode, objective, padded):
    model, reference = pair(objective)
    model.train(mode == "train")
    reference.train(mode == "train")
    ids, real = tokens(3, 9), REAL if padded else None
    counted = torch.ones(3, 9, 1) if real is None else real.unsqueeze(-1).float()

    ours = model(ids, real) * counted
    theirs = reference(ids, objective == "causal", real) * counted
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)

    weight = torch.randn(theirs.shape, generator=torch.Generator().manual_seed(2))
    (ours * weight).sum().backward()
    (theirs * weight).sum().backward()
    grads = {name: parameter.grad for name, parameter in model.base.named_parameters()}
    close = {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(grads["embedding.weight"], reference.embedding.weight.grad, **close)
    for number, layer in enumerate(reference.encoder.layers):
        names = matching_names(number)
        for theirs_name, parameter in layer.named_parameters():
            torch.testing.assert_close(grads[names[theirs_name]], parameter.grad, **close)
