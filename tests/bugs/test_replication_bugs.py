"""Faults that Kafka's replication once had, over real logs without sockets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.log.segment.segment import Segment
from kwire.log.types import FetchSlices, Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import read_records
from kwire.replica.partition import Partition
from kwire.replica.selector import rack_aware
from kwire.replica.state import (
    AdvanceHighWatermark,
    Assigned,
    FollowerFetched,
    LeaderAnswered,
    LogEndMoved,
    ReplicaState,
    TruncateTo,
)
from tests.support.replicas import Replicas


def test_kip_320_a_request_of_another_leader_epoch_is_fenced(tmp_path: Path) -> None:
    """A zombie's follower or a client with old metadata would read what a newer leader replaced."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=5)
    partition = world[1].partition
    partition.leader_log(5)
    with pytest.raises(KafkaError) as older:
        partition.leader_log(4)
    assert older.value.code == ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError) as newer:
        partition.leader_log(6)
    assert newer.value.code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_kafka_7415_a_new_leader_notes_its_epoch_before_it_writes(tmp_path: Path) -> None:
    """Without it the leader told followers that their newer epoch was unknown, and they kept what
    it did not have."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.exchange()
    world.lead(2, epoch=1)
    assert world.epochs(2) == [(0, 0), (1, 1)]
    assert world[2].partition.log.end_offset_for_epoch(0) == (0, 1)
    assert world[2].partition.log.end_offset_for_epoch(1) == (1, 1)


def test_kafka_14704_a_follower_truncates_before_it_moves_its_high_watermark() -> None:
    """The answer that tells of the divergence also has the leader's high watermark: taken first,
    it covered records that were about to be cut, and consumers could read them."""
    state = ReplicaState(1, leader_id=2, leader_epoch=3, replicas=(1, 2), isr=(1, 2))
    state.high_watermark, state.log_end_offset = 4, 10
    effects = state.step(LeaderAnswered(9, 10, diverging_end_offset=6), 0)
    assert effects[0] == TruncateTo(6)
    assert all(e.offset <= 6 for e in effects if isinstance(e, AdvanceHighWatermark))
    assert state.high_watermark <= 6


def test_kafka_10778_nothing_is_appended_after_a_write_has_failed(tmp_path: Path) -> None:
    """A partition that went on after a failed write could acknowledge what lies behind a hole."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    log = world[1].partition.log
    log.fail(OSError(28, "no space left on device"))
    with pytest.raises(KafkaError) as refused:
        world.append(1, b"b")
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.log_end_offset == 1


@pytest.mark.parametrize("bytes_max", [1 << 20, 1])
def test_kafka_9835_a_read_at_the_end_does_not_see_what_is_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bytes_max: int
) -> None:
    """A read up to the end of the log, where the high watermark is, asked for the file's size a
    second time: a record written in between, above the high watermark, went out to a consumer.
    Source: apache/kafka pull request 8451."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.append(1, b"b")
    world.exchange()
    log = world[1].partition.log
    assert log.high_watermark == log.log_end_offset == 2
    read = Segment.pread

    def read_late(segment: Segment, size_bytes: int, position: int) -> bytes:
        if log.log_end_offset == 2:
            world.append(1, b"c")
        return read(segment, size_bytes, position)

    monkeypatch.setattr(Segment, "pread", read_late)
    seen = log.read(1, bytes_max, isolation=Isolation.HIGH_WATERMARK)
    assert log.log_end_offset == 3, "written while the read was under way"
    assert isinstance(seen, FetchSlices)
    data = b"".join(bytes(piece) for piece in seen.buffers)
    assert [record.value for record in read_records(data)] == [b"b"]


def test_a_truncation_never_leaves_the_high_watermark_behind_the_log(tmp_path: Path) -> None:
    """A read between the truncation and the move of the high watermark would see more than there
    is."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.append(1, b"a")
    world.append(1, b"b")
    world.exchange()
    partition = world[2].partition
    partition.truncate_to(1)
    assert partition.log.log_end_offset == 1
    assert partition.log.high_watermark <= 1
    assert partition.state.high_watermark <= 1


def test_kafka_9491_a_log_that_begins_anew_has_its_high_watermark_there(tmp_path: Path) -> None:
    """A follower behind the leader's first offset kept an old one, below its own log's start."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    partition = world[2].partition
    partition.start_anew_at(100)
    assert partition.log.log_start_offset == 100
    assert partition.log.high_watermark == partition.state.high_watermark == 100


def test_kafka_6975_a_log_that_begins_inside_of_a_batch_is_followed(tmp_path: Path) -> None:
    """DeleteRecords moved the log's start into a batch. Whoever followed from there on, a new
    replica or one that was down, got the batch that holds it and refused it for ever: it began
    before the end of the follower's own log."""
    world = Replicas(tmp_path)
    world[2].is_up = False
    world.lead(1, epoch=0, isr=(1,))
    world.append(1, *(b"%d" % number for number in range(10)))
    world.append(1, b"last")
    leader = world[1].partition
    leader.state.high_watermark = leader.log.log_end_offset
    leader.log.update_high_watermark(leader.log.log_end_offset)
    leader.log.delete_records_before(4)
    world[2].is_up = True
    world.lead(1, epoch=0, isr=(1,))
    world.exchange(2000)
    log = world[2].partition.log
    assert (log.log_start_offset, log.log_end_offset) == (4, 11)
    assert log.high_watermark == 11
    assert world.values(2)[-1] == b"last"


@pytest.mark.parametrize("isr", [(1, 2), (1,)])
def test_kafka_14372_nobody_is_sent_to_a_replica_that_lags(isr: tuple[int, ...]) -> None:
    """It was chosen as long as it had the offset; its reader then lagged with it, and came back to
    it each time it asked the leader again."""
    partition = Partition("t", bytes(16), 0, ReplicaState(1))
    state = partition.state
    state.step(Assigned(1, 0, 0, (1, 2), isr, 0), 0)
    state.step(LogEndMoved(20), 0)
    state.step(FollowerFetched(2, 1, 10, 0), 0)
    found = rack_aware(partition, 5, "b", {1: "a", 2: "b"})
    assert found == (2 if 2 in isr else None)


def test_kafka_15510_an_empty_answer_does_not_take_the_last_epoch_away(tmp_path: Path) -> None:
    """With none in its next fetch the follower was not told where it and the leader diverge."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=3)
    world.append(1, b"a")
    world.exchange()
    world[2].fetchers.forget(world[2].partition)
    world.lead(1, epoch=3)
    world.exchange()
    world.lead(1, epoch=4)
    world.exchange()
    asked = [
        partition.last_fetched_epoch
        for request in world[2].sent
        for topic in request.topics
        for partition in topic.partitions
        if partition.fetch_offset == 1
    ]
    assert asked
    assert set(asked) == {3}


class Reader:
    """A fetch that waits at a partition for bytes that consumers can see."""

    def __init__(self) -> None:
        self.arrived_bytes = 0

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        self.arrived_bytes += size_bytes


def test_kafka_14334_who_reads_from_a_follower_hears_of_what_it_fetches(tmp_path: Path) -> None:
    """It waited for its whole time-out (KIP-392): only appends of a leader ended the waiting."""
    world = Replicas(tmp_path)
    world.lead(1, epoch=0)
    world.exchange()
    reader = Reader()
    world[2].partition.data_listeners[reader] = 0
    world.append(1, b"a")
    world.exchange()
    assert world[2].partition.log.high_watermark == 1
    assert reader.arrived_bytes == world[2].partition.log.segments.active.size_bytes
