"""A quotation mark that swallows rows is found, told with its row, and costs no other row."""

import pytest

from headstart.data.columns import ReadOptions
from headstart.data.read import read_dataset
from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.errors import HeadstartError

OPENING = ('"', "")  # text 5 begins with a mark, and so does text 9
CLOSING = ("", '"')  # text 9 ends with one: the CSV is well formed, and still not what was meant


def table(second, *, rows=40, delimiter=",", first=5, last=9, columns=("text", "label")):
    """A file whose rows `first` and `last` have one quotation mark each."""
    lines = [delimiter.join(columns)]
    for number in range(1, rows + 1):
        before, after = second if number == last else ('"', "") if number == first else ("", "")
        cells = {"text": f"{before}text {number}{after}", "label": "pos" if number % 2 else "neg"}
        cells["id"] = f"{number}"
        lines.append(delimiter.join(cells[name] for name in columns))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("second", [OPENING, CLOSING], ids=["opens again", "closes"])
@pytest.mark.parametrize("columns", [("text", "label"), ("id", "text", "label")], ids=len)
@pytest.mark.parametrize("last", [6, 9])
def test_reading_for_training_stops_at_the_row_that_swallows_others(write, second, columns, last):
    path = write("a.csv", table(second, columns=columns, last=last))
    with pytest.raises(HeadstartError, match="swallows whole rows") as told:
        read_dataset(path)
    assert told.value.where == f"{path}, row 5 (line 6)"
    assert told.value.fix


def test_a_column_that_is_not_read_swallows_no_rows_either(write):
    content = "title,text,label\n" + "".join(f"t{n % 3},text {n},{n % 2}\n" for n in range(40))
    content = content.replace("t2,text 5,", '"t2,text 5,').replace("t2,text 8,", 't2",text 8,')
    with pytest.raises(HeadstartError, match="swallows whole rows") as told:
        read_dataset(write("a.csv", content))
    assert "row 6 (line 7)" in told.value.where


@pytest.mark.parametrize("second", [OPENING, CLOSING], ids=["opens again", "closes"])
@pytest.mark.parametrize("delimiter", [",", "\t"], ids=["csv", "tsv"])
def test_prediction_keeps_every_row_and_its_number(write, second, delimiter):
    content = table(second, rows=20, delimiter=delimiter)
    path = write("a.tsv" if delimiter == "\t" else "a.csv", content)
    rows = list(open_rows(find_source(path)))
    assert [row.number for row in rows] == list(range(1, 21))
    bad = {row.number for row in rows if row.problem is not None}
    assert bad <= {5, 9}
    assert 5 in bad
    assert all(row.text == f"text {row.number}" for row in rows if row.number not in (5, 9))


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red,\nviolets are blue,\nsugar is sweet",
        "Dear Sir, hello,\n\nyours, truly",
        "one\ntwo\nthree",
        'he said ""yes, please""\nand left, quickly',
    ],
)
def test_a_text_of_several_lines_is_a_text(write, text):
    rows = "".join(f"text {n},{'pos' if n % 2 else 'neg'}\n" for n in range(40))
    path = write("a.csv", f'text,label\n"{text}",pos\n{rows}')
    splits = read_dataset(path)
    found = [text for part in splits.parts().values() for text in part.texts]
    assert len(found) == 41
    first = next(iter(open_rows(find_source(path))))
    assert first.problem is None
    assert first.text == text.replace('""', '"')


def test_a_file_of_carriage_returns_is_read_by_predict_as_by_training(write):
    rows = "".join(f"text {n},{n % 2}\r" for n in range(20))
    path = write("a.csv", f"text,label\r{rows}")
    assert [row.text for row in open_rows(find_source(path))] == [f"text {n}" for n in range(20)]
    assert sum(len(part) for part in read_dataset(path).parts().values()) == 20


@pytest.mark.parametrize(
    "broken", ["[" * 100_000, '{"text": ' + "9" * 5_000 + "}", "{}", '{"other": 1}']
)
def test_one_strange_row_of_json_lines_costs_only_itself(write, broken):
    good = '{"text": "fine", "label": "a"}'
    path = write("a.jsonl", f"{broken}\n{good}\n{good}\n")
    rows = list(open_rows(find_source(path)))
    assert [row.number for row in rows] == [1, 2, 3]
    assert [row.problem is None for row in rows] == [False, True, True]


