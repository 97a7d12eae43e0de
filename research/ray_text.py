"""Prepare text on many machines with Ray Data: `python research/ray_text.py IN OUT [--address …]`.

Reads text files (one document per line; a folder, or any address that Arrow can open, like `s3://…`),
squeezes white space, drops documents that are short or occur twice, and writes Parquet parts with a
column `text`. `headstart pretrain OUT/*.parquet` reads them. Needs `pip install 'ray[data]'`.
"""

import argparse
import hashlib
import os
from typing import Any

LEAST = 20  # characters of a document


def cleaned(row: dict[str, Any]) -> dict[str, Any]:
    """A document and the hash by which equal ones meet."""
    text = " ".join(row["text"].split())
    return {
        "text": text,
        "hash": hashlib.blake2b(text.lower().encode(), digest_size=16).hexdigest(),
    }


def prepare(source: str, out: str, *, parts: int | None = None) -> None:
    """Clean and deduplicate; every step runs where its data is.

    Parameters
    ----------
    source : where the text is.
    out : a folder that all machines can write to.
    parts : in how many parts equal documents are looked for, each in one worker's memory; by
        default Ray's own choice, which is 200.
    """
    import ray.data

    documents = ray.data.read_text(source).map(cleaned)
    documents = documents.filter(lambda row: len(row["text"]) >= LEAST)
    first = documents.groupby("hash", num_partitions=parts).map_groups(
        lambda group: {"text": group["text"][:1]}, batch_format="numpy"
    )
    first.write_parquet(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("out")
    address = os.environ.get("RAY_ADDRESS") or "local"  # by itself, Ray joins any that runs here
    parser.add_argument("--address", default=address, help="of a Ray cluster; else this machine")
    parser.add_argument("--parts", type=int, help="to look for equal documents in; few for few")
    given = parser.parse_args()
    import ray

    ray.init(given.address, include_dashboard=False if given.address == "local" else None)
    prepare(given.source, given.out, parts=given.parts)


if __name__ == "__main__":
    main()
