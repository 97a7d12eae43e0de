"""An exported run opens with stock `transformers` and has the same predictions."""

import json

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file

from headstart.errors import HeadstartError
from headstart.interop.export import export_run
from headstart.model.model import build_model
from headstart.model.presets import preset, preset_of, stock_head
from headstart.run import NetworkRun
from headstart.tasks import find_task
from headstart.training.finetune import finetune
from tests.interop.foreign import make, save, tokenizer
from tests.labelled import config, dataset, write_csv

transformers = pytest.importorskip("transformers")
SIZES = {"width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}
LABELS = {
    "classification": ["bad", "good", "neither"],
    "pairs": ["no", "yes"],
    "multi-label": ["a", "b", "c"],
    "tagging": ["O", "B-PER", "I-PER"],
    "spans": [],
}


def make_run(folder, name="small", objective="causal", task=None, head="stock", temperature=1.0):
    """A run with random weights so large that a mistake is visible in its predictions."""
    own = tokenizer()
    chosen = preset(name, objective=objective, vocab_size=own.vocab_size, **SIZES)
    done = None if task is None else find_task(task)(LABELS[task])
    if done is None:
        config = chosen.language_modeling
    else:
        config = done.head(preset_of(chosen.base), None)
        config = stock_head(config, chosen.base) if head == "stock" else config
    model = build_model(chosen.base, config, seed=1).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.1)
    NetworkRun(folder, model, own, task=done, length=32, temperature=temperature).save(folder)
    return folder


ARCHITECTURES = {
    ("small", "causal"): "Llama",
    ("small", "masked"): "ModernBert",
    ("bert", "masked"): "Bert",
    ("gpt2", "causal"): "GPT2",
}


@pytest.mark.parametrize(
    ("name", "objective", "task"),
    [(*one, task) for one in ARCHITECTURES for task in (None, "classification")]
    + [
        ("small", "causal", "tagging"),
        ("small", "masked", "multi-label"),
        ("bert", "masked", "spans"),
        ("gpt2", "causal", "pairs"),
    ],
)
def test_every_preset_goes_out_and_computes_the_same(name, objective, task, tmp_path):
    heat = 2.5 if task == "classification" else 1.0
    run = make_run(tmp_path / "run", name, objective, task, temperature=heat)
    found = export_run(run, "huggingface", tmp_path / "out")
    assert found["model"].startswith(ARCHITECTURES[name, objective])
    assert found["largest_difference"] < 1e-5
    assert "ids" in found["comparisons"][0]["inputs"]
    if task != "classification":
        return
    texts = ["the cat sat on the mat", "le café", "Straße und Bäume 東京"]
    pipe = transformers.pipeline("text-classification", str(tmp_path / "out"), batch_size=3)
    for ours, theirs in zip(NetworkRun.open(run).predict(texts), pipe(texts), strict=True):
        assert theirs["label"] == ours["label"]
        assert theirs["score"] == pytest.approx(ours["probability"], abs=1e-5)


def test_pairs_stay_pairs_in_a_pipeline_and_here(tmp_path, headstart_json):
    run = make_run(tmp_path / "run", "bert", "masked", "pairs")
    export_run(run, "huggingface", tmp_path / "out")
    found = headstart_json("predict", f"hf:{tmp_path / 'out'}", "the cat", "le café")
    assert len(found["predictions"]) == 1
    pipe = transformers.pipeline("text-classification", str(tmp_path / "out"))
    theirs = pipe({"text": "the cat", "text_pair": "le café"})
    (ours,) = NetworkRun.open(run).predict([("the cat", "le café")])
    assert theirs["score"] == pytest.approx(ours["probability"], abs=1e-5)


