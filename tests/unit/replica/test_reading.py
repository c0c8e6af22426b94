"""Reads without any API: what one partition finds, within one limit, and waiting for enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.log.types import Isolation
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import read_records
from kwire.replica.bounded_read import BoundedRead, ReadTarget
from kwire.replica.delayed_read import DelayedRead, ReadContext
from kwire.replica.partition import Partition
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.replica.traffic import Traffic
from tests.support.replicas import Position, Replicas, Timer

CONSUMER, FOLLOWER = -1, 2


class Deadlines:
    """One timer, which the test lets run."""

    def __init__(self) -> None:
        self.delay_ms = -1
        self.timer: Timer | None = None

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        self.delay_ms = delay_ms
        self.timer = Timer(callback)
        return self.timer

    @property
    def is_set(self) -> bool:
        return self.timer is not None and self.timer.callback is not None

    def run(self) -> None:
        assert self.timer is not None
        assert self.timer.callback is not None
        self.timer.callback()


class Quota:
    """Nothing for broker 2, and what was sent."""

    def __init__(self, is_exceeded: bool) -> None:
        self.is_exceeded = is_exceeded
        self.sent_bytes = 0

    def holds_back(self, partition: Partition, replica_id: int) -> bool:
        return self.is_exceeded and replica_id == FOLLOWER

    def sent(self, partition: Partition, size_bytes: int) -> None:
        self.sent_bytes += size_bytes


@pytest.fixture
def world(tmp_path: Path) -> Replicas:
    """Broker 1 leads; two batches, of which broker 2 has the first."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=1)
    world.append(1, b"a")
    world.exchange()
    world[2].is_up = False
    world.append(1, b"b")
    return world


def limits(
    replica_id: int = CONSUMER,
    bytes_min: int = 1,
    wait_ms: int = 0,
    isolation: Isolation = Isolation.HIGH_WATERMARK,
    rack: str = "",
) -> ReadLimits:
    if replica_id >= 0:
        isolation = Isolation.LOG_END
    is_consumer = replica_id == CONSUMER
    return ReadLimits(
        bytes_min, 1 << 20, wait_ms, isolation, replica_id, -1, from_follower=is_consumer, rack=rack
    )


def read(
    partition: Partition, position: Position, asked: ReadLimits, **options: object
) -> ReadResult:
    found = partition.read(position, asked, 1 << 20, **options)  # type: ignore[arg-type]
    assert isinstance(found, ReadResult)
    return found


def values(result: ReadResult) -> list[bytes | None]:
    return [record.value for part in result.buffers or () for record in read_records(part)]  # type: ignore[arg-type]


class Waiting:
    """A DelayedRead of one partition by a consumer, and how often it was done."""

    def __init__(
        self,
        partition: Partition,
        position: Position,
        asked: ReadLimits,
        *,
        exists: bool = True,
        quota: Quota | None = None,
    ) -> None:
        self.deadlines = Deadlines()
        self.done = 0
        self.target = ReadTarget(partition, position)
        context = ReadContext(self.deadlines, lambda topic, index: exists, None, quota)
        self.read = DelayedRead(context, [self.target], asked, self._done)
        self.read.start()

    def _done(self) -> None:
        self.done += 1

    @property
    def result(self) -> ReadResult:
        return self.target.result


def test_a_consumer_sees_what_is_committed_a_follower_the_end_of_the_log(world: Replicas) -> None:
    leader = world[1].partition
    seen = read(leader, Position(0), limits())
    followed = read(leader, Position(1), limits(FOLLOWER))
    assert (seen.high_watermark, seen.error_code) == (1, ErrorCode.NONE)
    assert values(seen) == [b"a"]
    assert values(followed) == [b"b"]
    nothing = read(leader, Position(1), limits())
    assert (values(nothing), nothing.size_bytes) == ([], 0)


def test_a_followers_read_tells_how_far_it_is(world: Replicas) -> None:
    leader = world[1].partition
    found = read(leader, Position(2), limits(FOLLOWER))
    assert leader.state.high_watermark == found.high_watermark == 2


