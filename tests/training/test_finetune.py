"""Fine-tuning: it learns, keeps the best epoch, and differs from scratch in its start alone."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from headstart.errors import HeadstartError
from headstart.model.checkpoint import load_model
from headstart.run import NetworkRun
from headstart.tasks.classification import Classification
from headstart.tasks.examples import TextEncoding
from headstart.tasks.run_network import run_network
from headstart.tasks.spans import Spans
from headstart.tasks.tagging import Tagging
from headstart.training.finetune import finetune, plan_finetuning
from headstart.training.finetune_loop import micro_batches
from headstart.training.finetune_prepare import prepare_finetuning
from headstart.training.loop import Interrupted
from headstart.training.recipe import FinetuneRecipe, make_recipe
from headstart.training.recipe import read_finetune_recipe as read_recipe
from headstart.training.recipe import read_recipe as read_pretrain_recipe
from headstart.training.recipe_file import write_recipe
from tests.labelled import dataset, recipe, splits
from tests.listeners import StopAt
from tests.runs import small_run


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("base"), steps=60)


def weights(run):
    return {name: value.clone() for name, value in load_model(run).named_parameters()}


def test_it_learns_from_scratch(tmp_path):
    summary = finetune(recipe(), tmp_path / "run", splits=splits())
    assert summary["validation"]["accuracy"] > 0.9


def test_it_learns_from_a_base_and_tells_what_became_of_it(tmp_path, base):
    summary = finetune(recipe(base=str(base)), tmp_path / "run", splits=splits())
    assert summary["validation"]["accuracy"] > 0.9
    fates = {row["part"]: row["fate"] for row in summary["swap"]}
    assert fates["embedding"] == "kept"
    assert fates["language modeling head"] == "dropped"
    assert fates["classification head"] == "new"


def test_the_run_opens_with_its_tokenizer_and_its_whole_vocabulary(tmp_path, base):
    finetune(recipe(base=str(base)), tmp_path / "run", splits=splits())
    run = NetworkRun.open(tmp_path / "run")
    assert run.tokenizer.fingerprint == NetworkRun.open(base).tokenizer.fingerprint
    assert run.model.base.embedding.num_embeddings == run.tokenizer.vocab_size
    assert json.loads((tmp_path / "run" / "task.json").read_text())["labels"] == [
        "animal",
        "person",
    ]


def test_scratch_and_pretrained_see_the_same_batches_and_have_the_same_head(tmp_path, base):
    data = splits()
    started = prepare_finetuning(recipe(base=str(base)), tmp_path / "a", splits=data)
    fresh = prepare_finetuning(recipe(base=str(base), fresh=True), tmp_path / "b", splits=data)
    alone = prepare_finetuning(
        recipe(
            tokenizer=str(base),
            length=started.encoding.length,
            vocab_size=0,
            width=32,
            layers=2,
            heads=2,
            feed_forward_width=64,
        ),
        tmp_path / "c",
        splits=data,
    )
    for other in (fresh, alone):
        assert other.steps == started.steps
        for step in range(started.steps):
            rows = started.order.batch(step)
            assert rows.tolist() == other.order.batch(step).tolist()
            one, two = started.train.batch(rows), other.train.batch(rows)
            assert torch.equal(one.tokens, two.tokens)
            assert torch.equal(one.targets, two.targets)
        for one, two in zip(
            started.model.head.parameters(), other.model.head.parameters(), strict=True
        ):
            assert torch.equal(one, two)
        assert not torch.equal(
            started.model.base.blocks[0].attention.output.weight,
            other.model.base.blocks[0].attention.output.weight,
        )
    assert plan_finetuning(fresh).loop.settings == plan_finetuning(started).loop.settings


def test_the_epoch_table_has_every_epoch_and_its_numbers(tmp_path):
    summary = finetune(recipe(), tmp_path / "run", splits=splits())
    assert [row["epoch"] for row in summary["epochs"]] == [1, 2, 3]
    wanted = {"train_loss", "validation_loss", "accuracy", "macro_f1", "seconds", "best"}
    assert all(wanted <= row.keys() for row in summary["epochs"])
    assert sum(row["best"] for row in summary["epochs"]) == 1


def test_the_model_kept_is_that_of_the_best_epoch(tmp_path):
    data = splits(wrong=0.4)
    summary = finetune(recipe(epochs=8, choose_by="loss"), tmp_path / "run", splits=data)
    best = summary["epochs"][summary["best_epoch"] - 1]
    assert best["validation_loss"] == min(row["validation_loss"] for row in summary["epochs"])
    assert summary["best_epoch"] < 8  # labels that are noise are soon learned by heart
    run = NetworkRun.open(tmp_path / "run")
    task = Classification(("animal", "person"))
    examples = task.encode(data.validation, TextEncoding(run.tokenizer, 512))
    found = task.metrics(task.decode(run_network(run.model, examples), examples), data.validation)
    assert found["loss"] == pytest.approx(best["validation_loss"], rel=1e-5)
    assert found["accuracy"] == best["accuracy"]


def test_the_answers_for_validation_are_kept(tmp_path):
    data = splits()
    summary = finetune(recipe(), tmp_path / "run", splits=data)
    kept = load_file(tmp_path / "run" / "validation.safetensors")
    assert kept["labels"].tolist() == data.validation.labels
    right = (kept["logits"].argmax(1) == kept["labels"]).mean()
    assert right == summary["validation"]["accuracy"]


def test_patience_ends_the_training_early(tmp_path):
    summary = finetune(
        recipe(epochs=30, patience=2, choose_by="loss"), tmp_path / "run", splits=splits(wrong=0.4)
    )
    assert len(summary["epochs"]) == summary["best_epoch"] + 2 < 30


@pytest.mark.parametrize("strategy", ["full", "frozen", "gradual"])
def test_a_strategy_trains_what_it_says(tmp_path, base, strategy):
    run = tmp_path / "run"
    finetune(recipe(base=str(base), strategy=strategy, epochs=2), run, splits=splits())
    before, after = weights(base), weights(run)
    changed = {
        name.split(".")[2] if "blocks" in name else name
        for name in before.keys() & after.keys()
        if not torch.equal(before[name], after[name])
    }
    everything = {"base.embedding.weight", "0", "1", "base.final_norm.weight"}
    # Two epochs of gradual unfreezing: the head alone, then the topmost block too.
    assert (
        changed
        == {
            "full": everything,
            "frozen": set(),
            "gradual": everything - {"base.embedding.weight", "0"},
        }[strategy]
    )


def test_layers_learn_slower_the_deeper_they_lie(tmp_path, base):
    training = prepare_finetuning(
        recipe(base=str(base), layer_decay=0.5), tmp_path / "run", splits=splits()
    )
    names = {id(p): name for name, p in training.model.named_parameters()}
    scales = {
        names[id(p)]: group["scale"]
        for group in plan_finetuning(training).loop.optimizer.param_groups
        for p in group["params"]
    }
    assert scales["head.output.weight"] == 1
    assert scales["base.final_norm.weight"] == 0.5
    assert scales["base.blocks.1.attention.output.weight"] == 0.5
    assert scales["base.blocks.0.attention.output.weight"] == 0.25
    assert scales["base.embedding.weight"] == 0.125


def test_only_the_embedding_rows_that_training_texts_use_move(tmp_path, base):
    data = splits()
    run = tmp_path / "run"
    finetune(recipe(base=str(base)), run, splits=data)
    before, after = weights(base)["base.embedding.weight"], weights(run)["base.embedding.weight"]
    opened = NetworkRun.open(run)
    examples = opened.task.encode(data.train, opened.encoding)
    used = np.unique(np.concatenate(examples.tokens))
    moved = torch.nonzero((before != after).any(1)).flatten().tolist()
    assert 0 < len(moved) < len(before)
    assert set(moved) <= set(used.tolist())


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path, base):
    data = splits(wrong=0.2)
    for strategy in ("full", "gradual"):
        whole, parts = tmp_path / f"whole-{strategy}", tmp_path / f"parts-{strategy}"
        settings = recipe(base=str(base), strategy=strategy, epochs=3)
        expected = finetune(settings, whole, splits=data)
        for stop in (2, 7, 11):
            with pytest.raises(Interrupted):
                finetune(settings, parts, splits=data, resume=stop > 2, listener=StopAt(stop))
        summary = finetune(settings, parts, splits=data, resume=True)
        for name in ("model.safetensors", "validation.safetensors"):
            assert (whole / name).read_bytes() == (parts / name).read_bytes()
        for one, two in zip(expected["epochs"], summary["epochs"], strict=True):
            assert {**one, "seconds": 0} == {**two, "seconds": 0}


def test_a_finished_run_is_not_trained_again(tmp_path):
    summary = finetune(recipe(), tmp_path / "run", splits=splits())
    assert finetune(recipe(), tmp_path / "run", splits=splits(), resume=True) == summary
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_resuming_with_another_dataset_is_refused(tmp_path):
    with pytest.raises(Interrupted):
        finetune(recipe(), tmp_path / "run", splits=splits(), listener=StopAt(1))
    with pytest.raises(HeadstartError, match="the dataset is not the one"):
        finetune(recipe(), tmp_path / "run", splits=splits(wrong=0.1), resume=True)


def test_a_rare_class_counts_as_much_as_the_common_one_with_balance(tmp_path):
    common, rare = dataset(80), dataset(80)
    rows = [row for row in range(80) if common.labels[row] == 0] + [1, 3]
    data = splits()
    unbalanced = type(data)(rare.pick(rows), data.validation, data.test)
    training = prepare_finetuning(recipe(balance=True), tmp_path / "run", splits=unbalanced)
    labels = np.array(unbalanced.train.labels)
    assert training.weights[labels == 0].sum() == pytest.approx(training.weights[labels == 1].sum())


def test_label_smoothing_keeps_the_answers_less_certain(tmp_path):
    answers = []
    for smoothing in (0.0, 0.3):
        run = tmp_path / str(smoothing)
        finetune(recipe(label_smoothing=smoothing, epochs=6), run, splits=splits())
        answers.append(np.abs(load_file(run / "validation.safetensors")["logits"]).mean())
    assert answers[1] < answers[0]


def test_epochs_leave_tokens_out_and_each_of_them_others(tmp_path):
    def losses(name, **settings):
        """Of all training texts in one step, as three epochs read them."""
        one_step = recipe(batch_size=len(splits().train), **settings)
        setup = prepare_finetuning(one_step, tmp_path / name, splits=splits())
        setup.model.eval()
        return [
            sum(batch.compute().item() for batch in micro_batches(setup, epoch))
            for epoch in range(3)
        ]

    assert losses("whole", token_dropout=0.0) == pytest.approx([losses("again")[0]] * 3, rel=1e-4)
    dropped = losses("dropped", token_dropout=0.5)
    assert dropped == losses("dropped again", token_dropout=0.5)
    assert min(np.abs(np.diff([*dropped, dropped[0]]))) > 1e-3


def test_batches_are_made_of_texts_that_are_equally_long_without_what_is_left_out(tmp_path):
    """Four texts of 8 words, and four of 12 in two windows of 6, of which half stay."""
    rows = splits().train.pick(range(8))
    texts = ["film " * words for words in (8, 12) * 4]
    parts = replace(splits(), train=replace(rows, texts=[text.strip() for text in texts]))
    settings = {"length": 10, "long": "windows", "batch_size": 4, "long_token_dropout": 0.5}
    setup = prepare_finetuning(recipe(**settings), tmp_path / "run", splits=parts)
    batches = [setup.order.batch(step) for step in range(2)]
    assert sorted(sorted(batch.tolist()) for batch in batches) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    for rows in batches:
        batch = setup.train.batch(rows, dropout=setup.dropout, random=np.random.default_rng(0))
        assert batch.segments.all()  # so nothing is padded


def test_by_default_steps_leave_out_tokens_of_texts_longer_than_a_window(tmp_path):
    def tokens(name, **settings):
        setup = prepare_finetuning(recipe(length=8, **settings), tmp_path / name, splits=splits())
        return setup.dropout_share, sum(batch.tokens for batch in micro_batches(setup, 0))

    share, fewer = tokens("usual", long="windows")
    none, all_of_them = tokens("whole", long="windows", token_dropout=0.0)
    assert 0 < share <= 0.35
    assert none == 0
    assert fewer < all_of_them
    assert tokens("cut", long="cut")[0] == 0  # such a text is one window, and short


def test_the_plan_says_what_is_left_out(tmp_path):
    def notes(name, **settings):
        setup = prepare_finetuning(recipe(**settings), tmp_path / name, splits=splits())
        return " ".join(plan_finetuning(setup).plan.notes)

    long = "80 texts are longer than a window of 8 tokens, and each epoch leaves out 35%"
    assert long in notes("long", length=8)
    assert "leaves out" not in notes("short", length=128)


def test_the_plan_says_what_a_share_that_was_given_comes_to(tmp_path):
    def prepared(share):
        given = recipe(token_dropout=share)
        setup = prepare_finetuning(given, tmp_path / str(share), splits=splits())
        return setup.dropout_share, " ".join(plan_finetuning(setup).plan.notes)

    share, words = prepared(0.2)
    assert f"each epoch leaves out {share:.1%} of the tokens" in words
    assert 0.1 < share < 0.2  # begin and end stay
    share, words = prepared(0.001)
    assert share == 0
    assert "--token-dropout 0.001 leaves nothing out" in words


def test_an_older_run_that_left_nothing_out_is_read_as_such(tmp_path):
    write_recipe(recipe(), tmp_path)
    path = tmp_path / "recipe.toml"
    kept = [line for line in path.read_text().splitlines() if "long_token_dropout" not in line]
    path.write_text("\n".join(kept))
    assert read_recipe(tmp_path).long_token_dropout == 0.0


def test_tags_are_learned_from_whole_sentences():
    assert not Tagging.whole_texts
    assert not Spans.whole_texts


def test_long_texts_are_cut_and_counted(tmp_path):
    training = prepare_finetuning(recipe(length=8, long="cut"), tmp_path / "run", splits=splits())
    assert training.train.cut["texts"] == 80
    assert 0 < training.train.cut["tokens"] < training.train.cut["of"]
    assert max(training.train.lengths) == 8


def test_texts_are_read_in_windows_as_long_as_the_rows_of_pretraining(tmp_path, base):
    training = prepare_finetuning(recipe(base=str(base)), tmp_path / "run", splits=splits())
    assert training.encoding.long == "windows"
    assert training.encoding.length == read_pretrain_recipe(base).length
    assert training.train.cut == {}


def test_windows_lose_nothing_and_every_text_counts_the_same(tmp_path):
    training = prepare_finetuning(
        recipe(length=8, long="windows"), tmp_path / "run", splits=splits()
    )
    assert training.train.cut == {}
    counts = np.bincount(training.train.owners, weights=training.weights)
    np.testing.assert_allclose(counts, 1, rtol=1e-6)
    assert (
        finetune(recipe(length=8, long="windows"), tmp_path / "run", splits=splits())["validation"][
            "accuracy"
        ]
        > 0.9
    )


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        finetune(recipe(seed=seed), tmp_path / name, splits=splits())
    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_the_preset_lab_is_the_labs_training(tmp_path):
    lab = make_recipe(dataset=["x"], preset="lab")
    assert (lab.pooling, lab.batch_size, lab.epochs) == ("last", 8, 15)
    assert (lab.learning_rate, lab.schedule, lab.weight_decay) == (1e-4, "constant", 0.0)
    assert make_recipe(dataset=["x"], preset="lab", epochs=2).epochs == 2


def test_a_tokenizer_that_is_not_the_bases_is_refused_with_the_way_out(tmp_path, base):
    other = small_run(tmp_path / "other", steps=2, vocab_size=280)
    with pytest.raises(HeadstartError, match=r"300 pieces.* 280 others") as error:
        prepare_finetuning(
            recipe(base=str(base), tokenizer=str(other)), tmp_path / "r", splits=splits()
        )
    assert "--match-vocabulary" in error.value.fix


def test_a_recipe_survives_the_trip_through_its_file(tmp_path):
    write_recipe(recipe(pooling="max", long="windows"), tmp_path)
    assert read_recipe(tmp_path) == recipe(pooling="max", long="windows")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"pooling": "middle"}, "pooling is 'middle'; it can be last"),
        ({"layer_decay": 0.0}, "layer_decay"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"strategy": "half"}, "it can be full, frozen, gradual"),
        ({"epochs": 0}, "epochs is 0; it must be 1 or more"),
        ({"fresh": True}, "need a base"),
        ({"base": "runs/x", "width": 8}, "the base decides about width"),
    ],
)
def test_a_wrong_setting_is_said(wrong, message):
    with pytest.raises(HeadstartError, match=message):
        FinetuneRecipe(dataset=["x"], **wrong)


def test_minutes_leave_as_many_epochs_as_fit_and_a_resumed_run_keeps_them(tmp_path, monkeypatch):
    monkeypatch.setattr("headstart.training.finetune.measure_epochs", lambda *_: (20.0, 5.0))
    settings = recipe(minutes=1.0, epochs=4)
    summary = finetune(settings, tmp_path / "run", splits=splits(40))
    assert len(summary["epochs"]) == 2  # 5 + 2 · 20 seconds
    assert read_recipe(tmp_path / "run").epochs_that_fit == 2
    assert finetune(settings, tmp_path / "run", splits=splits(40), resume=True) == summary
    short = finetune(recipe(epochs=2), tmp_path / "short", splits=splits(40))
    assert short["validation"]["validation_loss"] == summary["validation"]["validation_loss"]


def test_the_seconds_of_an_epoch_are_measured_without_learning(tmp_path):
    setup = prepare_finetuning(recipe(strategy="gradual"), tmp_path / "run", splits=splits(40))
    before = {name: value.clone() for name, value in setup.model.state_dict().items()}
    planned = plan_finetuning(setup, timed=True)
    assert planned.plan.seconds > 0
    after = planned.setup.model.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())
