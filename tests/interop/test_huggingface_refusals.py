"""A folder that cannot be a base is one clear message, exit code 2, and nothing half-written."""

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
from headstart.interop.hub import find_folder, pin
from headstart.run import NetworkRun
from tests.interop.foreign import TEXTS, change_config, make, save
from tests.labelled import dataset, write_csv
from tests.pages import ROOT

pytest.importorskip("transformers")
WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    return save(make("bert", "ForMaskedLM"), tmp_path / "theirs")


def change_weights(folder, change):
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def refusal(folder):
    with pytest.raises(HeadstartError) as error:
        NetworkRun.open(Path(f"hf:{folder}"))
    return str(error.value)


def test_the_command_ends_with_code_2_and_leaves_nothing(folder, tmp_path, headstart):
    (folder / "config.json").unlink()
    data = write_csv(tmp_path / "data.csv", dataset(20))
    run = tmp_path / "run"
    result = headstart("finetune", data, "--base", f"hf:{folder}", "--out", run)
    assert result.returncode == 2
    assert "no config.json" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (run / "config.toml").exists()


def test_a_damaged_or_foreign_config(folder):
    (folder / "config.json").write_text("{")
    assert "damaged" in refusal(folder)
    (folder / "config.json").write_text('{"hello": 1}')
    assert "names no model_type" in refusal(folder)
    (folder / "config.json").write_text('{"format": 1, "base": {}, "head": null}')
    assert "is a run of Headstart" in refusal(folder)


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


def test_code_of_a_model_is_never_run(folder):
    (folder / "evil.py").write_text("import os\nos.mkdir('/tmp/headstart-was-here-2')\n")
    names = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}
    refusal(change_config(folder, model_type="evil", auto_map=names))
    assert not Path("/tmp/headstart-was-here-2").exists()


def test_nobody_is_asked_whether_code_of_a_model_may_run(tmp_path, monkeypatch):
    folder = save(make("gpt2", "LMHeadModel"), tmp_path / "theirs")
    (folder / "evil.py").write_text("raise SystemExit('the code of the model ran')\n")
    asked = []
    monkeypatch.setattr("builtins.input", lambda question="": asked.append(question) or "y")
    names = {"AutoModelForMaskedLM": "evil.Model"}
    refusal(change_config(folder, architectures=["GPT2ForMaskedLM"], auto_map=names))
    assert asked == []


def test_a_config_cannot_choose_an_attention_of_the_hub(folder):
    change_config(folder, _attn_implementation="kernels-community/flash-attn")
    run = NetworkRun.open(f"hf:{folder}")
    assert "/" not in str(run.model.base.inner.config._attn_implementation)


@pytest.mark.parametrize("name", ["../theirs/model-1.safetensors", "weights.bin"])
def test_an_index_names_only_safetensors_of_its_folder(folder, name):
    (folder / WEIGHTS).rename(folder / Path(name).name)
    index = {"weight_map": {"bert.embeddings.word_embeddings.weight": name}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    assert "index.json is damaged" in refusal(folder)


def test_a_config_that_is_larger_than_the_weights_allocates_nothing(folder, tmp_path):
    """Findings 2 and 72: with place and fix, in little time and memory."""
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
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    *lines, memory = ended.stdout.splitlines()
    assert len(lines) == len(folders), ended.stderr
    for line, one in zip(lines, folders, strict=True):
        for words in ("do not fit config.json", str(one), "config.json that belongs"):
            assert words in line
    assert int(memory) < 200_000  # KB


def test_a_run_whose_config_was_changed_allocates_nothing(folder, tmp_path):
    NetworkRun.open(f"hf:{folder}").save(tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    saved = path.read_text()
    for change in ({"num_hidden_layers": 10**9}, {"hidden_size": 16_384, "vocab_size": 10**6}):
        content = json.loads(saved)
        inner = {**json.loads(content["base"]["transformers"]), **change}
        content["base"]["transformers"] = json.dumps(inner)
        path.write_text(json.dumps(content))
        with pytest.raises(HeadstartError) as error:
            NetworkRun.open(tmp_path / "run")
        assert str(tmp_path / "run") in str(error.value.where)


def test_missing_and_surplus_tensors_are_each_listed(folder):
    def change(tensors):
        for number in (0, 1):
            del tensors[f"bert.encoder.layer.{number}.output.dense.bias"]
            tensors[f"bert.encoder.layer.{number}.adapter.weight"] = torch.zeros(2)

    change_weights(folder, change)
    found = refusal(folder)
    for number in (0, 1):
        assert f"bert.encoder.layer.{number}.output.dense.bias is missing" in found
        assert f"bert.encoder.layer.{number}.adapter.weight has no place here" in found


def test_weights_that_are_not_numbers(folder):
    change_weights(folder, lambda tensors: tensors["cls.predictions.bias"].fill_(float("nan")))
    assert "NaN" in refusal(folder)


class Code:
    def __reduce__(self):
        return os.system, ("touch /tmp/headstart-was-here",)


def test_a_pickle_is_not_opened_and_nothing_else_is_printed(folder, headstart):
    """PyTorch warns of such files."""
    (folder / WEIGHTS).unlink()
    torch.save({"weight": Code()}, folder / "pytorch_model.bin", pickle_module=pickle)
    found = headstart("predict", f"hf:{folder}", "a text")
    assert found.returncode == 2
    assert "pytorch_model.bin, which can carry code" in found.stderr
    assert "Warning" not in found.stderr
    assert not Path("/tmp/headstart-was-here").exists()


def test_a_tokenizer_with_more_tokens_than_the_embedding(folder):
    pieces = train_tokenizer(TEXTS, vocab_size=330)
    pieces.save(folder)
    found = refusal(folder)
    assert f"the tokenizer has {pieces.vocab_size} tokens, the embedding only" in found


def test_an_embedding_with_spare_rows_is_used_and_saved(tmp_path, headstart_json):
    theirs = save(make("bert", vocab_size=320), tmp_path / "theirs")
    run = NetworkRun.open(f"hf:{theirs}")
    assert run.model.base.config.vocab_padding == 320 - run.tokenizer.vocab_size
    data = write_csv(tmp_path / "data.csv", dataset(40))
    words = ("--out", tmp_path / "run", "--epochs", 1, "--threads", 1)
    headstart_json("finetune", data, "--base", f"hf:{theirs}", *words)
    assert NetworkRun.open(tmp_path / "run").model.base.config.vocab_size == 320


def test_a_folder_without_weights_or_with_half_of_them(folder):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[: len(content) // 2])
    assert "damaged or cut short" in refusal(folder)
    (folder / WEIGHTS).unlink()
    assert "there is no model.safetensors" in refusal(folder)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(index))
    assert "model-00001-of-00002.safetensors is missing" in refusal(folder)


def test_a_folder_without_a_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refusal(folder)


def test_without_a_network_there_is_one_clear_message(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for call in (find_folder, pin):
        with pytest.raises(HeadstartError, match="cannot be reached"):
            call("owner/name")


def test_a_path_that_does_not_exist_is_not_looked_up(tmp_path):
    assert "no such folder" in refusal(tmp_path / "nowhere")


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
    assert "headstart[hf]" in refusal(folder)
