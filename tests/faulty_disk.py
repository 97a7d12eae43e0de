"""A faulty disk: the n-th write, sync, rename, new file or new folder fails.

`refusing(n, folder)` counts the disk operations of the program inside `folder`, in Python and in
libraries that write files, and makes the n-th of them fail as a system would. A write fails after
half of its bytes.
"""

import builtins
import contextlib
import errno
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as parquet
from safetensors import SafetensorError

# Where `save_file` of safetensors is known by name; it writes from Rust.
SAVING = ("checksums",)
CODES = {"sync": errno.EIO, "rename": errno.EIO}


class Disk:
    """Counts disk operations and makes the n-th one fail."""

    def __init__(self, nth: int | None, folder: Path, *, stays: bool) -> None:
        self.nth, self.folder = nth, str(folder)
        self.stays = stays  # refuse everything from then on
        self.log: list[str] = []

    def refuses(self, what: str, path: object) -> bool:
        """Count an operation; returns whether it must fail."""
        if not str(path).startswith(self.folder):
            return False
        self.log.append(f"{what} {Path(str(path)).name}")
        number = len(self.log)
        if self.nth is None or number < self.nth:
            return False
        return number == self.nth or self.stays

    def fail(self, what: str, path: object) -> None:
        """Raise the error that the system would raise."""
        code = CODES.get(what, errno.ENOSPC)
        raise OSError(code, os.strerror(code), str(path))

    def check(self, what: str, path: object) -> None:
        if self.refuses(what, path):
            self.fail(what, path)


class _Raw(io.FileIO):
    """A file whose writes may fail after half of their bytes."""

    disk: Disk

    def write(self, data: Any) -> int:
        if self.disk.refuses("write", self.name):
            super().write(memoryview(data)[: len(memoryview(data)) // 2])
            self.disk.fail("write", self.name)
        return super().write(data)


@contextlib.contextmanager
def refusing(nth: int | None, folder: Path, *, stays: bool = False) -> Iterator[Disk]:
    """Let the n-th operation in `folder` fail; `None` only counts."""
    disk = Disk(nth, folder, stays=stays)
    real_open, real_os_open = io.open, os.open

    def opened(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **options: Any) -> Any:
        writes = set(mode) & set("wxa+")
        if isinstance(file, int) or not writes or not str(file).startswith(disk.folder):
            return real_open(file, mode, buffering, *args, **options)
        disk.check("open", file)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""))
        raw.disk = disk
        buffered = io.BufferedWriter(raw) if "+" not in mode else io.BufferedRandom(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, *args, **options)

    def os_opened(path: Any, flags: int, *args: Any, **options: Any) -> int:
        if flags & os.O_CREAT:
            disk.check("open", path)
        return real_os_open(path, flags, *args, **options)

    def checked(what: str, real: Any) -> Any:
        def call(path: Any, *args: Any, **options: Any) -> Any:
            place = f"/proc/self/fd/{path}" if isinstance(path, int) else path
            if what != "folder" or not Path(path).exists():  # mkdir of one that exists is no work
                disk.check(what, os.path.realpath(place) if isinstance(path, int) else place)
            return real(path, *args, **options)

        return call

    def saving(real: Any) -> Any:
        def save_file(tensors: Any, path: Any, *args: Any, **options: Any) -> None:
            failed = disk.refuses("save", path)
            real(tensors, path, *args, **options)
            if failed:
                os.truncate(path, Path(path).stat().st_size // 2)
                raise SafetensorError("I/O error: No space left on device (os error 28)")

        return save_file

    def writing_table(writer: Any, *args: Any, **options: Any) -> None:
        disk.check("table", disk.folder)
        real_table(writer, *args, **options)

    real_table = parquet.ParquetWriter.write_table
    with contextlib.ExitStack() as patches:
        for module, name, new in (
            (io, "open", opened),
            (builtins, "open", opened),
            (os, "open", os_opened),
            (os, "fsync", checked("sync", os.fsync)),
            (os, "replace", checked("rename", os.replace)),
            (os, "rename", checked("rename", os.rename)),
            (os, "mkdir", checked("folder", os.mkdir)),
            (parquet.ParquetWriter, "write_table", writing_table),
        ):
            patches.enter_context(mock.patch.object(module, name, new))
        for module in SAVING:
            place = f"headstart.{module}.save_file"
            real = mock.patch(place)  # only to find the function
            original, _ = real.get_original()
            patches.enter_context(mock.patch(place, saving(original)))
        yield disk
