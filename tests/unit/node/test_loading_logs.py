"""Logs are opened by several threads after a kill, on the loop after a clean stop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.loading import Opening
from kwire.log.directories.manager import LogManager
from kwire.node import loading_logs
from kwire.node.loading_logs import load_logs
from tests.support.logs import client_batch, read_all

TOPIC_ID = bytes(range(1, 17))
PARTITIONS = 8


def manager_of(path: Path) -> LogManager:
    manager = LogManager([str(path / "a"), str(path / "b")], SystemClock(), SeededRandom(1))
    manager.open_directories()
    return manager


@pytest.fixture
def filled(tmp_path: Path) -> LogManager:
    manager = manager_of(tmp_path)
    now_ms = manager.clock.wall_ms()
    for partition in range(PARTITIONS):
        log = manager.create("topic", partition, TOPIC_ID)
        for at in range(5):
            batch = client_batch(1, value=b"%d %d" % (partition, at), timestamp=now_ms)
            log.append_as_leader(batch, leader_epoch=0)
    return manager


def load(manager: LogManager, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Load with three threads; the names of the threads that opened logs."""
    names: set[str] = set()
    open_ = Opening.open

    def noting(opening: Opening) -> None:
        names.add(threading.current_thread().name.rpartition("_")[0])
        open_(opening)

    monkeypatch.setattr(Opening, "open", noting)

    async def work() -> None:
        await load_logs(manager, lambda *_: TOPIC_ID, asyncio.get_running_loop(), 3)

    asyncio.run(work())
    return names


def test_after_a_kill_threads_check_the_logs(
    filled: LogManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.abandon()
    for log in (tmp_path / "a" / "topic-0").glob("*.log"):
        log.write_bytes(log.read_bytes() + b"torn")
    manager = manager_of(tmp_path)
    assert load(manager, monkeypatch) == {"kwire-recovery"}
    assert len(manager.logs()) == PARTITIONS
    for log in manager.logs():
        values = [b"%d %d" % (log.partition, at) for at in range(5)]
        assert [value for _, value in read_all(log)] == values
        # What logs share, they share from now on.
        home = manager.directory_of(log.topic, log.partition)
        assert home is not None
        assert log.local.flusher is home.flusher
        assert log.local.scheduler is manager.scheduler
        now_ms = manager.clock.wall_ms()
        log.append_as_leader(client_batch(1, timestamp=now_ms), leader_epoch=1)
        assert log.log_end_offset == 6
    manager.shutdown()


def test_of_many_logs_a_thread_is_handed_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are opened one by one, side by side: each may be large."""
    manager = manager_of(tmp_path)
    for partition in range(100):
        manager.create("topic", partition, TOPIC_ID)
    manager.abandon()
    rows: list[int] = []
    open_ = loading_logs._open

    def noting(openings: Sequence[Opening]) -> None:
        rows.append(len(openings))
        open_(openings)

    monkeypatch.setattr(loading_logs, "_open", noting)
    manager = manager_of(tmp_path)
    assert load(manager, monkeypatch) == {"kwire-recovery"}
    assert len(manager.logs()) == sum(rows) == 100
    assert rows.count(1) >= 12
    assert 2 <= max(rows) <= loading_logs.OPENED_IN_A_ROW_MAX
    assert len(rows) < 70
    manager.abandon()


def test_after_a_clean_stop_the_loop_opens_them(
    filled: LogManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.shutdown()
    manager = manager_of(tmp_path)
    assert load(manager, monkeypatch) == {""}
    assert len(manager.logs()) == PARTITIONS
    manager.abandon()


def test_one_that_cannot_be_opened_is_named(
    filled: LogManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.abandon()
    metadata = tmp_path / "b" / "topic-3" / "partition.metadata"
    metadata.write_bytes(b"garbage")
    manager = manager_of(tmp_path)
    with pytest.raises(LogDirectoryError, match=str(metadata)):
        load(manager, monkeypatch)
    manager.abandon()
