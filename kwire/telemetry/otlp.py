"""The metrics in a push: OpenTelemetry's `MetricsData`, as protobuf has it, read without a library.

A message is fields one after the other, each a varint `number << 3 | wire type` and its value: a
varint (0), 8 bytes (1), a varint length and as many bytes (2), or 4 bytes (5). What is read:

    message           fields: number name
    MetricsData       1 resource metrics
    ResourceMetrics   1 resource, 2 scope metrics
    Resource          1 attributes
    ScopeMetrics      2 metrics
    Metric            1 name, 5 gauge, 7 sum; 9, 10, 11 histograms and summaries, which are read by
                      `distributions.py`
    Gauge, Sum        1 points; of a sum 2 temporality (1 since the last push, 2 since the begin),
                      3 whether it only grows
    NumberDataPoint   4 double, 6 signed integer of 8 bytes, 7 attributes, 8 flags (1: no value)
    KeyValue          1 key, 2 value
    AnyValue          1 text, 2 boolean, 3 integer, 4 double; other kinds are left out

Fields that are not known are passed over. Everything is bounded: what is beyond the bounds is
counted and left out, what is no such message raises ValueError. Source: the OpenTelemetry protocol
1.3, KIP-714.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from struct import Struct, error
from typing import NamedTuple, TypeAlias

from kwire.telemetry.distributions import Distribution, read_point

POINTS_MAX = 2000
"""Of one push."""
ATTRIBUTES_MAX = 16
"""Of a resource, and of a point."""
TEXT_MAX = 256
"""Of a name, a key or a value in bytes; longer ones are cut."""

VARINT, EIGHT, BYTES, FOUR = 0, 1, 2, 5
VARINT_BYTES_MAX = 10
DELTA = 1
NO_VALUE = 1
GAUGE, SUM = 5, 7
DISTRIBUTIONS = (9, 10, 11)
_DOUBLE, _INT = Struct("<d"), Struct("<q")

Attributes: TypeAlias = "tuple[tuple[str, str], ...]"
_Field: TypeAlias = "tuple[int, int, int, int]"
"""Number, wire type, and the value of a varint, or begin and end of the bytes."""


class Point(NamedTuple):
    """One number, or a distribution. `is_delta`: what was added since the last push; `only_grows`:
    it is a count."""

    name: str
    attributes: Attributes
    value: int | float | Distribution
    is_delta: bool
    only_grows: bool


class Metrics(NamedTuple):
    """What a push has. `left_out` points cannot be shown, or are beyond the bounds."""

    points: list[Point]
    left_out: int


def read_metrics(data: bytes) -> Metrics:
    """All points. ValueError for what is no such message."""
    found = _Found()
    try:
        for number, kind, start, end in _fields(data, 0, len(data)):
            if number == 1 and kind == BYTES:
                _read_resource_metrics(data, start, end, found)
    except (IndexError, error):
        raise ValueError("it ends within a field") from None
    return Metrics(found.points, found.left_out)


class _Found:
    def __init__(self) -> None:
        self.points: list[Point] = []
        self.left_out = 0


def _fields(data: bytes, at: int, limit: int) -> Iterator[_Field]:
    while at < limit:
        key, at = _varint(data, at, limit)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("a field has no number")
        if kind == VARINT:
            value, at = _varint(data, at, limit)
            yield number, kind, value, at
            continue
        if kind == BYTES:
            size, at = _varint(data, at, limit)
        elif kind == EIGHT:
            size = 8
        elif kind == FOUR:
            size = 4
        else:
            raise ValueError(f"wire type {kind}")
        if size > limit - at:
            raise ValueError("a field ends behind its message")
        yield number, kind, at, at + size
        at += size


def _varint(data: bytes, at: int, limit: int) -> tuple[int, int]:
    """(value, offset behind it)"""
    value = data[at]
    if value < 0x80 and at < limit:
        return value, at + 1
    value = shift = 0
    for byte in data[at : min(limit, at + VARINT_BYTES_MAX)]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a varint does not end")


def _read_resource_metrics(data: bytes, at: int, limit: int, found: _Found) -> None:
    """The resource may stand behind the metrics that are of it."""
    resource: Attributes = ()
    scopes = []
    for number, kind, start, end in _fields(data, at, limit):
        if kind != BYTES:
            continue
        if number == 1:
            resource = _attributes(data, start, end, 1)
        elif number == 2:
            scopes.append((start, end))
    for at, limit in scopes:
        for number, kind, start, end in _fields(data, at, limit):
            if number == 2 and kind == BYTES:
                _read_metric(data, start, end, resource, found)


def _read_metric(data: bytes, at: int, limit: int, resource: Attributes, found: _Found) -> None:
    name = ""
    content: tuple[int, int, int] | None = None
    for number, kind, start, end in _fields(data, at, limit):
        if kind != BYTES:
            continue
        if number == 1:
            name = _text(data, start, end)
        elif number in (GAUGE, SUM, *DISTRIBUTIONS):
            content = number, start, end
    if content is None or not name:
        return
    what, at, limit = content
    is_delta = only_grows = False
    points = []
    for number, kind, start, end in _fields(data, at, limit):
        if number == 1 and kind == BYTES:
            points.append((start, end))
        elif what != GAUGE and kind == VARINT:
            is_delta |= number == 2 and start == DELTA
            only_grows |= what == SUM and number == 3 and start != 0
    for at, limit in points:
        value: int | float | Distribution | None
        if what in DISTRIBUTIONS:
            one = read_point(what, data, at, limit, _fields, _varint)
            if not one.has_value:
                continue
            value, attributes = one.found, _all_attributes(data, one.attributes)
            found.left_out += value is None
        else:
            value, attributes = _number(data, at, limit)
        if value is None:
            continue
        if len(found.points) >= POINTS_MAX:
            found.left_out += 1
            continue
        found.points.append(Point(name, resource + attributes, value, is_delta, only_grows))


def _number(data: bytes, at: int, limit: int) -> tuple[int | float | None, Attributes]:
    """Value and attributes of a point; no value where it says that there was none."""
    value: int | float | None = None
    attributes: list[tuple[str, str]] = []
    flags = 0
    for number, kind, start, end in _fields(data, at, limit):
        if kind == EIGHT and number == 4:
            (value,) = _DOUBLE.unpack_from(data, start)
        elif kind == EIGHT and number == 6:
            (value,) = _INT.unpack_from(data, start)
        elif kind == BYTES and number == 7:
            if len(attributes) < ATTRIBUTES_MAX:
                attributes += _attribute(data, start, end)
        elif kind == VARINT and number == 8:
            flags = start
    return None if flags & NO_VALUE else value, tuple(attributes)


def _all_attributes(data: bytes, places: Iterable[tuple[int, int]]) -> Attributes:
    found: list[tuple[str, str]] = []
    for start, end in islice(places, ATTRIBUTES_MAX):
        found += _attribute(data, start, end)
    return tuple(found)


def _attributes(data: bytes, at: int, limit: int, wanted: int) -> Attributes:
    found: list[tuple[str, str]] = []
    for number, kind, start, end in _fields(data, at, limit):
        if number == wanted and kind == BYTES and len(found) < ATTRIBUTES_MAX:
            found += _attribute(data, start, end)
    return tuple(found)


def _attribute(data: bytes, at: int, limit: int) -> list[tuple[str, str]]:
    """A pair of key and value, or nothing."""
    key, value = "", None
    for number, kind, start, end in _fields(data, at, limit):
        if kind == BYTES and number == 1:
            key = _text(data, start, end)
        elif kind == BYTES and number == 2:
            value = _any_value(data, start, end)
    return [] if not key or value is None else [(key, value)]


def _any_value(data: bytes, at: int, limit: int) -> str | None:
    found = None
    for number, kind, start, end in _fields(data, at, limit):
        if number == 1 and kind == BYTES:
            found = _text(data, start, end)
        elif number == 2 and kind == VARINT:
            found = "true" if start else "false"
        elif number == 3 and kind == VARINT:
            found = str(start - (1 << 64) if start >> 63 & 1 else start)
        elif number == 4 and kind == EIGHT:
            found = repr(_DOUBLE.unpack_from(data, start)[0])
    return found


def _text(data: bytes, start: int, end: int) -> str:
    return data[start : min(end, start + TEXT_MAX)].decode(errors="replace")
