"""A quotation mark that swallows rows is found, named with its row, and costs no other row."""

import pytest

from headstart.data.read import read_dataset
from headstart.data.readers import open_rows
from headstart.data.sources import find_source
from headstart.errors import HeadstartError


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
