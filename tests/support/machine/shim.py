"""A machine that is slow, loses power or has a wrong clock, for a JVM: see shim.c.

Needs a C compiler; without, tests are skipped by that name.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kwire.testing.waiting import wait_until

SOURCE = Path(__file__).with_name("shim.c")
READS, WRITES, SYNCS, SKEW_MS, WORDS = 0, 2, 4, 6, 7
LIMIT_S = 60.0
SYNCED, RENAMED = "S", "R"


class Shim:
    """In `directory`. `environment()` is that of the JVM; paths of its files contain `files`."""

    def __init__(self, directory: Path, files: str) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler (cc)")
        directory.mkdir(parents=True, exist_ok=True)
        library, control = directory / "shim.so", directory / "control"
        self._log = directory / "log"
        self._log.touch()
        command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        control.write_bytes(bytes(8 * WORDS))
        with control.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), 8 * WORDS)
        self._environment = {
            "LD_PRELOAD": str(library),
            "KWIRE_SHIM_CONTROL": str(control),
            "KWIRE_SHIM_LOG": str(self._log),
            "KWIRE_SHIM_FILES": files,
        }
        self._files = files

    def environment(self, *held: str) -> dict[str, str]:
        """Calls on files that have one of `held` in their paths can be held; on all, by default."""
        return {**self._environment, "KWIRE_SHIM_HELD": ":".join(held or (self._files,))}

    def close(self) -> None:
        self._set(READS, 0)
        self._set(WRITES, 0)
        self._set(SYNCS, 0)
        self._control.close()

    def _set(self, word: int, value: int) -> None:
        struct.pack_into("=q", self._control, 8 * word, value)

    def waiting(self, kind: int) -> int:
        """How many calls of this kind are held at this moment."""
        found: int = struct.unpack_from("=q", self._control, 8 * (kind + 1))[0]
        return found

    @contextmanager
    def held(self, kind: int) -> Iterator[None]:
        """Calls of this kind do not return before the end of the block."""
        self._set(kind, 1)
        try:
            yield
        finally:
            self._set(kind, 0)

    def wait_held(self, kind: int, count: int = 1) -> None:
        """Until so many calls are held."""
        wait_until(lambda: self.waiting(kind) >= count, timeout_s=LIMIT_S)

    @contextmanager
    def skewed(self, skew_ms: int) -> Iterator[None]:
        """The wall clock is so far ahead."""
        self._set(SKEW_MS, skew_ms)
        try:
            yield
        finally:
            self._set(SKEW_MS, 0)

    def forget_unsynced(self, directory: Path) -> int:
        """Take from the files in a directory what was not synced; how many have lost something.

        Whoever wrote them must be gone. A rename and a removal count as synced.
        """
        synced: dict[str, int] = {}
        for line in self._log.read_text().splitlines():
            what, _, rest = line.partition(" ")
            if what == SYNCED:
                size_bytes, _, path = rest.partition(" ")
                synced[path] = int(size_bytes)
            else:
                assert what == RENAMED, line
                _move(synced, *rest.split("\t"))
        lost = 0
        for file in sorted(directory.rglob("*")):
            if file.is_file() and file.stat().st_size > (kept := synced.get(str(file), 0)):
                os.truncate(file, kept)
                lost += 1
        return lost


def _move(synced: dict[str, int], source: str, target: str) -> None:
    for path in list(synced):
        if path == source or path.startswith(f"{source}/"):
            synced[target + path[len(source) :]] = synced.pop(path)
