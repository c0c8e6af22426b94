"""The files of a broker that runs in a thread: they can be closed all at once, as a kill does."""

from __future__ import annotations

from kwire.log.faulty_files import FaultyFiles
from kwire.log.files import abandon_lock


class ThreadFiles(FaultyFiles):
    """The system's files, with a list of what is open. `is_synced`: a temporary directory need not
    outlive this machine, so that nothing is synced there."""

    def __init__(self, *, is_synced: bool) -> None:
        super().__init__(is_synced=is_synced)
        self._open: set[int] = set()
        self._locks: set[int] = set()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        handle = super().open(path, create=create, writable=writable)
        self._open.add(handle)
        return handle

    def close(self, handle: int) -> None:
        self._open.discard(handle)
        super().close(handle)

    def lock(self, path: str) -> int:
        handle = super().lock(path)
        self._locks.add(handle)
        return handle

    def release_lock(self, handle: int, path: str) -> None:
        self._locks.discard(handle)
        super().release_lock(handle, path)

    def abandon(self) -> None:
        """Close everything as the end of a process does; nobody may use these files any more."""
        for handle in sorted(self._open):
            super().close(handle)
        for handle in sorted(self._locks):
            abandon_lock(handle)
        self._open.clear()
        self._locks.clear()
