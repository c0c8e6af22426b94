"""What a start finds in a log directory: strays, names, damaged and missing small files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.identity_files import (
    encode_meta_properties,
    encode_partition_metadata,
    java_date,
    parse_clean_shutdown,
    parse_partition_metadata,
    parse_properties,
)
from kwire.log.directories.manager import LogManager
from kwire.protocol import uuids
from tests.support.logs import client_batch, read_all
from tests.support.managed_logs import OTHER_TOPIC_ID, TOPIC_ID, Node, node_with_topic


@pytest.mark.parametrize("topics", [{}, {("topic", 0): OTHER_TOPIC_ID}])
def test_a_log_that_the_metadata_does_not_know_is_set_aside(topics: Any) -> None:
    node = node_with_topic()
    node.restart(topics)
    assert node.manager.get("topic", 0) is None
    (name,) = node.names()
    assert name.startswith("topic-0.")
    assert name.endswith("-stray")
    node.restart(topics)
    assert node.names() == [name], "a stray log is left alone"


def test_a_name_that_nobody_writes_is_no_partition(caplog: pytest.LogCaptureFixture) -> None:
    """A copy named `topic-00` was opened in the place of `topic-0`."""
    node = node_with_topic()
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
    node = node_with_topic()
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


def test_a_log_without_partition_metadata_is_set_aside() -> None:
    node = node_with_topic()
    node.manager.shutdown()
    node.disk.unlink("/data/topic-0/partition.metadata")
    node.start({("topic", 0): TOPIC_ID})
    assert [n.endswith("-stray") for n in node.names()] == [True]


@pytest.mark.parametrize("content", [b"", b"version: 1\ntopic_id: x", b"\xff\xff", b"version: 0"])
def test_unreadable_partition_metadata_refuses_in_one_line(content: bytes) -> None:
    node = node_with_topic()
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
    node = node_with_topic()
    node.manager.shutdown()
    for name in ("lost+found", "topic-0.0123456789abcdef-future", "__cluster_metadata-0"):
        node.disk.make_directory(f"/data/{name}")
    manager = node.start({("topic", 0): TOPIC_ID})
    assert [log.name for log in manager.logs()] == ["topic-0"]
    assert len(node.names()) == 4


@pytest.mark.parametrize("inside", ["nothing", "directories", "files"])
def test_a_trash_folder_is_no_partition(inside: str, caplog: pytest.LogCaptureFixture) -> None:
    """`.Trash-1000` was taken for partition 1000 of a topic, and renamed to `...-stray`."""
    node = node_with_topic()
    node.manager.shutdown()
    node.disk.make_directory("/data/.Trash-1000")
    if inside == "directories":
        node.disk.make_directory("/data/.Trash-1000/files")
    if inside == "files":
        node.disk.make_directory("/data/backup-2024")
        node.disk.open("/data/backup-2024/notes.log", create=True)
    for _ in range(2):
        manager = node.start({("topic", 0): TOPIC_ID})
        assert [log.name for log in manager.logs()] == ["topic-0"]
        assert not [name for name in node.names() if name.endswith("-stray")]
        manager.shutdown()
    assert "/data/.Trash-1000 holds no log; it is left alone" in caplog.text


def test_a_byte_order_mark_in_meta_properties_is_skipped() -> None:
    content = encode_meta_properties("cluster", 1, bytes(15) + b"\x01", 0)
    assert parse_properties(b"\xef\xbb\xbf" + content) == parse_properties(content)
    assert parse_properties(b"\xef\xbb\xbfnode.id=1\n") == {"node.id": "1"}


def test_the_same_partition_in_two_directories_is_refused() -> None:
    node = Node(["/a", "/b"])
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 1)
    node.manager.shutdown()
    other = "/b" if node.names("/a") else "/a"
    node.disk.make_directory(f"{other}/topic-0")
    handle = node.disk.open(f"{other}/topic-0/partition.metadata", create=True)
    node.disk.pwritev(handle, [encode_partition_metadata(TOPIC_ID)], 0)
    with pytest.raises(LogDirectoryError, match="same partition"):
        node.start()


@pytest.mark.parametrize("content", [b"garbage", b"0\n5\ntopic 0 1\n", b"0\n1\ntopic zero 1\n"])
def test_damaged_checkpoints_are_done_without(content: bytes) -> None:
    node = node_with_topic()
    node.manager.shutdown()
    for name in ("recovery-point", "replication", "log-start"):
        path = f"/data/{name}-offset-checkpoint"
        node.disk.unlink(path)
        handle = node.disk.open(path, create=True)
        node.disk.pwritev(handle, [content], 0)
    log = node.start().get("topic", 0)
    assert log is not None
    assert log.log_end_offset == 3


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
    log = manager.create("topic", 0, OTHER_TOPIC_ID)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 0, 0)
    assert all(offsets == {} for offsets in manager.directories[0].offsets())


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


@pytest.mark.parametrize("name", ["data", "link", "data/../data"])
def test_a_directory_that_is_named_twice_is_refused(name: str, tmp_path: Path) -> None:
    """Two of one name are one to the kernel's locks: after a kill each partition was the other of
    itself, and was set aside."""
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    paths = [str(tmp_path / "data"), str(tmp_path / name)]
    for _ in range(2):
        twice = LogManager(paths, SystemClock(), SeededRandom(1))
        with pytest.raises(LogDirectoryError, match=f"{paths[1]} is in use by this process"):
            twice.open_directories()
    manager = LogManager(paths[:1], SystemClock(), SeededRandom(1))
    manager.open_directories()
    with pytest.raises(LogDirectoryError, match="in use by this process"):
        LogManager(paths[:1], SystemClock(), SeededRandom(1)).open_directories()
    manager.shutdown()