def test_a_replica_that_is_none_of_the_partitions_is_refused(world: Replicas) -> None:
    with pytest.raises(KafkaError) as caught:
        read(world[1].partition, Position(0), limits(7))
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError) as caught:
        read(world[1].partition, Position(0, current_leader_epoch=1), limits(7))
    assert caught.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_another_leader_epoch_is_refused(world: Replicas, epoch: int, code: ErrorCode) -> None:
    for broker_id in (1, 2):
        with pytest.raises(KafkaError) as caught:
            read(world[broker_id].partition, Position(0, current_leader_epoch=epoch), limits())
        assert caught.value.code == code


def test_a_consumer_may_read_at_a_follower_and_an_older_one_may_not(world: Replicas) -> None:
    follower = world[2].partition
    assert read(follower, Position(0), limits()).size_bytes > 0
    with pytest.raises(KafkaError) as caught:
        read(follower, Position(0), ReadLimits(1, 1 << 20, 0, Isolation.HIGH_WATERMARK))
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_where_the_askers_epoch_ends_is_found_instead_of_records(world: Replicas) -> None:
    leader = world[1].partition
    diverging = read(leader, Position(9, last_fetched_epoch=1), limits(FOLLOWER))
    assert diverging.diverging_epoch == (1, 2)
    assert values(diverging) == []
    assert leader.state.followers[FOLLOWER].log_end_offset == 1, "that is no progress"
    assert read(leader, Position(1, last_fetched_epoch=1), limits(FOLLOWER)).size_bytes


def test_a_replica_in_the_consumers_rack_is_preferred(world: Replicas) -> None:
    asked: list[tuple[int, str]] = []

    def select(partition: Partition, offset: int, rack: str) -> int | None:
        asked.append((offset, rack))
        return 2 if rack == "near" else None

    leader = world[1].partition
    found = read(leader, Position(0), limits(rack="near"), selector=select)
    assert (found.preferred_replica, found.size_bytes) == (2, 0)
    found = read(leader, Position(0), limits(rack="far"), selector=select)
    assert found.preferred_replica == -1
    assert found.size_bytes > 0
    assert read(world[2].partition, Position(0), limits(rack="near"), selector=select)
    assert asked == [(0, "near"), (0, "far")], "only the leader sends elsewhere"


def test_a_quota_holds_a_follower_back_and_hears_what_is_sent(world: Replicas) -> None:
    leader = world[1].partition
    exceeded, free = Quota(True), Quota(False)
    held = read(leader, Position(1), limits(FOLLOWER), quota=exceeded)
    assert (held.size_bytes, exceeded.sent_bytes) == (0, 0)
    sent = read(leader, Position(1), limits(FOLLOWER), quota=free)
    assert free.sent_bytes == sent.size_bytes > 0
    with pytest.raises(KafkaError) as caught:
        read(leader, Position(9), limits(FOLLOWER), quota=exceeded)
    assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_a_follower_may_not_have_now_does_not_end_its_wait(world: Replicas) -> None:
    quota = Quota(True)
    waiting = Waiting(world[1].partition, Position(1), limits(FOLLOWER, wait_ms=100), quota=quota)
    world.append(1, b"c")
    assert waiting.done == 0
    quota.is_exceeded = False
    world.append(1, b"d")
    assert waiting.done == 1
    assert values(waiting.result) == [b"b", b"c", b"d"]


def test_partitions_share_the_limit_and_the_first_batch_always_comes(world: Replicas) -> None:
    leader = world[1].partition
    targets = [ReadTarget(leader, Position(0)), ReadTarget(leader, Position(0))]
    done: list[BoundedRead[Position]] = []
    few = ReadLimits(1, 1, 0, Isolation.HIGH_WATERMARK)
    BoundedRead(targets, few, done.append).run()
    assert [target.result.size_bytes > 0 for target in targets] == [True, False]
    assert done[0].total_bytes == targets[0].result.size_bytes
    assert not done[0].ends_wait


def test_an_error_is_a_result_and_ends_the_waiting(world: Replicas) -> None:
    leader = world[1].partition
    waiting = Waiting(leader, Position(9), limits(wait_ms=100))
    assert waiting.done == 1
    assert waiting.result.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert waiting.result.high_watermark == -1
    other = ReadTarget(leader, Position(0), is_other_topic=True)
    BoundedRead([other], limits(), lambda read: None).run()
    assert other.result.error_code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_a_read_waits_until_records_are_committed(world: Replicas) -> None:
    leader = world[1].partition
    waiting = Waiting(leader, Position(1), limits(wait_ms=100))
    assert (waiting.done, waiting.deadlines.delay_ms) == (0, 100)
    leader.follower_fetched(FOLLOWER, -1, 2, 0)
    assert waiting.done == 1
    assert waiting.result.size_bytes > 0
    assert not waiting.deadlines.is_set
    assert not leader.data_listeners


