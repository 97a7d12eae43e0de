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
from tests.model.networks import tiny, tokens


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
    theirs = write(tmp_path / "lab.pt", answers)
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


def test_a_saved_table_of_positions_is_left_out(tmp_path):
    write(tmp_path / "lab.pt", 2, **{"base.pos_encoder.pe": torch.zeros(5_000, 1, 16)})
    assert read_lab_checkpoint(tmp_path / "lab.pt").base.config.vocab_size == 30


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
    with pytest.raises(HeadstartError, match="was not opened"):
        read_lab_checkpoint(tmp_path / "lab.pt")
    assert not trap.exists()


def test_a_rejected_pickle_prints_no_warning(tmp_path):
    (tmp_path / "lab.pt").write_bytes(pickle.dumps({"weights": Attack("x")}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(HeadstartError):
            read_lab_checkpoint(tmp_path / "lab.pt")
    assert caught == []


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_checkpoint_cut_short_is_refused(tmp_path, share):
    path = tmp_path / "lab.pt"
    write(path, 2)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(HeadstartError):
        read_lab_checkpoint(path)


def test_a_foreign_checkpoint_is_refused_by_its_names(tmp_path):
    torch.save({"model_state_dict": nn.Linear(2, 2).state_dict()}, tmp_path / "other.pt")
    with pytest.raises(HeadstartError, match="not a checkpoint of the lab"):
        read_lab_checkpoint(tmp_path / "other.pt")


def test_a_checkpoint_without_a_table_of_weights_is_refused(tmp_path):
    torch.save([1, 2, 3], tmp_path / "list.pt")
    with pytest.raises(HeadstartError, match="was not opened"):
        read_lab_checkpoint(tmp_path / "list.pt")


def test_heads_that_do_not_fit_the_width_are_refused(tmp_path):
    write(tmp_path / "lab.pt", 2)
    with pytest.raises(HeadstartError, match="width 16 is not divisible by 3 heads"):
        read_lab_checkpoint(tmp_path / "lab.pt", heads=3)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(HeadstartError, match="No such file"):
        read_lab_checkpoint(tmp_path / "nothing.pt")


def test_the_base_of_a_checkpoint_can_get_a_new_head(tmp_path):
    from headstart.model.model import swap_head

    write(tmp_path / "lab.pt", 30)
    swapped, _ = swap_head(
        read_lab_checkpoint(tmp_path / "lab.pt"),
        ClassificationConfig(classes=2, pooling="last"),
        seed=0,
    )
    assert swapped(tokens(1, 4)).shape == (1, 2)
    assert tiny("lab").base.config.width == swapped.base.config.width
