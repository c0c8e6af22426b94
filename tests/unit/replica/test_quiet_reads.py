"""Reads that wait for what does not happen, and what wakes them when it does."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator
from pathlib import Path

import pytest

from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import DelayedRead, ReadContext
from kwire.replica.partition import DataListener
from kwire.replica.quiet_read import QuietRead, quiet_read
from kwire.replica.reading import ReadLimits
from tests.support.replica_world import Waiter, World
from tests.support.replicas import Position, Timer

LIMITS = ReadLimits(1, 1 << 20, 500, Isolation.HIGH_WATERMARK, from_follower=True)
COMMITTED = ReadLimits(1, 1 << 20, 500, Isolation.COMMITTED, from_follower=True)
PARTITIONS = 3


class Deadlines:
    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        return Timer(callback)


class Readers:
    """Consumers of all partitions, and in which order they were answered."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.context = ReadContext(Deadlines(), lambda topic, index: True)
        self.answered: list[str] = []
        self.targets: dict[str, list[ReadTarget[Position]]] = {}

    def _targets(self) -> list[ReadTarget[Position]]:
        world = self.world
        return [ReadTarget(world.partition(index), Position(0)) for index in range(PARTITIONS)]

    def delayed(
        self, name: str, targets: list[ReadTarget[Position]], limits: ReadLimits
    ) -> DelayedRead[Position]:
        self.targets[name] = targets
        return DelayedRead(self.context, targets, limits, lambda: self.answered.append(name))

    def waits(self, name: str) -> None:
        """A consumer that the general way makes wait."""
        self.delayed(name, self._targets(), LIMITS).start()

    def quiet(self, limits: ReadLimits = LIMITS) -> QuietRead[Position]:
        found = quiet_read(self.world.replicas, self._targets(), limits, lambda: None)
        assert found is not None
        return found


class QuietReader:
    """A consumer that waits on its plain road."""

    def __init__(
        self,
        readers: Readers,
        name: str,
        quiet: QuietRead[Position],
        limits: ReadLimits = LIMITS,
    ) -> None:
        self.readers, self.name, self.quiet_read, self.limits = readers, name, quiet, limits
        quiet.read()
        quiet.waits[self] = None
        self.order = readers.context.begin_wait()

    def go_on(self) -> None:
        targets = self.quiet_read.targets()
        read = self.readers.delayed(self.name, targets, self.limits)
        read.go_on(Timer(read.expired), self.order)


@pytest.fixture
def readers(tmp_path: Path) -> Readers:
    world = World(tmp_path)
    world.create([1], partitions=PARTITIONS)
    return Readers(world)


def _append(readers: Readers, index: int = 0) -> None:
    readers.world.append(index=index)
    readers.world.scheduler.turn()


def test_who_began_to_wait_first_is_answered_first(readers: Readers) -> None:
    third, second = readers.quiet(), readers.quiet()
    readers.waits("first")
    QuietReader(readers, "second", second)
    QuietReader(readers, "third", third)
    readers.waits("fourth")
    _append(readers)
    assert readers.answered == ["first", "second", "third", "fourth"]
    assert readers.context.waiting == 0


def test_two_fetches_of_one_quiet_read_have_results_of_their_own(readers: Readers) -> None:
    partition = readers.world.partition(1)
    for limits in (LIMITS, COMMITTED):
        quiet = readers.quiet(limits)
        one = QuietReader(readers, "one", quiet, limits)
        two = QuietReader(readers, "two", quiet, limits)
        quiet.disturbed()
        first, second = readers.targets[one.name], readers.targets[two.name]
        assert not {id(target) for target in first} & {id(target) for target in second}
        partition.wake_readers(1)
        is_shown = limits is LIMITS  # the last stable offset has not moved
        assert readers.answered == (["one", "two"] if is_shown else [])
        partition.end_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert readers.answered == ["one", "two"]
        readers.answered.clear()


def test_who_is_no_read_hears_before_reads(readers: Readers) -> None:
    partition, heard = readers.world.partition(), readers.answered

    class Other(Waiter):
        def log_extended(self, *_: object) -> None:
            heard.append("other")

        data_arrived = partition_changed = log_extended

    readers.waits("read")
    QuietReader(readers, "later", readers.quiet())
    partition.data_listeners[Other()] = 0
    _append(readers)
    assert heard == ["other", "read", "later"]


class Walked(dict[DataListener, int]):
    """Listeners that count how many of them were looked at."""

    seen = 0

    def __iter__(self) -> Iterator[DataListener]:
        self.seen += len(self)
        return super().__iter__()

    def items(self) -> ItemsView[DataListener, int]:  # type: ignore[override]
        self.seen += len(self)
        return super().items()


def test_a_write_looks_at_each_listener_of_its_own_partition_a_few_times(readers: Readers) -> None:
    """Each of those that it wakes would have looked at all the others, in every partition."""
    consumers = 20
    for number in range(consumers):
        QuietReader(readers, f"{number}", readers.quiet())
    walked = []
    for index in range(PARTITIONS):
        walked.append(Walked())
        readers.world.partition(index).data_listeners = walked[index]
    _append(readers)
    assert readers.answered == [f"{number}" for number in range(consumers)]
    assert [each.seen <= 3 * consumers for each in walked] == [True] * PARTITIONS
