"""`headstart inspect`, as a person runs it."""

from pathlib import Path

import pytest

from tests.labelled import write_conll, write_squad

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"


@pytest.fixture
def reviews(tmp_path):
    lines = [f"review number {n} says {'yes' if n % 2 else 'no'},{n % 2}" for n in range(40)]
    path = tmp_path / "reviews.csv"
    path.write_text("text,label\n" + "\n".join(lines) + "\n")
    return path


def test_a_page_is_printed_for_a_csv(headstart, reviews):
    result = headstart("inspect", reviews)
    assert result.returncode == 0, result.stderr
    for word in ("comma-separated", "train", "validation", "test", "words per text, median"):
        assert word in result.stdout


def test_json_has_the_same_facts(headstart_json, reviews, tmp_path):
    (tmp_path / "more.txt").write_text("review number 1 says yes\nsomething new\n")
    report = headstart_json("inspect", reviews, "--corpus", tmp_path / "more.txt", "--length", 3)
    assert [part["name"] for part in report["parts"]] == ["train", "validation", "test", "corpus"]
    assert report["unit"] == "words"
    assert report["length"] == 3
    assert sum(overlap["counts"]["equal"] for overlap in report["overlaps"]) == 1


def test_files_the_person_split_are_checked_and_overlap_can_be_dropped(
    headstart_json, reviews, tmp_path
):
    test = tmp_path / "test.csv"
    test.write_text("text,label\nreview number 1 says yes,1\nunheard of,0\n")
    options = ("inspect", reviews, "--validation", test, "--test", test)
    assert "also in train" in headstart_json(*options)["warnings"][0]
    report = headstart_json(*options, "--drop-overlap")
    assert sum(overlap["counts"]["equal"] for overlap in report["overlaps"]) == 0


def test_a_problem_is_one_message_and_code_2(headstart, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\ncaf\xe9,1\n")
    result = headstart("inspect", path)
    assert result.returncode == 2
    assert "byte 0xE9 is not text in UTF-8" in result.stderr
    assert "--encoding cp1252" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_nothing_to_look_at_is_a_message(headstart):
    result = headstart("inspect")
    assert result.returncode == 2
    assert "headstart inspect rotten-tomatoes --corpus imdb" in result.stderr


def test_escape_sequences_in_the_data_do_not_reach_the_terminal(headstart, reviews, tmp_path):
    corpus = tmp_path / "a.txt"
    corpus.write_bytes(b"red \x1b[31malert [bold]markup[/]\n" * 2)
    result = headstart("inspect", "--corpus", corpus)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout


def test_the_embedded_data_is_looked_at_with_no_network(headstart_json):
    report = headstart_json("inspect", "rotten-tomatoes", "--corpus", "imdb")
    documents = {part["name"]: part["documents"] for part in report["parts"]}
    assert documents["corpus"] == 25_000
    assert not [overlap for overlap in report["overlaps"] if overlap["counts"]["equal"]]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the lab's files are not here")
def test_the_labs_folder_is_looked_at(headstart_json):
    report = headstart_json("inspect", SHARED / "cls-books-fr")
    assert {part["name"]: part["documents"] for part in report["parts"]} == {
        "train": 1600,
        "validation": 400,
    }
    assert report["warnings"][0].startswith("13 of 400 validation texts are also in train")


def test_thousands_of_classes_are_summed_up(headstart, tmp_path):
    rows = [f"text number {number},class {number // 2}" for number in range(600)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *rows]))
    page = headstart("inspect", tmp_path / "d.csv").stdout
    assert "… and 250 more" in page
    assert page.count("class ") < 70


def test_equal_says_what_it_ignores_and_only_equal_texts_are_called_so(headstart, tmp_path):
    words = "one two three four five six seven eight nine ten one two three"
    lines = [f"{words},a", *(f"train text number {n},{'ab'[n % 2]}" for n in range(6))]
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *lines]))
    again = " ".join([words, *words.split()[3:6], "one two three four"])  # the same sequences
    test = [f"{words.upper()},a", f"{again},b", "something else,b"]
    (tmp_path / "b.csv").write_text("\n".join(["text,label", *test]))
    (tmp_path / "c.csv").write_text("text,label\none of these,a\nanother one,b\n")
    files = [tmp_path / "a.csv", "--test", tmp_path / "b.csv", "--validation", tmp_path / "c.csv"]
    page = headstart("inspect", *files).stdout
    assert "but for case and spacing" in page
    assert page.count("test in train, equal:") == 1


def test_long_labels_are_shown_whole(headstart, tmp_path):
    long = "a label that is so long that it does not fit into its column of the table at all"
    rows = [f"text {n},{long} {'one' if n % 2 else 'two'}" for n in range(20)]
    (tmp_path / "d.csv").write_text("\n".join(["text,label", *rows]))
    page = headstart("inspect", tmp_path / "d.csv").stdout
    assert "…" not in page.split("Labels")[1].split("Warnings")[0]


def test_files_called_train_and_test_are_not_pooled(headstart, reviews, tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text(reviews.read_text())
    test.write_text("text,label\nunheard of,0\nquite new,1\n")
    result = headstart("inspect", train, test)
    assert result.returncode == 0, result.stderr
    assert "train is train.csv; test is test.csv" in " ".join(result.stdout.split())
    pooled = headstart("inspect", reviews, test)
    assert "reviews.csv, test.csv are read as one dataset" in " ".join(pooled.stdout.split())


def test_a_conll_file_is_looked_at_as_tagged_sentences(headstart, headstart_json, tmp_path):
    path = write_conll(tmp_path / "train.conll", sentences=40)
    assert "the task is tagging" in headstart("inspect", path).stderr
    report = headstart_json("inspect", path, "--task", "tagging")
    assert [part["name"] for part in report["parts"]] == ["train", "validation", "test"]
    assert sum(part["labels"]["B-PER"] for part in report["parts"]) == 40
    wrong = headstart("inspect", path, "--task", "classification")
    assert (wrong.returncode, "--task tagging" in wrong.stderr) == (2, True)


def test_questions_and_pairs_are_looked_at_as_well(headstart_json, tmp_path):
    path = write_squad(tmp_path / "train.json", texts=40, none=0.5)
    report = headstart_json("inspect", path, "--task", "spans")
    assert set(report["parts"][0]["labels"]) == {"no answer", "answer"}
    pairs = tmp_path / "pairs.csv"
    rows = "".join(f"first {n},second {n},{n % 2}\n" for n in range(30))
    pairs.write_text("text1,text2,label\n" + rows)
    report = headstart_json("inspect", pairs, "--task", "pairs")
    assert sum(part["documents"] for part in report["parts"]) == 30
