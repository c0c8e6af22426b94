"""Looks for mutations: `python -m tests.sim.search [--seeds N] [--from SEED] [NAME ...]`.

For each (all by default) it runs seeds from 1 on until one finds it, and prints a line: the name,
the seed, what was found. It ends with 1 if one is not found within N seeds (200).
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys

from tests.sim import mutations
from tests.sim.history import History


def found_by(name: str, first: int, count: int) -> tuple[int | None, str]:
    """The first of `count` seeds that finds a mutation, and the violation; by the plan of faults
    that is aimed at it, or by the seed's own."""
    plan = mutations.AIMED.get(name)
    for seed in range(first, first + count):
        with mutations.applied(name):
            result = History(seed, plan).run()
        gc.collect()
        if result.violation is not None:
            return seed, result.violation.splitlines()[0]
    return None, "not found"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--from", type=int, default=1, dest="first")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    missed = 0
    for name in arguments.names or sorted(mutations.MUTATIONS):
        seed, what = found_by(name, arguments.first, arguments.seeds)
        print(f"{name}\t{seed}\t{what}", flush=True)
        missed += seed is None
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
