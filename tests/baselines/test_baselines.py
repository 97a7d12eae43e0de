"""Every task has a trivial baseline, and most tasks have a linear one."""

import json

from headstart.baselines.baselines import baselines_for
from headstart.tasks import find_task
from tests.labelled import splits, write_conll, write_squad


def baselines(name, parts, **options):
    """Compute the baselines of a task on the validation rows, by name."""
    task = find_task(name).from_rows(parts.train)
    found = baselines_for(task, parts.train, parts.validation, parts.validation, **options)
    assert json.dumps(found)
    return task, {one["name"]: one for one in found}


def test_classes_are_compared_with_the_majority_and_tfidf():
    parts = splits(rows=80)
    _, found = baselines("classification", parts)
    assert list(found) == ["majority class", "TF-IDF"]
    assert found["majority class"]["metrics"]["accuracy"]["value"] == 0.5
    assert found["majority class"]["about"].startswith("always '")
    best = found["TF-IDF"]["metrics"]["accuracy"]
    assert best["low"] < best["value"] <= best["high"]
    assert best["value"] > 0.9


def test_labels_are_compared_with_the_most_frequent_set_and_one_model_per_label(write):
    kinds = ["funny", "funny|sad", "sad", "funny|sad", ""]
    rows = "".join(
        f"{n} {kinds[n % 5].replace('|', ' ')} film,{kinds[n % 5]}\n" for n in range(100)
    )
    parts = find_task("multi-label").read([str(write("m.csv", "text,label\n" + rows))])
    _, found = baselines("multi-label", parts)
    assert found["most frequent labels"]["about"] == "always funny and sad"
    assert found["TF-IDF, one label at a time"]["metrics"]["micro_f1"]["value"] > 0.9


def test_tags_are_compared_with_no_entity_and_a_linear_tagger(tmp_path):
    parts = find_task("tagging").read([str(write_conll(tmp_path / "t.conll", sentences=60))])
    task, found = baselines("tagging", parts)
    nothing = found["no entity"]["metrics"]
    assert (nothing["f1"]["value"], nothing["recall"]["value"]) == (0.0, 0.0)
    assert 0 < nothing["accuracy"]["value"] < 1
    assert found["linear tagger"]["metrics"]["f1"]["value"] > 0.9
    assert task.metric == "f1"


def test_answers_are_compared_with_the_first_sentence_or_none(tmp_path):
    path = write_squad(tmp_path / "q.json", texts=40)
    _, found = baselines("spans", find_task("spans").read([str(path)]))
    assert list(found) == ["first sentence of the text"]
    assert 0 < found["first sentence of the text"]["metrics"]["f1"]["value"] < 1
    path = write_squad(tmp_path / "n.json", texts=40, none=0.9)
    _, found = baselines("spans", find_task("spans").read([str(path)]))
    assert list(found) == ["no answer to any question"]


def test_of_many_rows_a_sample_is_fitted_and_the_number_is_reported():
    parts = splits(rows=80)
    characters = sum(map(len, parts.train.texts))
    _, found = baselines("classification", parts, max_characters=characters // 2)
    assert found["TF-IDF"]["about"] == "fitted to 40 of 80 rows"
