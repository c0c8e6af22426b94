"""Files of traces: lines of JSON, compressed where the name ends with `.gz`.

Reading takes one line at a time. A trace that was cut off, as that of a killed broker, is read as
far as it reaches.
"""

from __future__ import annotations

import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import IO

from kwire.trace.events import TRACE, Event, parse_event

LINE_CHARACTERS_MAX = 64 << 20
COMPRESSION = 1
"""The fastest: whoever is traced waits for it."""
STDOUT = "-"
OWNER_ALONE = 0o600


class TraceError(Exception):
    """A trace that cannot be read or written, in one line."""


class TraceReader:
    """The events of a file. After the last one, `damage` says why there are no more, empty where
    the file has ended."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.damage = ""
        self._line = 0

    def __iter__(self) -> Iterator[Event]:
        """TraceError for what is no trace at all."""
        with self._opened() as file:
            yield self._first(file)
            while (event := self._next(file)) is not None:
                yield event

    def _opened(self) -> IO[str]:
        try:
            with open(self.path, "rb") as file:
                is_compressed = file.read(2) == b"\x1f\x8b"
            if is_compressed:
                return gzip.open(self.path, "rt", encoding="utf-8")
            return open(self.path, encoding="utf-8")
        except OSError as error:
            raise TraceError(f"{self.path}: {error.strerror or error}") from None

    def _first(self, file: IO[str]) -> Event:
        first = self._next(file)
        if first is None or first.kind != TRACE:
            damage = f" ({self.damage})" if self.damage else ""
            raise TraceError(
                f"{self.path}: no trace of kwire's: its first line is not that of one{damage}"
            )
        return first

    def _next(self, file: IO[str]) -> Event | None:
        self._line += 1
        try:
            text = file.readline(LINE_CHARACTERS_MAX)
            if not text:
                return None
            if not text.endswith("\n"):
                raise ValueError("cut off, or longer than a line of a trace is")
            return parse_event(text)
        except (OSError, EOFError, zlib.error) as error:
            self.damage = f"line {self._line}: {error}"
        except ValueError as error:
            self.damage = f"line {self._line} is no line of a trace: {error}"
        return None


class TraceWriter:
    """Writes lines; used by one thread at a time. OSError where that cannot be."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._is_own = path != STDOUT
        self._file: IO[bytes] = sys.stdout.buffer
        if self._is_own:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.fdopen(os.open(path, flags, OWNER_ALONE), "wb")
            if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                os.fchmod(self._file.fileno(), OWNER_ALONE)  # one that was there before, too
        self._out: IO[bytes] | gzip.GzipFile = self._file
        if path.endswith(".gz"):
            self._out = gzip.GzipFile("", "wb", COMPRESSION, self._file)

    def write(self, lines: list[str]) -> None:
        """Add lines, and see to it that whoever reads the file finds them."""
        self._out.write("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
        self._out.flush()

    def close(self) -> None:
        if self._out is not self._file:
            self._out.close()
        if self._is_own:
            self._file.close()
