"""The log cleaner: compaction of the logs whose `cleanup.policy` asks for it (Kafka's LogCleaner).

The log with the largest dirty share goes first; when nothing is due it looks again after
`log.cleaner.backoff.ms`. The work on the files is a `CleaningJob` in a thread of its own (or in
slices on the loop, where the kernel is not compiled); plans, decisions and the exchange of segments
happen on the loop. A partition that cannot be cleaned is named in the log and left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from kwire.clock import Clock, Random
from kwire.kept_errors import kept
from kwire.log.compaction import replacement
from kwire.log.compaction.job import CleaningJob, CleaningStopped, sync_segment
from kwire.log.compaction.plan import Candidate, Source, candidate, make_plan
from kwire.log.compaction.settings import NO_LIMIT, CleanerSettings
from kwire.log.config_values import Values
from kwire.log.directories.checkpoint_format import CLEANER_POINTS
from kwire.log.directories.directory import LogDirectory
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.partition.replay import rebuild_transaction_indexes
from kwire.log.scheduling import Scheduler, Timer
from kwire.log.segment.segment import Segment
from kwire.log.segment.transaction_index import DamagedIndexError
from kwire.pending import Pending
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.compaction_kernel import COMPILED

logger = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, int]

SLICE_LOGS = 200
PIECE_BYTES = 8 << 20  # of a job in the thread, before the loop is asked again
SLICE_RECORDS = 512  # on the loop
RETRY_MS = 600_000  # after a fault of the disk


class CleanableLogs(Protocol):
    """The logs of a node, where they are, and which are being moved."""

    @property
    def clock(self) -> Clock: ...
    @property
    def scheduler(self) -> Scheduler: ...
    def logs_in_order(self) -> list[PartitionLog]: ...
    def directory_of(self, topic: str, partition: int) -> LogDirectory | None: ...
    def is_moving(self, topic: str, partition: int) -> bool: ...
    def checkpoint_failed(self, directory: LogDirectory, error: OSError) -> None: ...


class Cleaned(NamedTuple):
    """What a cleaning has done: for how long, and how many bytes it read and left."""

    took_ms: float
    bytes_before: int
    bytes_after: int


class LogCleaner:
    """Cleans the logs of a node. `start`, then it works by itself until `stop`.

    `uncleanable` holds, by partition, why it was given up.
    """

    def __init__(
        self,
        logs: CleanableLogs,
        settings: CleanerSettings,
        new_scheduler: Callable[[], Scheduler],
        random: Random,
        *,
        compiled: bool = COMPILED,
    ) -> None:
        self._logs = logs
        self.settings = settings
        self._new_scheduler = new_scheduler
        self._idle: list[Scheduler] = []  # one with a worker of its own for each thread
        self._scheduler = logs.scheduler
        self._random = random
        self.is_compiled = compiled
        self._busy: dict[Key, _Cleaning] = {}
        self.uncleanable: dict[Key, str] = {}
        self._retry_at_ms: dict[Key, int] = {}
        self._timer: Timer | None = None
        self._is_searching = False
        self.is_stopped = False
        self.cleanings = 0
        self.last = Cleaned(0.0, 0, 0)
        self.ratio_max = 0.0
        """The dirtiest share of those that were looked at last."""
        self.looked_at_ms = 0
        self._ratio_seen = 0.0

    def start(self) -> None:
        """Begin to search for work."""
        if self.settings.enabled:
            self._wait()

    def changed(self, values: Values) -> None:
        """Take over changed broker configs, for cleanings that begin from now on."""
        self.settings = self.settings.changed(values)

    def stop(self) -> None:
        """End all work; what is half done is dropped."""
        self.is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for cleaning in self._busy.values():
            cleaning.stop()

    def forget(self, key: Key) -> None:
        """A log was deleted or replaced."""
        self.uncleanable.pop(key, None)
        self._retry_at_ms.pop(key, None)
        self.interrupt(key)

    # -- how far logs are clean -----------------------------------------------------------------

    def cleaned_to(self, key: Key) -> int | None:
        """Up to which offset a log was cleaned, None when it never was."""
        home = self._logs.directory_of(*key)
        return None if home is None else home.cleaner_points.get(key)

    def interrupt(self, key: Key) -> None:
        """A log was truncated, or is to be left as it is: what is half done is dropped."""
        cleaning = self._busy.get(key)
        if cleaning is not None:
            cleaning.stop()

    def _set_cleaned_to(self, key: Key, offset: int) -> None:
        """Note it, in the directory's checkpoint file too (Kafka's `cleaner-offset-checkpoint`)."""
        home = self._logs.directory_of(*key)
        if home is None or home.error is not None:
            return
        home.cleaner_points[key] = offset
        job = home.checkpoint_job(CLEANER_POINTS, dict(home.cleaner_points))

        def written(done: Pending[None]) -> None:
            error = done.error()
            if isinstance(error, OSError):
                self._logs.checkpoint_failed(home, error)

        self._scheduler.run(job).add_done_callback(written)

    # -- looking for work -----------------------------------------------------------------------

    def _wait(self) -> None:
        if not self.is_stopped:
            self._timer = self._scheduler.call_later(self.settings.backoff_ms, self.find_work)

    def find_work(self) -> None:
        """Begin to clean the dirtiest log, if there is a place free and one is due."""
        if self.is_stopped or self._is_searching or not self.settings.enabled:
            return
        if len(self._busy) >= max(self.settings.threads, 1):
            return
        self._is_searching = True
        self._ratio_seen = 0.0
        self._scan(self._logs.logs_in_order(), 0, None)

    def _scan(self, logs: list[PartitionLog], begin: int, best: Candidate | None) -> None:
        """Compare logs in slices with the loop's turn in between."""
        now_ms = self._logs.clock.wall_ms()
        end = begin + SLICE_LOGS
        for log in logs[begin:end]:
            found = self._candidate(log, now_ms)
            if found is not None and (best is None or found.ratio > best.ratio):
                best = found
        if end < len(logs) and not self.is_stopped:
            self._scheduler.call_soon(lambda: self._scan(logs, end, best))
            return
        self._is_searching = False
        self.ratio_max, self.looked_at_ms = self._ratio_seen, now_ms
        if best is not None and not self.is_stopped:
            self._begin(best)
        else:
            self._wait()

    def _candidate(self, log: PartitionLog, now_ms: int) -> Candidate | None:
        if not log.config.compacts or log.error is not None or log.is_closed:
            return None
        key = (log.topic, log.partition)
        if key in self._busy or not self._may_try(key, now_ms):
            return None
        try:
            log.delete_old_segments(now_ms)  # Kafka's cleaner does retention for these
            if self._logs.is_moving(*key):
                return None  # what of a key was copied already must not outlive its tombstone
            found = candidate(log, self.cleaned_to(key), now_ms)
        except (OSError, KafkaError) as error:
            self._give_up(key, error)
            return None
        if found is None:
            return None
        self._ratio_seen = max(self._ratio_seen, found.ratio)
        return found if found.is_due else None

    def _may_try(self, key: Key, now_ms: int) -> bool:
        if key not in self.uncleanable:
            return True
        retry_at_ms = self._retry_at_ms.get(key)
        if retry_at_ms is None or 0 < retry_at_ms - now_ms <= RETRY_MS:
            return False  # further away it is only when the clock went back
        del self.uncleanable[key], self._retry_at_ms[key]
        return True

    def _give_up(self, key: Key, error: Exception) -> None:
        """Leave a partition alone from now on; after a fault of the disk for some time."""
        topic, partition = key
        again = ""
        if isinstance(error, OSError):
            self._retry_at_ms[key] = self._logs.clock.wall_ms() + RETRY_MS
            again = f"; trying again in {RETRY_MS // 60_000} minutes"
        self.uncleanable[key] = str(error)
        logger.error("%s-%d cannot be compacted: %s%s", topic, partition, error, again)

    # -- cleaning -------------------------------------------------------------------------------

    def _begin(self, found: Candidate) -> None:
        key = (found.log.topic, found.log.partition)
        scheduler = self._idle.pop() if self._idle else self._new_scheduler()
        cleaning = _Cleaning(self, found, scheduler, self._logs.clock.wall_ms())
        self._busy[key] = cleaning
        cleaning.begin().add_done_callback(lambda done: self._finished(key, found, done))
        if len(self._busy) < self.settings.threads:
            self.find_work()

    def _finished(self, key: Key, found: Candidate, done: Pending[int]) -> None:
        cleaning = self._busy.pop(key)
        self._idle.append(cleaning.scheduler)
        error = done.error()
        if error is None:
            self.cleanings += 1
            took_ms = self._logs.clock.wall_ms() - cleaning.begun_ms
            self.last = Cleaned(max(0, took_ms), cleaning.bytes_before, cleaning.bytes_after)
            self._set_cleaned_to(key, done.result())
        elif not isinstance(error, CleaningStopped) and not cleaning.is_stopped:
            self._give_up(key, error)
        if not self.is_stopped:
            self._scheduler.call_soon(self.find_work)

    def new_job(self, found: Candidate) -> tuple[CleaningJob, list[Segment]]:
        """The job for a candidate as its log is now."""
        try:
            plan, segments = make_plan(found, self._logs.clock.wall_ms())
        except DamagedIndexError:
            rebuild_transaction_indexes(found.log.local, found.log.log_end_offset)
            plan, segments = make_plan(found, self._logs.clock.wall_ms())
        return CleaningJob(plan, self.settings, self._random.random_bytes(16)), segments

    def run(
        self, job: CleaningJob, steps: Generator[None, None, T], scheduler: Scheduler
    ) -> Pending[T]:
        """Run steps to their end, in the thread or on the loop, in pieces either way."""
        running = _Running(self, job, steps, scheduler)
        running.begin()
        return running.result


