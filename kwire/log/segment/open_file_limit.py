"""How many segments are open: a process may have a few thousand files, and a node more partitions.

Of sealed segments who reads years of them needs few at a time. Active ones stay open while they are
written to, as long as there are not more of them than the system lets a process have.
"""

from __future__ import annotations

from typing import Protocol

OPEN_MAX = 512


class Openable(Protocol):
    """A segment, as far as its open file goes."""

    is_sealed: bool

    def release(self) -> None: ...


class OpenSegments:
    """The segments whose files are open, over all logs; the first opened goes first.

    `active_max` is how many of those may be open that logs end with.
    """

    def __init__(self, open_max: int = OPEN_MAX, active_max: int = 1 << 31) -> None:
        self._open_max = open_max
        self.active_max = active_max
        self._open: dict[Openable, None] = {}
        self._active: dict[Openable, None] = {}

    def opened(self, segment: Openable) -> None:
        """A segment's file was opened, or it was sealed; releases others where there are too
        many."""
        if segment.is_sealed:
            self._active.pop(segment, None)
            found, count_max = self._open, self._open_max
        else:
            found, count_max = self._active, self.active_max
        found[segment] = None
        while len(found) > count_max:
            oldest = next(iter(found))
            del found[oldest]
            if oldest is not segment and oldest.is_sealed == segment.is_sealed:
                oldest.release()

    def closed(self, segment: Openable) -> None:
        """A segment's file was closed."""
        self._active.pop(segment, None)
        self._open.pop(segment, None)
