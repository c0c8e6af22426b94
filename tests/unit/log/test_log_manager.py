"""Log directories in use: locks, starts and stops, placement, checkpoints, timers."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.log.partition.rolling import jitter_ms
from kwire.log.segment.open_file_limit import SEALED_MAX
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import NOW_MS, client_batch, read_all
from tests.support.managed_logs import OTHER_TOPIC_ID, TOPIC_ID, Node, node_with_topic


def test_create_stop_start() -> None:
    node = Node()
    for partition in range(3):
        node.manager.create("topic", partition, TOPIC_ID)
    node.append("topic", 1, 4)
    assert "/data/.lock" in [f"/data/{n}" for n in node.disk.listing("/data")]
    manager = node.restart()
    assert [log.name for log in manager.logs()] == ["topic-0", "topic-1", "topic-2"]
    log = manager.get("topic", 1)
    assert log is not None
    assert (log.topic_id, log.log_end_offset, log.high_watermark) == (TOPIC_ID, 4, 4)
    directory = manager.directories[0]
    assert directory.was_clean
    assert directory.previous_broker_epoch == 7
    assert ".kafka_cleanshutdown" not in node.disk.listing("/data")


def test_files_of_a_stopped_directory() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 2)
    node.manager.shutdown(7)
    read = node.disk.read_file
    assert read("/data/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":7}'
    assert read("/data/recovery-point-offset-checkpoint") == b"0\n1\ntopic 0 2\n"
    assert read("/data/replication-offset-checkpoint") == b"0\n1\ntopic 0 2\n"
    assert read("/data/log-start-offset-checkpoint") == b"0\n0\n"
    assert ".lock" not in node.disk.listing("/data")
    assert sorted(node.disk.listing("/data/topic-0")) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000002.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]
    assert read("/data/topic-0/partition.metadata") == (
        b"version: 0\ntopic_id: " + uuids.to_text(TOPIC_ID).encode()
    )


def test_killed_node_recovers() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    node.manager.checkpoint_recovery()
    node.scheduler.turn()
    manager = node.kill()
    assert not manager.directories[0].was_clean
    log = manager.get("topic", 0)
    assert log is not None
    assert log.log_end_offset == 3


def test_jitter_spreads_the_rolls_and_leaves_every_segment_an_age() -> None:
    """A segment.jitter.ms above segment.ms rolled a segment an append (Kafka: never)."""
    node = Node()
    node.configs["topic"] = LogConfig(segment_ms=3_600_000, segment_jitter_ms=86_400_000)
    found = set()
    for partition in range(20):
        log = node.manager.create("topic", partition, TOPIC_ID)
        found.add(jitter_ms(log.config, log.local.jitter_share))
        for delta_ms in range(3):
            batch = client_batch(timestamp=NOW_MS + delta_ms)
            log.append_as_leader(batch, leader_epoch=0)
            node.scheduler.turn()
        assert log.segments.bases == [0]
    assert len(found) > 10


def test_log_start_is_kept() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    node.append("topic", 0, 3)
    log: Any = node.manager.get("topic", 0)
    log.delete_records_before(4)
    node.manager.checkpoint_log_starts()
    node.scheduler.turn()
    log = node.kill().get("topic", 0)
    assert log.log_start_offset == 4
    log = node.restart().get("topic", 0)
    assert [offset for offset, _ in read_all(log)] == [4, 5]


def test_log_starts_are_durable_when_they_are_told() -> None:
    """Whoever asks during a write of the file shares the next one, which holds its log start."""
    node, told = Node(), list[int]()
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
        node.append("topic", partition, 6)
        node.manager.logs()[partition].flush()
    node.scheduler.turn()
    node.disk.sync_directory("/")
    node.scheduler.holds_jobs = True

    def move(partition: int, offset: int) -> None:
        node.manager.logs()[partition].delete_records_before(offset)
        node.manager.checkpoint_log_starts().add_done_callback(lambda _: told.append(partition))

    move(0, 3)
    move(1, 4)
    node.scheduler.run_jobs()
    assert told == [0]
    node.scheduler.run_jobs()
    assert told == [0, 1]
    node.disk.crash()
    assert [log.log_start_offset for log in node.start().logs()] == [3, 4]


def test_a_log_start_that_cannot_be_saved_is_told() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 6)
    log: Any = node.manager.get("topic", 0)
    log.delete_records_before(4)

    def fault(operation: str, path: str) -> OSError | None:
        return OSError(errno.EIO, "gone") if operation == "rename" else None

    node.disk.fault = fault
    saved = node.manager.checkpoint_log_starts()
    node.scheduler.turn()
    assert isinstance(saved.error(), OSError)
    assert node.failed == ["/data"]


def test_retention_gives_the_loop_its_turn() -> None:
    """Files are renamed by the loop: few in a turn, however many segments are due."""
    node = Node()
    node.configs["topic"] = LogConfig(segment_bytes=100, retention_ms=1000)
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID, node.configs["topic"])
        for _ in range(35):
            node.append("topic", partition)
    logs = node.manager.logs()
    assert all(len(log.segments) == 35 for log in logs)
    node.clock.now_ms += 10_000
    renames, turns = [0], list[int]()

    def count(operation: str, path: str) -> None:
        renames[0] += operation == "rename" and path.endswith(".log")

    node.disk.fault = count
    node.manager.enforce_retention()
    while node.scheduler._soon:
        turns.append(renames[0])
        renames[0] = 0
        due, node.scheduler._soon = node.scheduler._soon, []
        for callback in due:
            callback()
    turns.append(renames[0])
    assert sum(turns) == 70
    assert max(turns) <= 20
    assert all(len(log.segments) == 1 and log.log_start_offset == 35 for log in logs)


def test_create_is_idempotent_but_not_across_topic_ids() -> None:
    node = Node()
    log = node.manager.create("topic", 0, TOPIC_ID)
    assert node.manager.create("topic", 0, TOPIC_ID) is log
    with pytest.raises(KafkaError) as caught:
        node.manager.create("topic", 0, OTHER_TOPIC_ID)
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_new_logs_go_to_the_emptiest_directory() -> None:
    node = Node(["/a", "/b"])
    for partition in range(4):
        node.manager.create("topic", partition, TOPIC_ID)
    assert len(node.names("/a")) == len(node.names("/b")) == 2
    node.restart()
    assert len(node.manager.logs()) == 4


def test_new_logs_go_to_cordoned_directories_only_where_there_are_no_others() -> None:
    node = Node(["/a", "/b", "/c"])
    a, b, c = node.manager.directories
    node.manager.cordoned = [a, c]
    for partition in range(3):
        node.manager.create("topic", partition, TOPIC_ID)
    assert len(node.names("/b")) == 3
    node.manager.cordoned = [a, b, c]
    node.manager.create("topic", 3, TOPIC_ID)
    assert node.manager.directory_of("topic", 3) is a, "the controller had placed it before"
    a.error = OSError("gone")
    node.manager.create("topic", 4, TOPIC_ID)
    assert node.manager.directory_of("topic", 4) is b
    node.manager.cordoned = [b]
    node.manager.create("topic", 5, TOPIC_ID, directory=b)
    assert node.manager.directory_of("topic", 5) is b, "the metadata names it"


def test_few_sealed_segments_are_open() -> None:
    node = Node()
    node.configs["topic"] = LogConfig(segment_bytes=100)
    log = node.manager.create("topic", 0, TOPIC_ID)
    for _ in range(SEALED_MAX + 100):
        node.append("topic", 0)
    assert len(log.segments) == SEALED_MAX + 100
    node.scheduler.turn()
    node.disk.process_killed()
    log = node.start().get("topic", 0)  # type: ignore[assignment]
    opened: list[str] = []
    closed: list[int] = []
    inner_open, inner_close = node.disk.open, node.disk.close
    node.disk.open = lambda path, **options: (opened.append(path), inner_open(path, **options))[1]  # type: ignore[method-assign]
    node.disk.close = lambda handle: (closed.append(handle), inner_close(handle))[1]  # type: ignore[method-assign,func-returns-value]
    assert len(read_all(log)) == SEALED_MAX + 100
    logs_opened = [path for path in opened if path.endswith(".log")]
    assert len(logs_opened) == SEALED_MAX + 100
    assert len(opened) - len(closed) <= SEALED_MAX + 1


def test_few_segments_that_were_written_are_open() -> None:
    """Every segment that was rolled stayed open: a busy node of small ones ran out of files."""
    node = Node()
    node.configs["topic"] = LogConfig(segment_bytes=100)
    log = node.manager.create("topic", 0, TOPIC_ID)
    handles: set[int] = set()
    inner_open, inner_close = node.disk.open, node.disk.close

    def opened(path: str, **options: Any) -> int:
        handles.add(handle := inner_open(path, **options))
        return handle

    def closed(handle: int) -> None:
        handles.discard(handle)
        inner_close(handle)

    node.disk.open, node.disk.close = opened, closed  # type: ignore[method-assign]
    for _ in range(SEALED_MAX + 100):
        node.append("topic", 0)
    node.scheduler.turn()
    assert len(log.segments) == SEALED_MAX + 100
    assert len(handles) <= SEALED_MAX + 1
    assert len(read_all(log)) == SEALED_MAX + 100


def test_only_the_directories_of_the_moved_log_starts_are_written() -> None:
    """A failing disk made DeleteRecords on another one fail."""
    node = Node(["/one", "/two"])
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
        node.append("topic", partition, 6)
        node.manager.logs()[partition].delete_records_before(4)
    node.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "io") if path.startswith("/two/log-start") else None
    )
    good = node.manager.checkpoint_log_starts([("topic", 0)])
    node.scheduler.turn()
    assert good.error() is None
    assert node.failed == []
    bad = node.manager.checkpoint_log_starts([("topic", 0), ("topic", 1), ("gone", 3)])
    node.scheduler.turn()
    assert isinstance(bad.error(), OSError)
    assert node.failed == ["/two"]
    assert node.disk.read_file("/one/log-start-offset-checkpoint") == b"0\n1\ntopic 0 4\n"


def test_timers() -> None:
    node = node_with_topic()
    node.configs["topic"] = LogConfig()
    node.manager.start_timers()
    node.scheduler.advance(31_000)
    read = node.disk.read_file
    assert read("/data/replication-offset-checkpoint") == b"0\n1\ntopic 0 3\n"
    assert read("/data/recovery-point-offset-checkpoint") == b"0\n1\ntopic 0 0\n"
    log: Any = node.manager.get("topic", 0)
    log.flush()
    log.roll()
    node.clock.now_ms += 8 * 86_400_000
    node.scheduler.advance(400_000)
    assert log.log_start_offset == 3
    assert read("/data/recovery-point-offset-checkpoint") == b"0\n1\ntopic 0 3\n"
    node.manager.shutdown()
    assert not [t for t in node.scheduler.timers if t.callback is not None and t.due_ms > 10**6]


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    code = (
        "import sys; from kwire.log.files import SystemFiles\n"
        f"SystemFiles().lock({str(tmp_path / '.lock')!r}); print('locked', flush=True)\n"
        "sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == b"locked\n"
        manager = LogManager([str(tmp_path)], SystemClock(), SeededRandom(1))
        with pytest.raises(LogDirectoryError) as caught:
            manager.open_directories()
        assert f"process {holder.pid};" in str(caught.value)
        holder.stdin.close()
        holder.wait()
    manager.open_directories()
    manager.shutdown()
    assert sorted(os.listdir(tmp_path))[0] == ".kafka_cleanshutdown"


def test_several_directories_are_locked_all_or_none(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "meta.properties").write_text("no properties")
    manager = LogManager([str(tmp_path / "good"), str(bad)], SystemClock(), SeededRandom(1))
    with pytest.raises(LogDirectoryError):
        manager.open_directories()
    assert list((tmp_path / "good").iterdir()) == []