def test_a_read_ends_at_its_deadline(world: Replicas) -> None:
    leader = world[1].partition
    waiting = Waiting(leader, Position(0), limits(bytes_min=1 << 19, wait_ms=100))
    leader.follower_fetched(FOLLOWER, -1, 2, 0)
    assert waiting.done == 0, "too little has come"
    waiting.deadlines.run()
    assert waiting.done == 1
    assert values(waiting.result) == [b"a", b"b"]
    assert not leader.data_listeners


def test_a_change_of_leader_ends_the_waiting(world: Replicas) -> None:
    for exists, code in ((True, ErrorCode.NOT_LEADER_OR_FOLLOWER),
                         (False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)):  # fmt: skip
        world.lead(1, epoch=world[1].partition.leader_epoch + 1)
        old = ReadLimits(1, 1 << 20, 100, Isolation.HIGH_WATERMARK)
        waiting = Waiting(world[1].partition, Position(1), old, exists=exists)
        world[2].is_up = True
        world.lead(2, epoch=world[1].partition.leader_epoch + 1)
        assert waiting.done == 1
        assert waiting.result.error_code == code


def test_a_cancelled_read_is_never_done(world: Replicas) -> None:
    leader = world[1].partition
    waiting = Waiting(leader, Position(1), limits(wait_ms=100))
    waiting.read.cancel()
    leader.follower_fetched(FOLLOWER, -1, 2, 0)
    assert (waiting.done, waiting.deadlines.is_set) == (0, False)
    assert not leader.data_listeners


class SlowDisk:
    """A partition whose reads come when the test says so."""

    def __init__(self) -> None:
        self.reads: list[Pending[ReadResult]] = []
        self.traffic = Traffic()

    def read(self, *_: object) -> Pending[ReadResult]:
        self.reads.append(Pending())
        return self.reads[-1]


def slow_read() -> tuple[SlowDisk, list[ReadTarget[Position]], BoundedRead[Position], list[int]]:
    disk, done = SlowDisk(), []
    targets: list[ReadTarget[Position]] = [
        ReadTarget(disk, Position(0)),  # type: ignore[arg-type]
        ReadTarget(disk, Position(5)),  # type: ignore[arg-type]
    ]
    bounded = BoundedRead(targets, limits(), lambda read: done.append(read.total_bytes))
    bounded.run()
    return disk, targets, bounded, done


def test_reads_of_a_slow_disk_come_one_after_another() -> None:
    disk, targets, bounded, done = slow_read()
    assert len(disk.reads) == 1
    found = ReadResult(9, 9, 0, None, [b"x" * 10], 10, 10)
    disk.reads[0].complete(found)
    assert (len(disk.reads), done) == (2, [])
    disk.reads[1].fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert targets[0].result is found
    assert targets[1].result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (done, bounded.ends_wait) == ([10], True)


@pytest.mark.parametrize("is_slow", [True, False])
def test_a_read_that_fails_on_a_slow_disk_is_counted_as_on_a_fast_one(is_slow: bool) -> None:
    """Damaged bytes that were read beside the loop were in no count of failed fetches."""
    disk, targets, bounded, done = slow_read()
    damaged: Pending[ReadResult] = Pending.failed(KafkaError(ErrorCode.CORRUPT_MESSAGE))
    if not is_slow:
        disk.read = lambda *_: damaged  # type: ignore[method-assign]
        bounded.run()
    else:
        for read in disk.reads:
            read.fail(KafkaError(ErrorCode.CORRUPT_MESSAGE))
    assert done == [0]
    assert [each.result.error_code for each in targets] == [ErrorCode.CORRUPT_MESSAGE] * 2
    assert disk.traffic.failed_fetch_requests == 2


def test_a_read_of_a_slow_disk_is_cancelled_with_the_request() -> None:
    disk, _, bounded, done = slow_read()
    bounded.cancel()
    assert disk.reads[0].cancelled
    assert (len(disk.reads), done) == (1, [])
