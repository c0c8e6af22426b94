"""Numbers of JSON as they are: hooks for Python's reader, which knows NaN and makes an infinity of
1e400."""

from __future__ import annotations

import math

SHOWN_CHARACTERS_MAX = 40


def finite(text: str) -> float:
    """`parse_float`; ValueError for what no double holds."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:SHOWN_CHARACTERS_MAX]} is too large")
    return value


def refused(name: str) -> float:
    """`parse_constant`; ValueError: NaN and the infinities are no numbers of JSON."""
    raise ValueError(f"{name} is no number of JSON")
