"""How many seeds a seeded test runs: some by default, one to replay, many under `make stress`.

`KWIRE_SIM_SEED=42` (`make sim SEED=42`) runs that seed alone; `KWIRE_EFFORT=10` ten times as many,
from `KWIRE_SEEDS_FROM` on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence


def effort() -> int:
    """How many times what a test does by default."""
    return int(os.environ.get("KWIRE_EFFORT", "1"))


def seeds(count: int) -> Sequence[int]:
    """The seeds of a test that runs `count` of them by default."""
    one = os.environ.get("KWIRE_SIM_SEED")
    if one:
        return [int(one)]
    first = int(os.environ.get("KWIRE_SEEDS_FROM", "0"))
    return range(first, first + count * effort())
