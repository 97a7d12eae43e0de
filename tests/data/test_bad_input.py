"""A bad input gives one message with cause, place and fix; a prediction loses only its row."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstart.data.columns import ReadOptions
from headstart.data.corpus import read_corpus
from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.data.splits import read_dataset
from headstart.errors import HeadstartError

HEAD = "text,label\n"
NESTED = "[" * 100_000
DIGITS = '{"text": ' + "9" * 5_000 + "}"


@pytest.mark.parametrize(
    ("name", "content", "message", "place"),
    [
        ("a.csv", "", "is empty", ""),
        ("a.jsonl", "", "is empty", ""),
        ("a.json", "", "is empty", ""),
        ("a.csv", HEAD, "no row with text", ""),
        ("a.csv", HEAD + "a,1\nb,1\n", "one class only", ""),
        ("a.csv", HEAD + "a,1\nb,1\nc,0\n", "1 of 2 classes have fewer than two .*: '0'", ""),
        ("a.csv", "id,words\n1,hello\n", "no text column.*'id', 'words'", ""),
        ("a.csv", HEAD + "a,1\nb,\n", "label is missing", ", row 2 (line 3)"),
        ("a.jsonl", '{"text": "b", "label": NaN}\n', "label is missing", ", line 1"),
        ("a.jsonl", '{"text": 5, "label": 1}\n', "not text but a int", ", line 1"),
        ("a.jsonl", '{"text": "a\\u0000b", "label": 1}\n', "NUL", ", line 1"),
        ("a.jsonl", '{"text": "a\\ud83d", "label": 1}\n', "U\\+D83D", ", line 1"),
        ("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": \n', "not valid JSON", ", line 3"),
        ("a.jsonl", '{"text": "a", "label": 1}\n[1, 2]\n', "object was expected", ", line 2"),
        ("a.jsonl", NESTED, "not valid JSON", ", line 1"),
        ("a.json", DIGITS, "not valid JSON", ""),
        ("a.json", '{"train": [], "test": []}', "not a list", ""),
        ("a.parquet", b"no parquet at all", "Parquet", ""),
        ("a.txt", "hello\n", "no label column", ""),
        ("a.csv", HEAD.encode() + b"a,1\ncaf\xe9,0\n", "byte 0xE9 .* UTF-8", ", row 2 (line 3)"),
        ("a.csv", HEAD + '"two\nlines",1\n\nb,0\na, b,1\n', "has 3 columns", ", row 3 (line 6)"),
        ("a.csv", HEAD + 'fine,1\n"open,0\nb,1\n', "quotation mark opens here", ", row 2 (line 3)"),
        ("a.csv", HEAD + "a,1\n" + "x" * (17 << 20) + ",1", "than 16 MB", ", row 2 (line 3)"),
        ("a.csv", HEAD + "a,1\n" * 10_000 + "b\n", "has 1 column", ", row 10001 (line 10002)"),
    ],
)
def test_a_bad_file_is_one_message_with_its_place(write, name, content, message, place):
    path = write(name, content)
    with pytest.raises(HeadstartError, match=message) as error:
        read_dataset(path)
    assert error.value.where in (f"{path}{place}", path.name)
    if message == "is empty":
        assert "text" in error.value.fix


@pytest.mark.parametrize(
    "content", [gzip.compress(b"text\n" * 1_000, mtime=0)[:-20], b"not gzipped"]
)
def test_a_damaged_gzip_file_is_an_error(tmp_path, content):
    (tmp_path / "a.csv.gz").write_bytes(content)
    with pytest.raises(HeadstartError, match="damaged or incomplete"):
        read_dataset(tmp_path / "a.csv.gz")


@pytest.mark.parametrize("encoding", ["rot13", "nonsense"])
def test_a_codec_that_is_not_an_encoding_of_text_is_an_error(write, encoding):
    with pytest.raises(HeadstartError, match="no encoding named"):
        read_dataset(write("a.csv", "text,label\na,1\n"), encoding=encoding)


def test_an_unknown_label_in_validation_is_named_with_its_row(reviews, write):
    path = write("valid.csv", "text,label\nfine,1\nodd,2\n")
    with pytest.raises(HeadstartError, match="'2' does not occur in the training rows") as error:
        read_dataset(reviews, validation=path)
    assert error.value.where == f"{path}, row 2 (line 3)"


@pytest.mark.parametrize(
    ("name", "content", "options", "message", "fix"),
    [
        ("a.txt", "\n \n", {}, "no text", ""),
        ("a.csv", "a,b\n1,2\n", {}, "columns are 'a', 'b'", "--text-column"),
        ("a.txt", "x\n", {"documents": "page"}, "not a way", "blank-line"),
        ("a.xlsx", b"PK", {}, r"'\.xlsx' files cannot be read", "save it as CSV"),
        ("a.txt", "a" * (17 << 20), {"documents": "file"}, "too much to read", "--documents line"),
    ],
)
def test_a_bad_corpus_is_one_message(write, name, content, options, message, fix):
    with pytest.raises(HeadstartError, match=message) as error:
        read_corpus(write(name, content), **options)
    assert fix in (error.value.fix or "")


def test_a_missing_file_or_a_folder_without_text_is_an_error(tmp_path):
    with pytest.raises(HeadstartError, match="no file or folder") as error:
        read_corpus(tmp_path / "nothing.csv")
    assert "rotten-tomatoes, imdb" in error.value.fix
    assert "--corpus" in error.value.where
    with pytest.raises(HeadstartError, match="no readable file"):
        read_corpus(tmp_path)


def rows_of(path, **how):
    return list(open_rows(find_source(path), ReadOptions(**how)))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"5,five,too many\n", "3 columns, the header has 2"),
        (b"5,caf\xe9\n", "byte 0xE9 is not text"),
        (b"5,a\x00b\n", "NUL"),
        (b"5,\n", "the text is empty"),
        (b'5,"never closed\n', "never closed"),
        (b"5," + b"x" * (17 << 20) + b"\n", "longer than 16 MB"),
    ],
)
def test_a_broken_row_of_a_csv_keeps_its_place_and_costs_no_other(tmp_path, line, reason):
    good = [f"{n},text {n}\n".encode() for n in range(1, 10)]
    (tmp_path / "a.csv").write_bytes(b"id,text\n" + b"".join([*good[:4], line, *good[5:]]))
    rows = rows_of(tmp_path / "a.csv")
    assert [row.number for row in rows] == list(range(1, 10))
    assert reason in rows.pop(4).problem.what
    assert [row.text for row in rows] == [f"text {row.number}" for row in rows]


def test_bytes_that_are_not_text_cost_their_own_line(write):
    lines = [b"fine", b"caf\xe9", *[b"\xc3\xa9"] * 200_000, b"th\0ree", b"cut \xc3"]
    bad = {
        row.number: row.problem.what
        for row in rows_of(write("a.txt", b"\n".join(lines)))
        if row.problem is not None
    }
    assert list(bad) == [2, 200_003, 200_004]
    wide = "ab".encode("utf-16-le") + b"\x00\xd8" + "c".encode("utf-16-le")
    (line,) = rows_of(write("b.txt", wide), encoding="utf-16-le")
    assert line.problem.code == "encoding"


cells = st.text(st.characters(exclude_characters='"\r\n\0', codec="utf-8"), min_size=1, max_size=5)


@given(st.lists(st.lists(cells, min_size=2, max_size=2), min_size=1, max_size=8), st.data())
def test_one_unclosed_quotation_mark_costs_one_line(tmp_path_factory, table, data):
    lines = [",".join(f'"{cell}"' for cell in row) for row in table]
    broken = data.draw(st.integers(0, len(lines)))
    lines.insert(broken, 'a,"b')
    path = tmp_path_factory.mktemp("quotes") / "a.csv"
    path.write_bytes("\n".join(["text,other", *lines]).encode())
    rows = rows_of(path, text_column="text")
    assert len(rows) >= len(lines) - 1
    assert sum(row.problem is not None for row in rows[:broken]) == sum(
        not row[0].strip() for row in table[:broken]
    )


# Quotation marks that swallow rows


def lines_of(rows, form="text {n},{label}"):
    return [form.format(n=n, label="pos" if n % 2 else "neg") for n in range(1, rows + 1)]


@pytest.mark.parametrize(
    ("header", "form", "first", "last"),
    [
        ("text,label", "text {n},{label}", '"text 51,pos', '"text 91,neg'),  # opens again
        ("text,label", "text {n},{label}", '"text 51,pos', 'text 91",neg'),  # closes
        # a comma in the cell that opens; an even number of marks; the column of the label
        ("text,label", "text {n},{label}", '"Great film, really,pos', 'a vinyl of 12",neg'),
        ("text,label", "text {n},{label}", '12" vinyl,"great one,pos', 'it ends here",neg'),
        ("text,label", "text {n},{label}", 'great,"pos', 'bad,neg"'),
        ("label,text", "{label},text {n}", 'pos,"open, text', 'neg,"closed'),
        ("id,text,label", "{n},text {n},{label}", '51,"text 51,pos', '91,text 91",neg'),
        ("text,label,other", "text {n},{label},note", 'text 51,pos,"a, b', 'a, b,neg,12"'),
        ("other,text,label", "note,text {n},{label}", '"note,text 51,pos', 'note",text 91,pos'),
        ("text\tlabel", "text {n}\t{label}", '"text 51\tpos', 'text 91"\tneg'),
    ],
)
def test_no_row_is_lost_whatever_opens_the_quote(write, header, form, first, last):
    lines = lines_of(400, form)
    lines[50], lines[90] = first, last
    name = "a.tsv" if "\t" in header else "a.csv"
    path = write(name, "\n".join([header, *lines]) + "\n")
    with pytest.raises(HeadstartError, match="quotation mark") as error:
        read_dataset(path)
    assert error.value.where == f"{path}, row 51 (line 52)"
    assert error.value.fix
    rows = list(open_rows(find_source(path)))
    assert sorted({row.number for row in rows}) == list(range(1, 401))
    assert {row.number for row in rows if row.problem is not None} <= {51, 91}


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red,\nviolets are blue,\nsugar is sweet",
        "Dear Sir, hello,\n\nyours, truly",
        'he said ""yes, please""\nand left, quickly',
    ],
)
def test_a_text_of_several_lines_is_a_text(write, text):
    path = write("a.csv", "\n".join(["text,label", f'"{text}",pos', *lines_of(40)]))
    assert sum(map(len, read_dataset(path).parts().values())) == 41
    assert next(iter(open_rows(find_source(path)))).text == text.replace('""', '"')


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
