"""The runtime: replies wait for the high watermark, a lost log takes the shard with it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kwire.coordinator import batches, loading
from kwire.coordinator.partition import ShardState
from kwire.coordinator.runtime import CoordinatorRuntime
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Producer, Result
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import parse_header, read_batch
from kwire.protocol.records.control import end_transaction_marker
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog


class NotesShard:
    """Remembers offsets by partition index; parks replies; fires timers that write."""

    def __init__(self) -> None:
        self.notes: dict[int, int] = {}
        self.replayed: list[tuple[Any, ...]] = []
        self.markers: list[tuple[int, int, bool]] = []
        self.parked: list[Pending[Any]] = []
        self.replies: list[tuple[Pending[Any], Any]] = []
        self.deadlines: list[int] = []
        self.fired: list[int] = []
        self.was_loaded = False

    def replay(
        self, key: Any, value: Any, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        self.replayed.append((key.partition, offset, producer_id, producer_epoch))
        if value is None:
            self.notes.pop(key.partition, None)
        else:
            self.notes[key.partition] = value.offset

    def replay_marker(self, producer_id: int, producer_epoch: int, commit: bool) -> None:
        self.markers.append((producer_id, producer_epoch, commit))

    def loaded(self, moment: Moment) -> Result:
        self.was_loaded = True
        return Result()

    def timers(self) -> int | None:
        return min(self.deadlines, default=None)

    def expire(self, moment: Moment) -> Result | None:
        due = sorted(x for x in self.deadlines if x <= moment.now_ms)
        if not due:
            return None
        self.deadlines.remove(due[0])
        self.fired.append(moment.now_ms)
        return Result([note(99, moment.now_ms)])

    def take_replies(self) -> list[tuple[Pending[Any], Any]]:
        replies, self.replies = self.replies, []
        return replies

    def discard(self) -> list[Pending[Any]]:
        parked, self.parked = self.parked, []
        return parked


def note(index: int, offset: int | None, size: int = 0) -> CoordinatorRecord:
    key = m.OffsetCommitKey(group="g", topic="t", partition=index)
    if offset is None:
        return CoordinatorRecord(key, None)
    return CoordinatorRecord(key, m.OffsetCommitValue(offset=offset, metadata="x" * size), 4)


class World:
    def __init__(self, *, lagging: bool = True, **options: Any) -> None:
        self.loop = ManualLoop()
        self.log = MemoryLog(lagging=lagging, **options)
        self.runtime: CoordinatorRuntime[NotesShard] = CoordinatorRuntime(
            module="group-coordinator",
            new_shard=lambda partition: NotesShard(),
            partition_log=self.log,
            loop=self.loop,
            clock=ManualClock(self.loop),
        )
        self.log.listener = self.runtime.high_watermark_advanced

    def lead(self, epoch: int = 0) -> NotesShard:
        self.runtime.load(0, epoch)
        self.loop.run()
        return self.shard

    @property
    def shard(self) -> NotesShard:
        shard = self.runtime.shard(0)
        assert shard is not None
        return shard

    def put(self, index: int, offset: int | None, **result: Any) -> Pending[Any]:
        return self.runtime.write(
            0, lambda shard, moment: Result([note(index, offset)], f"put {index}", **result)
        )

    def look(self) -> Pending[Any]:
        return self.runtime.read(0, lambda shard, moment: dict(shard.notes))


def code(pending: Pending[Any]) -> ErrorCode:
    assert pending.done
    with pytest.raises(KafkaError) as caught:
        pending.result()
    return ErrorCode(caught.value.code)


# -------------------------------------------------------------------------- decision 9


def test_a_write_is_decided_at_once_and_answered_when_committed() -> None:
    world = World()
    shard = world.lead()
    first, second = world.put(1, 10), world.put(2, 20)
    assert shard.notes == {1: 10, 2: 20}
    assert not first.done
    world.log.commit(0, 1)
    assert first.result() == "put 1"
    assert not second.done
    world.log.commit(0, 2)
    assert second.result() == "put 2"


def test_an_operation_that_wrote_nothing_waits_for_what_was_pending() -> None:
    world = World()
    world.lead()
    world.put(1, 10)
    nothing = world.runtime.write(0, lambda shard, moment: Result((), "nothing"))
    read = world.look()
    assert not nothing.done
    assert not read.done
    world.log.commit_all()
    assert (nothing.result(), read.result()) == ("nothing", {1: 10})
    assert world.look().result() == {1: 10}


def test_a_refusal_by_the_operation_waits_too() -> None:
    """It rests on state that may never be committed."""
    world = World()
    world.lead()
    world.put(1, 10)

    def refuse(shard: NotesShard, moment: Moment) -> Result:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    refused = world.runtime.write(0, refuse)
    assert not refused.done
    world.log.commit_all()
    assert code(refused) == ErrorCode.UNKNOWN_MEMBER_ID


def test_replies_leave_in_the_order_of_their_operations() -> None:
    world = World()
    world.lead()
    order: list[str] = []
    for i in range(5):
        operation = world.put(i, i) if i % 2 else world.look()
        operation.add_done_callback(lambda _, i=i: order.append(str(i)))  # type: ignore[misc]
    world.log.commit_all()
    assert order == ["0", "1", "2", "3", "4"]


def test_a_high_watermark_that_moves_within_the_append() -> None:
    """A partition with one replica commits at once; the reply still comes after the replay."""
    world = World(lagging=False)
    shard = world.lead()
    seen: list[dict[int, int]] = []
    done = world.runtime.write(
        0, lambda s, moment: Result([note(1, 10)], "x", appended=lambda: seen.append(dict(s.notes)))
    )
    assert done.result() == "x"
    assert seen == [{1: 10}]
    assert shard.replayed == [(1, 0, -1, -1)]


def test_a_write_that_is_not_committed_in_time() -> None:
    world = World()
    world.lead()
    late = world.put(1, 10)
    world.loop.advance(3000)
    later = world.put(2, 20)
    world.loop.advance(2000)
    assert code(late) == ErrorCode.REQUEST_TIMED_OUT
    assert not later.done
    world.log.commit_all()
    assert later.result() == "put 2"
    assert world.look().result() == {1: 10, 2: 20}


def test_parked_replies_are_held_from_the_moment_they_are_answered() -> None:
    world = World()
    shard = world.lead()
    parked: Pending[Any] = Pending()

    def park(shard: NotesShard, moment: Moment) -> Result:
        shard.parked.append(parked)
        return Result((), parked)

    def answer(shard: NotesShard, moment: Moment) -> Result:
        shard.replies.append((shard.parked.pop(), "now"))
        return Result([note(1, 1)], "answered")

    assert world.runtime.write(0, park) is parked
    world.log.commit_all()
    assert not parked.done
    answered = world.runtime.write(0, answer)
    assert not parked.done
    world.log.commit_all()
    assert (parked.result(), answered.result()) == ("now", "answered")
    assert not shard.parked


# -------------------------------------------------------------------------- losing it


def test_no_shard_no_answer() -> None:
    world = World()
    assert code(world.put(1, 1)) == ErrorCode.NOT_COORDINATOR
    world.runtime.load(0, 0)
    assert world.runtime.state(0) is ShardState.LOADING
    assert code(world.put(1, 1)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert code(world.look()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.loop.run()
    assert world.look().done


def test_unloading_answers_everything_that_is_held_or_parked() -> None:
    world = World()
    shard = world.lead(epoch=3)
    held = world.put(1, 10)
    parked: Pending[Any] = Pending()
    shard.parked.append(parked)
    world.runtime.unload(0, 2)
    assert not held.done
    world.runtime.unload(0, 3)
    assert code(held) == code(parked) == ErrorCode.NOT_COORDINATOR
    assert code(world.look()) == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    "refused", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]
)
def test_an_append_that_shows_a_lost_leadership_discards_the_shard(refused: ErrorCode) -> None:
    world = World()
    world.lead()
    held = world.put(1, 10)
    world.log.refuse = refused
    failed = world.put(2, 20)
    assert code(held) == code(failed) == ErrorCode.NOT_COORDINATOR
    world.log.refuse = None
    assert world.runtime.state(0) is None
    assert world.lead(epoch=1).notes == {1: 10}


def test_a_failed_write_reloads_the_shard_from_its_log() -> None:
    """Decision 9: what the log did not keep is gone from the state as well."""
    world = World()
    world.lead()
    world.put(1, 10)
    world.log.commit_all()
    world.log.hold_writes = True
    lost = world.put(1, 11)
    assert world.shard.notes == {1: 11}
    world.log.truncate(0)
    world.log.held_writes[0].fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert code(lost) == ErrorCode.NOT_COORDINATOR
    assert code(world.look()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    world.loop.run()
    assert world.shard.notes == {1: 10}


def test_a_failure_of_an_earlier_shards_write_is_not_ours() -> None:
    world = World()
    world.lead()
    world.log.hold_writes = True
    world.put(1, 10)
    world.runtime.unload(0)
    shard = world.lead(epoch=1)
    world.log.held_writes[0].fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert world.runtime.shard(0) is shard


def test_an_append_that_is_refused_changes_nothing() -> None:
    """NOT_ENOUGH_REPLICAS comes before any offset is given: the shard stays."""
    world = World()
    shard = world.lead()
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    ran: list[str] = []
    plain = world.put(1, 10, appended=lambda: ran.append("appended"))
    undone = world.put(2, 20, refused=lambda error: f"undone {ErrorCode(error.code).name}")
    assert code(plain) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert undone.result() == "undone NOT_ENOUGH_REPLICAS"
    assert (shard.notes, ran) == ({}, [])
    assert world.runtime.shard(0) is shard


def test_a_bug_in_an_operation_costs_its_shard_and_not_the_broker() -> None:
    world = World()
    world.lead()
    world.put(1, 10)
    world.log.commit_all()

    def broken(shard: NotesShard, moment: Moment) -> Result:
        shard.notes[1] = 77
        raise AssertionError("a bug")

    assert code(world.runtime.write(0, broken)) == ErrorCode.UNKNOWN_SERVER_ERROR
    world.loop.run()
    assert world.look().result() == {1: 10}


def test_a_newer_epoch_of_the_same_leader_keeps_the_shard() -> None:
    world = World()
    shard = world.lead(epoch=1)
    held = world.put(1, 10)
    assert world.lead(epoch=2) is shard
    assert world.lead(epoch=1) is shard
    assert not held.done
    world.put(2, 20)
    assert parse_header(world.log.batches[0][-1]).partition_leader_epoch == 2


def test_the_waiting_side_may_go_away() -> None:
    world = World()
    world.lead()
    gone, stays = world.put(1, 10), world.put(2, 20)
    gone.cancel()
    world.log.commit_all()
    assert gone.cancelled
    assert stays.result() == "put 2"


# -------------------------------------------------------------------------- batches


def test_batches_look_as_kafkas_coordinators_write_them() -> None:
    world = World()
    world.lead(epoch=5)
    world.runtime.write(0, lambda shard, moment: Result([note(1, 1), note(2, None)], "x"))
    batch = world.log.batches[0][0]
    header = parse_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert (header.record_count, header.codec, header.partition_leader_epoch) == (2, 0, 5)
    assert [x.value is None for x in read_batch(batch)] == [False, True]
    assert {x.timestamp for x in read_batch(batch)} == {1_700_000_001_000}


def test_a_transactions_records_carry_its_producer() -> None:
    world = World()
    shard = world.lead()
    world.put(1, 1, producer=Producer(7, 3))
    header = parse_header(world.log.batches[0][0])
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (7, 3, True)
    assert shard.replayed == [(1, 0, 7, 3)]


def test_more_than_fits_a_batch() -> None:
    world = World(bytes_max=1000)
    shard = world.lead()
    many = [note(i, i, size=100) for i in range(20)]
    atomic = world.runtime.write(0, lambda s, moment: Result(many, "x"))
    assert code(atomic) == ErrorCode.MESSAGE_TOO_LARGE
    assert (shard.notes, world.log.batches) == ({}, {})
    world.runtime.write(0, lambda s, moment: Result(many, "x", atomic=False))
    assert shard.notes == {i: i for i in range(20)}
    assert [x[1] for x in shard.replayed] == list(range(20))
    assert len(world.log.batches[0]) > 2
    assert all(len(batch) <= 1000 for batch in world.log.batches[0])
    huge = [note(1, 1, size=2000)]
    alone = world.runtime.write(0, lambda s, moment: Result(huge, "x", atomic=False))
    world.log.commit_all()
    assert code(alone) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_record_that_cannot_be_written_is_its_senders_problem() -> None:
    world = World()
    shard = world.lead()
    key = m.OffsetCommitKey(group="g" * 40_000, topic="t", partition=0)
    record = CoordinatorRecord(key, m.OffsetCommitValue(offset=1), 4)
    refused = world.runtime.write(0, lambda s, moment: Result([record], "x"))
    assert code(refused) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.runtime.shard(0) is shard


# -------------------------------------------------------------------------- loading


def fill(world: World, batches_count: int, records: int = 1) -> None:
    world.lead()
    for i in range(batches_count):
        made = [note(i * records + k, i) for k in range(records)]
        world.runtime.write(0, lambda shard, moment, made=made: Result(made))  # type: ignore[misc]


def test_a_reloaded_shard_is_the_live_one() -> None:
    world = World()
    fill(world, 30, records=3)
    world.put(5, None)
    world.put(6, 1, producer=Producer(9, 0))
    marker = end_transaction_marker(9, 0, True, 4, 1)
    world.runtime.write_marker(0, marker, 9, 0, True)
    live = world.shard
    world.runtime.unload(0)
    loaded = world.lead(epoch=1)
    assert (loaded.notes, loaded.replayed, loaded.markers) == (
        live.notes,
        live.replayed,
        live.markers,
    )
    assert loaded.markers == [(9, 0, True)]
    assert loaded.was_loaded


def test_replies_after_loading_wait_for_what_was_uncommitted_in_the_log() -> None:
    world = World()
    fill(world, 3)
    world.runtime.unload(0)
    world.lead(epoch=1)
    read = world.look()
    assert not read.done
    world.log.commit_all()
    assert len(read.result()) == 3


def test_loading_yields_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SLICE_STEPS_MAX", 10)
    world = World()
    fill(world, 5, records=20)
    world.runtime.unload(0)
    world.runtime.load(0, 1)
    turns = 0
    seen: list[int] = []

    def tick() -> None:
        nonlocal turns
        turns += 1
        current = world.runtime._partitions[0]
        seen.append(len(current.shard.replayed))
        if world.runtime.state(0) is ShardState.LOADING:
            world.loop.call_soon(tick)

    world.loop.call_soon(tick)
    world.loop.run()
    assert turns > 10
    assert max(b - a for a, b in itertools.pairwise(seen)) <= 10
    assert len(world.shard.replayed) == 100


def test_reads_that_come_later_and_unloading_meanwhile() -> None:
    world = World()
    fill(world, 3)
    world.runtime.unload(0)
    world.log.read_later = []
    world.runtime.load(0, 1)
    world.loop.run()
    assert world.runtime.state(0) is ShardState.LOADING
    stale = world.log.read_later.pop()
    world.runtime.unload(0)
    world.runtime.load(0, 2)
    world.loop.run()
    stale[0].complete(stale[1])
    fresh = world.log.read_later.pop()
    world.log.read_later = None
    fresh[0].complete(fresh[1])
    world.loop.run()
    assert world.shard.notes == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize(
    "record", [(b"\x00\x63key", b"value"), (b"\x00\x01", b"\x00\x01"), (None, b"x")]
)
def test_records_that_nobody_knows_are_not_dropped(
    record: tuple[bytes | None, bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Decision 11: an unknown type refuses to load, in one line; without a key it is no record of
    a coordinator at all."""
    world = World()
    fill(world, 1)
    world.runtime.unload(0)
    world.log.append(0, batches.build([record], 1, None), 0)  # type: ignore[list-item]
    world.runtime.load(0, 1)
    world.loop.run()
    if record[0] is None:
        assert world.runtime.state(0) is ShardState.ACTIVE
        return
    assert world.runtime.state(0) is ShardState.FAILED
    assert code(world.look()) == ErrorCode.NOT_COORDINATOR
    assert len(caplog.records) == 1
    assert "\n" not in caplog.records[0].getMessage()


