"""Making logs durable: rounds off the loop, each of which syncs what all partitions asked for.

Requests that arrive while a round runs share the next one (group commit). Where the kernel syncs
by itself (`kernel_syncs`) two rounds may be under way, so that who waits for the first does not
keep the others from theirs; they end in the order in which they began. A failed sync is never
repeated: whoever asked hears of it, and so does whoever asked behind it, because the kernel may
report an error to one of two syncs of a file only. The log directory goes offline.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kwire.clock import ticks_ns
from kwire.kept_errors import anew
from kwire.log.files import DESCRIPTORS, Files, NotBegunError, passes
from kwire.log.scheduling import ImmediateScheduler, Scheduler
from kwire.pending import Pending, gather

if TYPE_CHECKING:
    from concurrent.futures import Future

PARALLEL_SYNCS_MIN = 64
SYNC_THREADS = 16
SYNCS_IN_A_ROW_MAX = 8
"""Of many files a thread is handed some at a time: handing over costs as much as a sync."""
RECENT_MAX = 1024
ROUNDS_MAX = 2  # under way, where syncs need no thread
AGAIN_MS, AGAIN_MS_MAX = 20, 1000  # until what could not be begun is tried again


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

    __slots__ = ("again_ms", "is_over", "request", "retired", "waiting")

    def __init__(self) -> None:
        self.again_ms = AGAIN_MS
        self.request = SyncRequest()
        self.waiting: list[Pending[None]] = []
        self.retired: list[int] = []
        self.is_over = False


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
        self._is_ending = False
        self.error: Exception | None = None
        self.flushes = 0
        self.recent_ns: deque[int] = deque(maxlen=RECENT_MAX)
        """How long the last rounds took; only metrics read it."""

    def end(self) -> Pending[None]:
        """Done when all that is asked for has ended; what cannot be begun in about a second, while
        others let go of what they have, has failed then."""
        self._is_ending = True
        for round_ in self._rounds:
            round_.again_ms = AGAIN_MS
        return self.request(SyncRequest())

    def retire(self, handle: int) -> None:
        """Close a file, once no round that may sync it is under way or waits."""
        if self._next.waiting:
            self._next.retired.append(handle)
        elif self._rounds:
            self._rounds[-1].retired.append(handle)
        else:
            self._files.close(handle)

    def request(self, request: SyncRequest) -> Pending[None]:
        """Sync these files; fails with the OSError of a sync of the same round or one before, or
        of one behind it that was over first: the kernel reports an error of a file once."""
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
        self._begin(round_)

    def _begin(self, round_: _Round) -> None:
        if self.error is None:
            job = self._sync(round_.request)
        else:
            job = Pending.failed(self.error)
        begun_ns = ticks_ns()

        def finished(done: Pending[None]) -> None:
            if done.error() is None:
                self.flushes += 1
                self.recent_ns.append(ticks_ns() - begun_ns)
            self._finished(round_, done.error())

        job.add_done_callback(finished)

    def _sync(self, request: SyncRequest) -> Pending[None]:
        files, syncs = self._files, self._syncs
        if getattr(files, "syncs_at_once", False):
            return ImmediateScheduler().run(lambda: sync_files(files, request))
        if syncs is None or not syncs.is_available:
            self._rounds_max = 1  # a thread makes one after the other
            return self._scheduler.run(lambda: sync_files(files, request))
        if not request.handles:
            return self._scheduler.run(lambda: sync_files(files, request))
        synced = syncs.sync(list(dict.fromkeys(request.handles)))
        if not request.paths and not request.directories:
            return synced
        others = SyncRequest()
        others.paths, others.directories = request.paths, request.directories
        threaded = self._scheduler.run(lambda: sync_files(files, others))
        result: Pending[None] = Pending()

        def settled(done: Pending[list[Pending[None]]]) -> None:
            error = worst(synced.error(), threaded.error())
            if error is not None:
                result.fail(error)
            else:
                result.complete(None)

        gather([synced, threaded]).add_done_callback(settled)
        return result

    def _finished(self, round_: _Round, error: Exception | None) -> None:
        """A round is over: answer it and those behind it that were, in their order.

        One that was not begun for want of something is tried again: nothing of it was lost.
        """
        may_wait = not self._is_ending or round_.again_ms < AGAIN_MS_MAX
        if isinstance(error, NotBegunError) and may_wait and self.error is None:
            delay_ms, round_.again_ms = round_.again_ms, min(2 * round_.again_ms, AGAIN_MS_MAX)
            self._scheduler.call_later(delay_ms, lambda: self._begin(round_))
            return
        round_.is_over, self.error = True, self.error or error
        while self._rounds and self._rounds[0].is_over:
            first = self._rounds.pop(0)
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
    """Sync everything asked for; raises the OSError of the first that fails, NotBegunError
    where none failed but some could not be opened, or no thread be started, for the moment.

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
        failed: Exception | None = None
        handed: list[Future[Exception | None]] = []
        for stage in (jobs, entries):
            row = min(SYNCS_IN_A_ROW_MAX, 1 + len(stage) // (4 * SYNC_THREADS))
            begun, handed = handed, []
            try:
                for at in range(0, len(stage), row):
                    handed.append(threads.submit(_sync_some, stage[at : at + row]))
            except RuntimeError as error:  # no thread can be started
                # If there is one, it makes the last syncs, and nobody hears what becomes of them.
                none_begun = NotBegunError if not begun and not handed else OSError
                raise none_begun(errno.EAGAIN, f"{error} for syncs") from None
            for synced in handed:
                found = synced.exception()
                if found is not None:  # none of an Exception: those are the result
                    raise anew(found)
                failed = worst(failed, synced.result())
            if failed is not None:
                raise anew(failed)


def _sync_some(jobs: Sequence[Callable[[], None]]) -> Exception | None:
    """Each of them, whatever becomes of those before it: the outcome that counts."""
    failed: Exception | None = None
    for job in jobs:
        try:
            job()
        except Exception as error:
            failed = worst(failed, error)
    return failed


def worst(one: Exception | None, other: Exception | None) -> Exception | None:
    """Of two outcomes the one that counts: a sync that failed says more than one not begun."""
    if one is None or (isinstance(one, NotBegunError) and other is not None):
        return other
    return one


def _sync_path(files: Files, path: str) -> None:
    try:
        handle = files.open(path)
    except FileNotFoundError:
        return  # deleted since
    except OSError as error:
        if passes(error):
            raise NotBegunError(error.errno, error.strerror, path) from None
        raise
    try:
        files.fdatasync(handle)
    finally:
        files.close(handle)


def _sync_directory(files: Files, directory: str) -> None:
    try:
        files.sync_directory(directory)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in DESCRIPTORS:  # so it was not opened
            raise NotBegunError(error.errno, error.strerror, directory) from None
        raise