class _Finished(Generic[T]):
    """Steps that are over."""

    __slots__ = ("result",)

    def __init__(self, result: T) -> None:
        self.result = result


class _Running(Generic[T]):
    """Steps of a job under way, piece by piece."""

    def __init__(
        self,
        cleaner: LogCleaner,
        job: CleaningJob,
        steps: Generator[None, None, T],
        scheduler: Scheduler,
    ) -> None:
        self._cleaner = cleaner
        self._job = job
        self._steps = steps
        self._scheduler = scheduler
        self.result: Pending[T] = Pending()

    def begin(self) -> None:
        """The next piece, in the thread or on the loop, once the last one is paid for."""
        job, rate = self._job, self._cleaner.settings.io_bytes_per_second_max
        start = self._work_in_thread if self._cleaner.is_compiled else self._turn
        unpaid = job.bytes_done - job.bytes_charged
        job.bytes_charged = job.bytes_done
        if rate < NO_LIMIT and unpaid:
            self._scheduler.call_later(unpaid * 1000 / max(rate, 1.0), start)
        elif self._cleaner.is_compiled:
            start()
        else:
            self._scheduler.call_soon(start)

    def _work_in_thread(self) -> None:
        job = partial(_advance, self._job, self._steps, PIECE_BYTES)
        self._scheduler.run(job).add_done_callback(self._advanced)

    def _advanced(self, done: Pending[_Finished[T] | None]) -> None:
        error = done.error()
        if error is not None:
            self.result.fail(error)
            return
        finished = done.result()
        if finished is not None:
            self.result.complete(finished.result)
        elif self._cleaner.is_stopped or self._job.is_stopped:
            self._steps.close()
            self.result.fail(CleaningStopped())
        else:
            self.begin()

    def _turn(self) -> None:
        try:
            finished = _advance(self._job, self._steps, PIECE_BYTES, SLICE_RECORDS)
        except Exception as error:
            self.result.fail(error)
            return
        if finished is not None:
            self.result.complete(finished.result)
        else:
            self.begin()


