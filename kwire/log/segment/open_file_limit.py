"""How many sealed segments are open: who reads years of them needs few at a time."""

from __future__ import annotations

from typing import Protocol

OPEN_MAX = 512


class Openable(Protocol):
    """A segment, as far as its open file goes."""

    is_sealed: bool

    def release(self) -> None: ...


class OpenSegments:
    """The sealed segments whose files are open, over all logs; the first opened goes first."""

    def __init__(self, open_max: int = OPEN_MAX) -> None:
        self._open_max = open_max
        self._open: dict[Openable, None] = {}

    def opened(self, segment: Openable) -> None:
        """A segment's file was opened; releases another one where there are too many."""
        if not segment.is_sealed:
            return
        self._open[segment] = None
        while len(self._open) > self._open_max:
            oldest = next(iter(self._open))
            del self._open[oldest]
            if oldest is not segment and oldest.is_sealed:
                oldest.release()
