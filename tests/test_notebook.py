"""The lab's notebook equals the lab's page and runs."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.pages import ROOT, load_script, read_blocks

PAGE = "docs/lab.md"
# What the cell that trains is given here; the page's own take a minute.
SMALLER = {
    "REVIEWS = 2_000": "REVIEWS = 200",
    "TOKENS = 200_000": "TOKENS = 4_096",
    "LABELS, EPOCHS, SEEDS = 400, 5, 2": "LABELS, EPOCHS, SEEDS = 40, 2, 2",
    '"vocab_size": 2_000, "width": 64': '"vocab_size": 500, "width": 16',
}


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def notebook():
    found = nbformat.read(ROOT / "docs" / "lab.ipynb", as_version=4)
    nbformat.validate(found)
    return found


def test_the_notebook_is_what_the_page_makes():
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    made = load_script("docs/notebook.py").notebook(text)
    assert (ROOT / "docs" / "lab.ipynb").read_text(encoding="utf-8") == made, (
        "run: python docs/notebook.py"
    )


@pytest.mark.slow
def test_the_whole_notebook_runs_and_prints_what_the_page_shows(notebook, tmp_path, monkeypatch):
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):  # nothing is left behind
        monkeypatch.setenv(name, str(tmp_path))
    (trains,) = (cell for cell in code_of(notebook) if "run_study" in cell.source)
    for here, there in SMALLER.items():
        assert here in trains.source
        trains.source = trains.source.replace(here, there)
    place = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=place).execute()
    python = [block for block in read_blocks(PAGE) if block.language == "python"]
    for block, cell in zip(python, code_of(notebook), strict=True):
        printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
        if block.printed:
            assert printed.splitlines() == block.printed
    (picture,) = code_of(notebook)[-1].outputs
    for arm in ("scratch", "co-occurrence init", "pretrained"):
        assert arm in picture.data["image/svg+xml"]