def _advance(
    job: CleaningJob, steps: Generator[None, None, T], bytes_max: int, records_max: int = 0
) -> _Finished[T] | None:
    """Go on for that many bytes or records; the result if that was all."""
    bytes_end = job.bytes_done + bytes_max
    records_end = job.records_done + records_max
    try:
        while job.bytes_done < bytes_end:
            next(steps)
            if records_max and job.records_done >= records_end:
                break
    except StopIteration as stop:
        return _Finished(stop.value)
    return None


class _Cleaning:
    """One cleaning under way: index, then for each group copy, sync and exchange."""

    def __init__(
        self, cleaner: LogCleaner, found: Candidate, scheduler: Scheduler, begun_ms: int
    ) -> None:
        self._cleaner = cleaner
        self.begun_ms = begun_ms
        self.scheduler = scheduler
        self._found = found
        self._log = found.log
        self._job: CleaningJob | None = None
        self._segments: dict[int, Segment] = {}
        self._result: Pending[int] = Pending()
        self.bytes_before = 0
        self.bytes_after = 0
        self.is_stopped = False

    def stop(self) -> None:
        self.is_stopped = True
        if self._job is not None:
            self._job.is_stopped = True

    def begin(self) -> Pending[int]:
        """Done with the offset up to which the log is clean."""
        # Only what is durable takes part: see cleaner_plan.
        self._then(self._log.local.flush_up_to(self._found.end), lambda _: self._index())
        return self._result

    def _then(self, pending: Pending[T], action: Callable[[T], None]) -> None:
        def settled(done: Pending[T]) -> None:
            error = done.error()
            if error is None and self.is_stopped:
                error = CleaningStopped()
            if error is None:
                try:
                    action(done.result())
                except Exception as failure:  # whatever it is, only this partition is affected
                    error = kept(failure)
            if error is not None:
                self._result.fail(error)

        pending.add_done_callback(settled)

    def _index(self) -> None:
        if self._log.recovery_point < self._found.end or self._log.is_closed:
            raise CleaningStopped
        if self._log.segments.first.base_offset >= self._found.end:
            raise CleaningStopped  # retention was faster
        job, segments = self._cleaner.new_job(self._found)
        self._job = job
        self._segments = {segment.base_offset: segment for segment in segments}
        self._then(self._run(job.index_steps()), lambda _: self._copy(job.groups()))

    def _copy(self, groups: list[list[Source]]) -> None:
        assert self._job is not None
        if not groups:
            self._end(self._job.end_offset)
            return
        steps = self._job.copy_steps(groups[0])
        self._then(self._run(steps), lambda segment: self._sync(segment, groups))

    def _run(self, steps: Generator[None, None, T]) -> Pending[T]:
        assert self._job is not None
        return self._cleaner.run(self._job, steps, self.scheduler)

    def _sync(self, segment: Segment, groups: list[list[Source]]) -> None:
        """Make the cleaned segment durable; a failure takes the log directory offline."""
        synced = self.scheduler.run(lambda: sync_segment(segment))
        synced.add_done_callback(lambda done: self._sync_failed(done.error()))
        self._then(synced, lambda _: self._exchange(segment, groups))

    def _sync_failed(self, error: Exception | None) -> None:
        if error is not None:
            self._log.fail(error, lost=True)

    def _exchange(self, segment: Segment, groups: list[list[Source]]) -> None:
        sources = groups[0]
        old = [self._segments[source.base_offset] for source in sources]
        sizes = [source.size_bytes for source in sources]
        self.bytes_before += sum(sizes)
        self.bytes_after += segment.size_bytes
        self._then(
            replacement.replace(self._log, old, sizes, segment),
            lambda replaced: self._exchanged(replaced, groups[1:]),
        )

    def _exchanged(self, replaced: bool, others: list[list[Source]]) -> None:
        if not replaced:
            raise CleaningStopped
        self._copy(others)

    def _end(self, end_offset: int) -> None:
        logger.info(
            "%s: compacted up to offset %d, %d bytes to %d",
            self._log.directory,
            end_offset,
            self.bytes_before,
            self.bytes_after,
        )
        self._result.complete(end_offset)
