"""Machines that fail: Apache Kafka's by a shim under its JVM, kwire's by faults on command."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias

from kwire.testing import Broker
from tests.support.machine.kafka_machine import KafkaMachine
from tests.support.machine.shim import SYNCS, WRITES

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "200",
    "num.io.threads": "8",
}
"""Of both."""
SLOW_MS = 3000
"""What kwire's disk is slow by; Kafka's is so until it is released."""

Reached: TypeAlias = Callable[[int], None]
"""Waits until so many calls have come as far as the disk."""


class World(Protocol):
    """One broker."""

    @property
    def bootstrap(self) -> str: ...

    def slow(self, *, syncs: bool = False) -> AbstractContextManager[Reached]:
        """Writes to files, or their syncs, take long; they are over some time after the block."""
        ...

    def skewed(self, skew_ms: int) -> AbstractContextManager[object]:
        """The wall clock is so far ahead."""
        ...

    def lose_power(self) -> None:
        """And begin again."""
        ...


class RealMachine:
    """Apache Kafka's."""

    def __init__(self, machine: KafkaMachine) -> None:
        self._machine = machine
        self.bootstrap = machine.bootstrap

    @contextmanager
    def slow(self, *, syncs: bool = False) -> Iterator[Reached]:
        kind, shim = SYNCS if syncs else WRITES, self._machine.shim
        with shim.held(kind):
            yield lambda count: shim.wait_held(kind, count)

    def skewed(self, skew_ms: int) -> AbstractContextManager[object]:
        return self._machine.shim.skewed(skew_ms)

    def lose_power(self) -> None:
        self._machine.lose_power()
        self._machine.start()


class CommandedMachine:
    """kwire's."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def bootstrap(self) -> str:
        return self._broker.bootstrap

    @contextmanager
    def slow(self, *, syncs: bool = False) -> Iterator[Reached]:
        with self._broker.faults.add("disk-slow", ms=SLOW_MS, writes=not syncs):
            yield lambda _: None

    def skewed(self, skew_ms: int) -> AbstractContextManager[object]:
        return self._broker.faults.add("clock-skew", ms=skew_ms)

    def lose_power(self) -> None:
        self._broker.lose_power()
        self._broker.start()
