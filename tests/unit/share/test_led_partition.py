"""A share partition that is led: writes in order, failures, fencing, locks that run out, waits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.share.acquisition import Ask, acquire
from kwire.share.changes import AcknowledgedBatch, Acquired, AcquireMode, FetchedBatch
from kwire.share.counts import ShareCounts
from kwire.share.led_partition import FIRST_READ_BYTES, READ_BYTES_MIN, LedPartition
from kwire.share.persister import InitializePartition, PartitionId
from kwire.share.settings import ShareSettings
from kwire.share.states import ACQUIRED, AVAILABLE
from tests.support.persister import MemoryPersister

GROUP, TOPIC_ID = "workers", b"t" * 16
KEY = (GROUP, TOPIC_ID, 0)
LOCK_MS = 1000
ACCEPT, RELEASE = 1, 2


class Around:
    """What a broker's share partitions have in common, with a clock that stands still."""

    def __init__(self) -> None:
        self.persister = MemoryPersister()
        self.persister.initialize(GROUP, [InitializePartition(TOPIC_ID, 0, 1, 0)])
        self.dead_letters = None
        self.counts = ShareCounts()
        self.deadlines = self
        self.time_ms = 0
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.gone: list[LedPartition] = []

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Any:
        self.timers.append((self.time_ms + delay_ms, callback))
        return SimpleNamespace(cancel=lambda: None)

    def now_ms(self) -> int:
        return self.time_ms

    def settings(self, group_id: str) -> ShareSettings:
        return ShareSettings(lock_duration_ms=LOCK_MS)

    def reset_offset(self, partition: Any, reset: str) -> int:
        return 0

    def ended(self, led: LedPartition) -> None:
        self.gone.append(led)

    def rested(self, led: LedPartition) -> None:
        """Members stay."""

    def wake(self, led: LedPartition) -> None:
        led.wake_waiters()

    def pass_time(self, ms: int) -> None:
        self.time_ms += ms
        due = [timer for timer in self.timers if timer[0] <= self.time_ms]
        self.timers = [timer for timer in self.timers if timer not in due]
        for _, callback in due:
            callback()


class Waiting:
    """A share fetch that counts how often it was woken."""

    def __init__(self) -> None:
        self.woken_times = 0

    def woken(self) -> None:
        self.woken_times += 1


def led_partition(around: Around) -> LedPartition:
    log = SimpleNamespace(log_start_offset=0, high_watermark=100, last_stable_offset=100)
    partition: Any = SimpleNamespace(
        topic_id=TOPIC_ID, index=0, leader_epoch=3, is_leader=True, log=log, data_listeners={}
    )
    led = LedPartition(around, GROUP, partition)
    led.open()
    return led


def acquired(led: LedPartition, around: Around, count: int, member: str = "a") -> list[Acquired]:
    first = led.state.next_fetch_offset()
    fetched = [FetchedBatch(first, first + count - 1, 100)]
    ask = Ask(member, AcquireMode.BATCH_OPTIMIZED, 500, 500)
    found = acquire(led.state, ask, first, fetched, around.now_ms())
    led.locks_changed()
    return found


def said(led: LedPartition, first: int, last: int, kind: int, member: str = "a") -> Pending[None]:
    return led.acknowledge(member, [AcknowledgedBatch(first, last, [kind])])


def writes(around: Around) -> list[list[tuple[int, int, int]]]:
    return [
        [batch[:3] for batch in partitions[0].state_batches]
        for name, _, partitions in around.persister.calls
        if name == "write"
    ]


def test_changes_are_written_in_order_and_those_that_come_meanwhile_together() -> None:
    around = Around()
    led = led_partition(around)
    acquired(led, around, 10)
    around.persister.holding = True
    done = [said(led, at, at, ACCEPT) for at in range(4)]
    assert writes(around) == [[(0, 0, 2)]]
    around.persister.release(1)
    assert [each.done for each in done] == [True, False, False, False]
    assert writes(around) == [[(0, 0, 2)], [(1, 1, 2), (2, 2, 2), (3, 3, 2)]]
    around.persister.release()
    assert all(each.done and each.error() is None for each in done)
    assert led.state.start_offset == 4


def test_a_write_that_fails_is_taken_back_and_its_lock_runs_out_as_it_would_have() -> None:
    around = Around()
    led = led_partition(around)
    acquired(led, around, 3)
    around.persister.holding = True
    around.persister.errors[KEY] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    done = said(led, 0, 2, ACCEPT)
    around.pass_time(LOCK_MS)
    around.persister.release()
    error = done.error()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert led.state.batches[0].status.state is ACQUIRED
    around.pass_time(0)
    assert led.state.batches[0].status.state is AVAILABLE
    assert led.failure is None