def test_labels_that_do_not_exclude_each_other_say_so(tmp_path):
    run = make_run(tmp_path / "run", "bert", "masked", "multi-label")
    export_run(run, "huggingface", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["problem_type"] == "multi_label_classification"
    pipe = transformers.pipeline("text-classification", str(tmp_path / "out"), top_k=None)
    theirs = {one["label"]: one["score"] for one in pipe(["the cat"])[0]}
    (ours,) = NetworkRun.open(run).predict(["the cat"])
    assert theirs == pytest.approx(ours["probabilities"], abs=1e-5)


def test_a_bases_pipelines_write_and_fill(tmp_path):
    for objective, tag, prompt in [
        ("causal", "text-generation", "the cat"),
        ("masked", "fill-mask", "the [MASK] sat"),
    ]:
        run = make_run(tmp_path / objective, "small", objective)
        out = tmp_path / f"{objective}-out"
        export_run(run, "huggingface", out)
        assert ModelCard.load(out / "README.md").data.pipeline_tag == tag
        pipe = transformers.pipeline(tag, str(out))
        assert pipe(prompt, **({"max_new_tokens": 3} if objective == "causal" else {}))


def test_a_classifier_fine_tuned_with_defaults_opens_in_stock_transformers(tmp_path):
    write_csv(tmp_path / "rows.csv", dataset(200))
    settings = config(dataset=[str(tmp_path / "rows.csv")], objective="masked")
    run = finetune(settings, tmp_path / "run")
    found = export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert found["largest_difference"] < 1e-4
    assert found["measured"]["export"]["value"] > 0.8
    pipe = transformers.pipeline("text-classification", str(tmp_path / "out"))
    texts = dataset(20, 7).texts
    ours = [one["label"] for one in run.predict(texts)]
    theirs = [one["label"] for one in pipe(list(texts), truncation=True)]
    assert np.mean([one == two for one, two in zip(ours, theirs, strict=True)]) > 0.8


def test_a_default_head_is_rejected_where_its_training_rows_are_not_known(tmp_path):
    run = make_run(tmp_path / "run", "small", "causal", "classification", head="own")
    with pytest.raises(HeadstartError, match="training rows") as error:
        export_run(run, "huggingface", tmp_path / "out")
    assert "--head stock" in error.value.fix
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("long", ["truncate", "windows"])
def test_the_test_metric_is_measured_again_through_the_export(long, tmp_path):
    write_csv(tmp_path / "rows.csv", dataset(100, wrong=0.2))
    settings = {"head": "stock", "long": long, "length": 16}
    finetune(config(dataset=[str(tmp_path / "rows.csv")], **settings), tmp_path / "run")
    found = export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    measured = found["measured"]
    assert measured["rows"] == 10
    if long == "truncate":  # windows have no counterpart there, so that the metric may differ
        assert measured["export"] == measured["run"]


@pytest.mark.parametrize(
    ("name", "int8", "message"),
    [("lab", False, "no model of transformers"), ("small", True, "8-bit")],
)
def test_what_transformers_cannot_hold_is_for_onnx(name, int8, message, tmp_path):
    run = make_run(tmp_path / "run", name)
    with pytest.raises(HeadstartError, match=message) as error:
        export_run(run, "huggingface", tmp_path / "out", int8=int8)
    assert "--to onnx" in error.value.fix


def test_a_head_that_transformers_lacks_is_noticed_by_the_comparison(tmp_path):
    run = make_run(tmp_path / "run", "small", "masked", "tagging", head="own")
    with pytest.raises(HeadstartError, match="does not compute what the run computes") as error:
        export_run(run, "huggingface", tmp_path / "out")
    assert "--to onnx" in error.value.fix
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("roberta", "ForTokenClassification"),
        ("distilbert", "ForSequenceClassification"),
        ("modernbert-local", "ForMaskedLM"),
        ("deberta", "ForSequenceClassification"),
        ("gpt2", "ForSequenceClassification"),
        ("qwen3", "ForCausalLM"),
        ("bert", "Model"),
    ],
)
def test_what_came_in_goes_out_as_the_same_kind(kind, ending, tmp_path):
    theirs = save(make(kind, ending), tmp_path / "theirs")
    found = export_run(f"hf:{theirs}", "huggingface", tmp_path / "out")
    assert found["model"] == type(make(kind, ending)).__name__
    there, back = (load_file(f / "model.safetensors") for f in (theirs, tmp_path / "out"))
    assert {name.split(".")[0] for name in there.keys() - back.keys()} <= {"pooler"}
    assert all(torch.equal(there[name], tensor) for name, tensor in back.items())


@pytest.mark.parametrize(("kind", "head"), [("bert", "stock"), ("llama", "auto")])
def test_a_fine_tuned_model_of_others_goes_out_again(kind, head, tmp_path):
    """Also with the default head, for which a stock one is fitted."""
    theirs = save(make(kind, pad_token_id=0), tmp_path / "theirs")
    write_csv(tmp_path / "rows.csv", dataset(80))
    sizes = dict.fromkeys(("width", "layers", "heads", "vocab_size", "feed_forward_width"))
    more = {"base": f"hf:{theirs}", "head": head, "length": 32, "preset": "small", **sizes}
    finetune(config(dataset=[str(tmp_path / "rows.csv")], epochs=1, **more), tmp_path / "run")
    found = export_run(tmp_path / "run", "huggingface", tmp_path / "out")
    assert found["model"].endswith("ForSequenceClassification")
    assert found["largest_difference"] < 1e-4
