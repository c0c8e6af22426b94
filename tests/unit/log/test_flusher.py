"""Rounds of syncs: who shares one, in which order they end, what a failure takes along."""

from __future__ import annotations

import asyncio
import errno
import os
import pathlib

import pytest

from kwire.clock import SeededRandom
from kwire.log.faulty_files import FaultyFiles
from kwire.log.files import NotBegunError
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.kernel_syncs import IN_FLIGHT_MAX, KernelSyncs
from kwire.pending import Pending
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualScheduler


class ManualSyncs:
    """Syncs that end when the test says so."""

    is_available = True

    def __init__(self) -> None:
        self.begun: list[tuple[list[int], Pending[None]]] = []

    def sync(self, handles: list[int]) -> Pending[None]:
        pending: Pending[None] = Pending()
        self.begun.append((handles, pending))
        return pending


class Syncing:
    """A flusher over manual syncs, and what it has closed."""

    def __init__(self) -> None:
        self.closed: list[int] = []
        self.disk = SimulatedDisk(SeededRandom(1))
        self.disk.close = self.closed.append  # type: ignore[method-assign]
        self.syncs = ManualSyncs()
        self.scheduler = ManualScheduler()
        self.flusher = Flusher(self.disk, self.scheduler, self.syncs)

    def ask(self, *handles: int, directory: str = "") -> Pending[None]:
        request = SyncRequest()
        request.handles += handles
        if directory:
            request.directories.append(directory)
        pending = self.flusher.request(request)
        self.scheduler.turn()
        return pending

    @property
    def begun(self) -> list[list[int]]:
        return [handles for handles, _ in self.syncs.begun]


def test_two_rounds_are_under_way_and_the_rest_share_the_third() -> None:
    world = Syncing()
    asked = [world.ask(7), world.ask(7), world.ask(7), world.ask(8), world.ask(7)]
    assert world.begun == [[7], [7]]
    world.syncs.begun[0][1].complete(None)
    assert [one.done for one in asked] == [True, False, False, False, False]
    assert world.begun == [[7], [7], [7, 8]]
    world.syncs.begun[1][1].complete(None)
    world.syncs.begun[2][1].complete(None)
    assert all(one.done and one.error() is None for one in asked)


def test_rounds_end_in_the_order_in_which_they_began() -> None:
    world = Syncing()
    first, second = world.ask(7), world.ask(7)
    world.syncs.begun[1][1].complete(None)
    assert not first.done
    assert not second.done
    world.syncs.begun[0][1].complete(None)
    assert first.done
    assert second.done


def test_a_failure_is_that_of_the_rounds_behind_it_too() -> None:
    """The kernel reports an error to one sync of a file; the other one may return as if well."""
    world = Syncing()
    first, second, third = world.ask(7), world.ask(7), world.ask(7)
    world.syncs.begun[1][1].complete(None)
    world.syncs.begun[0][1].fail(OSError("gone"))
    for one in (first, second, third, world.ask(9)):
        assert isinstance(one.error(), OSError)
    assert len(world.begun) == 2, "a sync was tried again"


@pytest.mark.parametrize("not_begun", [False, True])
def test_a_failure_behind_a_round_that_is_not_over_is_its_failure_too(not_begun: bool) -> None:
    """The error of what the first round was to sync may have been told to the second one."""
    world = Syncing()
    first, second = world.ask(7), world.ask(7)
    if not_begun:
        world.syncs.begun[0][1].fail(NotBegunError(errno.EAGAIN, "no room"))
    world.syncs.begun[1][1].fail(OSError("gone"))
    world.syncs.begun[0][1].complete(None)
    world.scheduler.advance(1000)
    for one in (first, second):
        assert isinstance(one.error(), OSError)
    assert len(world.begun) == 2, "a sync was tried again"


def test_a_file_is_closed_when_no_round_may_sync_it() -> None:
    world = Syncing()
    world.flusher.retire(1)
    assert world.closed == [1]
    world.ask(7)
    world.flusher.retire(2)
    world.ask(7)
    world.ask(7)  # waits
    world.flusher.retire(3)
    world.syncs.begun[0][1].complete(None)
    assert world.closed == [1, 2]
    world.syncs.begun[1][1].complete(None)
    assert world.closed == [1, 2]
    world.syncs.begun[2][1].complete(None)
    assert world.closed == [1, 2, 3], "a busy disk never closes anything"


