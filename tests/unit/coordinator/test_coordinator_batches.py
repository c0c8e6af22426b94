"""Operations of one turn of the loop share a batch; what becomes of it becomes of all of them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.open_batch import BATCH_OVERHEAD_BYTES, OpenBatch, size_of
from kwire.coordinator.partition import ShardState
from kwire.coordinator.runtime import END_OF_TURN, CoordinatorRuntime
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Producer, Result
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import build_batch, parse_header, read_batch
from kwire.protocol.records.build import framed
from kwire.protocol.records.control import end_transaction_marker
from kwire.protocol.records.record import Record
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog, PassiveShard


class OffsetShard(PassiveShard):
    """Remembers the offset and where its record stands, by partition index."""

    def __init__(self) -> None:
        self.notes: dict[int, tuple[int, int]] = {}
        self.markers: list[int] = []

    def replay(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        self.notes[key.partition] = (value.offset, offset)

    def replay_marker(self, producer_id: int, *_: Any) -> None:
        self.markers.append(producer_id)


class World:
    def __init__(
        self, *, lagging: bool = False, linger_ms: int = END_OF_TURN, **options: Any
    ) -> None:
        self.loop = ManualLoop()
        self.log = MemoryLog(lagging=lagging, **options)
        self.runtime: CoordinatorRuntime[OffsetShard] = CoordinatorRuntime(
            module="group-coordinator",
            new_shard=lambda partition: OffsetShard(),
            partition_log=self.log,
            loop=self.loop,
            clock=ManualClock(self.loop),
            append_linger_ms=linger_ms,
        )
        self.log.listener = self.runtime.high_watermark_advanced
        self.runtime.load(0, 3)
        self.loop.run()

    @property
    def shard(self) -> OffsetShard:
        shard = self.runtime.shard(0)
        assert shard is not None
        return shard

    def put(self, index: int, offset: int, size: int = 0, **result: Any) -> Pending[Any]:
        key = m.OffsetCommitKey(group="g", topic="t", partition=index)
        value = m.OffsetCommitValue(offset=offset, metadata="x" * size)
        record = CoordinatorRecord(key, value, 4)
        return self.runtime.write(
            0, lambda shard, moment: Result([record], f"put {index}", **result)
        )

    def sizes(self) -> list[int]:
        """Records of each batch in the log."""
        return [parse_header(x).record_count for x in self.log.batches.get(0, [])]


def code(pending: Pending[Any]) -> ErrorCode:
    error = pending.error()
    assert isinstance(error, KafkaError), pending
    return ErrorCode(error.code)


def test_one_turn_is_one_batch() -> None:
    world = World()
    replies = [world.put(i, 10 * i) for i in range(3)]
    assert world.shard.notes == {0: (0, 0), 1: (10, 1), 2: (20, 2)}, "decided at once"
    assert world.sizes() == []
    assert not any(x.done for x in replies)
    world.loop.run()
    assert world.sizes() == [3]
    assert [x.result() for x in replies] == ["put 0", "put 1", "put 2"]
    world.put(3, 30)
    world.loop.run()
    assert world.sizes() == [3, 1]
    assert world.shard.notes[3] == (30, 3)


def test_replies_of_a_batch_wait_for_all_of_it() -> None:
    world = World(lagging=True)
    first, second = world.put(0, 1), world.put(1, 2)
    read = world.runtime.read(0, lambda shard, moment: dict(shard.notes))
    world.loop.run()
    world.log.commit(0, 1)
    assert first.done
    assert not second.done
    assert not read.done
    world.log.commit(0, 2)
    assert second.done
    assert read.result() == {0: (1, 0), 1: (2, 1)}


def test_a_read_in_an_idle_turn_is_answered_at_once() -> None:
    world = World()
    assert world.runtime.read(0, lambda shard, moment: "seen").result() == "seen"


def test_records_keep_the_time_of_their_operation() -> None:
    world = World(linger_ms=20)
    world.put(0, 1)
    world.loop.advance(10)
    world.put(1, 2)
    assert world.sizes() == []
    world.loop.advance(10)
    (batch,) = world.log.batches[0]
    times = [x.timestamp for x in read_batch(batch)]
    assert times[1] - times[0] == 10
    assert parse_header(batch).max_timestamp == times[1]
    assert parse_header(batch).base_sequence == 0


def test_without_linger_every_operation_is_appended_by_itself() -> None:
    world = World(linger_ms=0)
    assert world.put(0, 1).done
    assert world.put(1, 2).done
    assert world.sizes() == [1, 1]


def test_a_full_batch_is_appended_and_another_begun() -> None:
    world = World(bytes_max=400)
    replies = [world.put(i, i, size=100) for i in range(3)]
    world.loop.run()
    assert sum(world.sizes()) == 3
    assert len(world.sizes()) > 1
    assert all(len(x) <= 400 for x in world.log.batches[0])
    assert all(x.done for x in replies)
    assert world.shard.notes == {i: (i, i) for i in range(3)}


def test_what_no_batch_holds_is_refused_and_the_others_are_not() -> None:
    world = World(bytes_max=400)
    before = world.put(0, 1)
    large = world.put(1, 2, size=500)
    after = world.put(2, 3)
    world.loop.run()
    assert code(large) == ErrorCode.MESSAGE_TOO_LARGE
    assert before.result() == "put 0"
    assert after.result() == "put 2"
    assert world.shard.notes == {0: (1, 0), 2: (3, 1)}


def test_an_operation_of_a_transaction_has_a_batch_of_its_own() -> None:
    world = World()
    world.put(0, 1)
    world.put(1, 2, producer=Producer(9, 0))
    world.put(2, 3)
    world.loop.run()
    assert world.sizes() == [1, 1, 1]
    assert [parse_header(x).producer_id for x in world.log.batches[0]] == [-1, 9, -1]
    assert world.shard.notes == {0: (1, 0), 1: (2, 1), 2: (3, 2)}


def test_a_marker_comes_behind_what_was_decided_before_it() -> None:
    world = World()
    reply = world.put(0, 1)
    marker = end_transaction_marker(9, 0, True, 1, 1)
    ended = world.runtime.write_marker(0, marker, 9, 0, True)
    assert [parse_header(x).is_control for x in world.log.batches[0]] == [False, True]
    assert reply.done
    assert ended.done
    assert world.shard.markers == [9]


@pytest.mark.parametrize("refusal", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE])
def test_what_the_log_says_before_is_told_to_the_operation_alone(refusal: ErrorCode) -> None:
    world = World()
    world.put(0, 1)
    world.loop.run()
    shard = world.shard
    world.log.refuse = refusal
    assert code(world.put(1, 2)) == refusal
    assert world.put(2, 3, refused=lambda error: f"undone: {error.code}").result()
    assert world.shard is shard, "nothing was replayed, so nothing is reverted"
    assert shard.notes == {0: (1, 0)}


def test_a_batch_that_is_refused_takes_everything_in_it_back() -> None:
    world = World()
    world.put(0, 1)
    world.loop.run()
    replies = [world.put(0, 2), world.put(1, 3)]
    looked = world.runtime.read(0, lambda shard, moment: "seen")
    world.log.refuse_appends = ErrorCode.NOT_ENOUGH_REPLICAS
    world.loop.run()
    assert [code(x) for x in [*replies, looked]] == [ErrorCode.NOT_COORDINATOR] * 3
    assert world.shard.notes == {0: (1, 0)}, "loaded anew from what the log says"
    world.log.refuse_appends = None
    again = world.put(1, 4)
    world.loop.run()
    assert again.done
    assert world.shard.notes == {0: (1, 0), 1: (4, 1)}


def test_a_batch_that_shows_a_lost_leadership_discards_the_shard() -> None:
    world = World()
    reply = world.put(0, 1)
    world.log.refuse_appends = ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.loop.run()
    assert code(reply) == ErrorCode.NOT_COORDINATOR
    assert world.runtime.state(0) is None


def test_a_write_that_fails_later_takes_the_batch_back() -> None:
    world = World(lagging=True)
    world.log.hold_writes = True
    replies = [world.put(0, 1), world.put(1, 2)]
    world.loop.run()
    world.log.batches[0].clear()
    world.log.ends[0] = 0
    world.log.held_writes[0].fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert [code(x) for x in replies] == [ErrorCode.NOT_COORDINATOR] * 2
    world.loop.run()
    assert world.shard.notes == {}


def test_somebody_else_who_writes_to_the_log_costs_a_reload() -> None:
    """Kafka's admin client may produce to an internal topic: offsets are not what was thought."""
    world = World()
    reply = world.put(0, 1)
    key = m.OffsetCommitKey(group="g", topic="t", partition=7)
    foreign = [
        Record(0, 1, b"\0\1" + key.encode(0), b"\0\4" + m.OffsetCommitValue(offset=9).encode(4), [])
    ]
    world.log.append(0, build_batch(foreign), 3)
    world.loop.run()
    assert code(reply) == ErrorCode.NOT_COORDINATOR
    assert world.shard.notes == {7: (9, 0), 0: (1, 1)}, "as a fresh shard sees the log"


