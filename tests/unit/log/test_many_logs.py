"""Many partitions on one node: what a new log costs."""

from __future__ import annotations

import errno
from random import Random
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.protocol.errors import KafkaError
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualClock, client_batch, read_all
from tests.support.managed_logs import TOPIC_ID, Node


def test_a_new_log_is_as_one_that_was_opened_in_an_empty_directory() -> None:
    node = Node()
    new = node.manager.create("topic", 0, TOPIC_ID)
    node.disk.make_directory("/data/topic-1")
    opened = open_log(
        "/data/topic-1", "topic", 1, TOPIC_ID, LogConfig(), ManualClock(), files=node.disk
    )
    node.disk.unlink("/data/topic-0/partition.metadata")
    assert node.disk.listing("/data/topic-0") == node.disk.listing("/data/topic-1")
    for name in ("log_start_offset", "log_end_offset", "high_watermark", "next_offset"):
        assert getattr(new, name) == getattr(opened, name) == 0
    assert new.recovery_point == opened.recovery_point == 0
    assert new.segments.bases == opened.segments.bases == [0]
    assert new.local.snapshots.offsets == opened.local.snapshots.offsets
    assert new.leader_epochs.entries == opened.leader_epochs.entries == []


def test_a_new_log_looks_at_nothing_in_its_directory() -> None:
    node = Node()
    asked: list[str] = []
    for name in ("listing", "contents", "exists", "is_directory", "read_file"):
        inner = getattr(node.disk, name)

        def watched(path: str, name: str = name, inner: Any = inner) -> Any:
            asked.append(f"{name} {path}")
            return inner(path)

        setattr(node.disk, name, watched)
    node.manager.create("topic", 0, TOPIC_ID)
    assert [call for call in asked if "listing" in call or "contents" in call] == []
    assert not any("read_file" in call for call in asked)


def test_an_index_without_entries_is_not_read_after_a_clean_stop() -> None:
    """That of every small segment: to read it costs as much as to read the segment."""
    disk = SimulatedDisk(SeededRandom(1))
    disk.make_directory("/data")

    def opened() -> PartitionLog:
        return open_log(
            "/data/t-0", "t", 0, TOPIC_ID, LogConfig(), ManualClock(), files=disk, clean=True
        )

    log = opened()
    log.append_as_leader(client_batch(3), leader_epoch=0)
    log.close(sync=True)
    assert disk.size_of("/data/t-0/00000000000000000000.index") == 0
    read: list[str] = []
    inner = disk.read_file

    def watched(path: str) -> bytes:
        read.append(path)
        return inner(path)

    disk.read_file = watched  # type: ignore[method-assign]
    log = opened()
    assert log.log_end_offset == 3
    assert [path for path in read if path.endswith("index")] == []
    assert len(log.segments.active.index) == 0
    log.append_as_leader(client_batch(1), leader_epoch=0)
    assert log.log_end_offset == 4


def test_a_directory_that_is_there_already_is_looked_at() -> None:
    """What an attempt has left that ran out of space, or somebody has put there."""
    node = Node()
    log = node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 5)
    log.close()
    node.manager._logs.clear()
    node.manager._home.clear()
    again = node.manager.create("topic", 0, TOPIC_ID)
    assert again.log_end_offset == 5


def test_nothing_of_a_new_log_is_open_and_no_object_of_it_has_a_dict() -> None:
    node = Node()
    handles: list[int] = []
    inner_open, inner_close = node.disk.open, node.disk.close

    def opened(path: str, **options: Any) -> int:
        handles.append(handle := inner_open(path, **options))
        return handle

    def closed(handle: int) -> None:
        handles.remove(handle)
        inner_close(handle)

    node.disk.open, node.disk.close = opened, closed  # type: ignore[method-assign]
    log = node.manager.create("topic", 0, TOPIC_ID)
    node.scheduler.turn()
    assert handles == []
    # More than 30 attributes are no longer shared among instances: 1.6 KB for each.
    assert not hasattr(log, "__dict__")


def test_a_new_log_that_has_no_room_for_its_first_segment_keeps_no_file_open() -> None:
    """A preallocated log that could not be made on a full disk cost a descriptor."""
    node = Node()
    node.configs["topic"] = LogConfig(preallocate=True)
    handles: list[int] = []
    inner_open, inner_close = node.disk.open, node.disk.close

    def opened(path: str, **options: Any) -> int:
        handles.append(handle := inner_open(path, **options))
        return handle

    def closed(handle: int) -> None:
        handles.remove(handle)
        inner_close(handle)

    def full(handle: int, position: int, size_bytes: int) -> bool:
        raise OSError(errno.ENOSPC, "no space left")

    node.disk.open, node.disk.close = opened, closed  # type: ignore[method-assign]
    node.disk.allocate = full  # type: ignore[method-assign]
    with pytest.raises(KafkaError, match="no space left"):
        node.manager.create("topic", 0, TOPIC_ID)
    node.scheduler.turn()
    assert handles == []
    node.manager.create("topic", 0, TOPIC_ID)  # in what is there, which reserves nothing
    node.append("topic", 0, 3)


@pytest.mark.parametrize("failing", range(5))
def test_a_log_that_could_not_be_made_is_made_in_what_is_there(failing: int) -> None:
    node = Node()
    count = 0
    inner = node.disk.open

    def full(path: str, **options: Any) -> int:
        nonlocal count
        if "/topic-0/" in path:
            count += 1
            if count == failing:
                raise OSError(errno.EMFILE, "no file left", path)
        return inner(path, **options)

    node.disk.open = full  # type: ignore[method-assign]
    try:
        node.manager.create("topic", 0, TOPIC_ID)
    except KafkaError:
        node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    manager = node.restart()
    log = manager.get("topic", 0)
    assert log is not None
    assert len(read_all(log)) == 3


