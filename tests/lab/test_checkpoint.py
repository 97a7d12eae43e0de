"""The lab's checkpoints, written here with plain PyTorch, are read; code in them never runs."""

import pickle
import warnings

import pytest
import torch
from torch import nn

from headstart.errors import HeadstartError
from headstart.lab.checkpoint import read_lab_checkpoint
from headstart.model.config import ClassificationConfig, LanguageModelingConfig
from headstart.model.presets import preset
from tests.model.networks import tokens


class LabBase(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, width, dropout=0.0)
        self.transformer_encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.encoder = nn.Embedding(vocabulary, width)


class LabHead(nn.Module):
    def __init__(self, width, answers):
        super().__init__()
        self.decoder = nn.Linear(width, answers)


class LabModel(nn.Module):
    def __init__(self, answers, vocabulary=30, width=16, layers=2):
        super().__init__()
        self.base = LabBase(vocabulary, width, layers)
        if answers:
            self.classifier = LabHead(width, answers)


def write(path, answers, **more):
    torch.manual_seed(0)
    model = LabModel(answers).eval()
    torch.save({"model_state_dict": model.state_dict() | more}, path)
    return model


@pytest.mark.parametrize(
    ("answers", "head"),
    [
        (30, LanguageModelingConfig(tied=False, bias=True)),
        (2, ClassificationConfig(classes=2, pooling="last")),
        (0, None),
    ],
)
def test_a_checkpoint_is_read_with_or_without_its_head(tmp_path, answers, head):
    positions = {"base.pos_encoder.pe": torch.zeros(5_000, 1, 16)}  # computed, not read
    theirs = write(tmp_path / "lab.pt", answers, **positions)
    model = read_lab_checkpoint(tmp_path / "lab.pt")
    assert model.head_config == head
    assert sum(p.numel() for p in model.parameters()) == sum(p.numel() for p in theirs.parameters())
    expected = preset("lab", vocab_size=30, width=16, layers=2, feed_forward_width=16).base
    assert model.base.config == expected


def test_a_read_checkpoint_computes_what_the_lab_computes(tmp_path):
    theirs = write(tmp_path / "lab.pt", 2)
    model = read_lab_checkpoint(tmp_path / "lab.pt").eval()
    ids = tokens(3, 7)
    embedded = model.base.embed(ids, None, None).transpose(0, 1)  # the lab has time first
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    hidden = theirs.base.transformer_encoder(embedded, mask)
    torch.testing.assert_close(
        model(ids), theirs.classifier.decoder(hidden[-1]), atol=1e-5, rtol=1e-5
    )


class Attack:
    """Unpickled by a careless reader, this creates a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return (open, (self.target, "w"))


@pytest.mark.parametrize(
    "save", [torch.save, lambda obj, path: path.write_bytes(pickle.dumps(obj))]
)
def test_a_pickle_with_code_in_it_does_not_run(tmp_path, save):
    trap = tmp_path / "it-ran"
    save({"model_state_dict": {"base.encoder.weight": Attack(str(trap))}}, tmp_path / "lab.pt")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(HeadstartError, match="was not opened"):
            read_lab_checkpoint(tmp_path / "lab.pt")
    assert not trap.exists()
    assert caught == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"model_state_dict": nn.Linear(2, 2).state_dict()}, "not a checkpoint of the lab"),
        ([1, 2, 3], "was not opened"),
        (None, "No such file"),
    ],
)
def test_another_file_is_one_message(tmp_path, content, message):
    if content is not None:
        torch.save(content, tmp_path / "other.pt")
    with pytest.raises(HeadstartError, match=message):
        read_lab_checkpoint(tmp_path / "other.pt")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_checkpoint_cut_short_is_refused(tmp_path, share):
    path = tmp_path / "lab.pt"
    write(path, 2)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(HeadstartError):
        read_lab_checkpoint(path)
