"""The commands and the code of the README and the guides work."""

import shutil
import sys
from pathlib import Path

import pytest

from headstart.cli.app import main
from tests.corpora import write_corpus
from tests.interop.foreign import make, save
from tests.labelled import dataset, write_csv
from tests.pages import (
    REFUSED,
    ROOT,
    Block,
    read_blocks,
    words_of,
)

PAGES = (
    "README.md",
    "docs/start.md",
    "docs/data.md",
    "docs/studies.md",
    "docs/tasks.md",
    "docs/huggingface.md",
    "docs/export.md",
    "docs/reproducibility.md",
    "docs/lab.md",
)

# Everything that is not run as it stands: smaller networks, fewer steps, less text.
SIZES = "--vocab-size 300 --width 32 --layers 1"
SHORTER = {
    "pretrain": "--steps 4 --length 32 --batch-tokens 256 --held-out 0.1 --threads 1",
    "finetune": "--epochs 1 --length 32 --threads 1",
    "compare": "--labels 20 --seeds 2 --epochs 1 --length 32 --tokens 2048 --jobs 1 --threads 1",
}
AMOUNTS = ("--minutes", "--tokens", "--steps", "--epochs")  # of which one can be given
REPLACED = (*AMOUNTS, "--labels", "--seeds")
# Runs that a page may use without making them.
EARLIER = {
    "runs/masked": "headstart pretrain all-my-text.txt --objective masked",
    "runs/classifier": "headstart finetune reviews.csv",
}
LESS_TEXT = {"imdb": "all-my-text.txt", "rotten-tomatoes": "reviews.csv"}


def shorter(words: list[str], *, less_text: bool = True) -> list[str]:
    """Shorten a command that trains; return others unchanged."""
    if words[1] not in SHORTER:
        return words
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in REPLACED and before not in REPLACED
    ]
    if less_text:
        kept = [LESS_TEXT.get(word, word) for word in kept]
        if kept[1:3] == ["compare", "--out"]:  # the embedded data
            kept[2:2] = ["reviews.csv", "--corpus", "all-my-text.txt"]
    if kept[1] == "compare" and Path(kept[2]).suffix:  # one file, without parts
        kept += ["--folds", "2"]
    base = kept[kept.index("--base") + 1] if "--base" in kept else None
    sizes = SIZES.split() if base is None else []  # a base brings its own
    if "--tokenizer" in kept and sizes:  # and a tokenizer its vocabulary
        sizes = sizes[2:]
    return [*kept, *SHORTER[words[1]].split(), *sizes]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the pages name."""
    made_up = dataset(120)
    write_csv(tmp_path / "reviews.csv", made_up)
    write_corpus(tmp_path / "all-my-text.txt", documents=400)
    write_corpus(tmp_path / "other-text.txt", documents=20, seed=1)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "lab").mkdir()
    write_corpus(tmp_path / "lab" / "reviews.txt", documents=400)
    for name, rows in (("train", range(80)), ("valid", range(80, 120))):
        part = made_up.pick(list(rows))
        pieces = [text.replace(" ", " ▁") for text in part.texts]
        write_lab_part(tmp_path / "lab" / "cls-books", name, pieces, list(map(str, part.labels)))
    words = sorted({word for text in made_up.texts for word in text.split()})
    entries = "".join(f"{word} 9\n▁{word} 9\n" for word in words)
    (tmp_path / "lab" / "cls-books" / "dict.txt").write_text(entries, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def write_lab_part(folder: Path, name: str, pieces: list[str], labels: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.review.spm").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    (folder / f"{name}.label").write_text("\n".join(labels) + "\n", encoding="utf-8")


def write_models(folder: Path) -> None:
    """Write small models of `transformers` under the names of the large ones on a page."""
    pytest.importorskip("transformers")
    own = {"pad_token_id": 0, "max_position_embeddings": 128}  # as the small tokenizer needs it
    save(make("camembert", "ForMaskedLM", **own), folder / "models" / "camembert-base")
    save(make("llama-grouped", "ForCausalLM"), folder / "models" / "SmolLM2-135M")
    classifier = make("roberta", "ForSequenceClassification", **own)
    save(classifier, folder / "models" / "some-classifier")
    labels = {0: "entailment", 1: "neutral", 2: "contradiction"}
    pairs = make("roberta", "ForSequenceClassification", id2label=labels, **own)
    save(pairs, folder / "models" / "some-nli-model")


@pytest.fixture
def typed(monkeypatch, capsys):
    """Run a command, which must end as the page says; returns its output."""

    def run(command: str, words: list[str]) -> str:
        monkeypatch.setattr(sys, "argv", words)
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        printed = "".join(capsys.readouterr())
        expected = 2 if REFUSED in command else 0
        assert code == expected, f"{command}\nrun as: {' '.join(words)}\n{printed}"
        return printed

    return run


def type_commands(blocks: list[Block], typed, having: str = "") -> None:
    for block in blocks:
        printed = ""
        exact = True
        for command in block.commands:
            words = words_of(command)
            if words[0] == "headstart" and having in command:
                printed += typed(command, shorter(words))
                # What depends on a training differs from one to the next.
                exact = exact and (words[1] == "params" or REFUSED in command)
        if exact and printed:
            assert_printed(block, printed)


def assert_printed(block: Block, printed: str) -> None:
    """Check that each line of the page was printed; `…` stands for omitted lines."""
    lines = {" ".join(line.split()) for line in printed.splitlines()}
    for line in block.printed:
        wanted = " ".join(line.split())
        shown = wanted in lines or "…" in wanted
        assert shown, f"line {block.line}: this was not printed: {line}\n{printed}"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_and_then_every_python_block_of_a_page_works(page, folder, typed, capsys):
    blocks = read_blocks(page)
    if any("hf:" in command for block in blocks for command in block.commands):
        write_models(folder)
    commands = [command for block in blocks for command in block.commands]
    for run, command in EARLIER.items():
        used, made = f" {run} " in f"{' '.join(commands)} ", f"--out {run}"
        if used and not any(made in one for one in commands):
            typed(command, shorter(words_of(f"{command} {made}")))
    type_commands(blocks, typed)
    rows = dataset(40)
    names = {"texts": rows.texts, "labels": rows.labels}
    for block in blocks:
        # The lab's Python is the notebook's, which tests/test_notebook.py runs.
        if block.language == "python" and page != "docs/lab.md":
            exec(compile(block.code, f"{page}, line {block.line}", "exec"), names)
            printed = capsys.readouterr().out
            if block.printed:
                assert printed.splitlines() == block.printed
