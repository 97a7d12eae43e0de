"""Training texts of the task join pretraining, most of them last; validation and test never do."""

import itertools

import pytest

from headstart.text.reading.corpus import read_corpus
from headstart.training.prepare import MOST_TASK_PASSES, open_corpus, prepare
from headstart.training.pretrain import pretrain
from tests.corpora import write_corpus
from tests.labelled import dataset, write_csv
from tests.runs import small_recipe

TASK = [f"a task text about number {number} and the happy cat" for number in range(200)]


def prepared(folder, texts=TASK):
    recipe = small_recipe(folder, steps=100)
    return prepare(recipe, corpus=open_corpus(recipe).with_task_text(texts))


def test_task_text_is_the_end_of_the_corpus_and_changes_its_fingerprint(tmp_path):
    corpus = read_corpus(write_corpus(tmp_path / "corpus.txt", documents=5))
    joined = corpus.with_task_text(TASK[:2])
    assert list(joined) == [*corpus, *TASK[:2]]
    assert joined.fingerprint != corpus.fingerprint
    assert joined.fingerprint != corpus.with_task_text(TASK[1:3]).fingerprint


def test_what_is_left_out_of_the_corpus_is_left_out_of_its_task_text(tmp_path):
    corpus = read_corpus(write_corpus(tmp_path / "corpus.txt", documents=5))
    assert TASK[1] not in list(corpus.without([TASK[1]]).with_task_text(TASK[:3]))


def test_only_the_last_fifth_of_the_steps_reads_task_text_every_second_one_at_most(tmp_path):
    data, steps = prepared(tmp_path), 200
    read = [step for step in range(steps) if data.source(step, steps)[0] is data.task_text]
    assert read
    assert min(read) >= 0.8 * steps
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(read))


def test_little_task_text_is_read_only_a_few_times(tmp_path):
    data, steps = prepared(tmp_path, TASK[:20]), 2_000
    read = [data.source(step, steps) for step in range(steps)]
    batches = [number for source, number in read if source is data.task_text]
    assert batches == list(range(len(batches)))
    assert len(batches) * data.rows <= MOST_TASK_PASSES * len(data.task_text.packed()) + data.rows


@pytest.mark.parametrize("objective", ["causal", "masked", "masked+next-sentence"])
def test_every_objective_pretrains_with_task_text_named_in_its_recipe(tmp_path, objective):
    path = write_csv(tmp_path / "task.csv", dataset(200))
    recipe = small_recipe(tmp_path, objective, steps=10, task_text=str(path))
    assert pretrain(recipe, tmp_path / "run")["steps"] == 10


@pytest.mark.parametrize("told", [True, False])
def test_the_weights_that_have_read_the_task_text_are_kept(tmp_path, monkeypatch, told):
    """Held-out text, which is mostly of the corpus, would choose those from before."""
    losses = itertools.count(1.0)
    monkeypatch.setattr(
        "headstart.training.pretrain_loop.evaluate_held_out",
        lambda *given, **options: {"loss": (loss := next(losses)), "perplexity": loss},
    )
    path = write_csv(tmp_path / "task.csv", dataset(200))
    recipe = small_recipe(tmp_path, steps=10, task_text=str(path) if told else "")
    assert pretrain(recipe, tmp_path / "run")["best_step"] == (10 if told else 5)


def test_validation_and_test_texts_are_not_in_the_corpus_that_a_recipe_opens(tmp_path):
    from headstart.text.reading.read import read_dataset

    path = write_csv(tmp_path / "task.csv", dataset(200))
    parts = read_dataset(str(path))
    texts = set(open_corpus(small_recipe(tmp_path, task_text=str(path))))
    assert set(parts.train.texts) <= texts
    assert not set(parts.validation.texts) & texts
    assert not set(parts.test.texts) & texts


def test_task_texts_that_are_held_out_are_not_trained_on(tmp_path):
    recipe = small_recipe(tmp_path, steps=10, held_out=0.3)
    data = prepare(recipe, corpus=open_corpus(recipe).with_task_text(TASK))
    decode = data.tokenizer.decode
    held_out = {decode(document.tolist()) for document in data.held_out.store}
    trained = {decode(document.tolist()) for document in data.task_text.store}
    assert trained
    assert not held_out & trained


def test_what_is_left_out_later_is_left_out_of_the_task_text_too(tmp_path):
    corpus = read_corpus(write_corpus(tmp_path / "corpus.txt", documents=5))
    smaller = corpus.with_task_text(TASK[:3]).without([TASK[1]])
    assert TASK[1] not in list(smaller)
    assert smaller.left_out == 1
