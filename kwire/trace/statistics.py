"""Counts, errors, latencies and bytes of a trace, by API, client or both. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from kwire.trace.events import REQUEST, RESPONSE, Event

GROWTH = 1.05
"""A bucket of latencies is so much wider than the one before: a quantile is right within 5 %."""
SMALLEST_MS = 0.001
ROWS_MAX = 10_000
OTHERS = "(others)"
BY = ("api", "client", "both")


class Latencies:
    """A distribution in buckets whose number grows with the logarithm."""

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.max_ms = 0.0

    def add(self, took_ms: float) -> None:
        """One more."""
        at = 0
        if took_ms > SMALLEST_MS:
            at = math.ceil(math.log(took_ms / SMALLEST_MS) / math.log(GROWTH))
        self._buckets[at] = self._buckets.get(at, 0) + 1
        self.count += 1
        self.max_ms = max(self.max_ms, took_ms)

    def quantile(self, part: float) -> float:
        """In ms: so much of them took at most this, 0 where there are none."""
        wanted = part * self.count
        seen = 0
        for at in sorted(self._buckets):
            seen += self._buckets[at]
            if seen >= wanted:
                return min(SMALLEST_MS * GROWTH**at, self.max_ms)
        return 0.0


class Row(NamedTuple):
    """What is known of one API, one client or both."""

    client: str
    api: str
    requests: int
    unanswered: int
    errors: dict[str, int]
    latencies: Latencies
    request_bytes: int
    response_bytes: int


class _Counts:
    def __init__(self) -> None:
        self.requests = 0
        self.answered = 0
        self.errors: dict[str, int] = {}
        self.latencies = Latencies()
        self.request_bytes = 0
        self.response_bytes = 0


class Statistics:
    """See the module; `by` is one of BY. Beyond ROWS_MAX rows the rest is one of its own."""

    def __init__(self, by: str) -> None:
        self._by = by
        self._rows: dict[tuple[str, str], _Counts] = {}

    def add(self, event: Event) -> None:
        """One more event."""
        if event.kind not in (REQUEST, RESPONSE):
            return
        counts = self._counts(event)
        if event.kind == REQUEST:
            counts.requests += 1
            counts.request_bytes += event.size_bytes
            return
        counts.answered += 1
        counts.response_bytes += event.size_bytes
        counts.latencies.add(event.took_ms)
        for name, count in event.errors.items():
            counts.errors[name] = counts.errors.get(name, 0) + count

    def _counts(self, event: Event) -> _Counts:
        client = event.client_id or "(none)" if self._by != "api" else ""
        api = event.api or "(unknown)" if self._by != "client" else ""
        key = client, api
        if key not in self._rows and len(self._rows) >= ROWS_MAX:
            key = OTHERS, OTHERS
        return self._rows.setdefault(key, _Counts())

    def rows(self) -> Iterator[Row]:
        """By client, then what was asked most."""
        ordered = sorted(self._rows.items(), key=lambda row: (row[0][0], -row[1].requests, row[0]))
        for (client, api), counts in ordered:
            yield Row(
                client,
                api,
                counts.requests,
                max(0, counts.requests - counts.answered),
                counts.errors,
                counts.latencies,
                counts.request_bytes,
                counts.response_bytes,
            )
