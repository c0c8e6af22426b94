"""Quantiles of what was sampled."""

from __future__ import annotations

from collections.abc import Sequence

QUANTILES = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


def quantiles(count: int, values: Sequence[float], unit: float = 1) -> list[float]:
    """[count, quantiles of the values]; all 0 without any, as Apache Kafka shows it."""
    if not values:
        return [count, *(0 for _ in QUANTILES)]
    ordered = sorted(values)
    last = len(ordered) - 1
    return [count, *(round(ordered[round(q * last)] / unit, 4) for q in QUANTILES)]
