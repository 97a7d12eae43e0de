"""Fine-tuning: it learns, saves the best epoch, and differs from scratch in its start alone."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model, read_safetensors, save_model
from headstart.run import NetworkRun
from headstart.tasks.classification import Classification
from headstart.tasks.examples import TextEncoding
from headstart.training.batches import EpochBatches
from headstart.training.callbacks import Callback
from headstart.training.finetune import finetune
from headstart.training.initialization import read_splits, start_model, text_encoding
from headstart.training.run_files import _fitting_epochs
from headstart.training.trainer import Interrupted
from tests.callbacks import StopAt
from tests.labelled import config, dataset, splits, write_csv
from tests.runs import small_run


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("base"), steps=60)


def weights(run):
    return {name: value.clone() for name, value in load_model(run).named_parameters()}


def prepared(settings, parts):
    """The start and the batches of a fine-tuning."""
    task = Classification(parts.train.label_names)
    start = start_model(settings, task, parts.train.texts)
    encoding = text_encoding(settings, task, start)
    train = task.encode(parts.train, encoding)
    weights = task.class_weights(parts.train, train) if settings.class_weight else train.weights
    return start, EpochBatches(settings, task, train, weights, encoding)


def test_it_learns_from_scratch(tmp_path):
    run = finetune(config(), tmp_path / "run", splits=splits())
    assert run.summary["validation"]["accuracy"] > 0.9


def test_it_learns_from_a_base_and_lists_what_became_of_its_parts(tmp_path, base):
    summary = finetune(config(base=str(base)), tmp_path / "run", splits=splits()).summary
    assert summary["validation"]["accuracy"] > 0.9
    fates = {row["part"]: row["status"] for row in summary["swap"]}
    assert fates["embedding"] == "kept"
    assert fates["language modeling head"] == "dropped"
    assert fates["classification head"] == "new"


def test_the_run_opens_with_its_tokenizer_and_its_whole_vocabulary(tmp_path, base):
    finetune(config(base=str(base)), tmp_path / "run", splits=splits())
    run = NetworkRun.open(tmp_path / "run")
    assert run.tokenizer.fingerprint == NetworkRun.open(base).tokenizer.fingerprint
    assert run.model.base.embedding.num_embeddings == run.tokenizer.vocab_size
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
            one, two = batches.examples.batch(rows), others.examples.batch(rows)
            assert torch.equal(one.tokens, two.tokens)
            assert torch.equal(one.targets, two.targets)
        heads = (started.model.head.parameters(), scratch.model.head.parameters())
        assert all(torch.equal(one, two) for one, two in zip(*heads, strict=True))
        blocks = [one.model.base.blocks[0].attention.output.weight for one in (started, scratch)]
        assert not torch.equal(*blocks)


def test_the_epoch_table_has_every_epoch_and_its_numbers(tmp_path):
    summary = finetune(config(), tmp_path / "run", splits=splits()).summary
    assert [row["epoch"] for row in summary["epochs"]] == [1, 2, 3]
    wanted = {"train_loss", "validation_loss", "accuracy", "macro_f1", "seconds", "best"}
    assert all(wanted <= row.keys() for row in summary["epochs"])
    assert sum(row["best"] for row in summary["epochs"]) == 1


def test_the_saved_model_is_that_of_the_best_epoch(tmp_path):
    data = splits(wrong=0.4)
    settings = config(epochs=8, selection_metric="loss")
    summary = finetune(settings, tmp_path / "run", splits=data).summary
    best = summary["epochs"][summary["best_epoch"] - 1]
    assert best["validation_loss"] == min(row["validation_loss"] for row in summary["epochs"])
    assert summary["best_epoch"] < 8  # labels that are noise are soon learned by heart
    run = NetworkRun.open(tmp_path / "run")
    task = Classification(("animal", "person"))
    examples = task.encode(data.validation, TextEncoding(run.tokenizer, 512))
    found = task.metrics(task.decode(run.outputs(examples), examples), data.validation)
    assert found["loss"] == pytest.approx(best["validation_loss"], rel=1e-5)
    assert found["accuracy"] == best["accuracy"]


def test_training_in_memory_writes_nothing_and_gives_the_same_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = config(selection_metric="last")
    saved = finetune(settings, tmp_path / "run", splits=splits())
    before = sorted(tmp_path.rglob("*"))
    run = finetune(settings, None, splits=splits())
    assert sorted(tmp_path.rglob("*")) == before
    np.testing.assert_array_equal(run.validation_scores, saved.validation_scores)
    for name, value in weights(tmp_path / "run").items():
        assert torch.equal(value, dict(run.model.named_parameters())[name])
    assert run.evaluate(splits().validation)["seen_rows"] is None


def test_a_base_that_is_used_again_is_as_it_was_saved_and_a_changed_one_is_noticed(tmp_path, base):
    """The base that was opened last is kept: training must not change it, new files replace it."""
    folder = tmp_path / "base"
    shutil.copytree(base, folder)

    def embedding():
        return prepared(config(base=str(folder)), splits())[0].model.base.embedding.weight

    finetune(config(base=str(folder)), None, splits=splits())
    saved = dict(load_model(folder).named_parameters())["base.embedding.weight"]
    assert torch.equal(embedding(), saved)
    changed = load_model(folder)
    with torch.no_grad():
        changed.base.embedding.weight += 1
    save_model(changed, folder)
    assert torch.equal(embedding(), saved + 1)


@pytest.mark.parametrize("freeze", [False, True])
def test_a_frozen_base_does_not_change(tmp_path, base, freeze):
    run = tmp_path / "run"
    finetune(config(base=str(base), freeze=freeze, epochs=2), run, splits=splits())
    before, after = weights(base), weights(run)
    same = [name for name in before.keys() & after.keys() if torch.equal(before[name], after[name])]
    assert bool(same) == freeze


def test_only_the_embedding_rows_that_training_texts_use_move(tmp_path, base):
    data, run = splits(), tmp_path / "run"
    finetune(config(base=str(base)), run, splits=data)
    before, after = weights(base)["base.embedding.weight"], weights(run)["base.embedding.weight"]
    opened = NetworkRun.open(run)
    examples = opened.task.encode(data.train, opened.encoding)
    used = np.unique(np.concatenate([ids for rows in examples.tokens for ids in rows]))
    moved = torch.nonzero((before != after).any(1)).flatten().tolist()
    assert 0 < len(moved) < len(before)
    assert set(moved) <= set(used.tolist())


@pytest.mark.parametrize("average", [0.0, 0.75])
def test_an_interrupted_run_continues_to_the_same_bits(tmp_path, base, average):
    data, whole, parts = splits(wrong=0.2), tmp_path / "whole", tmp_path / "parts"
    settings = config(base=str(base), average=average, epochs=4)
    expected = finetune(settings, whole, splits=data).summary
    for stop in (2, 7, 18):
        with pytest.raises(Interrupted):
            finetune(settings, parts, splits=data, resume=stop > 2, callbacks=[StopAt(stop)])
    summary = finetune(settings, parts, splits=data, resume=True).summary
    for name in ("model.safetensors", "task.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
    for one, two in zip(expected["epochs"], summary["epochs"], strict=True):
        assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_a_finished_run_is_not_trained_again(tmp_path):
    run = finetune(config(), tmp_path / "run", splits=splits())
    again = finetune(config(), tmp_path / "run", splits=splits(), resume=True)
    assert again.summary == run.summary
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_resuming_with_another_dataset_is_rejected(tmp_path):
    with pytest.raises(Interrupted):
        finetune(config(), tmp_path / "run", splits=splits(), callbacks=[StopAt(1)])
    with pytest.raises(HeadstartError, match="the dataset is not the one"):
        finetune(config(), tmp_path / "run", splits=splits(wrong=0.1), resume=True)


def test_the_saved_weights_are_the_mean_of_those_that_shorter_trainings_end_with(tmp_path):
    constant = {"schedule": "constant", "selection_metric": "last", "warmup": 0.0}
    ends = []
    for epochs in (2, 3):  # at a constant rate, a longer training begins as a shorter one
        finetune(config(**constant, epochs=epochs), tmp_path / f"{epochs}", splits=splits())
        ends.append(read_safetensors(tmp_path / f"{epochs}" / "model.safetensors"))
    finetune(config(**constant, epochs=3, average=0.7), tmp_path / "mean", splits=splits())
    mean = read_safetensors(tmp_path / "mean" / "model.safetensors")
    for name, value in mean.items():
        torch.testing.assert_close(value, (ends[0][name] + ends[1][name]) / 2)
    assert "averaged over the last 2" in (tmp_path / "mean" / "README.md").read_text()


def test_a_card_mentions_averaging_only_where_weights_were_averaged(tmp_path):
    finetune(config(epochs=2, average=0.5), tmp_path / "run", splits=splits())
    assert "averaged" not in (tmp_path / "run" / "README.md").read_text()


def unbalanced():
    """Forty texts of one class and two of the other."""
    data, rows = splits(), dataset(80)
    picked = [row for row in range(80) if rows.labels[row] == 0] + [1, 3]
    return type(data)(rows.pick(picked), data.validation, data.test)


def test_a_rare_class_counts_as_much_as_the_common_one_with_balanced_weights():
    _, batches = prepared(config(class_weight="balanced"), unbalanced())
    labels = np.array(batches.examples.targets)
    rare, common = batches.weights[labels == 1].sum(), batches.weights[labels == 0].sum()
    assert rare == pytest.approx(common)


@pytest.mark.parametrize("batch_size", [1, 8])
def test_weights_act_the_same_in_every_batch_size(batch_size):
    """The gradients of an epoch, divided by its rows, are those of the weighted mean loss."""
    data = unbalanced()
    start, batches = prepared(config(class_weight="balanced", batch_size=batch_size), data)
    model = start.model.eval()
    gradient = torch.zeros_like(model.head.output.weight)
    rows = 0
    for step in range(batches.steps_per_epoch):
        for part in batches.micro_batches(model, step):
            model.zero_grad()
            (part.compute() / part.targets).backward()
            count = len(batches.order.batch(step))
            gradient += model.head.output.weight.grad * count
            rows += count
    _, whole = prepared(config(class_weight="balanced", batch_size=len(data.train)), data)
    model.zero_grad()
    (part,) = whole.micro_batches(model, 0)
    (part.compute() / part.targets).backward()
    torch.testing.assert_close(gradient / rows, model.head.output.weight.grad, rtol=1e-3, atol=1e-5)


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


def test_batches_hold_texts_that_are_equally_long_after_dropout():
    """Four texts of 8 words, and four of 12 in two windows of 6, of which half stay."""
    rows = splits().train.pick(range(8))
    texts = ["film " * words for words in (8, 12) * 4]
    parts = replace(splits(), train=replace(rows, texts=[text.strip() for text in texts]))
    _, batches = prepared(config(length=10, batch_size=4, token_dropout=None), parts)
    found = sorted(sorted(batches.order.batch(step).tolist()) for step in range(2))
    assert found == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_by_default_tokens_of_texts_longer_than_a_window_are_dropped():
    _, usual = prepared(config(length=8), splits())
    _, whole = prepared(config(length=8, token_dropout=0.0), splits())
    _, truncated = prepared(config(length=8, long="truncate"), splits())
    assert usual.lengths.sum() < whole.lengths.sum()
    assert whole.dropout is truncated.dropout is None
    assert "35%" in usual.dropout_note()
    assert whole.dropout_note() is None


def test_long_texts_are_truncated_and_counted():
    _, batches = prepared(config(length=8, long="truncate"), splits())
    assert batches.examples.cut == 80
    assert max(batches.examples.lengths) == 8


def test_texts_are_read_in_windows_as_long_as_the_rows_of_pretraining(base):
    _, batches = prepared(config(base=str(base)), splits())
    assert batches.length == 32
    assert batches.examples.cut == 0


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finetune(config(seed=seed), tmp_path / name, splits=splits())
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_another_tokenizer_than_the_bases_is_rejected_with_the_way_out(tmp_path, base):
    other = small_run(tmp_path / "other", steps=2, vocab_size=280)
    with pytest.raises(HeadstartError, match="the base decides about tokenizer"):
        finetune(config(base=str(base), tokenizer=str(other)), tmp_path / "r", splits=splits())


def test_minutes_leave_as_many_epochs_as_fit_and_a_resume_repeats_them(tmp_path, monkeypatch):
    monkeypatch.setattr("headstart.training.run_files._fitting_epochs", lambda *given: (2, 45.0))
    settings = config(minutes=1.0, epochs=4)
    with pytest.raises(Interrupted):
        finetune(settings, tmp_path / "run", splits=splits(40), callbacks=[StopAt(2)])
    monkeypatch.undo()
    summary = finetune(settings, tmp_path / "run", splits=splits(40), resume=True).summary
    assert len(summary["epochs"]) == 2
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["epochs"] == 2
    short = finetune(config(epochs=2), tmp_path / "short", splits=splits(40)).summary
    assert short["validation"]["validation_loss"] == summary["validation"]["validation_loss"]


class Clock:
    """A trainer whose steps and evaluations take these seconds."""

    def time_steps(self, steps):
        return 2.0 * len(steps)

    def time_evaluation(self):
        return 5.0


def test_epochs_that_do_not_fit_are_an_error_with_the_minutes_that_would():
    _, batches = prepared(config(batch_size=8, head_init="random"), splits())  # 10 steps
    timed = config(epochs=9, minutes=1.0, head_init="random")
    assert _fitting_epochs(timed, batches, Clock())[0] == 2  # each takes about 25 seconds
    with pytest.raises(HeadstartError, match="one epoch takes about") as error:
        _fitting_epochs(timed.replace(minutes=0.1), batches, Clock())
    assert error.value.code == "does-not-fit"


def test_a_dry_run_has_a_plan_and_writes_nothing(tmp_path):
    run = finetune(config(), tmp_path / "run", splits=splits(), dry_run=True)
    assert run.plan["seconds"] > 0
    assert run.plan["epochs"] == 3
    assert not (tmp_path / "run").exists()


def test_the_returned_run_has_the_best_weights_and_its_temperature(tmp_path):
    data = splits(wrong=0.4)
    settings = config(epochs=8, selection_metric="loss")
    run = finetune(settings, tmp_path / "run", splits=data)
    assert run.summary["best_epoch"] < 8
    saved = NetworkRun.open(tmp_path / "run")
    in_memory = finetune(settings, None, splits=data)
    texts = data.test.texts[:5]
    assert run.temperature == saved.temperature == in_memory.temperature
    np.testing.assert_array_equal(run.predict_proba(texts), saved.predict_proba(texts))
    np.testing.assert_allclose(in_memory.predict_proba(texts), run.predict_proba(texts), atol=1e-6)


def test_a_label_budget_keeps_what_was_noted_about_the_files(tmp_path):
    for name in ("train", "test"):
        write_csv(tmp_path / f"{name}.csv", dataset(60))
    found = [
        read_splits(config(dataset=[str(tmp_path)], labels=labels), Callback())
        for labels in (None, "20")
    ]
    assert len(found[1].train) == 20
    assert found[1].notes == found[0].notes != ()
