"""The start of a training: corpus, task text, initial weights, and the corpus of a base."""

import itertools

import pytest
import torch

from headstart.config import FinetuneConfig, PretrainConfig
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError
from headstart.tasks.classification import Classification
from headstart.training.callbacks import Callback
from headstart.training.corpus import open_corpus, prepare_corpus
from headstart.training.finetune import overlap_note
from headstart.training.initialization import initial_model, start_model
from tests.corpora import write_corpus
from tests.labelled import dataset, write_csv
from tests.runs import small_config

TASK = [f"a task text about number {number} and the happy cat" for number in range(200)]


def test_a_folder_of_few_long_files_has_a_held_out_part_but_one_file_has_none(tmp_path):
    (tmp_path / "books").mkdir()
    config = small_config(tmp_path, corpus=[str(tmp_path / "books")], held_out=0.01)
    write_corpus(tmp_path / "books" / "0.txt", documents=60, seed=0)
    with pytest.raises(HeadstartError, match="too small") as error:
        prepare_corpus(config)
    assert "--documents line" in error.value.fix
    write_corpus(tmp_path / "books" / "1.txt", documents=60, seed=1)
    data = prepare_corpus(config)
    assert min(data.train.store.tokens, data.held_out.store.tokens) > config.length


def test_tokens_with_the_same_neighbours_start_close_to_each_other(tmp_path):
    config = small_config(tmp_path, steps=1, embedding_init="cooccurrence", vocab_size=500)
    data = prepare_corpus(config)
    model = initial_model(config, data, Callback())
    ids = data.tokenizer.encode([" cat", " mouse", " law", " judge"])
    assert [len(one) for one in ids] == [1, 1, 1, 1]
    cat, mouse, law, judge = model.base.embedding.weight.detach()[[one[0] for one in ids]]

    def similarity(a, b):
        return float(torch.cosine_similarity(a, b, dim=0))

    assert similarity(cat, mouse) > similarity(cat, law)
    assert similarity(law, judge) > similarity(mouse, judge)


def with_task_text(folder, texts=TASK, **settings):
    config = small_config(folder, steps=100, **settings)
    return prepare_corpus(config, corpus=open_corpus(config).with_task_text(texts))


def test_only_the_last_fifth_of_the_steps_reads_task_text_every_second_one_at_most(tmp_path):
    data, steps = with_task_text(tmp_path), 200
    read = [step for step in range(steps) if data.source(step, steps)[0] is data.task_text]
    assert read
    assert min(read) >= 0.8 * steps
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(read))


def test_validation_and_test_texts_are_not_in_the_corpus_that_a_config_opens(tmp_path):
    path = write_csv(tmp_path / "task.csv", dataset(200))
    parts = read_dataset(str(path))
    texts = set(open_corpus(small_config(tmp_path, task_text=str(path))))
    assert set(parts.train.texts) <= texts
    assert not set(parts.validation.texts) & texts
    assert not set(parts.test.texts) & texts


def test_task_texts_that_are_held_out_are_not_trained_on(tmp_path):
    data = with_task_text(tmp_path, held_out=0.3)
    decode = data.tokenizer.decode
    held_out = {decode(document.tolist()) for document in data.held_out.store}
    trained = {decode(document.tolist()) for document in data.task_text.store}
    assert trained
    assert not held_out & trained


def write_base(folder, **settings):
    folder.mkdir()
    PretrainConfig.create(**{"corpus": ["all.txt"], **settings}).save(folder)
    return str(folder)


def note(base, **settings):
    config = FinetuneConfig.create(**{"dataset": ["reviews.csv"], "base": base, **settings})
    return overlap_note(config)


def test_a_base_that_may_have_read_the_test_texts_is_reported_with_two_ways_out(tmp_path):
    found = note(write_base(tmp_path / "base"))
    assert "all.txt" in found
    assert "headstart inspect reviews.csv --corpus all.txt" in found
    assert "--task-text reviews.csv" in found
    assert note(None) is None
    assert note(str(tmp_path / "base"), fresh=True) is None


def test_a_base_that_was_given_the_dataset_is_not_reported(tmp_path):
    base = write_base(tmp_path / "base", task_text="./reviews.csv")
    assert note(base) is None
    for other in ({"split_seed": 3}, {"test": "t.csv"}, {"validation": "v.csv"}):
        assert "all.txt" in note(base, **other)  # these are other held-out texts


def test_the_corpus_of_the_base_before_counts_too(tmp_path):
    first = write_base(tmp_path / "first", corpus=["older.txt"])
    second = write_base(tmp_path / "second", base=first, task_text="reviews.csv")
    assert "older.txt" in note(second)
    assert "all.txt" not in note(second)
    itself = write_base(tmp_path / "base", base=str(tmp_path / "base"))
    assert "all.txt" in note(itself)


def test_bert_from_scratch_has_its_own_attention(tmp_path):
    """The head pools the first token, which sees only itself under a causal mask."""
    data = dataset(40)
    sizes = {"vocab_size": 300, "width": 16, "layers": 1, "heads": 2, "feed_forward_width": 16}
    config = FinetuneConfig.create(dataset=["d.csv"], preset="bert", **sizes)
    start = start_model(config, Classification.from_rows(data), data.texts)
    assert start.model.base.config.attention == "bidirectional"


def test_documents_that_overlap_with_a_test_file_are_dropped(tmp_path):
    corpus, test = tmp_path / "corpus.txt", tmp_path / "test.csv"
    corpus.write_text("a fine film\nsomething else\n")
    test.write_text("text,label\nA fine  film,1\n")
    config = PretrainConfig.create(corpus=[str(corpus)], test=[str(test)])
    opened = open_corpus(config)
    assert list(opened) == ["something else"]
    assert opened.overlapping == {"equal": 1}
