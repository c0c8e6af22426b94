"""Log directories: locks, loading, stray and deleted directories, checkpoints, failures."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directory_files import (
    encode_meta_properties,
    encode_partition_metadata,
    java_date,
    parse_clean_shutdown,
    parse_partition_metadata,
    parse_properties,
)
from kwire.log.files import SystemFiles, remove_tree
from kwire.log.log_config import LogConfig
from kwire.log.log_directory import LogDirectoryError, parse_name, suffixed_name
from kwire.log.manager import LogManager
from kwire.log.open_segments import OPEN_MAX
from kwire.log.placement import UNASSIGNED, assigned
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import client_batch, read_all
from tests.support.managed_logs import TOPIC_ID, Node

OTHER_ID = bytes(range(2, 18))


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
        node.manager.create("topic", 0, OTHER_ID)
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID


def test_new_logs_go_to_the_emptiest_directory() -> None:
    node = Node(["/a", "/b"])
    for partition in range(4):
        node.manager.create("topic", partition, TOPIC_ID)
    assert len(node.names("/a")) == len(node.names("/b")) == 2
    node.restart()
    assert len(node.manager.logs()) == 4


# -- deletion -----------------------------------------------------------------------------------


def test_delete_frees_the_name_at_once_and_the_space_later() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    done = node.manager.delete("topic", 0)
    node.scheduler.turn()
    assert done.done
    assert node.manager.get("topic", 0) is None
    (name,) = node.names()
    assert name.startswith("topic-0.")
    assert name.endswith("-delete")
    log = node.manager.create("topic", 0, OTHER_ID)
    assert log.log_end_offset == 0
    node.scheduler.advance(1001)
    assert node.names() == ["topic-0"]


def test_a_deletion_during_a_flush_is_no_failed_sync() -> None:
    node = Node()
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
    node.scheduler.turn()
    for partition in range(2):
        node.append("topic", partition)
    flushes = [log.flush() for log in node.manager.logs()]
    node.scheduler.holds_jobs = True
    node.scheduler.turn()
    deleted = node.manager.delete("topic", 0)
    node.scheduler.holds_jobs = False
    node.scheduler.turn()
    assert [f.error() for f in flushes] == [None, None]
    assert deleted.done
    assert deleted.error() is None
    assert node.failed == []
    assert node.manager.logs()[0].error is None


def test_few_sealed_segments_are_open() -> None:
    node = Node()
    node.configs["topic"] = LogConfig(segment_bytes=100)
    log = node.manager.create("topic", 0, TOPIC_ID)
    for _ in range(OPEN_MAX + 100):
        node.append("topic", 0)
    assert len(log.segments) == OPEN_MAX + 100
    node.scheduler.turn()
    node.disk.process_killed()
    log = node.start().get("topic", 0)  # type: ignore[assignment]
    opened: list[str] = []
    closed: list[int] = []
    inner_open, inner_close = node.disk.open, node.disk.close
    node.disk.open = lambda path, **options: (opened.append(path), inner_open(path, **options))[1]  # type: ignore[method-assign]
    node.disk.close = lambda handle: (closed.append(handle), inner_close(handle))[1]  # type: ignore[method-assign,func-returns-value]
    assert len(read_all(log)) == OPEN_MAX + 100
    logs_opened = [path for path in opened if path.endswith(".log")]
    assert len(logs_opened) == OPEN_MAX + 100
    assert len(opened) - len(closed) <= OPEN_MAX + 1


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
    for _ in range(OPEN_MAX + 100):
        node.append("topic", 0)
    node.scheduler.turn()
    assert len(log.segments) == OPEN_MAX + 100
    assert len(handles) <= OPEN_MAX + 1
    assert len(read_all(log)) == OPEN_MAX + 100


def test_a_deletion_goes_on_after_a_restart() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.manager.delete("topic", 0)
    node.scheduler.turn()
    node.kill()
    assert node.manager.logs() == []
    assert len(node.names()) == 1
    node.scheduler.advance(1001)
    assert node.names() == []


def test_a_long_name_is_cut_for_its_suffix() -> None:
    name = suffixed_name("t" * 249, 12, "u" * 32, "-delete")
    assert len(name) == 255
    parsed = parse_name(name)
    assert parsed is not None
    assert (parsed.partition, parsed.suffix) == (12, "-delete")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("topic-0", ("topic", 0, "")),
        ("with.dots_and-dashes-12", ("with.dots_and-dashes", 12, "")),
        ("topic-3.0123abcd-stray", ("topic", 3, "-stray")),
        ("topic-03", None),
        ("a.b-3.0123abcd-future", ("a.b", 3, "-future")),
        ("lost+found", None),
        ("topic", None),
        ("-1", None),
        ("topic-x", None),
        ("topic-delete", None),
        ("topic-99999999999", None),
    ],
)
def test_names(name: str, expected: tuple[str, int, str] | None) -> None:
    assert parse_name(name) == expected


# -- directories that do not fit ------------------------------------------------------------------


def _with_topic() -> Node:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 3)
    return node


@pytest.mark.parametrize("topics", [{}, {("topic", 0): OTHER_ID}])
def test_a_log_that_the_metadata_does_not_know_is_set_aside(topics: Any) -> None:
    node = _with_topic()
    node.restart(topics)
    assert node.manager.get("topic", 0) is None
    (name,) = node.names()
    assert name.startswith("topic-0.")
    assert name.endswith("-stray")
    node.restart(topics)
    assert node.names() == [name], "a stray log is left alone"


def test_a_name_that_nobody_writes_is_no_partition(caplog: pytest.LogCaptureFixture) -> None:
    """A copy named `topic-00` was opened in the place of `topic-0`."""
    node = _with_topic()
    node.manager.shutdown()
    for name in node.disk.listing("/data/topic-0"):
        node.disk.make_directory("/data/topic-00")
        handle = node.disk.open(f"/data/topic-00/{name}", create=True)
        node.disk.pwritev(handle, [node.disk.read_file(f"/data/topic-0/{name}")], 0)
    manager = node.start({("topic", 0): TOPIC_ID})
    assert [log.directory for log in manager.logs()] == ["/data/topic-0"]
    assert "topic-00 is not a partition's directory" in caplog.text
    assert node.names() == ["topic-0", "topic-00"]


def test_a_missing_file_of_log_starts_is_named(caplog: pytest.LogCaptureFixture) -> None:
    node = _with_topic()
    node.manager.shutdown()
    node.disk.unlink("/data/log-start-offset-checkpoint")
    node.start()
    assert "/data/log-start-offset-checkpoint is missing" in caplog.text


def test_a_fresh_directory_is_not_recovered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    node = Node()
    node.disk.make_directory("/data/__cluster_metadata-0")
    node.kill()
    assert "recovering" not in caplog.text
    node.manager.create("topic", 0, TOPIC_ID)
    node.scheduler.turn()
    node.kill()
    assert "recovering" in caplog.text


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


def test_a_log_without_partition_metadata_is_set_aside() -> None:
    node = _with_topic()
    node.manager.shutdown()
    node.disk.unlink("/data/topic-0/partition.metadata")
    node.start({("topic", 0): TOPIC_ID})
    assert [n.endswith("-stray") for n in node.names()] == [True]


@pytest.mark.parametrize("content", [b"", b"version: 1\ntopic_id: x", b"\xff\xff", b"version: 0"])
def test_unreadable_partition_metadata_refuses_in_one_line(content: bytes) -> None:
    node = _with_topic()
    node.manager.shutdown()
    path = "/data/topic-0/partition.metadata"
    node.disk.unlink(path)
    handle = node.disk.open(path, create=True)
    node.disk.pwritev(handle, [content], 0)
    with pytest.raises(LogDirectoryError) as caught:
        node.start({("topic", 0): TOPIC_ID})
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_partition_directory_is_a_new_log() -> None:
    node = Node()
    node.manager.shutdown()
    node.disk.make_directory("/data/topic-0")
    log = node.start({("topic", 0): TOPIC_ID}).get("topic", 0)
    assert log is not None
    assert log.topic_id == TOPIC_ID


def test_other_directories_are_left_alone() -> None:
    """Kafka does not start beside lost+found or a future log."""
    node = _with_topic()
    node.manager.shutdown()
    for name in ("lost+found", "topic-0.0123456789abcdef-future", "__cluster_metadata-0"):
        node.disk.make_directory(f"/data/{name}")
    manager = node.start({("topic", 0): TOPIC_ID})
    assert [log.name for log in manager.logs()] == ["topic-0"]
    assert len(node.names()) == 4


def test_the_same_partition_in_two_directories_is_refused() -> None:
    node = Node(["/a", "/b"])
    node.manager.create("topic", 0, TOPIC_ID)
    node.manager.shutdown()
    other = "/b" if node.names("/a") else "/a"
    node.disk.make_directory(f"{other}/topic-0")
    handle = node.disk.open(f"{other}/topic-0/partition.metadata", create=True)
    node.disk.pwritev(handle, [encode_partition_metadata(TOPIC_ID)], 0)
    with pytest.raises(LogDirectoryError, match="same partition"):
        node.start()


@pytest.mark.parametrize("content", [b"garbage", b"0\n5\ntopic 0 1\n", b"0\n1\ntopic zero 1\n"])
def test_damaged_checkpoints_are_done_without(content: bytes) -> None:
    node = _with_topic()
    node.manager.shutdown()
    for name in ("recovery-point", "replication", "log-start"):
        path = f"/data/{name}-offset-checkpoint"
        node.disk.unlink(path)
        handle = node.disk.open(path, create=True)
        node.disk.pwritev(handle, [content], 0)
    log = node.start().get("topic", 0)
    assert log is not None
    assert log.log_end_offset == 3


# -- failures -------------------------------------------------------------------------------------


def test_a_new_topic_begins_at_zero_whatever_the_checkpoints_say_of_an_older_one() -> None:
    """Its checkpoints were written before it was deleted, and then the node was killed."""
    node = Node()
    log = node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 5)
    log.delete_records_before(3)
    for write in (node.manager.checkpoint_log_starts, node.manager.checkpoint_recovery):
        write()
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    node.manager.delete("topic", 0)
    manager = node.kill({})
    log = manager.create("topic", 0, OTHER_ID)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 0, 0)
    assert all(offsets == {} for offsets in manager.directories[0].offsets())


@pytest.mark.parametrize("at", ["lock", "read_file"])
def test_one_directory_that_cannot_be_opened_leaves_the_other_serving(
    at: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(["/one", "/two"])
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
        node.append("topic", partition, 5)
    node.manager.shutdown()
    healthy = getattr(node.disk, at)

    def failing(path: str) -> Any:
        if path.startswith("/two/"):
            raise OSError(errno.EIO, "input/output error", path)
        return healthy(path)

    monkeypatch.setattr(node.disk, at, failing)
    manager = node.start()
    assert [log.name for log in manager.logs()] == ["topic-0"]
    assert "/two: " in caplog.text
    assert "offline" in caplog.text
    node.append("topic", 0, 1)
    one, two = manager.directories
    assert (one.error is None, two.error is None) == (True, False)
    manager.shutdown()
    monkeypatch.undo()
    assert [log.log_end_offset for log in node.start().logs()] == [6, 5]


def test_no_directory_that_can_be_opened_is_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = Node(["/one", "/two"])
    node.manager.shutdown()

    def failing(path: str) -> Any:
        raise OSError(errno.EROFS, "read-only file system", path)

    monkeypatch.setattr(node.disk, "lock", failing)
    with pytest.raises(LogDirectoryError, match=r"/two cannot be used: .*read-only"):
        node.start()


def test_a_file_where_the_directory_should_be_is_told_in_words() -> None:
    node = Node(["/one"])
    node.manager.shutdown()

    def failing(path: str) -> Any:
        raise FileExistsError(errno.EEXIST, "File exists", path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node.disk, "lock", failing)
        with pytest.raises(LogDirectoryError, match=r"^/one cannot be used: not a directory$"):
            node.start()


def test_an_empty_log_is_made_where_it_hides_no_other() -> None:
    """The metadata names a directory that is offline: the log may be there."""
    node = Node(["/one", "/two"])
    one, two = node.manager.directories
    one.directory_id, two.directory_id = TOPIC_ID, OTHER_ID
    both = [one, two]
    assert assigned(both, OTHER_ID) is two
    assert assigned(both, bytes(16)) is None
    two.error = OSError(errno.EIO, "input/output error")
    assert assigned(both, TOPIC_ID) is one
    assert assigned(both, UNASSIGNED) is None
    for unknown in (OTHER_ID, bytes(16), bytes(range(3, 19))):
        with pytest.raises(KafkaError, match="it may be in /two, which is offline") as caught:
            assigned(both, unknown)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_failed_sync_takes_its_directory_offline_and_no_other() -> None:
    node = Node(["/a", "/b"])
    for partition in range(4):
        node.manager.create("topic", partition, TOPIC_ID)
    node.scheduler.turn()
    for partition in range(4):
        node.append("topic", partition)
    node.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "io") if operation == "fdatasync" and path.startswith("/a/") else None
    )
    for log in node.manager.logs():
        log.flush()
    node.scheduler.turn()
    assert node.failed == ["/a"]
    results = {}
    for log in node.manager.logs():
        try:
            log.append_as_leader(client_batch(), leader_epoch=0)
            results[log.directory[:2]] = "accepted"
        except KafkaError as error:
            assert len(read_all(log)) == 1, "reads go on"
            results[log.directory[:2]] = ErrorCode(error.code).name
    assert results == {"/a": "KAFKA_STORAGE_ERROR", "/b": "accepted"}
    assert node.manager.create("other", 0, TOPIC_ID).directory.startswith("/b")
    node.scheduler.turn()
    node.disk.fault = None
    node.manager.shutdown()
    assert ".kafka_cleanshutdown" not in node.disk.listing("/a")
    assert ".kafka_cleanshutdown" in node.disk.listing("/b")


def test_a_checkpoint_that_fails_takes_the_directory_offline() -> None:
    node = _with_topic()
    node.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "io") if "replication-offset" in path else None
    )
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    assert node.failed == ["/data"]


@pytest.mark.parametrize("others", [False, True])
def test_a_checkpoint_for_which_there_is_no_space(
    others: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A full disk took a single node's directory offline within seconds: nothing could be read."""
    node = _with_topic()
    node.manager.goes_offline_by_writes = lambda: others
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device")
        if operation == "pwritev" and "offset-checkpoint" in path
        else None
    )
    node.manager.checkpoint_high_watermarks()
    told = node.manager.checkpoint_log_starts()
    node.scheduler.turn()
    assert node.failed == (["/data"] if others else [])
    assert isinstance(told.error(), OSError), "DeleteRecords was not made durable"
    if others:
        return
    assert "tried again later" in caplog.text
    log: Any = node.manager.get("topic", 0)
    assert len(read_all(log)) == log.log_end_offset > 0
    node.disk.fault = None
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    assert node.disk.read_file("/data/replication-offset-checkpoint") == b"0\n1\ntopic 0 3\n"


