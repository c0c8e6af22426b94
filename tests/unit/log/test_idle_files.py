"""More partitions that are written to than descriptors: files of those in which little happens are
synced and closed, and opened again by whoever needs them."""

from __future__ import annotations

import errno
from functools import partial
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.log.directories.idle_files import AGAIN_MS, IdleFiles
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.partition.config import LogConfig
from kwire.log.scheduling import ImmediateScheduler
from kwire.log.segment.open_file_limit import ACTIVE_SHARE, OpenSegments
from kwire.log.segment.segment import Segment
from kwire.pending import Pending
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualScheduler, client_batch, read_all
from tests.support.managed_logs import TOPIC_ID, Node

LIMIT = 64
OPEN_MAX = LIMIT // ACTIVE_SHARE
LOGS = 3 * OPEN_MAX


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(SimulatedDisk, "descriptors_max", LIMIT)
    made = Node()
    for number in range(LOGS):
        made.manager.create("topic", number, TOPIC_ID)
    made.scheduler.turn()
    return made


def open_logs(node: Node) -> list[str]:
    return sorted(path for path, _ in node.disk._handles.values() if path.endswith(".log"))


def append_to_all(node: Node, times: int = 1) -> None:
    for _ in range(times):
        for number in range(LOGS):
            node.append("topic", number)
            node.scheduler.turn()


def test_no_more_are_open_than_may_be_and_all_have_what_was_appended(node: Node) -> None:
    append_to_all(node, 3)
    assert OPEN_MAX // 2 <= len(open_logs(node)) <= OPEN_MAX
    for log in node.manager.logs():
        assert len(read_all(log)) == log.log_end_offset == 3
        node.scheduler.turn()
    assert len(open_logs(node)) <= OPEN_MAX
    assert node.failed == []


@pytest.mark.parametrize("is_killed", [False, True])
def test_nothing_is_missing_after_a_start(node: Node, is_killed: bool) -> None:
    append_to_all(node, 2)
    manager = node.kill() if is_killed else node.restart()
    assert [len(read_all(log)) for log in manager.logs()] == [2] * LOGS
    node.scheduler.turn()
    append_to_all(node)
    assert [len(read_all(log)) for log in manager.logs()] == [3] * LOGS


def test_what_is_closed_is_durable(node: Node) -> None:
    """The kernel tells an error of a later write to who has the file open."""
    append_to_all(node, 2)
    files = [f"{log.directory}/{0:020}.log" for log in node.manager.logs()]
    closed = sorted({*files} - {*open_logs(node)})
    assert len(closed) >= LOGS - OPEN_MAX
    assert [path for path in closed if node.disk._file(path).undo] == []


def test_who_is_written_to_again_and_again_stays_open(node: Node) -> None:
    for number in range(LOGS):
        node.append("topic", number)
        node.append("topic", 0)
        node.scheduler.turn()
        assert f"/data/topic-0/{0:020}.log" in open_logs(node)


def test_a_sync_that_fails_takes_the_directory_offline(node: Node) -> None:
    node.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "is broken", path) if operation == "fdatasync" else None
    )
    append_to_all_until_failed(node)
    assert node.failed == ["/data"]
    assert all(log.error is not None for log in node.manager.logs())


def append_to_all_until_failed(node: Node) -> None:
    for log in node.manager.logs():
        if log.error is None:
            log.append_as_leader(client_batch(1), leader_epoch=0)
            node.scheduler.turn()
            node.scheduler.turn()


def test_a_file_that_is_gone_is_not_made_anew(node: Node) -> None:
    append_to_all(node, 2)
    closed = next(
        log for log in node.manager.logs() if f"{log.directory}/{0:020}.log" not in open_logs(node)
    )
    node.disk.unlink(f"{closed.directory}/{0:020}.log")
    closed.append_as_leader(client_batch(1), leader_epoch=0)
    node.scheduler.turn()
    assert closed.error is not None
    assert not node.disk.exists(f"{closed.directory}/{0:020}.log")


def test_a_segment_that_is_the_active_one_again_counts_as_such() -> None:
    """After a truncation into it."""
    disk, files = SimulatedDisk(SeededRandom(1)), OpenSegments(active_max=1)
    disk.make_directory("/log")
    segment = Segment(disk, "/log", 0, LogConfig())
    segment.attach(Flusher(disk, ImmediateScheduler()), files)
    segment.create()
    assert files.is_full
    segment.seal()
    assert not files.is_full
    segment.reopen(LogConfig())
    assert files.is_full


class File:
    """Counts how often it was released."""

    def __init__(self, flusher: Any = None, *, is_sealed: bool = False) -> None:
        self.is_sealed, self.is_used, self.released = is_sealed, True, 0
        self.is_dirty, self.is_closing = True, False
        self.flusher = flusher

    def add_file_to_sync(self, request: SyncRequest) -> None:
        request.handles.append(id(self))

    def release(self) -> None:
        self.released += 1