@pytest.mark.parametrize("broken", ["[" * 100_000, '{"text": ' + "9" * 5_000 + "}"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_training_names_the_strange_row(write, broken, name):
    with pytest.raises(HeadstartError, match="not valid JSON"):
        read_dataset(write(name, f"{broken}\n"))


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16"])
def test_the_advice_for_another_encoding_leads_to_the_text(write, encoding):
    rows = "".join(f"größe {n},{n % 2}\n" for n in range(20))
    path = write("a.csv", f"text,label\n{rows}".encode(encoding))
    with pytest.raises(HeadstartError) as told:
        read_dataset(path)
    assert told.value.fix == f"--encoding {encoding}"
    assert read_dataset(path, encoding=encoding).train.texts[0].startswith("größe")
    if encoding == "utf-32":
        with pytest.raises(HeadstartError, match="utf-32"):
            read_dataset(path, encoding="utf-16")


@pytest.mark.parametrize("encoding", ["rot13", "base64", "hex", "undefined", "nonsense"])
def test_a_codec_that_is_no_encoding_of_text_is_refused(write, encoding):
    path = write("a.csv", "text,label\na,1\n")
    with pytest.raises(HeadstartError, match="no encoding named"):
        read_dataset(path, encoding=encoding)
    with pytest.raises(HeadstartError, match="no encoding named"):
        list(open_rows(find_source(path), ReadOptions(encoding=encoding)))


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ('"Great film, really,pos', 'it was a vinyl of 12",neg'),  # a comma in the cell that opens
        ('12" vinyl,"great one,pos', 'it ends here",neg'),  # an even number of marks
        ('great,"pos', 'bad,neg"'),  # in the column of the label
    ],
)
def test_no_row_is_lost_whatever_opens_the_quote(write, first, last):
    lines = [f"text {number},{'pos' if number % 2 else 'neg'}" for number in range(1, 401)]
    lines[50], lines[90] = first, last
    path = write("a.csv", "text,label\n" + "\n".join(lines) + "\n")
    with pytest.raises(HeadstartError, match="quotation mark") as error:
        read_dataset(path)
    assert error.value.where == f"{path}, row 51 (line 52)"
    rows = list(open_rows(find_source(path), labels="one"))
    used = [row.number for row in rows if row.problem is None]
    reported = [row.number for row in rows if row.problem is not None]
    assert sorted(used + reported) == list(range(1, 401))


def test_no_row_is_lost_in_a_column_that_is_not_used(write):
    lines = [f"text {number},{'pos' if number % 2 else 'neg'},note" for number in range(1, 401)]
    lines[50], lines[90] = 'text 51,pos,"a, b', 'a, b,neg,12"'
    path = write("a.csv", "text,label,other\n" + "\n".join(lines) + "\n")
    with pytest.raises(HeadstartError, match="quotation mark") as error:
        read_dataset(path)
    assert "row 51 (line 52)" in error.value.where


def test_a_label_that_appears_after_the_first_megabyte_is_known(write):
    """A file sorted by its label: the rows are swallowed where no other label is known yet."""
    rows = [f"{'a text of some length ' * 5}{n},neg" for n in range(20_000)]
    late = ["the end,pos", '"open,pos', "swallowed,pos", 'closed",pos', "more,pos"]
    early = ['"Late, really,late', "swallowed,late", 'closed",neg']
    for lines, row in ((rows + late, 20_002), (early + rows + ["x,late", "y,late"], 1)):
        path = write("a.csv", "text,label\n" + "\n".join(lines) + "\n")
        with pytest.raises(HeadstartError, match="quotation mark") as error:
            read_dataset(path)
        assert f"row {row} (line {row + 1})" in error.value.where


def test_text_after_a_closing_quote_is_part_of_the_cell_on_one_line(write):
    body = "".join(f'"Film" number {n},{n % 2}\n' for n in range(20)) + '"a" b,"1\n'
    rows = list(open_rows(find_source(write("a.csv", f"text,label\n{body}")), labels="one"))
    assert [row.text for row in rows[:20]] == [f"Film number {n}" for n in range(20)]
    assert "never closed" in rows[20].problem.what


def test_labels_in_the_first_column_are_compared_there(write):
    lines = [f"{'pos' if number % 2 else 'neg'},text {number}" for number in range(1, 41)]
    lines[10], lines[20] = 'pos,"open, text', 'neg,"closed'
    path = write("a.csv", "label,text\n" + "\n".join(lines) + "\n")
    with pytest.raises(HeadstartError, match="quotation mark"):
        read_dataset(path)
