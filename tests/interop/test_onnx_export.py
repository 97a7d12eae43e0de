"""ONNX exports have the same outputs for every preset, head, length and padding."""

import json
import pickle
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCard

from headstart import HeadstartClassifier, HeadstartEmbedder, load
from headstart.data.tokenizers import train_tokenizer
from headstart.errors import HeadstartError
from headstart.interop.export import export_run, paired_difference
from headstart.model.config import ClassificationConfig, SpansConfig, TaggingConfig
from headstart.model.model import build_model
from headstart.model.presets import preset
from headstart.run import NetworkRun
from headstart.tasks import find_task
from headstart.training.finetune import finetune
from tests.interop.foreign import language_model, make, save
from tests.labelled import config, dataset, write_csv
from tests.pages import ROOT

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

pytest.importorskip("onnxscript")
from headstart.interop.onnx_export import make_graph, quantize  # noqa: E402
from headstart.interop.onnx_run import open_export, open_session  # noqa: E402

TINY = {"vocab_size": 100, "width": 16, "layers": 2, "heads": 2, "feed_forward_width": 32}
HEADS = {
    "first": ClassificationConfig(classes=3, pooling="first", dense=True),
    "last": ClassificationConfig(classes=3, pooling="last", bias=False),
    "max": ClassificationConfig(classes=3, pooling="max"),
    "mean+max": ClassificationConfig(classes=3, pooling="mean+max"),
    "tags": TaggingConfig(tags=3, transform=True),
    "spans": SpansConfig(),
}


