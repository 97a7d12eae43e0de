"""What a run was made of, as fingerprints: a resumed run must find the same things again."""

import json
from pathlib import Path

from headstart.errors import HeadstartError
from headstart.files import write_text

FILE = "identity.json"


def write_identity(identity: dict[str, str], folder: Path) -> None:
    write_text(folder / FILE, json.dumps(identity, indent=2) + "\n")


def check_identity(identity: dict[str, str], folder: Path) -> None:
    path = folder / FILE
    saved = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for name, fingerprint in identity.items():
        if saved.get(name) != fingerprint:
            raise HeadstartError(
                f"the {name} is not the one that the run was started with",
                where=folder,
                fix=f"put the old {name} back, or start another run",
            )
