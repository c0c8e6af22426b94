"""Log directories that fail, at a start, at a sync or at a checkpoint."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.placement import UNASSIGNED, assigned
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import client_batch, read_all
from tests.support.managed_logs import OTHER_TOPIC_ID, TOPIC_ID, Node, node_with_topic


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
    one.directory_id, two.directory_id = TOPIC_ID, OTHER_TOPIC_ID
    both = [one, two]
    assert assigned(both, OTHER_TOPIC_ID) is two
    assert assigned(both, bytes(16)) is None
    two.error = OSError(errno.EIO, "input/output error")
    assert assigned(both, TOPIC_ID) is one
    assert assigned(both, UNASSIGNED) is None
    for unknown in (OTHER_TOPIC_ID, bytes(16), bytes(range(3, 19))):
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
    node = node_with_topic()
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
    node = node_with_topic()
    node.manager.goes_offline_by_writes = lambda: others
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device")
        if operation == "pwritev" and "offset-checkpoint" in path
        else None
    )
    node.manager.checkpoint_high_watermarks()
    told = node.manager.checkpoint_log_starts()
    node.scheduler.turn()
    assert not node.failed, "also where others could take over: nothing is lost"
    assert isinstance(told.error(), OSError), "DeleteRecords was not made durable"
    assert "tried again later" in caplog.text
    log: Any = node.manager.get("topic", 0)
    assert len(read_all(log)) == log.log_end_offset > 0
    node.disk.fault = None
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    assert node.disk.read_file("/data/replication-offset-checkpoint") == b"0\n1\ntopic 0 3\n"


def test_a_checkpoint_that_cannot_be_synced_is_not_tried_again() -> None:
    node = node_with_topic()
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device")
        if operation == "fdatasync" and "offset-checkpoint" in path
        else None
    )
    node.manager.checkpoint_high_watermarks()
    node.scheduler.turn()
    assert node.failed == ["/data"]
