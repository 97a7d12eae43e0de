"""A folder that cannot be a base gives one message, exit code 2 and no incomplete file."""

import contextlib
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.run import NetworkRun
from tests.interop.foreign import TEXTS, change_config, make, save
from tests.labelled import dataset, write_csv
from tests.pages import ROOT

pytest.importorskip("transformers")
WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"
MARKER = Path("/tmp/headstart-was-here")


@pytest.fixture
def folder(tmp_path):
    return save(make("bert", "ForMaskedLM"), tmp_path / "theirs")


def refusal(folder):
    with pytest.raises(HeadstartError) as error:
        NetworkRun.open(Path(f"hf:{folder}"))
    assert error.value.where
    assert error.value.fix
    return str(error.value)


def test_the_command_ends_with_code_2_and_leaves_nothing(folder, tmp_path, headstart):
    (folder / "config.json").unlink()
    data = write_csv(tmp_path / "data.csv", dataset(20))
    run = tmp_path / "run"
    result = headstart("finetune", data, "--base", f"hf:{folder}", "--out", run)
    assert result.returncode == 2
    assert "config.json" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (run / "config.toml").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"hello": 1}', '{"format": 1, "base": {}}'])
def test_a_damaged_or_foreign_config(text, folder):
    (folder / "config.json").write_text(text)
    assert "transformers cannot open" in refusal(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba9"}, "mamba9"),
        ({"model_type": "t5", "classifier_dropout": 0.0}, "neither an encoder nor a decoder"),
        ({"hidden_size": "x"}, "transformers cannot open"),
        ({"intermediate_size": 32}, "layer.0.intermediate.dense.weight is (24, 16)"),
    ],
)
def test_a_config_that_cannot_be_is_one_message(changes, message, folder):
    assert message in refusal(change_config(folder, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}},
        {"auto_map": {"AutoModelForMaskedLM": "evil.Model"}},
        {
            "model_type": "gpt2",
            "architectures": ["GPT2ForMaskedLM"],
            "auto_map": {"AutoModelForMaskedLM": "evil.Model"},
        },
    ],
)
def test_code_of_a_model_is_never_run_and_nobody_is_asked(changes, folder, monkeypatch):
    MARKER.unlink(missing_ok=True)
    (folder / "evil.py").write_text(f"open({str(MARKER)!r}, 'w')\n")
    asked = []
    monkeypatch.setattr("builtins.input", lambda question="": asked.append(question) or "y")
    with contextlib.suppress(HeadstartError):
        NetworkRun.open(f"hf:{change_config(folder, **changes)}")
    assert asked == []
    assert not MARKER.exists()


def test_a_config_cannot_choose_an_attention_of_the_hub(folder):
    change_config(folder, _attn_implementation="kernels-community/flash-attn")
    run = NetworkRun.open(f"hf:{folder}")
    assert "/" not in str(run.model.base.inner.config._attn_implementation)


def test_a_config_that_is_larger_than_the_weights_allocates_nothing(folder, tmp_path):
    """The error has a place and a fix, and takes little time and memory."""
    sizes = [
        {"vocab_size": 1_000_000, "hidden_size": 16_384},
        {"num_hidden_layers": 1_024, "hidden_size": 16_384, "vocab_size": 1_000_000},
        {"num_hidden_layers": 1_000_000_000},
        {"max_position_embeddings": 2_000_000_000},
    ]
    folders = [shutil.copytree(folder, tmp_path / f"large{n}") for n in range(len(sizes))]
    names = [f"hf:{change_config(one, **size)}" for one, size in zip(folders, sizes, strict=True)]
    program = f"""
import resource
from headstart.errors import HeadstartError
from headstart.run import NetworkRun
import headstart.interop.huggingface, transformers, transformers.models.bert.modeling_bert
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in {names}:
    try:
        NetworkRun.open(name)
    except HeadstartError as error:
        print(error.what.splitlines()[0], error.where, error.fix)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    *lines, memory = ended.stdout.splitlines()
    assert len(lines) == len(folders), ended.stderr
    for line, one in zip(lines, folders, strict=True):
        for words in ("do not fit config.json", str(one), "config.json that belongs"):
            assert words in line
    assert int(memory) < 200_000  # KB


@pytest.mark.parametrize(
    "change", [{"num_hidden_layers": 10**9}, {"hidden_size": 16_384, "vocab_size": 10**6}]
)
def test_a_run_whose_config_was_changed_allocates_nothing(change, folder, tmp_path):
    NetworkRun.open(f"hf:{folder}").save(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    inner = {**json.loads(content["base"]["transformers"]), **change}
    content["base"]["transformers"] = json.dumps(inner)
    path.write_text(json.dumps(content))
    with pytest.raises(HeadstartError) as error:
        NetworkRun.open(tmp_path / "run")
    assert str(tmp_path / "run") in str(error.value.where)


def test_missing_and_surplus_tensors_and_numbers_that_are_none_are_each_listed(folder):
    layer = "bert.encoder.layer"
    tensors = load_file(folder / WEIGHTS)
    del tensors[f"{layer}.0.output.dense.bias"]
    tensors[f"{layer}.1.adapter.weight"] = torch.zeros(2)
    tensors[f"{layer}.1.output.dense.bias"].fill_(float("nan"))
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    found = refusal(folder)
    assert f"{layer}.0.output.dense.bias is missing" in found
    assert f"{layer}.1.adapter.weight is not expected" in found
    assert f"{layer}.1.output.dense.bias holds NaN" in found


@pytest.mark.parametrize("name", ["../theirs/model-1.safetensors", "weights.bin", "absent", 7])
def test_an_index_names_only_safetensors_of_its_folder(folder, name):
    (folder / WEIGHTS).rename(folder / Path(str(name)).name)
    (folder / INDEX).write_text(json.dumps({"weight_map": {"bert.embeddings": name}}))
    assert "is missing" in refusal(folder)


def test_a_folder_without_weights_or_with_half_of_them(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])
    assert WEIGHTS in refusal(folder)
    (folder / WEIGHTS).unlink()
    assert "there is no model.safetensors" in refusal(folder)


class Code:
    def __reduce__(self):
        return os.system, (f"touch {MARKER}",)


def test_a_pickle_is_not_opened_and_nothing_else_is_printed(folder, headstart):
    """The warning of PyTorch about such files is not printed."""
    MARKER.unlink(missing_ok=True)
    (folder / WEIGHTS).unlink()
    torch.save({"weight": Code()}, folder / "pytorch_model.bin", pickle_module=pickle)
    found = headstart("predict", f"hf:{folder}", "a text")
    assert found.returncode == 2
    assert WEIGHTS in found.stderr
    assert "Warning" not in found.stderr
    assert not MARKER.exists()


def test_a_tokenizer_must_be_there_and_fit_the_embedding(folder):
    train_tokenizer(TEXTS, vocab_size=330).save(folder)
    assert "tokens, the embedding only" in refusal(folder)
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refusal(folder)


def test_no_package_of_an_extra_is_imported_unless_it_is_needed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: one for name, one in project["optional-dependencies"].items() if name != "dev"}
    lines = [line for one in extras.values() for line in one]
    names = {re.match(r"[\w-]+", line)[0].replace("-", "_") for line in lines}
    assert {"transformers", "datasets", "onnx", "ray"} <= names
    program = f"""
import sys
import headstart.cli.app, headstart.estimators, headstart.interop.export, headstart.study.study
print(sorted({names} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_without_the_extra_there_is_one_message(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HeadstartError) as error:
        NetworkRun.open(f"hf:{folder}")
    assert "headstart[hf]" in error.value.fix
