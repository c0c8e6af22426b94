"""Syncing many files: at the same time where the files allow it, contents before directories."""

from __future__ import annotations

import errno
import os
import pathlib
import threading

import pytest

from kwire.log import flushing
from kwire.log.files import NotBegunError, SystemFiles
from kwire.log.flushing import SyncRequest, sync_files


class Recording(SystemFiles):
    """Syncs nothing; keeps what it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[int, str] = {}
        self.synced: list[str] = []
        self.failing = ""
        self.meeting: threading.Barrier | threading.Event | None = None
        self._met = threading.local()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        handle = super().open(path, create=create, writable=writable)
        self.names[handle] = path
        return handle

    def fdatasync(self, handle: int) -> None:
        if self.meeting is not None and not hasattr(self._met, "others"):
            self.meeting.wait(30)  # once: of what is left at the end a thread may have no share
            self._met.others = True
        path = self.names[handle]
        self.synced.append(path)
        if path == self.failing:
            raise OSError(errno.EIO, "broken")

    def sync_directory(self, path: str) -> None:
        if not os.path.isdir(path):
            raise FileNotFoundError(path)
        self.synced.append(path)


def many(directory: pathlib.Path, count: int) -> SyncRequest:
    request = SyncRequest()
    for number in range(count):
        path = directory / f"{number}"
        path.mkdir()
        (path / "0.log").write_bytes(b"x")
        request.paths += [f"{path}/0.log", f"{path}/deleted.index"]
        request.directories.append(f"{path}")
    request.directories.append(f"{directory}/gone")
    return request


def test_many_files_are_synced_at_the_same_time(tmp_path: pathlib.Path) -> None:
    """A stop synced file after file: three thousand partitions took a minute of a busy disk."""
    files = Recording()
    files.meeting = threading.Barrier(flushing.SYNC_THREADS)
    sync_files(files, many(tmp_path, 4 * flushing.SYNC_THREADS))
    assert len(files.synced) == 8 * flushing.SYNC_THREADS


@pytest.mark.parametrize("count", [3, 100])
def test_contents_come_before_the_directories_that_name_them(
    tmp_path: pathlib.Path, count: int
) -> None:
    files = Recording()
    request = many(tmp_path, count)
    sync_files(files, request)
    assert sorted(files.synced[:count]) == sorted(request.paths[::2])
    assert sorted(files.synced[count:]) == sorted(request.directories[:-1])


@pytest.mark.parametrize("count", [3, 100])
def test_the_first_failure_is_told_and_no_directory_is_synced(
    tmp_path: pathlib.Path, count: int
) -> None:
    files = Recording()
    request = many(tmp_path, count)
    files.failing = request.paths[2]
    with pytest.raises(OSError, match="broken"):
        sync_files(files, request)
    assert not set(files.synced) & set(request.directories)


@pytest.mark.parametrize(("threads", "is_tried_again"), [(0, True), (1, False)])
def test_without_threads_for_syncs_there_is_an_error_of_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, threads: int, is_tried_again: bool
) -> None:
    """A stop ended by "can't start new thread" with the other log directories still open. Where
    one thread was there, something may have failed that nobody hears of."""
    files, begin, begun = Recording(), threading.Thread.start, []
    refused = threading.Event()

    def start(thread: threading.Thread) -> None:
        if len(begun) == threads:
            refused.set()
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        begin(thread)

    request = many(tmp_path, 100)
    monkeypatch.setattr(threading.Thread, "start", start)
    files.meeting = refused  # one whose first sync is over would be given the others too
    with pytest.raises(OSError, match="can't start new thread") as caught:
        sync_files(files, request)
    assert isinstance(caught.value, NotBegunError) == is_tried_again
