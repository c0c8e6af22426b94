"""What a start that ends early leaves of the note that the last stop was clean."""

from __future__ import annotations

import pytest

from tests.support.managed_logs import TOPIC_ID, Node


def test_a_start_that_ends_before_the_logs_leaves_the_directory_as_clean_as_it_was() -> None:
    """It was recovered whole by the next start, and its broker left the ELR for nothing."""
    node = Node()
    for partition in range(3):
        node.manager.create("topic", partition, TOPIC_ID)
    node.append("topic", 1, 4)
    node.manager.shutdown(7)
    checkpoint = node.disk.read_file("/data/recovery-point-offset-checkpoint")

    node.open().abandon()  # killed before anything was loaded
    opened = node.open()  # stopped in the middle of loading, under a newer epoch
    loading = opened.loading()
    opening = next(loading)
    assert opening is not None
    opening.finish()
    assert not node.disk.exists("/data/.kafka_cleanshutdown")
    opened.shutdown(9, is_loaded=False)
    stopped = node.open()  # stopped before it got an epoch
    stopped.shutdown(-1, is_loaded=False)

    assert node.disk.read_file("/data/recovery-point-offset-checkpoint") == checkpoint
    manager = node.start()
    directory = manager.directories[0]
    assert (directory.was_clean, directory.previous_broker_epoch) == (True, 9)
    log = manager.get("topic", 1)
    assert log is not None
    assert log.log_end_offset == 4


def test_a_start_that_is_stopped_while_it_recovers_is_not_clean() -> None:
    node = Node()
    node.manager.create("topic", 0, TOPIC_ID)
    node.append("topic", 0, 4)
    node.manager.abandon()
    opened = node.open()
    opening = next(opened.loading())
    assert opening is not None
    opening.finish()
    opened.shutdown(9, is_loaded=False)
    assert not node.disk.exists("/data/.kafka_cleanshutdown")


def test_a_stop_reads_no_index_of_a_log_that_was_only_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of thousands of logs that nobody wrote to it read every time index, and wrote none."""
    node = Node()
    for partition in range(2):
        node.manager.create("topic", partition, TOPIC_ID)
        node.append("topic", partition, 4)
    node.manager.shutdown(7)
    node.start()
    node.append("topic", 1, 4)
    read, original = [], node.disk.read_file
    monkeypatch.setattr(node.disk, "read_file", lambda path: read.append(path) or original(path))
    node.manager.shutdown(8)
    assert not [path for path in read if "/topic-0/" in path]
    manager = node.start()
    assert manager.directories[0].was_clean
    for partition, end in ((0, 4), (1, 8)):
        log = manager.get("topic", partition)
        assert log is not None
        assert log.log_end_offset == end
        assert len(log.segments.active.time_index) > 0
