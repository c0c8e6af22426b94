"""The log on a real event loop with a one-worker executor."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kwire.clock import SystemClock
from kwire.log.files import SystemFiles
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.partition.config import LogConfig
from kwire.log.recovery.opening import open_log
from kwire.log.scheduling import ImmediateScheduler, LoopScheduler
from tests.support.logs import client_batch, read_all


def test_appends_complete_in_order_after_their_sync(tmp_path: Path) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as executor:
            log = open_log(
                str(tmp_path / "topic-0"),
                "topic",
                0,
                bytes(16),
                LogConfig(flush_messages=1),
                SystemClock(),
                scheduler=LoopScheduler(loop, executor),
            )
            order: list[int] = []
            finished = asyncio.Event()
            for at in range(50):
                now_ms = log.clock.wall_ms()
                info = log.append_as_leader(client_batch(2, timestamp=now_ms), leader_epoch=0)

                def written(done: object, at: int = at) -> None:
                    order.append(at)
                    assert log.log_end_offset >= 2 * at + 2
                    if at == 49:
                        finished.set()

                info.written.add_done_callback(written)
                if at % 7 == 6:
                    await asyncio.sleep(0)
            assert log.log_end_offset < 100
            await asyncio.wait_for(finished.wait(), 30)
            assert order == list(range(50))
            assert log.recovery_point == 100
            assert len(read_all(log)) == 100
            log.close(sync=True)

    asyncio.run(run())


def test_jobs_report_results_and_errors() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as executor:
            scheduler = LoopScheduler(loop, executor)
            good = scheduler.run(lambda: 5)
            bad = scheduler.run(lambda: 1 // 0)
            turn = asyncio.Event()
            scheduler.call_soon(turn.set)
            fired = asyncio.Event()
            scheduler.call_later(1, fired.set)
            never = asyncio.Event()
            scheduler.call_later(1, never.set).cancel()
            both = asyncio.Event()
            bad.add_done_callback(lambda _: both.set())
            await asyncio.wait_for(asyncio.gather(turn.wait(), fired.wait(), both.wait()), 30)
            assert good.result() == 5
            assert isinstance(bad.error(), ZeroDivisionError)
            assert not never.is_set()

    asyncio.run(run())


def test_what_is_asked_for_in_the_turn_of_the_stop_raises_nothing() -> None:
    """A move that switched over just before left a traceback: its sync came after the stop."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        problems: list[object] = []
        loop.set_exception_handler(lambda _, context: problems.append(context))
        scheduler = LoopScheduler(loop, ThreadPoolExecutor(1))
        flusher = Flusher(SystemFiles(), scheduler)
        request = SyncRequest()
        request.directories.append("/")
        asked = flusher.request(request)
        scheduler.close()
        await asyncio.sleep(0)
        later = asyncio.Event()
        scheduler.call_later(1, later.set)
        await asyncio.wait_for(later.wait(), 30)
        assert problems == []
        assert asked.error() is None

    asyncio.run(run())


def test_without_a_loop_everything_happens_now() -> None:
    scheduler = ImmediateScheduler()
    done: list[int] = []
    scheduler.call_soon(lambda: done.append(1))
    scheduler.call_later(0, lambda: done.append(2)).cancel()
    assert scheduler.run(lambda: 3).result() == 3
    with pytest.raises(ZeroDivisionError):
        scheduler.run(lambda: 1 // 0).result()
    assert done == [1]
