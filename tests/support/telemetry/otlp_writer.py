"""OpenTelemetry's metrics as bytes, for tests: shares nothing with what reads them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: int | float | str | bytes) -> bytes:
    """A varint of an int, 8 bytes of a float, a length and bytes of the others."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attributes(number: int, values: Mapping[str, str | int | float | bool]) -> bytes:
    found = b""
    for key, value in values.items():
        if isinstance(value, bool):
            content = field(2, int(value))
        else:
            content = field({str: 1, int: 3, float: 4}[type(value)], value)
        found += field(number, field(1, key) + field(2, content))
    return found


def point(
    value: int | float, labels: Mapping[str, str | int | float | bool] | None = None
) -> bytes:
    if isinstance(value, int):
        content = varint(6 << 3 | 1) + struct.pack("<q", value)
    else:
        content = field(4, value)
    return attributes(7, labels or {}) + content


def gauge(name: str, *points: bytes) -> bytes:
    return field(1, name) + field(5, b"".join(field(1, one) for one in points))


def total(name: str, *points: bytes, is_delta: bool = True, grows: bool = True) -> bytes:
    content = b"".join(field(1, one) for one in points)
    content += field(2, 1 if is_delta else 2) + field(3, int(grows))
    return field(1, name) + field(7, content)


def fixed(number: int, value: int) -> bytes:
    """8 bytes of an int."""
    return varint(number << 3 | 1) + struct.pack("<Q", value)


def histogram_point(
    counts: Sequence[int],
    bounds: Sequence[float],
    total: float = 0.0,
    labels: Mapping[str, str | int | float | bool] | None = None,
) -> bytes:
    return (
        attributes(9, labels or {})
        + fixed(4, sum(counts))
        + field(5, total)
        + field(6, struct.pack(f"<{len(counts)}Q", *counts))
        + field(7, struct.pack(f"<{len(bounds)}d", *bounds))
    )


def exponential_point(
    scale: int, offset: int, counts: Sequence[int], zeros: int = 0, negative: Sequence[int] = ()
) -> bytes:
    def buckets(of: Sequence[int]) -> bytes:
        return field(1, _zigzag(offset)) + field(2, b"".join(map(varint, of)))

    return (
        fixed(4, sum(counts) + sum(negative) + zeros)
        + field(5, 1.5)
        + field(6, _zigzag(scale))
        + fixed(7, zeros)
        + field(8, buckets(counts))
        + field(9, buckets(negative))
    )


def _zigzag(value: int) -> int:
    return value << 1 if value >= 0 else ~(value << 1)


def summary_point(quantiles: Mapping[float, float], count: int, total: float) -> bytes:
    found = b"".join(field(6, field(1, q) + field(2, value)) for q, value in quantiles.items())
    return fixed(4, count) + field(5, total) + found


def histogram(name: str, *points: bytes, is_delta: bool = True, kind: int = 9) -> bytes:
    """Kind 10 is an exponential one, 11 a summary."""
    content = b"".join(field(1, one) for one in points)
    return field(1, name) + field(kind, content + field(2, 1 if is_delta else 2))


def metrics(*found: bytes, resource: Mapping[str, str | int | float | bool] | None = None) -> bytes:
    """`MetricsData`, its resource behind what is of it."""
    scope = field(1, field(1, "scope")) + b"".join(field(2, one) for one in found)
    return field(1, field(2, scope) + field(1, attributes(1, resource or {})))


def many(names: Iterable[str]) -> bytes:
    return metrics(*(gauge(name, point(1)) for name in names))