def test_a_failed_load_is_tried_again_with_the_next_assignment() -> None:
    world = World()
    fill(world, 2)
    world.runtime.unload(0)
    world.log.refuse_reads = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    world.runtime.load(0, 1)
    world.loop.run()
    assert world.runtime.state(0) is ShardState.FAILED
    world.log.refuse_reads = None
    assert world.lead(epoch=1).notes == {0: 0, 1: 1}


# -------------------------------------------------------------------------- timers


def test_timers_fire_at_their_deadlines_and_write() -> None:
    world = World()
    shard = world.lead()
    shard.deadlines = [5000, 3000, 3000]
    world.look()
    world.loop.advance(1999)
    assert shard.fired == []
    world.loop.advance(1)
    assert shard.fired == [3000, 3000]
    world.loop.advance(10_000)
    assert shard.fired == [3000, 3000, 5000]
    assert shard.notes == {99: 5000}
    assert world.log.end_offset(0) == 3


def test_a_deadline_that_comes_nearer() -> None:
    world = World()
    shard = world.lead()
    shard.deadlines = [9000]
    world.look()
    shard.deadlines = [4000]
    world.look()
    world.loop.advance(3000)
    assert shard.fired == [4000]


def test_no_timer_outlives_its_shard() -> None:
    world = World()
    shard = world.lead()
    shard.deadlines = [3000]
    world.look()
    world.runtime.close()
    world.loop.advance(10_000)
    assert shard.fired == []
    assert world.runtime.partitions() == []


def each_partition(world: World, call: Callable[[], list[Pending[Any]]]) -> list[Any]:
    world.runtime.load(2, 0)
    world.runtime.load(1, 0)
    world.loop.run()
    return [x.result() for x in call()]


def test_operations_on_all_partitions() -> None:
    world = World(lagging=False)
    written = each_partition(
        world, lambda: world.runtime.write_all(lambda shard, moment: Result([note(1, 1)], "x"))
    )
    assert written == ["x", "x"]
    assert sorted(world.log.batches) == [1, 2]
    read = world.runtime.read_all(lambda shard, moment: shard.notes)
    assert [x.result() for x in read] == [{1: 1}, {1: 1}]
