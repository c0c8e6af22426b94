"""Histograms and summaries in a push: one point of each, as Prometheus shows it.

    message                    fields: number name
    HistogramDataPoint         4 count (8 bytes), 5 sum (double), 6 counts of the buckets (packed, 8
                               bytes each), 7 upper bounds (packed doubles), 9 attributes, 10 flags
    ExponentialHistogramDataPoint  1 attributes, 4 count, 5 sum, 6 scale (zigzag), 7 count of zeros,
                               8 positive and 9 negative buckets, 10 flags
    Buckets                    1 offset (zigzag), 2 counts (packed varints)
    SummaryDataPoint           4 count, 5 sum, 6 quantiles, 7 attributes, 8 flags
    ValueAtQuantile            1 quantile (double), 2 value (double)

A bucket of an exponential histogram at index i ends at 2 ** ((i + 1) / 2 ** scale). What has
negative bounds, values or a negative sum is left out: a scraper that goes by OpenMetrics refuses an
answer with one. Source: the OpenTelemetry protocol 1.3, OpenMetrics 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from struct import Struct
from typing import NamedTuple, TypeAlias

EDGES_MAX = 200
"""Buckets of a histogram, or quantiles of a summary."""
SCALE_MIN, SCALE_MAX = -10, 20
HISTOGRAM, EXPONENTIAL, SUMMARY = 9, 10, 11
NO_VALUE = 1
VARINT, EIGHT, BYTES = 0, 1, 2
_DOUBLE, _COUNT = Struct("<d"), Struct("<Q")

Fields: TypeAlias = "Callable[[bytes, int, int], Iterator[tuple[int, int, int, int]]]"
"""(data, begin, end) -> number, wire type, value or begin, end of each field."""
Varint: TypeAlias = "Callable[[bytes, int, int], tuple[int, int]]"


class Distribution(NamedTuple):
    """`edges` are upper bounds, the last one infinite, and `values` how many are at most that; of a
    summary quantiles and their values. `number` is how many values there were."""

    is_summary: bool
    edges: tuple[float, ...]
    values: tuple[float, ...]
    number: int
    total: float

    def plus(self, other: Distribution) -> Distribution:
        """Both together, where they have the same bounds; else the other one alone."""
        if self.is_summary or self.edges != other.edges:
            return other
        values = tuple(a + b for a, b in zip(self.values, other.values, strict=True))
        return Distribution(
            False, self.edges, values, self.number + other.number, self.total + other.total
        )


class DistributionPoint(NamedTuple):
    """What a point says, None for what is not shown; where its attributes are."""

    found: Distribution | None
    attributes: list[tuple[int, int]]
    has_value: bool


def read_point(
    what: int, data: bytes, at: int, limit: int, fields: Fields, varint: Varint
) -> DistributionPoint:
    """One point of a histogram, an exponential histogram or a summary."""
    raw = _Raw()
    attributes: list[tuple[int, int]] = []
    attributes_at = 1 if what == EXPONENTIAL else 7 if what == SUMMARY else 9
    flags_at = 8 if what == SUMMARY else 10
    for number, kind, start, end in fields(data, at, limit):
        if kind == BYTES and number == attributes_at:
            attributes.append((start, end))
        elif kind == VARINT and number == flags_at:
            raw.flags = start
        elif kind == EIGHT and number == 4:
            (raw.count,) = _COUNT.unpack_from(data, start)
        elif kind == EIGHT and number == 5:
            (raw.total,) = _DOUBLE.unpack_from(data, start)
        elif what == HISTOGRAM:
            _read_bucket(raw, data, number, kind, start, end)
        elif what == EXPONENTIAL:
            _read_exponential(raw, data, (number, kind, start, end), fields, varint)
        elif kind == BYTES and number == 6 and len(raw.quantiles) <= EDGES_MAX:
            raw.quantiles.append(_quantile(data, start, end, fields))
    made = {HISTOGRAM: _histogram, EXPONENTIAL: _exponential, SUMMARY: _summary}[what](raw)
    return DistributionPoint(made, attributes, not raw.flags & NO_VALUE)


class _Raw:
    """What the fields of a point hold."""

    def __init__(self) -> None:
        self.flags = self.count = self.zeros = self.scale = self.offset = 0
        self.total = 0.0
        self.counts: list[int] = []
        self.bounds: list[float] = []
        self.quantiles: list[tuple[float, float]] = []
        self.is_too_large = self.has_negative = False


def _read_bucket(raw: _Raw, data: bytes, number: int, kind: int, start: int, end: int) -> None:
    if kind != BYTES or number not in (6, 7):
        return
    if (end - start) % 8 or (end - start) // 8 > EDGES_MAX:
        raw.is_too_large = True
    elif number == 6:
        raw.counts = [x for (x,) in _COUNT.iter_unpack(data[start:end])]
    else:
        raw.bounds = [x for (x,) in _DOUBLE.iter_unpack(data[start:end])]


def _read_exponential(
    raw: _Raw, data: bytes, field: tuple[int, int, int, int], fields: Fields, varint: Varint
) -> None:
    number, kind, start, end = field
    if kind == VARINT and number == 6:
        raw.scale = _zigzag(start)
    elif kind == EIGHT and number == 7:
        (raw.zeros,) = _COUNT.unpack_from(data, start)
    elif kind == BYTES and number in (8, 9):
        counts: list[int] = []
        for inner, inner_kind, at, limit in fields(data, start, end):
            if inner == 1 and inner_kind == VARINT and number == 8:
                raw.offset = _zigzag(at)
            elif inner == 2 and inner_kind == BYTES:
                while at < limit and len(counts) <= EDGES_MAX:
                    count, at = varint(data, at, limit)
                    counts.append(count)
        if number == 8:
            raw.counts = counts
        else:
            raw.has_negative = any(counts)


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _quantile(data: bytes, at: int, limit: int, fields: Fields) -> tuple[float, float]:
    found = [0.0, 0.0]
    for number, kind, start, _ in fields(data, at, limit):
        if kind == EIGHT and number in (1, 2):
            (found[number - 1],) = _DOUBLE.unpack_from(data, start)
    return found[0], found[1]


def _histogram(raw: _Raw) -> Distribution | None:
    counts, bounds = raw.counts, raw.bounds
    if not counts and not bounds:
        counts = [raw.count]
    if (
        raw.is_too_large
        or len(counts) != len(bounds) + 1
        or not all(0 <= x < math.inf for x in (*bounds, raw.total))
        or any(a >= b for a, b in pairwise(bounds))
        or sum(counts) != raw.count
    ):
        return None
    values = tuple(accumulate(counts))
    return Distribution(False, (*bounds, math.inf), values, raw.count, raw.total)


def _exponential(raw: _Raw) -> Distribution | None:
    scale, counts = raw.scale, raw.counts
    if raw.has_negative or len(counts) > EDGES_MAX or not SCALE_MIN <= scale <= SCALE_MAX:
        return None
    try:
        bounds = [2.0 ** ((raw.offset + at + 1) / 2.0**scale) for at in range(len(counts))]
    except OverflowError:
        return None
    raw.bounds = [0.0, *bounds]
    raw.counts = [raw.zeros, *counts, 0]
    return _histogram(raw)


def _summary(raw: _Raw) -> Distribution | None:
    found = sorted(dict(raw.quantiles).items())
    if len(raw.quantiles) > EDGES_MAX or not 0 <= raw.total < math.inf:
        return None
    if not all(0 <= quantile <= 1 and not value < 0 for quantile, value in found):
        return None
    edges, values = tuple(q for q, _ in found), tuple(value for _, value in found)
    return Distribution(True, edges, values, raw.count, raw.total)
