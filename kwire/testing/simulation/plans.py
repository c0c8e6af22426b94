"""The faults of a run as data: drawn from its seed before it starts, each with a number.

A fault names no host but holds numbers; which host they mean is decided when it happens (the
leader of that moment, one of the processes that run). So a run with some of its faults left out
is a run too, which is how a failing one is made smaller.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kwire.clock import SeededRandom

FIRST_S = 4.0
NUMBERS = 1 << 30
PACES_S = ((0.5, 4.0), (1.0, 8.0), (2.0, 15.0), (5.0, 40.0))
STEPS_MAX = 10  # steps are drawn up to 2 ** 10

BROKER_KINDS = {
    "broker killed": 4,
    "broker loses power": 3,
    "broker stopped": 3,
    "brokers restarted in turn": 1,
    "broker paused": 4,
    "broker isolated": 3,
    "brokers parted": 3,
    "leader moved": 3,
    "disk slow": 2,
    "disk full": 2,
    "broker's clock wrong": 1,
}
CLIENT_KINDS = {
    "client cut off": 4,
    "replies delayed": 4,
    "replies lost": 5,
    "reply cut": 4,
    "request cut": 3,
    "link slow": 4,
    "network slow": 2,
    "connections reset": 3,
}
PROCESS_KINDS = {
    "process killed": 10,
    "process loses power": 2,
    "process paused": 5,
    "process stopped": 3,
    "process's clock wrong": 1,
}
KINDS = {**BROKER_KINDS, **CLIENT_KINDS, **PROCESS_KINDS}
"""Every kind of fault, and how often it is drawn beside the others."""


@dataclass(frozen=True)
class Fault:
    """One fault. `length_s` is how long it lasts; `step` how many steps of its target later than
    `at_s` it strikes, 0 for at once; `choices` are numbers that are taken modulo what there is."""

    number: int
    at_s: float
    kind: str
    length_s: float
    step: int
    choices: tuple[int, int, int]

    def pick(self, count: int, which: int = 0) -> int:
        """One of `count`."""
        return self.choices[which] % count


def checked_kinds(kinds: Iterable[str] | None) -> tuple[str, ...]:
    """The kinds that may be drawn; ValueError names one that does not exist."""
    if kinds is None:
        return tuple(KINDS)
    if isinstance(kinds, str):
        kinds = (kinds,)
    found = tuple(kinds)
    for kind in found:
        if kind not in KINDS:
            raise ValueError(f"faults: {kind!r} is none; accepted are {', '.join(KINDS)}")
    return found


def drawn(seed: int, until_s: float, kinds: tuple[str, ...]) -> tuple[Fault, ...]:
    """The faults of a seed, in the order of their times. Half of the runs have one to three kinds
    only: what needs a row of the same fault is rare among twenty."""
    if not kinds or until_s <= FIRST_S:
        return ()
    random = SeededRandom(seed * 2 + 1)
    below = random.below
    chosen = kinds
    if below(2):
        wanted = 1 + below(3)
        chosen = tuple(_weighted(random, kinds) for _ in range(wanted))
        if any(kind in PROCESS_KINDS for kind in kinds) and below(2):
            chosen += ("process killed",) if "process killed" in kinds else ()
    low, high = PACES_S[below(len(PACES_S))]
    faults: list[Fault] = []
    at_s = FIRST_S
    while True:
        at_s += low + (high - low) * below(1000) / 1000
        if at_s >= until_s:
            return tuple(faults)
        long = below(4) == 0
        length_s = (8.0 + 0.032 * below(1000)) if long else 0.05 * 1.005 ** below(1000)
        step = 0 if below(3) == 0 else below(1 << below(STEPS_MAX + 1)) + 1
        faults.append(
            Fault(
                len(faults),
                round(at_s, 3),
                _weighted(random, chosen),
                round(length_s, 3),
                step,
                (below(NUMBERS), below(NUMBERS), below(NUMBERS)),
            )
        )


def _weighted(random: SeededRandom, kinds: tuple[str, ...]) -> str:
    drawn = random.below(sum(KINDS[kind] for kind in kinds))
    for kind in kinds:
        drawn -= KINDS[kind]
        if drawn < 0:
            return kind
    raise AssertionError("nothing was drawn")
