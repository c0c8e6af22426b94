"""Several groups at once, so that the cores of a machine are busy and none is asked for twice.

A group says how many cores it keeps busy (`Group.cores`); one that mostly waits needs none. Groups
begin in their order: one that needs more cores than are free is waited for, so that no group is put
off for good.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

CORES_MAX = 2


class Sized(Protocol):
    """What is run: `cores` is 0 for what runs beside anything."""

    @property
    def cores(self) -> int: ...


G = TypeVar("G", bound=Sized)
R = TypeVar("R")


def cores_of_machine() -> int:
    """How many cores groups may use: KWIRE_TEST_CORES, or two, or the one that there is."""
    given = os.environ.get("KWIRE_TEST_CORES")
    return max(1, int(given)) if given else min(CORES_MAX, os.cpu_count() or 1)


def run_in_lanes(groups: Sequence[G], cores: int, run: Callable[[G], R]) -> list[R]:
    """`run(group)` for each, in threads of their own; the results in the order of the groups.

    A group that wants more cores than there are gets all of them. The first error is raised when
    what had begun has ended; nothing begins after it.
    """
    results: dict[int, R] = {}
    errors: list[BaseException] = []
    changed = threading.Condition()
    free = cores

    def one(at: int, group: G, taken: int) -> None:
        nonlocal free
        try:
            result = run(group)
            results[at] = result
        except BaseException as error:
            errors.append(error)
        with changed:
            free += taken
            changed.notify()

    threads = []
    for at, group in enumerate(groups):
        wanted = min(group.cores, cores)
        with changed:
            while free < wanted:
                changed.wait()
            if errors:
                break
            free -= wanted
        thread = threading.Thread(target=one, args=(at, group, wanted), daemon=True)
        threads.append(thread)
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[at] for at in range(len(groups))]
