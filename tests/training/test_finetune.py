"""Fine-tuning learns and saves the best epoch; only its initial weights differ from scratch."""

import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model, read_safetensors, save_model
from headstart.run import NetworkRun
from headstart.tasks.classification import Classification
from headstart.tasks.task import run_network
from headstart.training.finetune import EpochBatches, finetune
from headstart.training.initialization import start_model, text_encoding
from headstart.training.trainer import Interrupted
from tests.callbacks import StopAt
from tests.labelled import config, dataset, splits
from tests.runs import small_run


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("base"), steps=60)


@pytest.fixture(scope="session")
def tuned(tmp_path_factory, base):
    """A base that was fine-tuned: the run as `finetune` returns it."""
    folder = tmp_path_factory.mktemp("tuned") / "run"
    return finetune(config(base=str(base)), folder, splits=splits())


@pytest.fixture(scope="session")
def noisy(tmp_path_factory):
    """A run whose best epoch is not its last one, because it memorises noisy labels."""
    settings = config(epochs=8, selection_metric="loss")
    folder = tmp_path_factory.mktemp("noisy") / "run"
    return settings, finetune(settings, folder, splits=splits(wrong=0.4))


def prepared(settings, parts):
    """The start and the batches of a fine-tuning."""
    task = Classification(parts.train.label_names)
    start = start_model(settings, task, parts.train.texts)
    encoding = text_encoding(settings, task, start)
    train = task.encode(parts.train, encoding)
    weights = task.class_weights(parts.train, train) if settings.class_weight else train.weights
    return start, EpochBatches(settings, task, train, weights, encoding)


def test_it_learns_from_a_base_and_lists_what_became_of_its_parts(tuned, base):
    assert tuned.summary["validation"]["accuracy"] > 0.9
    fates = {row["part"]: row["status"] for row in tuned.summary["swap"]}
    assert fates["embedding"] == "kept"
    assert fates["language modeling head"] == "dropped"
    assert fates["classification head"] == "new"
    run = NetworkRun.open(tuned.folder)
    assert run.tokenizer.fingerprint == NetworkRun.open(base).tokenizer.fingerprint
    assert run.labels == ("animal", "person")


def test_scratch_and_pretrained_see_the_same_batches_and_have_the_same_head(base):
    sizes = {"width": 32, "layers": 2, "heads": 2, "feed_forward_width": 64, "vocab_size": None}
    started, batches = prepared(config(base=str(base)), splits())
    for other in (
        config(base=str(base), fresh=True),
        config(tokenizer=str(base), length=batches.length, **sizes),
    ):
        scratch, others = prepared(other, splits())
        for step in range(2 * batches.steps_per_epoch):
            rows = batches.order.batch(step)
            assert rows.tolist() == others.order.batch(step).tolist()
            assert torch.equal(
                batches.examples.batch(rows).tokens, others.examples.batch(rows).tokens
            )
        heads = (started.model.head.parameters(), scratch.model.head.parameters())
        assert all(torch.equal(one, two) for one, two in zip(*heads, strict=True))
        blocks = [one.model.base.blocks[0].attention.output.weight for one in (started, scratch)]
        assert not torch.equal(*blocks)


def test_the_saved_and_the_returned_model_are_those_of_the_best_epoch(noisy):
    settings, run = noisy
    data, epochs = splits(wrong=0.4), run.summary["epochs"]
    assert [row["epoch"] for row in epochs] == list(range(1, 9))
    assert [row["epoch"] for row in epochs if row["best"]] == [run.summary["best_epoch"]]
    best = epochs[run.summary["best_epoch"] - 1]
    assert run.summary["best_epoch"] < 8
    assert best["validation_loss"] == min(row["validation_loss"] for row in epochs)
    saved = NetworkRun.open(run.folder)
    scores = saved.scores(data.validation)
    assert saved.task.metrics(scores, data.validation)["accuracy"] == best["accuracy"]
    in_memory = finetune(settings, None, splits=data)
    texts = data.test.texts[:5]
    assert run.temperature == saved.temperature == in_memory.temperature
    np.testing.assert_array_equal(run.predict_proba(texts), saved.predict_proba(texts))
    np.testing.assert_allclose(in_memory.predict_proba(texts), run.predict_proba(texts), atol=1e-6)


def test_training_in_memory_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = finetune(config(epochs=1), None, splits=splits())
    assert list(tmp_path.rglob("*")) == []
    assert run.evaluate(splits().validation)["seen_rows"] is None


def test_a_base_that_is_used_again_is_as_it_was_saved_and_a_changed_one_is_noticed(tmp_path, base):
    """The last opened base is cached: training must not change it, and new files replace it."""
    folder = tmp_path / "base"
    shutil.copytree(base, folder)

    def embedding():
        return prepared(config(base=str(folder)), splits())[0].model.base.embedding.weight

    finetune(config(base=str(folder), epochs=1), None, splits=splits())
    changed = load_model(folder)
    saved = changed.base.embedding.weight.detach().clone()
    assert torch.equal(embedding(), saved)
    with torch.no_grad():
        changed.base.embedding.weight += 1
    save_model(changed, folder)
    assert torch.equal(embedding(), saved + 1)


