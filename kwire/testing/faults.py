"""Faults on command for tests: what stands, how often it has struck, and its end.

    with broker.faults.add("drop-reply", api="Produce", times=1) as fault:
        publish(...)
    assert fault.hits == 1

docs/FAULTS.md has the list of faults with their selectors and options.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from kwire.faults.errors import ANOTHER, FaultError
from kwire.faults.kinds import Acts, Given
from kwire.faults.rules import parse_rule
from kwire.testing.brokers.runner import BrokerFailed, FaultControl, Runner
from kwire.testing.owner import Owner

ELSEWHERE = "NOT_COORDINATOR"
"""Another broker has what a fault is about."""


class Fault:
    """One that was added; as a context manager it is removed at the end of its block."""

    def __init__(self, kind: str, at: Sequence[tuple[FaultControl, int]], hits: int) -> None:
        self.kind = kind
        self._at = list(at)
        self._hits = hits
        self._owner = Owner("the fault")

    def __repr__(self) -> str:
        return f"Fault({self.kind!r}, hits={self.hits})"

    @property
    def hits(self) -> int:
        """How many requests it has met; a fault that acts once has acted once. BrokerFailed where
        its broker was a process that has ended: ask before."""
        return self._hits + sum(_hits_of(control, number) for control, number in self._at)

    def remove(self) -> None:
        """End it; what it has met is still known. Nothing when it has ended."""
        for control, number in list(self._at):
            try:
                told = control.remove(number)
            except FaultError:  # it was removed with all others
                self._at.remove((control, number))
            except OSError:
                continue  # it ended with its broker, and nobody knows what it has met
            else:
                self._at.remove((control, number))
                self._hits += int(told["hits"] or 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owner.is_here:
            self.remove()


def _hits_of(control: FaultControl, number: int) -> int:
    try:
        standing = control.standing()
    except OSError as error:
        raise BrokerFailed(
            f"what fault {number} has met is not known: its broker does not answer ({error})"
        ) from None
    return sum(int(one["hits"] or 0) for one in standing if one["id"] == number)


class Faults:
    """The faults of one broker, or of all of a cluster. They end with `remove`, `clear`, or the
    life of their broker."""

    def __init__(self, runners: Sequence[Runner]) -> None:
        self._runners = list(runners)

    def add(
        self,
        kind: str,
        *,
        api: str | None = None,
        client_id: str | None = None,
        principal: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        broker: int | None = None,
        times: int | None = None,
        skip: int | None = None,
        probability: float | None = None,
        seed: int | None = None,
        **options: Given,
    ) -> Fault:
        """Add a fault. FaultError, a ValueError, names what cannot be right and what is accepted.

        `times` requests are met in all, the first `skip` are let pass, and each of the others is
        met with `probability`, drawn from `seed`.
        """
        named: dict[str, Given] = {
            "kind": kind,
            "api": api,
            "client_id": client_id,
            "principal": principal,
            "topic": topic,
            "partition": partition,
            "group": group,
            "transactional_id": transactional_id,
            "broker": broker,
            "times": times,
            "skip": skip,
            "probability": probability,
            "seed": seed,
            **options,
        }
        given = {name: value for name, value in named.items() if value is not None}
        rule = parse_rule(given)
        if not self._runners:
            raise BrokerFailed(f"no broker runs that could have {kind}")
        if kind == "power-loss":
            return self._lose_power()
        if rule.kind.acts is Acts.ONCE:
            self._do_once(given)
            return Fault(kind, [], 1)
        controls = [runner.faults for runner in self._runners]
        added = [(control, int(control.add(given)["id"] or 0)) for control in controls]
        return Fault(kind, added, 0)

    def clear(self) -> None:
        """End all faults."""
        for runner in self._runners:
            runner.faults.clear()

    def standing(self) -> list[dict[str, Given]]:
        """What stands, with `hits`, broker by broker."""
        return [one for runner in self._runners for one in runner.faults.standing()]

    def _do_once(self, given: Mapping[str, Given]) -> None:
        """By the broker that can do it."""
        for at, runner in enumerate(self._runners):
            try:
                runner.faults.add(given)
                return
            except FaultError as error:
                is_elsewhere = ELSEWHERE in str(error) or ANOTHER in str(error)
                if not is_elsewhere or at == len(self._runners) - 1:
                    raise

    def _lose_power(self) -> Fault:
        if len(self._runners) > 1:
            raise FaultError("power-loss: say which broker; accepted: cluster[1].lose_power()")
        self._runners[0].lose_power()
        return Fault("power-loss", [], 1)
