"""The segments of a log in order of their base offsets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from kwire.log.segment.segment import Segment


class Segments:
    """An ascending list with look-up by offset; the last one is the active segment."""

    __slots__ = ("_bases", "_segments", "active")

    active: Segment

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def bases(self) -> list[int]:
        return list(self._bases)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    def add(self, segment: Segment) -> None:
        at = bisect_left(self._bases, segment.base_offset)
        if at < len(self._bases) and self._bases[at] == segment.base_offset:
            raise ValueError(f"there is a segment {segment.base_offset} already")
        self._bases.insert(at, segment.base_offset)
        self._segments.insert(at, segment)
        self.active = self._segments[-1]

    def remove(self, segment: Segment) -> None:
        at = self._segments.index(segment)
        del self._bases[at], self._segments[at]
        if self._segments:
            self.active = self._segments[-1]

    def replace(self, old: list[Segment], new: Segment) -> None:
        """Put `new` where `old` were (compaction)."""
        for segment in old:
            self.remove(segment)
        self.add(new)

    def floor_index(self, offset: int) -> int:
        """Index of the segment that may hold `offset`, 0 when all begin above it."""
        return max(bisect_right(self._bases, offset) - 1, 0)

    def floor(self, offset: int) -> Segment:
        return self._segments[self.floor_index(offset)]

    def at(self, index: int) -> Segment:
        return self._segments[index]

    def next_base(self, index: int) -> int | None:
        """Base offset of the segment behind the one at `index`."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else None

    def starting_at(self, offset: int) -> list[Segment]:
        """Segments from the one that may hold `offset` on."""
        return self._segments[self.floor_index(offset) :] if self._segments else []

    def above(self, offset: int) -> list[Segment]:
        """Segments that begin above `offset`."""
        return self._segments[bisect_right(self._bases, offset) :]