def test_a_frozen_base_stays_and_otherwise_only_embedding_rows_of_training_texts_move(
    tmp_path, base, tuned
):
    before, after = (
        read_safetensors(folder / "model.safetensors") for folder in (base, tuned.folder)
    )
    name = "base.embedding.weight"
    examples = tuned.task.encode(splits().train, tuned.encoding)
    used = np.unique(np.concatenate([ids for rows in examples.tokens for ids in rows]))
    moved = torch.nonzero((before[name] != after[name]).any(1)).flatten().tolist()
    assert 0 < len(moved) < len(before[name])
    assert set(moved) <= set(used.tolist())
    frozen = tmp_path / "frozen"
    finetune(config(base=str(base), freeze=True, epochs=2), frozen, splits=splits())
    after = read_safetensors(frozen / "model.safetensors")
    assert all(torch.equal(before[one], after[one]) for one in before.keys() & after.keys())


@pytest.mark.parametrize("average", [0.0, 0.75])
def test_an_interrupted_run_continues_to_the_same_bits(tmp_path, base, average):
    data, whole, parts = splits(wrong=0.2), tmp_path / "whole", tmp_path / "parts"
    settings = config(base=str(base), average=average, epochs=4)
    expected = finetune(settings, whole, splits=data).summary
    for stop in (2, 7, 18):
        with pytest.raises(Interrupted):
            finetune(settings, parts, splits=data, resume=stop > 2, callbacks=[StopAt(stop)])
    with pytest.raises(HeadstartError, match="the dataset is not the one"):
        finetune(settings, parts, splits=splits(wrong=0.1), resume=True)
    summary = finetune(settings, parts, splits=data, resume=True).summary
    for name in ("model.safetensors", "task.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
    for one, two in zip(expected["epochs"], summary["epochs"], strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}
    assert finetune(settings, parts, splits=data, resume=True).summary == summary  # it is finished
    assert not (parts / "checkpoints").exists()


def test_the_saved_weights_are_the_mean_of_those_that_shorter_trainings_end_with(tmp_path):
    constant = {"schedule": "constant", "selection_metric": "last", "warmup": 0.0}
    ends = []
    for epochs in (2, 3):  # at a constant rate, a longer training begins as a shorter one
        finetune(config(**constant, epochs=epochs), tmp_path / f"{epochs}", splits=splits())
        ends.append(read_safetensors(tmp_path / f"{epochs}" / "model.safetensors"))
    run = finetune(config(**constant, epochs=3, average=0.7), tmp_path / "mean", splits=splits())
    mean = read_safetensors(tmp_path / "mean" / "model.safetensors")
    for name, value in mean.items():
        torch.testing.assert_close(value, (ends[0][name] + ends[1][name]) / 2)
    assert run.summary["averaged_epochs"] == 2


def test_fewer_than_two_epochs_are_not_averaged(tmp_path):
    run = finetune(config(epochs=2, average=0.5), tmp_path / "run", splits=splits())
    assert run.summary["averaged_epochs"] == 0


def unbalanced():
    """Forty texts of one class and two of the other."""
    data, rows = splits(), dataset(80)
    picked = [row for row in range(80) if rows.labels[row] == 0] + [1, 3]
    return type(data)(rows.pick(picked), data.validation, data.test)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_balanced_weights_act_the_same_in_every_batch_size(batch_size):
    """The losses of an epoch, per row, are the mean of what each class costs."""
    start, batches = prepared(config(class_weight="balanced", batch_size=batch_size), unbalanced())
    model = start.model.eval()
    losses = []
    for step in range(batches.steps_per_epoch):
        (part,) = batches.micro_batches(model, step)
        losses += [part.compute().item() / part.targets] * len(batches.order.batch(step))
    examples = batches.examples
    targets = torch.tensor(examples.targets)
    scores = torch.from_numpy(np.asarray(run_network(model, examples)))
    classes = [F.cross_entropy(scores[targets == one], targets[targets == one]) for one in (0, 1)]
    assert np.mean(losses) == pytest.approx(float(sum(classes)) / 2, rel=1e-3)


def epoch_losses(settings):
    """The losses of all training texts in one step, as three epochs read them."""
    start, batches = prepared(settings, splits())
    start.model.eval()
    return [
        sum(part.compute().item() for part in batches.micro_batches(start.model, epoch))
        for epoch in range(3)
    ]


def test_token_dropout_drops_other_tokens_in_every_epoch():
    rows = len(splits().train)
    whole = epoch_losses(config(batch_size=rows, token_dropout=0.0))
    assert whole == pytest.approx([whole[0]] * 3, rel=1e-4)
    dropped = epoch_losses(config(batch_size=rows, token_dropout=0.5))
    assert dropped == epoch_losses(config(batch_size=rows, token_dropout=0.5))
    assert min(np.abs(np.diff([*dropped, dropped[0]]))) > 1e-3


def test_by_default_tokens_of_texts_longer_than_a_window_are_dropped(base):
    _, usual = prepared(config(length=8), splits())
    _, whole = prepared(config(length=8, token_dropout=0.0), splits())
    _, truncated = prepared(config(length=8, long="truncate"), splits())
    _, windows = prepared(config(base=str(base)), splits())
    assert usual.lengths.sum() < whole.lengths.sum()
    assert whole.dropout is truncated.dropout is None
    assert max(truncated.lengths) == 8
    assert truncated.examples.cut == 80
    assert windows.length == 32  # as the rows of pretraining
    assert windows.examples.cut == 0


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finetune(config(seed=seed, epochs=1), tmp_path / name, splits=splits())
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c