def test_a_checkpoint_that_cannot_be_synced_is_not_tried_again() -> None:
    node = _with_topic()
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device")
        if operation == "fdatasync" and "offset-checkpoint" in path
        else None
    )
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    assert node.failed == ["/data"]


def test_timers() -> None:
    node = _with_topic()
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


# -- the real thing -------------------------------------------------------------------------------


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


def test_what_is_removed_ends_at_links(tmp_path: Path) -> None:
    """Somebody linked a partition to another disk, and something else into it."""
    real, other, link = tmp_path / "real", tmp_path / "other", tmp_path / "topic-0.1-delete"
    for directory in (real, other, real / "inner"):
        directory.mkdir()
        (directory / "file").write_text("content")
    (real / "elsewhere").symlink_to(other)
    link.symlink_to(real)
    remove_tree(SystemFiles(), str(link))
    assert not link.is_symlink()
    assert list(real.iterdir()) == []
    assert (other / "file").read_text() == "content"


@pytest.mark.parametrize("size_bytes", [1 << 30, 1 << 40])
@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "topic-0/leader-epoch-checkpoint", "topic-0/{0}.index",
     "topic-0/{0}.timeindex", "topic-0/{3}.snapshot", "topic-0/{3}.log", "topic-0/{0}.txnindex"],
)  # fmt: skip
def test_files_of_nothing_that_are_too_large(name: str, size_bytes: int, tmp_path: Path) -> None:
    """A start that read all of it did not come back."""

    def start() -> LogManager:
        manager = LogManager([str(tmp_path)], SystemClock(), SeededRandom(1))
        manager.open_directories()
        manager.load_all()
        return manager

    manager = start()
    log = manager.create("topic", 0, TOPIC_ID)
    log.append_as_leader(client_batch(3, timestamp=1), leader_epoch=0)
    log.roll()
    log.append_as_leader(client_batch(3, timestamp=1), leader_epoch=0)
    manager.shutdown()
    path = tmp_path / name.format(*(f"{number:020d}" for number in range(4)))
    with path.open("ab") as file:
        file.truncate(size_bytes)
    for _ in range(2):
        manager = start()
        (log,) = manager.logs()
        assert [offset for offset, _ in read_all(log)] == list(range(6))
        assert log.offset_for_timestamp(1) == (1, 0, 0)
        manager.shutdown()


def test_small_files() -> None:
    assert java_date(1_795_820_790_000) == "Fri Nov 27 23:06:30 UTC 2026"
    assert java_date(0) == "Thu Jan 01 00:00:00 UTC 1970"
    assert java_date(951_782_400_000) == "Tue Feb 29 00:00:00 UTC 2000"
    text = encode_meta_properties("cluster", 1, TOPIC_ID, 1_795_820_790_000)
    assert text.startswith(b"#\n#Fri Nov 27 23:06:30 UTC 2026\n")
    assert parse_properties(text) == {
        "cluster.id": "cluster",
        "node.id": "1",
        "version": "1",
        "directory.id": uuids.to_text(TOPIC_ID),
    }
    assert parse_partition_metadata(encode_partition_metadata(TOPIC_ID)) == TOPIC_ID
    assert parse_clean_shutdown(b'{"version":0,"brokerEpoch":12}') == 12
    for damaged in (b"", b"{", b"[]", b'{"version":1,"brokerEpoch":12}', b"\xff"):
        assert parse_clean_shutdown(damaged) == -1
