"""Which partition of an internal topic a group or a transactional id belongs to."""

from __future__ import annotations

from functools import lru_cache

# Names that come with every request are hashed once, as long as that costs little memory.
REMEMBERED = 8192
REMEMBERED_LENGTH_MAX = 128


def java_hash(text: str) -> int:
    """Java's String.hashCode, signed 32 bits: over UTF-16 code units."""
    return _remembered(text) if len(text) <= REMEMBERED_LENGTH_MAX else _hash(text)


@lru_cache(REMEMBERED)
def _remembered(text: str) -> int:
    return _hash(text)


def _hash(text: str) -> int:
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[0::2], units[1::2]):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(key: str, partition_count: int) -> int:
    """Kafka's partition of `key`: the absolute hash modulo the count, where the absolute value
    of the smallest integer is 0."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def hash_bucket(text: str, entries: int) -> int:
    """Where a Java HashMap of `entries` strings keeps `text`."""
    size = 16
    while entries > size * 3 // 4:
        size *= 2
    value = java_hash(text) & 0xFFFFFFFF
    return (value ^ value >> 16) & (size - 1)
