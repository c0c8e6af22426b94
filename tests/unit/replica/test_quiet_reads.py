"""Reads that wait for what does not happen, and what wakes them when it does."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pytest

from kwire.log.types import Isolation
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.delayed_read import DelayedRead, ReadContext
from kwire.replica.partition import DataListener, Partition
from kwire.replica.quiet_read import QuietRead, kind_of
from kwire.replica.reading import ReadLimits, ReadResult, nothing_read
from kwire.slices import Slices
from tests.support.connections import TurningLoop
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
        self,
        name: str,
        targets: list[ReadTarget[Position]],
        limits: ReadLimits,
        quiet: QuietRead[Position] | None = None,
        slices: Slices | None = None,
    ) -> DelayedRead[Position]:
        self.targets[name] = targets
        done = partial(self.answered.append, name)
        return DelayedRead(self.context, targets, limits, done, slices, quiet=quiet)

    def waits(self, name: str) -> None:
        """A consumer that the general way makes wait."""
        self.delayed(name, self._targets(), LIMITS).start()

    def quiet(self, limits: ReadLimits = LIMITS) -> QuietRead[Position]:
        """All partitions joined it."""
        replicas = self.world.replicas
        found: QuietRead[Position] = QuietRead(
            kind_of(limits), replicas.traffic.late, lambda request: None
        )
        assert all(found.join(replicas, target) for target in self._targets())
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

    def left(self, target: ReadTarget[Position]) -> None:
        del self.quiet_read.waits[self]
        read = self.readers.delayed(self.name, [target], self.limits, self.quiet_read)
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
        quiet.end()
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


def test_a_read_looks_at_what_has_left_alone(readers: Readers) -> None:
    quiet, world = readers.quiet(), readers.world
    before = [world.partition(index).traffic.fetch_requests for index in range(PARTITIONS)]
    readers.delayed("one", [], LIMITS, quiet).start()
    assert readers.answered == []
    assert not any(world.partition(index).data_listeners for index in range(PARTITIONS))
    _append(readers, 1)
    assert readers.answered == ["one"]
    (found,) = readers.targets["one"]
    assert (found.partition.index, found.result.size_bytes > 0) == (1, True)
    assert len(quiet) == PARTITIONS - 1
    assert not quiet.waits
    quiet.count()
    counted = [world.partition(index).traffic.fetch_requests for index in range(PARTITIONS)]
    assert sum(counted) - sum(before) == PARTITIONS * 2 * PARTITIONS, "they share a topic's counts"


def test_nobody_joins_while_somebody_waits(readers: Readers) -> None:
    quiet, replicas = readers.quiet(), readers.world.replicas
    partition = readers.world.partition()
    quiet.disturbed(partition)
    target = ReadTarget(partition, Position(0))
    read = readers.delayed("one", [], LIMITS, quiet)
    read.start()
    assert not quiet.join(replicas, target)
    read.expired()
    assert readers.answered == ["one"]
    assert quiet.join(replicas, target)
    assert not quiet.join(replicas, target), "it is there"


def test_what_moves_before_a_read_listens_is_read(readers: Readers) -> None:
    """A read of another partition waits for the disk."""
    quiet, world = readers.quiet(), readers.world
    quiet.disturbed(world.partition(2))
    waiting: Pending[ReadResult] = Pending()
    target = ReadTarget(world.partition(2), Position(0))
    read = readers.delayed("one", [target], LIMITS, quiet)
    with patch.object(Partition, "read", lambda *_: waiting):
        read.start()
    _append(readers, 1)
    assert readers.answered == []
    assert world.partition(2).log is not None
    waiting.complete(nothing_read(world.partition(2).log, Isolation.HIGH_WATERMARK))
    assert readers.answered == ["one"]
    assert [x.result.size_bytes > 0 for x in readers.targets["one"]] == [False, True]


def test_a_read_in_slices_without_targets_waits_too(readers: Readers) -> None:
    """All that its request named is refused."""
    quiet, loop = readers.quiet(), TurningLoop()
    read = readers.delayed("one", [], LIMITS, quiet, Slices(loop.call_soon))
    read.start()
    loop.turn()
    assert readers.answered == []
    read.expired()
    while loop.soon:
        loop.turn()
    assert readers.answered == ["one"]
    assert readers.context.waiting == 0