@pytest.mark.parametrize("comes_back", [True, False])
@pytest.mark.parametrize("is_late", [True, False])
def test_a_round_that_cannot_be_begun_at_the_end_is_tried_again_for_a_while(
    comes_back: bool, is_late: bool
) -> None:
    """Connections that are closed at a stop give their descriptors back in the next turns: the
    directory went offline for a lack that was over then."""
    world = Syncing()
    short = NotBegunError(errno.EMFILE, "no descriptor")
    asked = world.ask(7)
    if is_late:  # it has waited long by now
        for _ in range(10):
            world.syncs.begun[-1][1].fail(short)
            world.scheduler.advance(1000)
    ended = world.flusher.end()
    world.syncs.begun[-1][1].fail(short)
    assert not asked.done
    if comes_back:
        world.scheduler.advance(1000)
        world.syncs.begun[-1][1].complete(None)
        world.scheduler.turn()
        assert asked.error() is None
        assert ended.error() is None
        return
    began_ms = world.scheduler.now_ms
    while not asked.done:
        world.scheduler.advance(100)
        if not world.syncs.begun[-1][1].done:
            world.syncs.begun[-1][1].fail(short)
        assert world.scheduler.now_ms < began_ms + 10_000, "a stop waits for ever"
    assert asked.error() is short
    world.scheduler.turn()
    assert ended.error() is short


def test_directories_are_part_of_the_round() -> None:
    world = Syncing()
    world.disk.make_directory("/data")
    world.scheduler.holds_jobs = True
    asked = world.ask(7, directory="/data")
    world.syncs.begun[0][1].complete(None)
    assert not asked.done
    world.scheduler.run_jobs()
    assert asked.done
    missing = world.ask(8)
    world.syncs.begun[1][1].complete(None)
    assert missing.error() is None


def run(work: object) -> None:
    asyncio.run(work)  # type: ignore[arg-type]


async def _settled(pending: Pending[None]) -> Exception | None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    pending.add_done_callback(lambda _: future.set_result(None))
    await future
    return pending.error()


def test_the_kernel_syncs_more_files_than_it_takes_at_once(tmp_path: pathlib.Path) -> None:
    async def work() -> None:
        syncs = KernelSyncs(asyncio.get_running_loop())
        if not syncs.is_available:
            pytest.skip("this kernel gives no asynchronous syncs")
        count = 2 * IN_FLIGHT_MAX + 10
        handles = [os.open(tmp_path / str(at), os.O_CREAT | os.O_RDWR) for at in range(count)]
        for handle in handles:
            os.write(handle, b"data")
        groups = [syncs.sync(handles), syncs.sync(handles[:3]), syncs.sync([])]
        for group in groups:
            assert await _settled(group) is None
        for handle in handles:
            os.close(handle)
        # A file that is not there, and one that cannot be synced: told, the others are synced.
        reading, writing = os.pipe()
        handle = os.open(tmp_path / "0", os.O_RDWR)
        for bad in (handles[-1], reading):
            error = await _settled(syncs.sync([handle, bad]))
            assert isinstance(error, OSError)
            assert await _settled(syncs.sync([handle])) is None
        for one in (reading, writing, handle):
            os.close(one)
        syncs.close()

    run(work())


def test_without_the_kernels_syncs_threads_make_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise OSError("not here")

    async def work() -> None:
        monkeypatch.setattr("kwire.log.kernel_syncs._Context", refused)
        syncs = KernelSyncs(asyncio.get_running_loop())
        assert not syncs.is_available
        disk, scheduler = SimulatedDisk(SeededRandom(1)), ManualScheduler()
        disk.make_directory("/data")
        handle = disk.open("/data/file", create=True)
        flusher, asked = Flusher(disk, scheduler, syncs), []
        scheduler.holds_jobs = True
        for _ in range(3):
            request = SyncRequest()
            request.handles.append(handle)
            asked.append(flusher.request(request))
            scheduler.turn()
        scheduler.run_jobs()
        assert [one.done for one in asked] == [True, False, False]
        scheduler.run_jobs()
        assert all(one.done for one in asked)
        syncs.close()

    run(work())


def test_syncs_that_are_nothing_take_no_thread(tmp_path: pathlib.Path) -> None:
    """Of a temporary directory; a slow disk on command is waited for by a thread as ever."""
    files, scheduler = FaultyFiles(is_synced=False), ManualScheduler()
    flusher = Flusher(files, scheduler)
    scheduler.holds_jobs = True

    def asked() -> Pending[None]:
        path = str(tmp_path / "log")
        handle = files.open(path, create=True)
        files.pwritev(handle, [b"x"], 0)
        assert files.unsynced() == [path]
        request = SyncRequest()
        request.handles.append(handle)
        pending = flusher.request(request)
        scheduler.turn()
        return pending

    assert asked().done
    assert files.unsynced() == []
    files.sync_ms = 1
    slow = asked()
    assert not slow.done
    scheduler.run_jobs()
    scheduler.turn()
    assert slow.done
    assert files.unsynced() == []
    assert not FaultyFiles(is_synced=True).syncs_at_once