def test_limits_are_parts_of_what_a_process_may_open() -> None:
    files = OpenSegments.of_descriptors(0)
    for number in range(2000):
        files.opened(File(), number)
    assert files.idle() == []
    small, told = OpenSegments.of_descriptors(160), [0]

    def told_once_more() -> None:
        told[0] += 1

    small.on_many = told_once_more
    active, sealed = [File() for _ in range(81)], [File(is_sealed=True) for _ in range(21)]
    for file in active[:79]:
        small.opened(file, 200)
    assert small.has_room_for(active[79])
    for file in active[79:] + sealed:
        assert not small.has_room_for(active[80]) or file is active[79]
        assert small.has_room_for(sealed[0])
        small.opened(file, 200)
    assert told == [1]
    assert [file.released for file in sealed] == [1] + [0] * 20
    active[0].is_used = True
    assert small.idle() == active[:11]
    assert small.idle() == active[11:22]  # the others are about to be closed
    for file in active:
        file.is_closing = False
    active[3].is_used = True
    assert small.idle() == [*active[:3], *active[4:12]]


def test_the_number_of_a_descriptor_tells_when_others_have_taken_nearly_all() -> None:
    files, told = OpenSegments.of_descriptors(160, gives_lowest=True), []
    files.on_many = lambda: told.append(True)
    active, sealed = File(), File(is_sealed=True)
    files.opened(sealed, 20)
    files.opened(active, 139)
    assert (told, files.is_over) == ([], False)
    files.opened(active, 140)
    assert (told, files.is_over) == ([True], True)
    assert not files.has_room_for(active)
    assert not files.has_room_for(sealed)
    assert files.idle() == [active]
    files.admit()
    assert sealed.released == 1
    assert files.has_room_for(active)
    files.refused()  # no file could be opened at all
    assert not files.has_room_for(sealed)


class Syncs:
    """Stands for a Flusher whose syncs end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[SyncRequest] = []
        self.ends: list[Pending[None]] = []

    def request(self, request: SyncRequest) -> Pending[None]:
        self.asked.append(request)
        self.ends.append(Pending())
        return self.ends[-1]


def test_what_is_written_to_or_sealed_while_it_is_synced_stays_open() -> None:
    syncs, scheduler, files = Syncs(), ManualScheduler(), OpenSegments(active_max=32)
    IdleFiles(files, scheduler, lambda flusher, error: None, lambda: None)
    opened = [File(syncs) for _ in range(36)]
    for file in opened:
        files.opened(file, 0)
    assert syncs.asked == []  # who opens one may be about to sync others by their handles
    scheduler.turn()
    picked = opened[:8]
    assert [request.handles for request in syncs.asked] == [[id(file) for file in picked]]
    files.opened(File(syncs), 0)
    scheduler.turn()
    assert len(syncs.asked) == 1  # one sweep after the other
    went_on: list[int] = []
    for number in (2, 7):
        assert picked[number].is_closing
        files.wait(picked[number], lambda number=number: went_on.append(number))  # type: ignore[misc]
    picked[2].is_dirty = picked[5].is_sealed = True
    picked[3].is_used = True
    assert went_on == []
    syncs.ends[0].complete(None)
    assert [file.released for file in picked] == [1, 1, 0, 1, 1, 0, 1, 1]
    assert [file.released for file in opened[8:]] == [0] * 28
    assert not any(file.is_closing for file in opened)
    assert went_on[0] == 2  # who stays open goes on first


def test_who_waits_goes_on_in_order_and_a_sweep_that_was_not_enough_is_repeated() -> None:
    syncs, scheduler, files = Syncs(), ManualScheduler(), OpenSegments(active_max=8)
    IdleFiles(files, scheduler, lambda flusher, error: None, lambda: None)
    opened, others = [File(syncs) for _ in range(8)], [File(syncs) for _ in range(20)]
    for file in opened:
        files.opened(file, 0)
        file.release = lambda file=file: files.closed(file)  # type: ignore[method-assign, misc]
    went_on: list[File] = []

    def go_on(file: File) -> None:
        went_on.append(file)
        files.opened(file, 0)
        file.release = lambda: files.closed(file)  # type: ignore[method-assign]

    for file in others:
        assert not files.has_room_for(file)
        files.wait(file, partial(go_on, file))
    for _ in range(40):
        scheduler.turn()
        for file in opened + others:
            file.is_used = True  # all are used all the time
        for end in syncs.ends:
            if not end.done:
                end.complete(None)
        scheduler.advance(AGAIN_MS)
    assert went_on == others
    assert not files.is_over
    asked = len(syncs.asked)
    scheduler.turn()
    scheduler.advance(AGAIN_MS)
    assert len(syncs.asked) == asked  # and then there is peace