def test_unloading_takes_an_open_batch_along() -> None:
    world = World()
    reply = world.put(0, 1)
    world.runtime.unload(0)
    assert code(reply) == ErrorCode.NOT_COORDINATOR
    world.loop.run()
    assert world.sizes() == []


def test_a_shard_that_comes_back_in_the_same_turn_begins_a_batch_of_its_own() -> None:
    world = World()
    lost = world.put(0, 1)
    world.runtime.unload(0)
    world.runtime.load(0, 4)
    world.loop.run()
    assert world.runtime.state(0) is ShardState.ACTIVE
    reply = world.put(1, 2)
    world.loop.run()
    assert code(lost) == ErrorCode.NOT_COORDINATOR
    assert reply.done
    assert world.shard.notes == {1: (2, 0)}


def test_a_bug_in_a_replay_costs_the_batch() -> None:
    world = World()
    reply = world.put(0, 1)

    def broken(shard: OffsetShard, moment: Moment) -> Result:
        raise RuntimeError("a bug")

    failed = world.runtime.write(0, broken)
    assert code(failed) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert code(reply) == ErrorCode.NOT_COORDINATOR
    world.loop.run()
    assert world.sizes() == []
    assert world.shard.notes == {}


def test_sizes_are_bounds_of_what_is_built() -> None:
    encoded: list[tuple[bytes, bytes | None]] = [(b"k" * n, b"v" * n * n) for n in (0, 1, 63, 200)]
    encoded.append((b"gone", None))
    batch = OpenBatch(0, 1 << 20)
    batch.add(encoded, size_of(encoded), 5)
    built = batch.build(0)
    assert len(built) <= BATCH_OVERHEAD_BYTES + size_of(encoded)
    assert [(x.key, x.value) for x in read_batch(built)] == encoded
    same = build_batch([Record(i, 5, k, v, []) for i, (k, v) in enumerate(encoded)])
    assert batch.build(-1) == same