@pytest.mark.parametrize("code", [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_fenced_write_ends_it(code: ErrorCode) -> None:
    around = Around()
    led = led_partition(around)
    acquired(led, around, 3)
    waiting = Waiting()
    led.wait(waiting, "a")
    around.persister.holding = True
    around.persister.errors[KEY] = [code]
    first, second = said(led, 0, 0, ACCEPT), said(led, 1, 1, ACCEPT)
    around.persister.release()
    for done in (first, second):
        error = done.error()
        assert isinstance(error, KafkaError)
        assert error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert around.gone == [led]
    assert waiting.woken_times
    with pytest.raises(KafkaError):
        said(led, 2, 2, ACCEPT)


def test_a_state_that_was_deleted_ends_it() -> None:
    """What goes on from the old state would be laid over that of a new group of the same name."""
    around = Around()
    led = led_partition(around)
    acquired(led, around, 3)
    around.persister.delete(GROUP, [PartitionId(TOPIC_ID, 0)])
    error = said(led, 0, 2, ACCEPT).error()
    assert isinstance(error, KafkaError)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert around.gone == [led]


def test_acknowledgements_that_are_refused_take_no_memory() -> None:
    """Each puts its locks back where they run out: those that are there are not put there again."""
    around = Around()
    led = led_partition(around)
    acquired(led, around, 3)
    for _ in range(100):
        with pytest.raises(KafkaError):
            led.acknowledge("a", [AcknowledgedBatch(0, 1, [ACCEPT]), AcknowledgedBatch(9, 9, [1])])
    assert len(led.state._locks) < 10
    around.pass_time(LOCK_MS)
    assert acquired(led, around, 3, "b") == [Acquired(0, 2, 2)]


def test_a_lock_that_runs_out_wakes_who_waits() -> None:
    around = Around()
    led = led_partition(around)
    led.partition.log.high_watermark = 3  # type: ignore[misc, union-attr]
    acquired(led, around, 3)
    waiting = Waiting()
    led.wait(waiting, "a")
    assert not led.has_records()
    around.pass_time(LOCK_MS - 1)
    assert not waiting.woken_times
    around.pass_time(1)
    assert waiting.woken_times
    assert led.has_records()
    assert acquired(led, around, 3, "b") == [Acquired(0, 2, 2)]


def test_it_hears_of_records_before_reads_that_wait() -> None:
    led = led_partition(Around())
    partition = led.partition
    read: Any = object()
    partition.data_listeners[read] = 7
    led.wait(Waiting(), "a")
    assert Partition._listeners(partition)[0] is led


def test_who_waits_longest_is_woken_first_and_only_while_there_is_something() -> None:
    around = Around()
    led = led_partition(around)
    log: Any = led.partition.log
    log.high_watermark = 0

    class Taking(Waiting):
        def woken(self) -> None:
            super().woken()
            led.stop_waiting(self)
            acquired(led, around, 5)

    first, second = Taking(), Taking()
    led.wait(first, "a")
    led.wait(second, "a")
    log.high_watermark = 5
    led.data_arrived(led.partition, 100)
    assert (first.woken_times, second.woken_times) == (1, 0)


def test_a_member_that_waited_in_vain_is_served_before_those_that_were_served() -> None:
    around = Around()
    led = led_partition(around)
    log: Any = led.partition.log
    log.high_watermark = 0
    order: list[str] = []

    class Taking(Waiting):
        def __init__(self, member_id: str) -> None:
            super().__init__()
            self.member_id = member_id

        def woken(self) -> None:
            order.append(self.member_id)
            acquired(led, around, 1, self.member_id)
            led.stop_waiting(self)
            led.waited(self.member_id, is_served=True)

    def arrive(records: int) -> list[str]:
        order.clear()
        log.high_watermark += records
        led.data_arrived(led.partition, 100)
        return list(order)

    def wait(*members: str) -> list[Taking]:
        waiting = [Taking(member_id) for member_id in members]
        for waiter in waiting:
            led.wait(waiter, waiter.member_id)
        return waiting

    waiting = wait("a", "b", "c", "d")
    assert arrive(2) == ["a", "b"]
    wait("a", "b")
    for waiter in waiting[2:]:  # their time is over
        led.stop_waiting(waiter)
        led.waited(waiter.member_id, is_served=False)
    wait("c", "d")
    assert arrive(3) == ["c", "d", "a"]
    wait("c", "d", "a")
    assert arrive(2) == ["b", "c"]


def test_a_leader_that_is_one_no_more_ends_it() -> None:
    around = Around()
    led = led_partition(around)
    partition: Any = led.partition
    partition.leader_epoch += 1
    led.partition_changed(partition)
    assert led.failure is not None
    assert led.failure.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_no_more_is_read_than_can_be_handed_out() -> None:
    around = Around()
    led = led_partition(around)
    assert led.bytes_for(0, 10**6) == FIRST_READ_BYTES
    led.was_read([FetchedBatch(0, 9, 1 << 20), FetchedBatch(10, 99, 9 << 20)])
    assert led.bytes_for(0, 500) >= (50 << 20) + (9 << 20)
    assert led.bytes_for(0, 500) < 100 << 20
    acquired(led, around, 300)
    assert led.bytes_for(0, 500) >= 80 << 20  # those in flight stand between
    assert led.bytes_for(300, 500) < 100 << 20
    led.was_read([FetchedBatch(0, 99, 100)])
    assert led.bytes_for(300, 500) == READ_BYTES_MIN


def test_what_is_written_counts_by_record_and_what_fails_does_not() -> None:
    around = Around()
    led = led_partition(around)
    assert around.counts.loads == 1
    acquired(led, around, 10)
    led.acknowledge("a", [AcknowledgedBatch(0, 3, [ACCEPT])])
    led.acknowledge("a", [AcknowledgedBatch(4, 5, [RELEASE, ACCEPT])])
    around.persister.errors[KEY] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    led.acknowledge("a", [AcknowledgedBatch(6, 6, [ACCEPT])])
    with pytest.raises(KafkaError):
        led.acknowledge("b", [AcknowledgedBatch(7, 7, [ACCEPT])])
    assert around.counts.acknowledgements == [0, 5, 1, 0, 0]
    around.pass_time(LOCK_MS)
    assert led.expired_locks == 4
