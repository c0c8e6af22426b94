"""The files of a broker that runs in a thread: they can be closed all at once, as a kill does, and
they never write into a file that has another name too.

A snapshot shares its files with its broker by hard links (`copies.py`). Whoever is about to
change a file here, by a write, by cutting or by reserving space, first gets a copy of it in its
place, under the same name and the same handle: what other names lead to stays as it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from kwire.log.faulty_files import FaultyFiles
from kwire.log.files import Buffer, SystemFiles, abandon_lock
from kwire.testing.brokers.copies import copy_file

PARTED_SUFFIX = ".parted"


class ThreadFiles(FaultyFiles):
    """The system's files, with faults on command. `is_synced`: a temporary directory need not
    outlive this machine, so that nothing is synced there."""

    def __init__(self, *, is_synced: bool) -> None:
        super().__init__(is_synced=is_synced)
        self._alone: set[int] = set()
        """Handles whose files have one name, as they had at the last snapshot."""
        self._locks: set[int] = set()
        self._closing = threading.Lock()
        """Threads close files while others part one from its names: a number that is closed may be
        that of another file at once."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        handle = super().open(path, create=create, writable=writable)
        self._alone.discard(handle)
        return handle

    def close(self, handle: int) -> None:
        self._alone.discard(handle)
        with self._closing:
            super().close(handle)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        if handle not in self._alone:
            self._part(handle)
        return super().pwritev(handle, buffers, position)

    def truncate(self, handle: int, size_bytes: int) -> None:
        if handle not in self._alone:
            self._part(handle)
        super().truncate(handle, size_bytes)

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        if handle not in self._alone:
            self._part(handle)
        return super().allocate(handle, position, size_bytes)

    def set_modified_ms(self, path: str, wall_ms: int) -> None:
        self._part_path(path, os.stat(path))
        super().set_modified_ms(path, wall_ms)

    def links_were_made(self) -> None:
        """Files may have got other names: look again before they are changed."""
        self._alone.clear()

    def _part(self, handle: int) -> None:
        self._part_path(self._paths[handle], os.fstat(handle))
        self._alone.add(handle)

    def _part_path(self, path: str, status: os.stat_result) -> None:
        """Give a file with this status, which has this path, no other name."""
        if status.st_nlink <= 1:
            return
        with self._closing:
            # Handles of this broker that lead to the file go on with the copy.
            same = [
                one
                for one, of in list(self._paths.items())
                if of == path and os.fstat(one).st_ino == status.st_ino
            ]
            self._own_copy(path)
            for one in same:
                mine = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                os.dup2(mine, one, inheritable=False)
                os.close(mine)
            self._windows.clear()  # what is mapped is the other file

    def _own_copy(self, path: str) -> None:
        """Put a copy in the place of a file; what other names lead to stays. The copy is synced
        first: nobody syncs again what was synced of the file."""
        draft = path + PARTED_SUFFIX
        if os.path.exists(draft):
            os.unlink(draft)
        copy_file(path, draft)
        if self._is_synced:
            disk = SystemFiles()
            handle = disk.open(draft, writable=False)
            try:
                disk.fdatasync(handle)
            finally:
                disk.close(handle)
        os.rename(draft, path)
        self.sync_directory(os.path.dirname(path))

    def lose_power(self) -> int:
        for path in self.unsynced():
            if os.path.exists(path):
                self._part_path(path, os.stat(path))
        return super().lose_power()

    def lock(self, path: str) -> int:
        handle = super().lock(path)
        self._locks.add(handle)
        return handle

    def release_lock(self, handle: int, path: str) -> None:
        self._locks.discard(handle)
        super().release_lock(handle, path)

    def abandon(self) -> None:
        """Close everything as the end of a process does; nobody may use these files any more."""
        for handle in sorted(self._paths):
            super().close(handle)
        for handle in sorted(self._locks):
            abandon_lock(handle)
        self._locks.clear()