class Waiter:
    """A reply that the runtime holds itself."""

    def __init__(self) -> None:
        self.offset = self.deadline_ms = 0
        self.heard: list[object] = []

    def release(self) -> None:
        self.heard.append("released")

    def fail(self, error: Exception) -> None:
        assert isinstance(error, KafkaError)
        self.heard.append(ErrorCode(error.code))


class Note:
    """Records that are decided but for their offset."""

    size_bytes = 200

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def put(self, shard: OffsetShard, numbers: Any, batch: OpenBatch, wall_ms: int) -> None:
        shard.notes[7] = (numbers[0], batch.next_offset)
        if self.fails:
            raise RuntimeError("a bug")
        batch.rows.append((wall_ms, framed(b"k", b"v")))
        batch.next_offset += 1
        batch.size_bytes += self.size_bytes


def taken(world: World, note: Note | None = None, number: int = 1) -> tuple[bool, Waiter]:
    current, waiter = world.runtime.led(0), Waiter()
    assert current is not None
    return world.runtime.take_in(current, note or Note(), [number], waiter), waiter


def test_decided_records_share_the_batch_and_their_replies_keep_their_turn() -> None:
    world = World(lagging=True)
    first = world.put(0, 1)
    taken_in, waiter = taken(world)
    last = world.put(1, 2)
    assert taken_in
    world.loop.run()
    assert world.sizes() == [3]
    world.log.commit(0, 2)
    assert (first.done, waiter.heard, last.done) == (True, ["released"], False)
    world.log.commit_all()
    assert last.done


def test_decided_records_that_are_not_committed_in_time_time_out() -> None:
    world = World(lagging=True)
    _, waiter = taken(world)
    world.loop.advance(4_999)
    assert waiter.heard == []
    world.loop.advance(1)
    assert waiter.heard == [ErrorCode.REQUEST_TIMED_OUT]


def test_decided_records_whose_batch_is_refused_are_taken_back() -> None:
    world = World()
    _, waiter = taken(world)
    world.log.refuse_appends = ErrorCode.KAFKA_STORAGE_ERROR
    world.loop.run()
    world.log.refuse_appends = None
    assert waiter.heard == [ErrorCode.NOT_COORDINATOR]
    world.loop.advance(1_000)
    assert world.shard.notes == {}


def test_decided_records_of_a_partition_that_goes_are_answered() -> None:
    world = World(lagging=True)
    _, waiter = taken(world)
    world.runtime.unload(0)
    assert waiter.heard == [ErrorCode.NOT_COORDINATOR]
    world.loop.run()
    assert world.log.batches == {}


@pytest.mark.parametrize(
    ("linger_ms", "bytes_max", "refuse"),
    [
        (0, 1 << 20, None),
        (END_OF_TURN, 100, None),
        (END_OF_TURN, 1 << 20, ErrorCode.NOT_ENOUGH_REPLICAS),
    ],
)
def test_where_a_log_has_more_to_say_nothing_happens_to_decided_records(
    linger_ms: int, bytes_max: int, refuse: ErrorCode | None
) -> None:
    world = World(linger_ms=linger_ms, bytes_max=bytes_max)
    world.log.refuse = refuse
    taken_in, waiter = taken(world)
    world.loop.run()
    assert (taken_in, waiter.heard, world.shard.notes, world.sizes()) == (False, [], {}, [])


def test_a_full_batch_takes_no_decided_records() -> None:
    world = World(bytes_max=BATCH_OVERHEAD_BYTES + 250)
    assert taken(world)[0]
    assert not taken(world)[0]
    world.loop.run()
    assert world.sizes() == [1]


def test_a_bug_in_decided_records_costs_the_batch() -> None:
    world = World()
    reply = world.put(0, 1)
    taken_in, waiter = taken(world, Note(fails=True))
    assert taken_in
    assert waiter.heard == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert code(reply) == ErrorCode.NOT_COORDINATOR
    world.loop.run()
    assert world.sizes() == []
    assert world.shard.notes == {}
