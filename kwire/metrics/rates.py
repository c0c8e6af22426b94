"""Rates of what only grows: by how much, a second, between two scrapes."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.metrics.blocks import Block, Row
from kwire.metrics.families import rates

SERIES_MAX = 10_000


class Rates:
    """What the last scrape has seen. Time is in seconds, and does not go back."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, ...], tuple[float, float]] = {}

    def of(self, block: Block, now_s: float) -> Iterator[Block]:
        """The rates of a block's counts; 0 at the first scrape, and when a count began anew."""
        width, known = len(block.labels), rates()
        if known.keys().isdisjoint(block.names):
            return
        for at, name in enumerate(block.names, width):
            rate = known.get(name)
            if rate is None:
                continue
            rows: list[Row] = []
            for row in block.rows:
                labels, value = tuple(map(str, row[:width])), row[at]
                if isinstance(value, int | float):
                    rows.append((*labels, self._rate((name, *labels), value, now_s)))
            yield Block(block.labels, (rate,), rows)

    def _rate(self, key: tuple[str, ...], value: float, now_s: float) -> float:
        before, seen_s = self._seen.get(key, (value, now_s))
        if key in self._seen or len(self._seen) < SERIES_MAX:
            self._seen[key] = value, now_s
        if now_s <= seen_s or value <= before:
            return 0.0
        return round((value - before) / (now_s - seen_s), 4)
