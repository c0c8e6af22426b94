"""A node whose logs are short of something: who is told, when it is tried again, when given up."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kwire.coordinator.reloading import PAUSE_MS_MAX, Reloads
from kwire.log.directories.refusals import refusals
from kwire.log.directories.shortages import FAILURES_MAX, Shortages
from kwire.pending import Pending
from kwire.protocol.errors import KafkaError
from kwire.server.descriptors import DescriptorReserve
from tests.support.logs import ManualScheduler
from tests.support.managed_logs import OTHER_TOPIC_ID, Node, node_with_topic


def short(node: Node, number: int = errno.ENOSPC) -> Any:
    """The log of `topic-0`, which was refused an append."""
    node.disk.fault = lambda operation, path: (
        OSError(number, "all is used up", path)
        if operation in ("pwritev", "allocate", "open") and "/topic-0/" in path
        else None
    )
    log: Any = node.manager.get("topic", 0)
    node.append("topic", 0)
    assert log.is_short
    return log


def test_it_is_told_as_long_as_it_lasts_and_passes_by_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = node_with_topic()
    log = short(node)
    assert refusals(node.manager, "") == [("topic-0", "all is used up")]
    node.scheduler.advance(70_000)
    assert log.is_short
    assert "appends are still refused by topic-0" in caplog.text
    node.disk.fault = None
    node.scheduler.advance(1000)
    assert not log.is_short
    assert refusals(node.manager, "") == []
    assert node.failed == []
    node.append("topic", 0)
    assert log.log_end_offset == 4


def test_a_log_that_was_opened_on_a_full_disk_takes_appends_when_there_is_space() -> None:
    """Its epochs were found in its batches, and the file that keeps them could not be written."""
    node = node_with_topic()
    node.disk.process_killed()
    node.disk.unlink("/data/topic-0/leader-epoch-checkpoint")
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "all is used up", path)
        if operation == "open" and "/topic-0/leader-epoch-checkpoint" in path
        else None
    )
    node.start()
    log: Any = node.manager.get("topic", 0)
    assert log.is_short
    assert refusals(node.manager, "") == [("topic-0", "all is used up")]
    node.disk.fault = None
    node.scheduler.advance(1000)
    assert not log.is_short
    assert refusals(node.manager, "") == []
    node.append("topic", 0)
    assert log.log_end_offset == 4


def test_whoever_asks_for_an_append_has_it_tried_soon() -> None:
    node = node_with_topic()
    log = short(node)
    node.scheduler.advance(60_000)
    node.disk.fault = None
    with pytest.raises(KafkaError):
        node.append("topic", 0)
    node.scheduler.advance(20)
    assert not log.is_short


@pytest.mark.parametrize("others", [False, True])
def test_where_others_can_write_a_directory_is_given_up_in_time(others: bool) -> None:
    """Kafka does so at once; a node alone waits without end."""
    node = node_with_topic()
    node.manager.goes_offline_by_writes = lambda: others
    log = short(node)
    node.scheduler.advance(9000)
    assert node.failed == []
    node.scheduler.advance(4000)
    assert node.failed == (["/data"] if others else [])
    assert log.is_short is not others


def test_a_shortage_that_passes_in_time_costs_no_directory() -> None:
    node = node_with_topic()
    node.manager.goes_offline_by_writes = lambda: True
    for _ in range(5):
        log = short(node)
        node.scheduler.advance(5000)
        node.disk.fault = None
        node.scheduler.advance(1100)
        assert not log.is_short
    assert node.failed == []


def test_what_has_failed_for_good_is_told_too() -> None:
    node = node_with_topic()
    node.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "input/output error") if operation == "pwritev" else None
    )
    node.append("topic", 0)
    node.disk.fault = None
    assert [name for name, _ in refusals(node.manager, "no room")] == [
        "__cluster_metadata-0",
        "topic-0",
    ]


def test_missing_descriptors_are_told_to_who_can_free_some() -> None:
    node, heard = node_with_topic(), []
    node.manager.shortages.on_descriptors_short = lambda: heard.append(True)
    log: Any = node.manager.get("topic", 0)
    for segment in log.segments:
        segment.close()
    short(node, errno.EMFILE)
    assert heard == [True]


def test_a_deleted_topic_is_refused_no_more() -> None:
    node = node_with_topic()
    short(node)
    node.manager.delete("topic", 0)
    assert refusals(node.manager, "") == []


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_topic_deleted_in_a_shortage_goes_later_and_never_becomes_another_ones(
    comes_back: bool,
) -> None:
    """Its space may be what is missing; and one that is made anew begins empty."""
    node = node_with_topic()
    node.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space", path) if operation == "rename" else None
    )
    assert node.manager.delete("topic", 0).error() is not None
    assert [name for name, _ in refusals(node.manager, "")] == ["topic (deleted)-0"]
    if comes_back:
        with pytest.raises(KafkaError):
            node.manager.create("topic", 0, OTHER_TOPIC_ID)
    node.disk.fault = None
    if comes_back:
        assert node.manager.create("topic", 0, OTHER_TOPIC_ID).log_end_offset == 0
    node.scheduler.advance(10_000)
    assert refusals(node.manager, "") == []
    assert node.names() == (["topic-0"] if comes_back else [])
    node.kill()
    assert [log.log_end_offset for log in node.manager.logs()] == [0] * comes_back


def test_a_round_ends_after_some_failures_and_goes_on_with_the_others() -> None:
    scheduler = ManualScheduler()
    shortages = Shortages(scheduler, lambda: scheduler.now_ms)
    tried: list[int] = []

    def retry(number: int) -> Pending[None]:
        tried.append(number)
        return Pending.failed(OSError(errno.ENOSPC, "no space"))

    for number in range(FAILURES_MAX + 5):
        shortages.add(("t", number), "no space", lambda number=number: retry(number))  # type: ignore[misc]
    scheduler.advance(50)
    assert len(tried) == FAILURES_MAX
    scheduler.advance(100)
    assert sorted(set(tried)) == list(range(FAILURES_MAX + 5))
    shortages.close()
    scheduler.advance(10_000)
    assert len(tried) == 2 * FAILURES_MAX


def test_who_falls_short_anew_while_it_is_tried_goes_on_waiting() -> None:
    """A replica that has got its log at last, and whose log is then refused something else."""
    scheduler = ManualScheduler()
    shortages = Shortages(scheduler, lambda: scheduler.now_ms)
    tried: list[str] = []

    def opened() -> Pending[None]:
        tried.append("open")
        shortages.add(("t", 0), "no descriptors", mended)
        return Pending.completed(None)

    def mended() -> Pending[None]:
        tried.append("mend")
        return Pending.completed(None)

    shortages.add(("t", 0), "no space", opened)
    scheduler.advance(50)
    assert shortages.refused["t", 0].reason == "no descriptors"
    scheduler.advance(1000)
    assert tried == ["open", "mend"]
    assert not shortages.refused


def test_descriptors_that_are_kept_for_files() -> None:
    assert [DescriptorReserve(limit).kept for limit in (0, 100, 256, 1024, 1 << 20)] == [
        0,
        50,
        64,
        256,
        4096,
    ]
    reserve = DescriptorReserve(256)
    assert not reserve.is_touched_by(191)
    assert reserve.is_touched_by(192)
    assert not DescriptorReserve(0).is_touched_by(10_000)


def test_a_coordinator_is_loaded_anew_at_once_and_then_less_often() -> None:
    reloads = Reloads()
    pauses = [reloads.pause_ms(0) for _ in range(12)]
    assert pauses[:4] == [0, 40, 80, 160]
    assert pauses[-1] == PAUSE_MS_MAX
    assert reloads.pause_ms(1) == 0
    reloads.watch(0, Pending.completed(None), lambda: None)
    assert reloads.pause_ms(0) == 0
