"""The system's files with faults on command: a full disk, a slow one, and one that loses power.

What is written and not synced yet is known file by file: the size that was synced, and what has
been written over below it. `lose_power` takes it back. A rename, a truncation and a removal count
as synced, and so does what a sync that has begun is about to keep.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence

from kwire.log.files import Buffer, SystemFiles

SPARED = "/__cluster_metadata-0/"
"""The metadata log is never full: a controller without it is gone, which `kill` does as well."""


class _Unsynced:
    """Of one file: its size when it was synced last, and (position, bytes) below it that have been
    written over since."""

    __slots__ = ("overwritten", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.overwritten: list[tuple[int, bytes]] = []


class FaultyFiles(SystemFiles):
    """`is_full`: writes fail with ENOSPC. A sync takes `sync_ms` longer; a write to a log waits
    `write_delay_ms`, and the loop does not (`write_buffer.py`).

    With `is_synced` off nothing is synced really: a temporary directory need not outlive this
    machine. What a loss of power would take is the same.
    """

    def __init__(self, *, is_synced: bool = True) -> None:
        super().__init__()
        self.is_full = False
        self.sync_ms = 0
        self.write_delay_ms = 0
        self._is_synced = is_synced
        self._paths: dict[int, str] = {}
        self._unsynced: dict[str, _Unsynced] = {}

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        is_new = create and not os.path.exists(path)
        handle = super().open(path, create=create, writable=writable)
        self._paths[handle] = path
        if is_new:
            self._unsynced[path] = _Unsynced(0)
        return handle

    def close(self, handle: int) -> None:
        self._paths.pop(handle, None)
        super().close(handle)

    def pwritev(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        path = self._paths.get(handle, "")
        self._check_space(path)
        unsynced = self._unsynced.get(path)
        if unsynced is None:
            unsynced = self._unsynced[path] = _Unsynced(self.size(handle))
        if position < unsynced.size_bytes:
            size_bytes = min(sum(map(len, buffers)), unsynced.size_bytes - position)
            unsynced.overwritten.append((position, self.pread(handle, size_bytes, position)))
        return super().pwritev(handle, buffers, position)

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        self._check_space(self._paths.get(handle, ""))
        return super().allocate(handle, position, size_bytes)

    @property
    def syncs_at_once(self) -> bool:
        """Whether a sync is nothing that somebody would have to wait for."""
        return not self._is_synced and not self.sync_ms

    def fdatasync(self, handle: int) -> None:
        if self.sync_ms:
            time.sleep(self.sync_ms / 1000)
        self._unsynced.pop(self._paths.get(handle, ""), None)
        if self._is_synced:
            super().fdatasync(handle)

    def sync_directory(self, path: str) -> None:
        if self._is_synced:
            super().sync_directory(path)

    def truncate(self, handle: int, size_bytes: int) -> None:
        super().truncate(handle, size_bytes)
        unsynced = self._unsynced.get(self._paths.get(handle, ""))
        if unsynced is not None:
            unsynced.size_bytes = min(unsynced.size_bytes, size_bytes)

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        for handle, path in list(self._paths.items()):  # other threads open files meanwhile
            if (moved := _moved(path, source, target)) != path:
                self._paths[handle] = moved
        self._unsynced.pop(target, None)
        for path in list(self._unsynced):
            if (moved := _moved(path, source, target)) != path:
                self._unsynced[moved] = self._unsynced.pop(path)

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._unsynced.pop(path, None)

    def unsynced(self) -> list[str]:
        """The files that a loss of power would change."""
        return list(self._unsynced)

    def lose_power(self) -> int:
        """Take back what was not synced; how many files have lost something.

        Whoever wrote them must be gone.
        """
        lost = 0
        unsynced, self._unsynced = self._unsynced, {}
        for path, one in unsynced.items():
            try:
                with open(path, "r+b") as file:
                    size_bytes = os.fstat(file.fileno()).st_size
                    for position, data in reversed(one.overwritten):
                        file.seek(position)
                        # What was cut off stays so.
                        file.write(data[: max(0, one.size_bytes - position)])
                    if size_bytes > one.size_bytes:
                        file.truncate(one.size_bytes)
                    lost += bool(one.overwritten) or size_bytes > one.size_bytes
            except FileNotFoundError:
                continue
        return lost

    def _check_space(self, path: str) -> None:
        if self.is_full and SPARED not in path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _moved(path: str, source: str, target: str) -> str:
    """What a path is called when `source`, a file or a directory, has become `target`."""
    if path == source:
        return target
    return target + path[len(source) :] if path.startswith(f"{source}/") else path
