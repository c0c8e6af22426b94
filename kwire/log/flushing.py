"""Making logs durable: one job at a time off the loop, which syncs what all partitions asked for.

Requests that arrive while a job runs share the next one (group commit). A failed sync is never
repeated: whoever asked hears of it, and the log directory goes offline.
"""

from __future__ import annotations

from kwire.log.files import Files
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending


class SyncRequest:
    """What to sync: open files, files by their path (sealed indexes), directories' entries."""

    __slots__ = ("directories", "handles", "paths")

    def __init__(self) -> None:
        self.handles: list[int] = []
        self.paths: list[str] = []
        self.directories: list[str] = []

    def add(self, other: SyncRequest) -> None:
        self.handles += other.handles
        self.paths += other.paths
        self.directories += other.directories


class Flusher:
    """Groups the fdatasync calls of one log directory; called from the loop's thread only."""

    def __init__(self, files: Files, scheduler: Scheduler) -> None:
        self._files = files
        self._scheduler = scheduler
        self._waiting: list[Pending[None]] = []
        self._request = SyncRequest()
        self._is_scheduled = False
        self._is_busy = False
        self._retired: list[int] = []

    def retire(self, handle: int) -> None:
        """Close a file, once no job that may sync it is under way or waits."""
        if self._is_busy or self._waiting:
            self._retired.append(handle)
        else:
            self._files.close(handle)

    def request(self, request: SyncRequest) -> Pending[None]:
        """Sync these files; fails with the OSError of a sync of the same job."""
        pending: Pending[None] = Pending()
        self._waiting.append(pending)
        self._request.add(request)
        if not self._is_busy and not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.call_soon(self._start)
        return pending

    def _start(self) -> None:
        self._is_scheduled = False
        if self._is_busy or not self._waiting:
            return
        self._is_busy = True
        waiting, self._waiting = self._waiting, []
        request, self._request = self._request, SyncRequest()
        job = self._scheduler.run(lambda: sync_files(self._files, request))
        job.add_done_callback(lambda done: self._finished(done, waiting))

    def _finished(self, done: Pending[None], waiting: list[Pending[None]]) -> None:
        self._is_busy = False
        error = done.error()
        for pending in waiting:
            if error is not None:
                pending.fail(error)
            else:
                pending.complete(None)
        if self._waiting and not self._is_busy and not self._is_scheduled:
            self._start()
        if self._retired and not self._is_busy and not self._waiting:
            retired, self._retired = self._retired, []
            for handle in retired:
                self._files.close(handle)


def sync_files(files: Files, request: SyncRequest) -> None:
    """Sync everything asked for; raises the OSError of the first that fails."""
    for handle in dict.fromkeys(request.handles):
        files.fdatasync(handle)
    for path in dict.fromkeys(request.paths):
        try:
            handle = files.open(path)
        except FileNotFoundError:
            continue  # deleted since
        try:
            files.fdatasync(handle)
        finally:
            files.close(handle)
    for directory in dict.fromkeys(request.directories):
        try:
            files.sync_directory(directory)
        except FileNotFoundError:
            continue
