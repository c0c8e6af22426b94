"""Values that Kafka takes and that no node can work with: named, and the default used instead.

Kafka checks little of some settings and fails, or does nothing, when it comes to use them. Here
each has the range that works.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.config.values import Value

NO_END = float("inf")


class Range(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.high == NO_END:
            return f"a number of at least {self.low}"
        return f"a number from {self.low} to {self.high}"


RANGES = {
    "internal.segment.bytes": Range(1, 2**31 - 1),
    # Nobody could connect, to set it back neither.
    "max.connections": Range(1, 2**31 - 1),
    "max.connection.creation.rate": Range(1, 2**31 - 1),
    # A map of keys that is filled to the last slot is searched for ever.
    "log.cleaner.io.buffer.load.factor": Range(0.01, 0.99),
    "log.cleaner.io.max.bytes.per.second": Range(1.0, NO_END),
}


def range_missed(name: str, value: Value) -> Range | None:
    """The range that works for `name`, where `value` is out of it (NaN always is); else None."""
    limits = RANGES.get(name)
    if limits is None or not isinstance(value, int | float) or limits.low <= value <= limits.high:
        return None
    return limits
