"""Making logs durable: rounds off the loop, each of which syncs what all partitions asked for.

Requests that arrive while a round runs share the next one (group commit). Where the kernel syncs
by itself (`kernel_syncs`) two rounds may be under way, so that who waits for the first does not
keep the others from theirs; they end in the order in which they began. A failed sync is never
repeated: whoever asked hears of it, and so does whoever asked behind it, because the kernel may
report an error to one of two syncs of a file only. The log directory goes offline.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from kwire.log.files import Files
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending, gather

PARALLEL_SYNCS_MIN = 64
SYNC_THREADS = 16
ROUNDS_MAX = 2  # under way, where syncs need no thread


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


class Syncs(Protocol):
    """Syncs of open files that need no thread of ours."""

    @property
    def is_available(self) -> bool: ...
    def sync(self, handles: list[int]) -> Pending[None]: ...


class _Round:
    """What is synced together, who waits for it, and the files to be closed after it."""

    __slots__ = ("error", "is_over", "request", "retired", "waiting")

    def __init__(self) -> None:
        self.request = SyncRequest()
        self.waiting: list[Pending[None]] = []
        self.retired: list[int] = []
        self.is_over = False
        self.error: Exception | None = None


class Flusher:
    """Groups the fdatasync calls of one log directory; called from the loop's thread only.

    `error` is that of the first sync that failed: nothing is synced any more behind it.
    """

    def __init__(self, files: Files, scheduler: Scheduler, syncs: Syncs | None = None) -> None:
        self._files = files
        self._scheduler = scheduler
        self._syncs = syncs
        self._rounds_max = ROUNDS_MAX
        self._rounds: list[_Round] = []  # under way, in the order of their beginning
        self._next = _Round()
        self._is_scheduled = False
        self.error: Exception | None = None

    def retire(self, handle: int) -> None:
        """Close a file, once no round that may sync it is under way or waits."""
        if self._next.waiting:
            self._next.retired.append(handle)
        elif self._rounds:
            self._rounds[-1].retired.append(handle)
        else:
            self._files.close(handle)

    def request(self, request: SyncRequest) -> Pending[None]:
        """Sync these files; fails with the OSError of a sync of the same round or one before."""
        pending: Pending[None] = Pending()
        self._next.waiting.append(pending)
        self._next.request.add(request)
        if len(self._rounds) < self._rounds_max and not self._is_scheduled:
            self._is_scheduled = True
            self._scheduler.call_soon(self._start)
        return pending

    def _start(self) -> None:
        """Begin the next round, if there is room for it and something to do."""
        self._is_scheduled = False
        if len(self._rounds) >= self._rounds_max or not self._next.waiting:
            return
        round_, self._next = self._next, _Round()
        self._rounds.append(round_)
        if self.error is None:
            job = self._sync(round_.request)
        else:
            job = Pending.failed(self.error)
        job.add_done_callback(lambda done: self._finished(round_, done.error()))

    def _sync(self, request: SyncRequest) -> Pending[None]:
        files, syncs = self._files, self._syncs
        if syncs is None or not syncs.is_available:
            self._rounds_max = 1  # a thread makes one after the other
            return self._scheduler.run(lambda: sync_files(files, request))
        if not request.handles:
            return self._scheduler.run(lambda: sync_files(files, request))
        synced = syncs.sync(list(dict.fromkeys(request.handles)))
        if not request.paths and not request.directories:
            return synced
        request.handles = []
        others = self._scheduler.run(lambda: sync_files(files, request))
        result: Pending[None] = Pending()

        def settled(done: Pending[list[Pending[None]]]) -> None:
            error = synced.error() or others.error()
            if error is not None:
                result.fail(error)
            else:
                result.complete(None)

        gather([synced, others]).add_done_callback(settled)
        return result

    def _finished(self, round_: _Round, error: Exception | None) -> None:
        """A round is over: answer it and those behind it that were, in their order."""
        round_.is_over, round_.error = True, error
        while self._rounds and self._rounds[0].is_over:
            first = self._rounds.pop(0)
            self.error = self.error or first.error
            if not self._is_scheduled:
                self._start()  # before those who waited begin to answer
            for pending in first.waiting:
                if self.error is not None:
                    pending.fail(self.error)
                else:
                    pending.complete(None)
            for handle in first.retired:
                self._files.close(handle)


def sync_files(files: Files, request: SyncRequest) -> None:
    """Sync everything asked for; raises the OSError of the first that fails.

    Many files are synced by many threads where the files allow it: the file system's journal takes
    along what waits for it at the same moment (2,500 files of 500 partitions: 0.3 s instead of 8).
    Contents come before the directories that name them.
    """
    handles, paths = dict.fromkeys(request.handles), dict.fromkeys(request.paths)
    directories = dict.fromkeys(request.directories)
    is_parallel = getattr(files, "syncs_in_parallel", False)
    if not is_parallel or len(handles) + len(paths) + len(directories) < PARALLEL_SYNCS_MIN:
        for handle in handles:
            files.fdatasync(handle)
        for path in paths:
            _sync_path(files, path)
        for directory in directories:
            _sync_directory(files, directory)
        return
    jobs = [partial(files.fdatasync, handle) for handle in handles]
    jobs += [partial(_sync_path, files, path) for path in paths]
    entries = [partial(_sync_directory, files, directory) for directory in directories]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(SYNC_THREADS, thread_name_prefix="kwire-sync-many") as threads:
        for stage in (jobs, entries):
            for synced in [threads.submit(job) for job in stage]:
                synced.result()


def _sync_path(files: Files, path: str) -> None:
    try:
        handle = files.open(path)
    except FileNotFoundError:
        return  # deleted since
    try:
        files.fdatasync(handle)
    finally:
        files.close(handle)


def _sync_directory(files: Files, directory: str) -> None:
    try:
        files.sync_directory(directory)
    except FileNotFoundError:
        return