def test_a_directory_knows_how_many_logs_it_has() -> None:
    """Who asks for the emptiest one for each of many logs does not have them counted anew."""
    node = Node(["/a", "/b"])
    a, b = node.manager.directories
    for index in range(6):
        node.manager.create("topic", index, TOPIC_ID)
        node.manager.create("topic", index, TOPIC_ID)
    assert (a.log_count, b.log_count) == (3, 3)
    for log in node.manager.logs_in(a):
        node.manager.delete("topic", log.partition)
    assert (a.log_count, b.log_count) == (0, 3)
    node.manager.create("topic", 9, TOPIC_ID)
    assert (a.log_count, b.log_count) == (1, 3)
    node.restart()
    assert [home.log_count for home in node.manager.directories] == [1, 3]
    log = node.manager.logs_in(node.manager.directories[1])[0]
    node.manager.moves.begin((log.topic, log.partition), node.manager.directories[0])
    for _ in range(10):
        node.scheduler.turn()
    for home in node.manager.directories:
        assert home.log_count == len(node.manager.logs_in(home))
    assert [home.log_count for home in node.manager.directories] == [2, 2]


def test_a_made_directory_says_whether_it_is_new() -> None:
    disk = SimulatedDisk(SeededRandom(1))
    assert disk.make_directory("/data/topic-0") is True
    assert disk.make_directory("/data/topic-0") is False


def test_after_a_kill_a_short_segment_is_read_twice_and_its_empty_index_not_opened() -> None:
    """The second reading confirms the first; producers are those of the batches that it found."""
    disk = SimulatedDisk(SeededRandom(1))
    disk.make_directory("/data")

    def opened() -> PartitionLog:
        return open_log("/data/t-0", "t", 0, TOPIC_ID, LogConfig(), ManualClock(), files=disk)

    log = opened()
    log.append_as_leader(
        client_batch(3, producer_id=7, producer_epoch=0, base_sequence=0), leader_epoch=0
    )
    log.abandon()
    stem = "/data/t-0/00000000000000000000"
    assert disk.size_of(stem + ".index") == 0
    calls: list[str] = []
    open_, pread = disk.open, disk.pread

    def watched_open(path: str, *, create: bool = False, writable: bool = True) -> int:
        calls.append(path)
        return open_(path, create=create, writable=writable)

    def watched_pread(handle: int, size_bytes: int, position: int) -> bytes:
        calls.append("pread")
        return pread(handle, size_bytes, position)

    disk.open, disk.pread = watched_open, watched_pread  # type: ignore[method-assign]
    log = opened()
    assert log.log_end_offset == 3
    assert log.producers.entries[7].batches[-1].last_sequence == 2
    assert calls.count("pread") == 2
    assert stem + ".index" not in calls
    log.append_as_leader(
        client_batch(1, producer_id=7, producer_epoch=0, base_sequence=3), leader_epoch=0
    )
    log.close(sync=True)
    log = opened()
    assert log.producers.entries[7].batches[-1].last_sequence == 3


def test_an_index_file_that_is_not_empty_is_cut_after_a_kill() -> None:
    """What a kill left in it does not outlive a rebuild that finds no entries."""
    disk = SimulatedDisk(SeededRandom(1))
    disk.make_directory("/data")

    def opened() -> PartitionLog:
        return open_log("/data/t-0", "t", 0, TOPIC_ID, LogConfig(), ManualClock(), files=disk)

    log = opened()
    log.append_as_leader(client_batch(3), leader_epoch=0)
    log.abandon()
    path = "/data/t-0/00000000000000000000.index"
    handle = disk.open(path)
    disk.pwritev(handle, [bytes(range(8))], 0)
    disk.close(handle)
    log = opened()
    assert log.log_end_offset == 3
    assert disk.size_of(path) == 0


def test_indexes_that_a_start_has_rebuilt_are_not_kept_in_memory() -> None:
    """They are in their files, from which an append, a look-up and a stop take them again."""
    disk = SimulatedDisk(SeededRandom(1))
    disk.make_directory("/data")

    def opened(*, clean: bool = False) -> PartitionLog:
        return open_log(
            "/data/t-0",
            "t",
            0,
            TOPIC_ID,
            LogConfig(index_interval_bytes=1),
            ManualClock(),
            files=disk,
            clean=clean,
        )

    log = opened()
    for number in range(3):
        log.append_as_leader(client_batch(2, timestamp=1000 + number), leader_epoch=0)
    log.abandon()
    log = opened()
    active = log.segments.active
    assert active._index is None
    assert active._time_index is None
    assert active.max_timestamp == 1002
    log.append_as_leader(client_batch(2, timestamp=2000), leader_epoch=0)
    entries = list(active.index.offsets), list(active.time_index.timestamps)
    assert entries == ([3, 5, 7], [1001, 1002, 2000])
    log.close(sync=True)
    log = opened(clean=True)
    active = log.segments.active
    assert (list(active.index.offsets), list(active.time_index.timestamps)) == entries
    assert log.log_end_offset == 8


def test_who_goes_through_all_logs_has_those_that_are_there() -> None:
    node, random = Node(), Random(4)
    for _ in range(300):
        key = ("topic", random.randrange(12))
        if random.randrange(3):
            node.manager.create(*key, TOPIC_ID)
        else:
            node.manager.delete(*key)
        if random.randrange(4):
            assert sorted(log.name for log in node.manager.logs_in_order()) == sorted(
                log.name for log in node.manager.logs()
            )