def strong(model, seed=0):
    """Make the weights so large that a mistake in any part is visible in the outputs."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def inputs_of(model):
    types = model.base.config.token_types > 1
    return ["input_ids", "attention_mask", *["token_type_ids"][: int(types)]]


def outputs(model, opened, tokens, real, kinds=None):
    """Return the outputs of the network and of the graph, without padding."""
    types = torch.zeros_like(tokens) if kinds is None else kinds
    feeds = {"input_ids": tokens, "attention_mask": real, "token_type_ids": types}
    given = {one.name: feeds[one.name].numpy() for one in opened.get_inputs()}
    with torch.no_grad():
        ours = model(tokens, real, kinds).numpy()
    theirs = opened.run(["logits"], given)[0]
    kept = (real > 0).numpy()
    return (ours, theirs) if ours.ndim == 2 else (ours[kept], theirs[kept])


def shapes():
    """Tokens with masks: one token, many, padded on the right and on the left."""
    generator = torch.Generator().manual_seed(1)
    for rows, length in ((1, 1), (1, 64), (3, 9)):
        tokens = torch.randint(100, (rows, length), generator=generator)
        real = torch.ones_like(tokens)
        yield tokens, real
        if rows > 1:
            real[0, 4:], real[1, 1:] = 0, 0
            yield tokens, real
            yield tokens, real.flip(1)


CASES = [
    ("lab", "causal", "last"),
    ("small", "causal", "mean+max"),
    ("small", "masked", "tags"),
    ("bert", "masked", "spans"),
    ("bert", "masked", "first"),
    ("gpt2", "causal", "max"),
]


@pytest.mark.parametrize(("name", "objective", "head"), CASES)
def test_a_graph_computes_what_the_network_computes(name, objective, head, tmp_path):
    model = strong(build_model(preset(name, objective=objective, **TINY).base, HEADS[head]))
    graph = make_graph(model, inputs_of(model), length=64)
    opened = open_session(graph.SerializeToString(), threads=1, where=tmp_path)
    for tokens, real in shapes():
        kinds = None if model.base.token_types is None else (tokens > 50).long()
        ours, theirs = outputs(model, opened, tokens, real, kinds)
        np.testing.assert_allclose(theirs, ours, atol=1e-4, rtol=1e-4)


def test_8_bit_weights_are_small_close_and_do_not_depend_on_their_batch(tmp_path):
    sizes = {**TINY, "vocab_size": 2_000, "width": 64, "feed_forward_width": 128}
    model = build_model(preset("small", **sizes).base, HEADS["mean+max"]).eval()
    whole = make_graph(model, inputs_of(model), length=64)
    small = quantize(whole).SerializeToString()
    assert len(small) < 0.5 * whole.ByteSize()
    opened = open_session(small, threads=1, where=tmp_path)
    tokens = torch.randint(100, (16, 20), generator=torch.Generator().manual_seed(2))
    ours, together = outputs(model, opened, tokens, torch.ones_like(tokens))
    assert np.abs(together - ours).max() < 0.1 * np.abs(ours).max()
    for row in range(len(tokens)):
        one = tokens[row : row + 1]
        alone = outputs(model, opened, one, torch.ones_like(one))[1]
        np.testing.assert_allclose(together[row : row + 1], alone, atol=1e-5)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """A run that reads its texts in windows, next to its training files."""
    folder = tmp_path_factory.mktemp("classifier")
    write_csv(folder / "rows.csv", dataset(120, sentences=3))
    chosen = config(dataset=[str(folder / "rows.csv")], length=16, long="windows", epochs=4)
    finetune(chosen, folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def exported(classifier, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "out"
    return out, export_run(classifier, "onnx", out)


def untrained(folder, task, labels, head, name="bert"):
    """The folder of a run with random weights."""
    tokenizer = train_tokenizer(["who lives here? ada lives there!"] * 3, vocab_size=300)
    chosen = preset(name, **{**TINY, "vocab_size": tokenizer.vocab_size})
    model = strong(build_model(chosen.base, head))
    run = NetworkRun(folder, model, tokenizer, task=find_task(task)(labels), length=32)
    run.save(folder)
    return folder


def test_an_export_is_checked_over_batches_lengths_paddings_and_windows(exported):
    out, found = exported
    checked = " ".join(one["inputs"] for one in found["comparisons"])
    for words in ("one token", "padded on the right", "padded on the left", "windows", "ids"):
        assert words in checked
    assert found["largest_difference"] < 1e-4
    assert found["measured"]["export"] == found["measured"]["run"]
    assert ModelCard.load(out / "README.md").data.library_name == "onnx"


def test_tags_and_spans_are_predicted_alike(tmp_path):
    tags = untrained(tmp_path / "tags", "tagging", ("O", "B-PER"), TaggingConfig(tags=2), "small")
    spans = untrained(tmp_path / "spans", "spans", (), SpansConfig())
    text = "nobody " * 40 + "lives here"
    for folder, given in ((tags, text), (spans, ("who lives here?", text))):
        out = folder.with_suffix(".onnx")
        export_run(folder, "onnx", out)
        (ours,), (theirs,) = (load(one).predict([given]) for one in (folder, out))
        for name in ("probability", "probabilities"):
            assert theirs.get(name) == pytest.approx(ours.get(name), abs=1e-4)


@pytest.mark.parametrize("kind", ["small", "hf:bert", "hf:llama"])
def test_a_base_is_exported_as_an_embedder(kind, tmp_path):
    base = str(tmp_path / "base")
    if kind == "small":
        tokenizer = train_tokenizer(["the cat sat on the mat"] * 3, vocab_size=300)
        chosen = preset("small", **{**TINY, "vocab_size": tokenizer.vocab_size})
        model = strong(build_model(chosen.base, chosen.language_modeling))
        NetworkRun(tmp_path / "base", model, tokenizer).save(tmp_path / "base")
    else:
        kind = kind.removeprefix("hf:")
        base = f"hf:{save(make(kind, language_model(kind)), tmp_path / 'base')}"
    out = tmp_path / "out"
    found = export_run(base, "onnx", out)
    assert found["largest_difference"] < 1e-4
    texts = ["the cat sat", "le café était fermé", "the dog runs here. " * 60]
    ours, theirs = HeadstartEmbedder(base).fit(), HeadstartEmbedder(out).fit()
    vectors = theirs.transform(texts)
    np.testing.assert_allclose(vectors, ours.transform(texts), atol=1e-4)
    assert np.array_equal(theirs.transform(texts[:1])[0], vectors[0])  # in any batch the same
    assert np.array_equal(pickle.loads(pickle.dumps(theirs)).transform(texts), vectors)
    with pytest.raises(HeadstartError, match="no task"):
        load(out).predict(texts)


def test_an_embedder_of_an_export_needs_an_exported_base_and_no_settings(exported):
    with pytest.raises(HeadstartError) as error:
        HeadstartEmbedder(exported[0]).fit()
    assert error.value.where == str(exported[0])


def test_a_missing_package_is_named_with_its_command(classifier, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnx" else 1)
    with pytest.raises(HeadstartError, match="is not installed") as error:
        export_run(classifier, "onnx", tmp_path / "out")
    assert "headstart[onnx]" in str(error.value.fix)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "not in format 2"),
        ({"export": "other"}, "did not write"),
        ({"length": "x"}, "damaged"),
        ({"task": "none such"}, "unknown task"),
    ],
)
def test_a_foreign_or_damaged_export_is_one_message(change, message, exported, tmp_path):
    config = json.loads((exported[0] / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, **change}))
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(HeadstartError, match=message):
        open_export(tmp_path)


def test_the_interval_of_two_equal_columns_is_not_empty():
    same = np.repeat([1.0, 0.0], 50)
    interval = paired_difference(same, same)
    assert interval.low < 0 < interval.high
    assert paired_difference(same, 1 - same).value == 0.0
    assert paired_difference(np.zeros(20), np.ones(20)).low > 0.7


def test_the_commands_take_an_export_for_a_run(exported, classifier, headstart_json, tmp_path):
    rows = write_csv(tmp_path / "rows.csv", dataset(30, seed=5))
    results = [headstart_json("predict", one, "the cat runs") for one in (classifier, exported[0])]
    labels = [found["predictions"][0]["label"] for found in results]
    assert labels[0] == labels[1]
    assert HeadstartClassifier.from_run(exported[0]).predict(["the cat runs"]) == labels[:1]
    both = [headstart_json("evaluate", one, rows) for one in (classifier, exported[0])]
    for name in ("rows", "seen_rows", "accuracy", "confusion"):
        assert both[0][name] == both[1][name]


def test_the_page_s_reader_needs_no_torch_and_gives_the_run_s_probabilities(exported, classifier):
    page = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    texts = ["the cat sleeps", "[MASK]", "a dog runs here. " * 12]
    blocked = "import sys\nsys.modules['torch'] = sys.modules['headstart'] = None\n"
    asked = f"print(json.dumps([classify(text) for text in {texts!r}]))"
    command = [sys.executable, "-c", f"{blocked}{code}\n{asked}"]
    folder = exported[0].rename(exported[0].parent / "exported")
    try:
        ended = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True)
    finally:
        folder.rename(exported[0])
    assert ended.returncode == 0, ended.stderr
    answers = NetworkRun.open(classifier).predict(texts)
    for theirs, ours in zip(json.loads(ended.stdout), answers, strict=True):
        assert theirs == pytest.approx(ours["probabilities"], abs=1e-5)


def test_the_second_text_of_a_pair_counts(tmp_path):
    """A pair is compared with a real second text."""
    head = ClassificationConfig(classes=2, pooling="first")
    folder = untrained(tmp_path / "pairs", "pairs", ("no", "yes"), head)
    export_run(folder, "onnx", tmp_path / "out")
    pairs = [("who lives here?", "ada lives there!"), ("who lives here?", "who"), ("ada", "here")]
    both = [run.predict_proba(pairs) for run in (NetworkRun.open(folder), load(tmp_path / "out"))]
    np.testing.assert_allclose(both[1], both[0], atol=1e-5)
    assert abs(both[1][0] - both[1][1]).max() > 1e-3


@pytest.mark.parametrize("kind", ["roberta", "modernbert-local"])
def test_a_model_of_transformers_has_a_graph_too(kind, tmp_path):
    pytest.importorskip("transformers")
    theirs = save(make(kind, "ForSequenceClassification", num_labels=3), tmp_path / "theirs")
    found = export_run(f"hf:{theirs}", "onnx", tmp_path / "out", int8=kind == "roberta")
    assert found["largest_difference"] < (0.25 if kind == "roberta" else 1e-4)
    texts = ["the cat sat", "le café était fermé"]
    ours, there = load(tmp_path / "out"), NetworkRun.open(f"hf:{theirs}")
    assert (ours.predict_proba(texts).argmax(1) == there.predict_proba(texts).argmax(1)).all()


def test_a_graph_that_onnxruntime_cannot_open_is_one_message(exported, tmp_path):
    run = open_export(exported[0])
    broken = replace(run, folder=tmp_path, graph=b"not a graph")
    with pytest.raises(HeadstartError, match="onnxruntime cannot open"):
        broken.one_thread  # noqa: B018
