"""Usual batches of one turn share a write; who waits for it is told what became of it (ADR 55)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kwire.log.partition.config import LogConfig
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader, Record, build_batch
from tests.support.replica_world import NOW_MS, World


class Told:
    """Somebody who waits for a write, or for the commit of everything below `commit_end`."""

    def __init__(self, commit_end: int = -1) -> None:
        self.commit_end = commit_end
        self.heard: list[str] = []

    def written(self) -> None:
        self.heard.append("written")

    def ended(self, code: ErrorCode) -> None:
        self.heard.append(code.name)

    def uncommitted(self) -> None:
        self.heard.append("uncommitted")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def lead(world: World, *replicas: int) -> None:
    """The first batch of an epoch takes the general way: the epoch has to be kept."""
    world.create(list(replicas))
    assert appended(world, 1) is None
    world.append(acks=1)
    world.scheduler.turn()


def appended(
    world: World,
    acks: int,
    producer: tuple[int, int, int] = (-1, -1, -1),
    placed: bool = False,
) -> Told | None:
    """Append one usual record: who waits for it; None where the general way has to. Of a batch
    that was `placed` before it was refused only the leader's epoch, which nobody reads, is left."""
    producer_id, epoch, sequence = producer
    batch = build_batch(
        [Record(0, NOW_MS, None, b"value", [])],
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
    )  # fmt: skip
    before, partition = bytes(batch), world.partition()
    header = partition.append_usual(memoryview(batch), acks, NOW_MS)
    if header is None:
        if placed:
            batch[12:16] = before[12:16]
        assert bytes(batch) == before, "what takes the general way is as it was sent"
        return None
    told = Told(header.base_offset + 1 if acks == -1 else -1)
    partition.share_write(told)
    return told


def usual(world: World, acks: int) -> Told:
    told = appended(world, acks)
    assert told is not None
    return told


def test_all_of_a_turn_are_told_by_one_write(world: World) -> None:
    lead(world, 1)
    waiting = [usual(world, acks) for acks in (1, -1, 1)]
    assert [told.heard for told in waiting] == [[], [], []]
    assert len(world.scheduler.later) == 1
    world.scheduler.turn()
    assert [told.heard for told in waiting] == [["written"]] * 3
    assert world.partition().log.high_watermark == 4


def test_a_deleted_partition_has_no_commits_any_more_but_its_writes(world: World) -> None:
    lead(world, 1)
    written, committed = usual(world, 1), usual(world, -1)
    partition = world.partition()
    partition.end_waiting(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (written.heard, committed.heard) == ([], ["UNKNOWN_TOPIC_OR_PARTITION"])
    world.scheduler.turn()
    assert (written.heard, committed.heard) == (["written"], ["UNKNOWN_TOPIC_OR_PARTITION"])


def test_who_waits_for_an_older_write_hears_of_the_partition_s_end_too(world: World) -> None:
    """Its flush, which was asked for meanwhile, is under way; another append waits for the next.
    Who had acks=-1 in the older one waited on a partition that nobody leads, to its time's end."""
    lead(world, 1)
    written, committed = usual(world, 1), usual(world, -1)
    world.configs["t"] = LogConfig(flush_messages=1)
    list(world.replicas.configure("t"))
    world.scheduler.turn()
    assert (written.heard, committed.heard) == ([], []), "written, and not flushed"
    world.append(acks=1)
    world.partition().end_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (written.heard, committed.heard) == ([], ["NOT_LEADER_OR_FOLLOWER"])
    for _ in range(4):
        world.scheduler.turn()
    assert (written.heard, committed.heard) == (["written"], ["NOT_LEADER_OR_FOLLOWER"])


def test_a_failed_write_is_told_to_all(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    lead(world, 1)
    waiting = [usual(world, acks) for acks in (1, -1)]

    def write(buffers: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(world.partition().log.segments.active, "write", write)
    world.scheduler.turn()
    assert [told.heard for told in waiting] == [["KAFKA_STORAGE_ERROR"]] * 2
    assert appended(world, 1) is None


def test_another_replica_that_came_meanwhile_has_to_have_it_too(world: World) -> None:
    lead(world, 1)
    world.configs["t"] = LogConfig(min_insync_replicas=2)
    list(world.replicas.configure("t"))
    told = usual(world, -1)
    world.change(replicas=[1, 2], isr=[1], directories=[bytes(15) + b"\x65"] * 2)
    world.scheduler.turn()
    assert told.heard == ["uncommitted"]


def test_a_leader_that_lost_its_lead_has_written_what_it_took(world: World) -> None:
    """The end of an epoch writes what belongs to it first."""
    lead(world, 1)
    waiting = [usual(world, acks) for acks in (1, -1)]
    world.change(leader=1, isr=[1])
    assert [told.heard for told in waiting] == [["written"]] * 2


def test_acks_of_all_is_for_the_general_way_where_there_are_others(world: World) -> None:
    lead(world, 1, 2)
    assert appended(world, -1) is None
    assert appended(world, 1) is not None


def test_nobody_else_s_partition_takes_a_usual_batch(world: World) -> None:
    world.create([1, 2], leader=2)
    assert appended(world, 1) is None


def test_only_the_next_batch_of_a_known_producer_is_usual(world: World) -> None:
    lead(world, 1)
    assert appended(world, 1, (7, 0, 0)) is None, "nobody knows it"
    world.partition().append(
        build_batch(
            [Record(0, NOW_MS, None, b"value", [])],
            producer_id=7, producer_epoch=0, base_sequence=0,
        ),
        acks=1, wall_ms=NOW_MS,
    )  # fmt: skip
    for odd in ((7, 0, 0), (7, 0, 2), (7, 1, 0), (7, 1, 1), (8, 0, 1)):
        assert appended(world, 1, odd) is None, odd
    assert appended(world, 1, (7, 0, 1)) is not None
    assert appended(world, 1, (7, 0, 2)) is not None


def test_a_failed_write_takes_back_what_is_known_of_producers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create([1])
    log = world.partition().log
    batch = build_batch(
        [Record(0, NOW_MS, None, b"value", [])],
        producer_id=7, producer_epoch=0, base_sequence=0,
    )  # fmt: skip
    world.partition().append(batch, acks=1, wall_ms=NOW_MS)
    world.scheduler.turn()
    assert appended(world, 1, (7, 0, 1)) is not None
    assert log.producers.entries[7].last_sequence == 1

    def write(buffers: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(log.segments.active, "write", write)
    world.scheduler.turn()
    assert log.producers.entries[7].last_sequence == 0


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "broken"), KafkaError(ErrorCode.CORRUPT_MESSAGE)]
)
def test_a_batch_that_cannot_be_placed_is_for_the_general_way_as_it_was_sent(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    lead(world, 1)
    segment = world.partition().log.segments.active

    def assign(header: BatchHeader, base_offset: int, max_timestamp: int) -> int:
        raise error

    monkeypatch.setattr(segment, "assign", assign)
    assert appended(world, 1, placed=True) is None
    assert world.partition().log.next_offset == 1


@pytest.mark.parametrize(
    "config",
    [
        LogConfig(flush_messages=1),
        LogConfig(max_message_bytes=70),
        LogConfig(compression_type="lz4"),
        LogConfig(message_timestamp_type="LogAppendTime"),
        LogConfig(cleanup_policy=("compact",)),
    ],
)
def test_a_topic_that_asks_for_more_takes_the_general_way(world: World, config: LogConfig) -> None:
    world.configs["t"] = config
    world.create([1])
    assert appended(world, 1) is None
