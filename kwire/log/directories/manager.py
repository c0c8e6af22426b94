"""All logs of a node: its log directories, loading, creating, deleting, checkpoints, timers.
The metadata log lives in one of the directories but is opened by its own driver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kwire.clock import Clock, Random
from kwire.kept_errors import kept
from kwire.log.compaction.cleaner import LogCleaner
from kwire.log.directories.checkpoint_contents import CheckpointContents, moved_start
from kwire.log.directories.checkpoint_format import (
    CLEANER_POINTS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    Offsets,
)
from kwire.log.directories.checkpoint_writer import CheckpointWriter, all_written
from kwire.log.directories.closing import close_directory, write_out
from kwire.log.directories.directory import (
    DELETE_SUFFIX,
    LogDirectory,
    LogDirectoryError,
    suffixed_name,
)
from kwire.log.directories.identity_files import (
    META_PROPERTIES,
    PARTITION_METADATA,
    encode_partition_metadata,
)
from kwire.log.directories.idle_files import IdleFiles
from kwire.log.directories.loading import ExpectedTopic, Opening, load_directories
from kwire.log.directories.making_logs import LogMaker
from kwire.log.directories.moving import LogMoves
from kwire.log.directories.periodic_work import SLICE_SEGMENTS, Timers, visit_in_slices
from kwire.log.directories.placement import emptiest
from kwire.log.directories.removal import Removals
from kwire.log.directories.settings import ManagerSettings
from kwire.log.directories.shortages import Shortages, ShortLog
from kwire.log.files import (
    Files,
    NotBegunError,
    ShortageError,
    SystemFiles,
    passes,
    raise_open_files_limit,
    write_atomically,
)
from kwire.log.flushing import Flusher, SyncRequest, Syncs
from kwire.log.partition.config import LogConfig
from kwire.log.partition.log_state import LogState
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog
from kwire.log.scheduling import ImmediateScheduler, Scheduler
from kwire.pending import Pending, gather
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

__all__ = ["ConfigOf", "LogManager", "ManagerSettings"]

ConfigOf = Callable[[str], LogConfig]


class LogManager:
    """The logs of a node by (topic, partition).

    `open_directories` locks, `load_all` loads, `start_timers` begins the periodic work, `shutdown`
    flushes, closes and notes the clean stop. `on_directory_failure(directory)` hears when a
    directory goes offline (its logs then answer KAFKA_STORAGE_ERROR).
    """

    def __init__(
        self,
        directories: list[str],
        clock: Clock,
        random: Random,
        *,
        files: Files | None = None,
        scheduler: Scheduler | None = None,
        sync_scheduler: Scheduler | None = None,
        syncs: Syncs | None = None,
        settings: ManagerSettings | None = None,
        now_ms: Callable[[], float] | None = None,
        config_of: ConfigOf | None = None,
        on_directory_failure: Callable[[LogDirectory], None] | None = None,
    ) -> None:
        self.clock = clock
        self.random = random
        self.files = files or SystemFiles()
        self.scheduler = scheduler or ImmediateScheduler()
        self.settings = settings or ManagerSettings()
        # Syncs wait for nothing else: the deletion of a large file may take long.
        syncing = sync_scheduler or self.scheduler
        self.directories = [LogDirectory(path, self.files, syncing, syncs) for path in directories]
        self.cordoned: Sequence[LogDirectory] = ()
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._in_order: list[PartitionLog] | None = None
        self._home: dict[tuple[str, int], LogDirectory] = {}
        self.known_logs: Mapping[tuple[str, int], KnownLog] = {}  # until they are loaded
        self._on_directory_failure = on_directory_failure
        self.goes_offline_by_writes: Callable[[], bool] = lambda: False
        self._maker = LogMaker(
            clock,
            self.files,
            self.scheduler,
            self.settings,
            config_of or (lambda topic: LogConfig()),
        )
        self._timers = Timers(self.scheduler)
        self._contents = CheckpointContents(self._log_in)
        self._checkpoints = CheckpointWriter(self._contents, self.scheduler, self.checkpoint_failed)
        # One object of each method for all logs, and not one for each log.
        self._note_moved = self._log_moved
        self._note_truncated = self._log_truncated
        self._note_failed = self._log_failed
        self.cleaner: LogCleaner | None = None
        self.moves = LogMoves(self)
        limit_ms = self.settings.shortage_timeout_ms
        self.shortages = Shortages(self.scheduler, now_ms, limit_ms, self._give_up)
        self._note_refused = self.shortages.hurry
        self._idle_files = IdleFiles(
            self._maker.open_segments, self.scheduler, self._sync_failed, self.shortages.hurry
        )
        delay_ms = self.settings.file_delete_delay_ms
        self._removals = Removals(self.files, self.scheduler, delay_ms, self.shortages)

    # -- start --------------------------------------------------------------------------------

    def open_directories(self) -> None:
        """Lock all directories and read their checkpoints. Raises LogDirectoryError.

        One of several that cannot be read is offline from the start, as in Kafka.
        """
        if isinstance(self.files, SystemFiles):
            raise_open_files_limit()
        taken: list[LogDirectory] = []
        try:
            for directory in self.directories:
                try:
                    directory.lock()
                    taken.append(directory)
                    directory.meta_properties()
                except OSError as error:
                    self._not_opened(directory, error)
            for directory in self.directories:
                try:
                    if directory.error is None:
                        directory.begin()
                except OSError as error:
                    self._not_opened(directory, error)
        except Exception:
            for directory in taken:
                directory.unlock()
            raise

    def _not_opened(self, directory: LogDirectory, error: OSError) -> None:
        directory.error = kept(error)
        if all(other.error is not None for other in self.directories):
            why = "not a directory" if isinstance(error, FileExistsError) else error.strerror
            file = f"{directory.path}/{META_PROPERTIES}"
            where = file if error.filename == file else directory.path
            raise LogDirectoryError(f"{where} cannot be used: {why or error}") from None
        logger.error("%s: %s; the log directory is offline", directory.path, error)

    def load_all(self, expected_topic: ExpectedTopic | None = None) -> None:
        """Load every partition's directory: see `loading.load_directories`."""
        for opening in self.loading(expected_topic):
            if opening is not None:
                opening.finish()

    def loading(self, expected_topic: ExpectedTopic | None = None) -> Iterator[Opening | None]:
        """`load_all`, a partition a step, so that a loop can do other things in between."""
        yield from load_directories(self, expected_topic)
        self.known_logs = {}

    def open_apart(
        self, directory: LogDirectory, path: str, key: tuple[str, int], topic_id: bytes
    ) -> PartitionLog:
        """A partition's log, opened without what logs share: may be done by any thread. One that is
        known has nothing to be done apart. Raises KafkaError, OSError."""
        clean = directory.was_clean
        known = self.known_logs.get(key) if clean else None
        apart = known is None
        return self._maker.open(
            path, key, topic_id, directory, clean=clean, is_alone=apart, known=known
        )

    def adopt(self, log: PartitionLog, directory: LogDirectory) -> None:
        """Make a log that was opened apart the partition's."""
        log.share(self.scheduler, directory.flusher, self._maker.open_segments)
        log.on_error = self._note_failed
        log.on_refused = self._note_refused
        log.on_truncated = self._note_truncated
        self._settle((log.topic, log.partition), log, directory)

    def _settle(self, key: tuple[str, int], log: PartitionLog, directory: LogDirectory) -> None:
        if self._in_order is not None:
            self._in_order.append(log)
        self._logs[key] = log
        self._home[key] = directory
        directory.log_count += 1
        log.on_offsets_moved = self._note_moved
        self._contents.moved(directory, key)
        if log.error is not None:  # as it was opened, when nobody listened
            self._log_failed(log, log.shortage.error or log.error, False)

    def _copy_failed(
        self, directory: LogDirectory, log: PartitionLog, error: Exception, lost: bool
    ) -> None:
        if lost:
            self.take_offline(directory, error)

    # -- look-up ------------------------------------------------------------------------------

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def logs(self) -> list[PartitionLog]:
        """All logs, in no particular but a reproducible order."""
        return list(self._logs.values())

    def logs_in_order(self) -> list[PartitionLog]:
        """All logs, for who goes through them in slices, by index: a log that comes later is added
        to the same list, one that has gone stays in it and is closed. To list a hundred thousand of
        them anew each time takes a turn of tens of ms."""
        if self._in_order is None:
            self._in_order = self.logs()
        return self._in_order

    def directory_of(self, topic: str, partition: int) -> LogDirectory | None:
        """Where a partition lives."""
        return self._home.get((topic, partition))

    def is_moving(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self.moves.moves

    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]:
        return [log for key, log in self._logs.items() if self._home[key] is directory]

    # -- create and delete ----------------------------------------------------------------------

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig | None = None,
        *,
        directory: LogDirectory | None = None,
    ) -> PartitionLog:
        """The partition's log, created where there is none, by default in the emptiest directory.

        Raises KafkaError: KAFKA_STORAGE_ERROR; INCONSISTENT_TOPIC_ID for a log of another topic.
        """
        key = (topic, partition)
        known = self._logs.get(key)
        if known is not None:
            if known.topic_id != topic_id:
                raise KafkaError(
                    ErrorCode.INCONSISTENT_TOPIC_ID,
                    f"the log of {known.name} belongs to another topic id",
                )
            return known
        home = directory or emptiest(self.directories, self.cordoned)
        if home.error is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{home.path} is offline")
        path = f"{home.path}/{topic}-{partition}"
        try:
            for offsets in home.offsets():
                offsets.pop(key, None)
            self._removals.free_name(path)
            self._limit(home, key, -1)
            is_empty = self.files.make_directory(path)
            self.write_partition_metadata(path, topic_id)
            if is_empty:
                log = self._maker.begin(path, key, topic_id, home, config)
            else:
                log = self._maker.open(path, key, topic_id, home, clean=False)
                if config is not None:
                    log.reconfigure(config)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"Error while creating log for {path}: {error}"
            ) from error
        self.adopt(log, home)
        request = SyncRequest()
        request.paths.append(f"{path}/{PARTITION_METADATA}")
        request.directories += [path, home.path]
        log.local.has_new_files = False  # the directory is synced here
        home.flusher.request(request).add_done_callback(
            lambda done: self._synced_new(log, done.error())
        )
        return log

    def _synced_new(self, log: PartitionLog, error: Exception | None) -> None:
        if error is not None:
            log.fail(error, lost=True)

    def write_partition_metadata(self, path: str, topic_id: bytes, *, sync: bool = False) -> None:
        """Write the topic id of a partition's directory. Raises OSError."""
        data = encode_partition_metadata(topic_id)
        write_atomically(self.files, f"{path}/{PARTITION_METADATA}", data, sync=sync)

    def delete(self, topic: str, partition: int) -> Pending[None]:
        """Give up a partition's log: renamed at once, so that the name is free, removed later.

        The result is done when the directory has its `-delete` name, durably.
        """
        key = (topic, partition)
        self.moves.cancel(key)
        log = self._logs.pop(key, None)
        if log is None:
            return Pending.completed(None)
        self._in_order = None
        home = self._home.pop(key)
        home.log_count -= 1
        self._contents.moved(home, key)
        self.shortages.remove(key)
        log.abandon()
        for offsets in home.offsets():
            offsets.pop(key, None)
        if self.cleaner is not None:
            self.cleaner.forget(key)
        unique = self.random.random_bytes(16).hex()
        target = f"{home.path}/{suffixed_name(topic, partition, unique, DELETE_SUFFIX)}"
        return self._removals.give_up(key, log.directory, target, home.flusher)

    def open_future(
        self, directory: LogDirectory, path: str, key: tuple[str, int], topic_id: bytes
    ) -> PartitionLog:
        """The log in `path` that is not the partition's yet (see `moving`)."""
        clean, failed = directory.was_clean, partial(self._copy_failed, directory)
        return self._maker.open(
            path, key, topic_id, directory, clean=clean, is_copy=True, on_error=failed
        )

    def exchange(
        self, old: PartitionLog, new: PartitionLog, directory: LogDirectory
    ) -> PartitionLog:
        """Let a synced copy in another directory take the partition over. Raises OSError."""
        key = (old.topic, old.partition)
        path = f"{directory.path}/{old.name}"
        self._removals.free_name(path)
        self._limit(directory, key, -1)
        if moved_start(new) >= 0:
            # Where both are there after a crash, deleted records must not come back by the new one.
            starts = self._contents.offsets(directory, LOG_STARTS) | {key: moved_start(new)}
            directory.write_checkpoint(LOG_STARTS, starts)
        new.local.relocate(path)
        self.files.sync_directory(directory.path)
        new.on_truncated = self._note_truncated
        new.on_error = self._note_failed
        new.on_refused = self._note_refused
        new.reconfigure(old.config)
        old_home = self._home[key]
        self.delete(*key)
        self._settle(key, new, directory)
        try:
            # Before anything is appended to the new one: two of one partition must be equal.
            self.files.sync_directory(old_home.path)
        except OSError as error:
            self.take_offline(old_home, error)
        self.checkpoint_log_starts()
        self.checkpoint_recovery()
        self.checkpoint_high_watermarks()
        return new

    def interrupt_cleaning(self, topic: str, partition: int) -> None:
        """What is done just now of compacting the log is dropped."""
        if self.cleaner is not None:
            self.cleaner.interrupt((topic, partition))

    def remove_later(self, path: str) -> None:
        self._removals.remove_later(path)

    # -- failures -----------------------------------------------------------------------------

    def _log_failed(self, log: PartitionLog, error: Exception, lost: bool) -> None:
        key = (log.topic, log.partition)
        home = self._home.get(key)
        if log.is_short:
            self.shortages.log_is_short(log, error)
        else:
            self.shortages.remove(key)
        if home is not None and not log.is_short and (lost or self.goes_offline_by_writes()):
            self.take_offline(home, error)

    def _give_up(self, log: ShortLog, reason: str) -> None:
        """The log is short for too long: where others can take over, its directory goes offline."""
        home = self._home.get((log.topic, log.partition))
        if home is not None and home.error is None and self.goes_offline_by_writes():
            self.take_offline(home, OSError(reason))

    def _log_moved(self, log: LogState) -> None:
        key = (log.topic, log.partition)
        home = self._home.get(key)
        if home is not None:
            self._contents.moved(home, key)

    def _log_in(self, directory: LogDirectory, key: tuple[str, int]) -> PartitionLog | None:
        return self._logs[key] if self._home.get(key) is directory else None

    def _log_truncated(self, log: PartitionLog) -> None:
        key = (log.topic, log.partition)
        self.interrupt_cleaning(*key)
        home = self._home.get(key)
        if home is None or home.error is not None:
            return
        if home.cleaner_points.get(key, -1) > log.log_end_offset:
            home.cleaner_points[key] = log.log_end_offset
        try:
            self._limit(home, key, log.log_end_offset)
        except ShortageError:
            raise  # the log takes no appends before this is done
        except OSError as error:
            self.take_offline(home, error)

    def take_offline(self, directory: LogDirectory, error: Exception) -> None:
        """A sync failed, or a write where replicas are elsewhere: nothing more is written here."""
        if directory.error is not None:
            return
        logger.error("%s: %s; the log directory is offline", directory.path, error)
        directory.error = kept(error)
        for log in self.logs_in(directory):
            log.fail(error, for_good=True)
        if self._on_directory_failure is not None:
            self._on_directory_failure(directory)

    def _sync_failed(self, flusher: Flusher, error: Exception) -> None:
        self.take_offline(next(d for d in self.directories if d.flusher is flusher), error)

    # -- periodic work ------------------------------------------------------------------------

    def start_timers(self) -> None:
        """Begin the periodic work."""
        settings = self.settings
        delay_ms = settings.initial_task_delay_ms
        self._timers.repeat(
            "retention", settings.retention_check_interval_ms, self.enforce_retention, delay_ms
        )
        self._timers.repeat("flush", settings.flush_check_interval_ms, self.flush_old, delay_ms)
        self._timers.repeat(
            "recovery points", settings.checkpoint_interval_ms, self.checkpoint_recovery, delay_ms
        )
        self._timers.repeat(
            "log starts",
            settings.start_offset_checkpoint_interval_ms,
            self.checkpoint_log_starts,
            delay_ms,
        )
        self._timers.repeat(
            "high watermarks",
            settings.high_watermark_checkpoint_interval_ms,
            self.checkpoint_high_watermarks,
            0,
        )
        self._timers.repeat(
            "producers", settings.producer_id_check_interval_ms, self.expire_producers, delay_ms
        )
        if self.cleaner is not None:
            self.cleaner.start()

    def enforce_retention(self) -> None:
        """Delete old segments of all logs."""
        now_ms = self.clock.wall_ms()
        visit_in_slices(
            self.scheduler,
            self.logs_in_order(),
            lambda log: log.delete_old_segments(now_ms, SLICE_SEGMENTS),
        )

    def flush_old(self) -> None:
        """Flush logs whose last flush is `flush.ms` ago."""
        now_ms = self.clock.wall_ms()

        def visit(log: PartitionLog) -> int:
            # A clock that went back says nothing of how long ago it was.
            is_recent = 0 <= now_ms - log.local.last_flush_ms < log.config.flush_ms
            if not is_recent and log.recovery_point < log.log_end_offset:
                log.flush()
            return 0

        visit_in_slices(self.scheduler, self.logs_in_order(), visit)

    def expire_producers(self) -> None:
        """Forget producers that were silent for `producer.id.expiration.ms`."""
        now_ms = self.clock.wall_ms()

        def visit(log: PartitionLog) -> int:
            log.producers.expire(now_ms)
            return 0

        visit_in_slices(self.scheduler, self.logs_in_order(), visit)

    def checkpoint_recovery(self) -> Pending[None]:
        return self._checkpoint(RECOVERY_POINTS)

    def checkpoint_high_watermarks(self) -> Pending[None]:
        return self._checkpoint(HIGH_WATERMARKS)

    def checkpoint_log_starts(self, keys: Iterable[tuple[str, int]] | None = None) -> Pending[None]:
        """Only logs whose start was moved beyond their first segment's base are listed.

        Done when the log starts of now are durable, in the directories of these partitions or in
        all; fails where one goes offline by it.
        """
        homes = None if keys is None else [self._home.get(key) for key in keys]
        return self._checkpoint(LOG_STARTS, homes)

    def _checkpoint(
        self, name: str, homes: Sequence[LogDirectory | None] | None = None
    ) -> Pending[None]:
        """Write a checkpoint file of these directories, or of every one."""
        written = [
            self._checkpoints.write(directory, name)
            for directory in self.directories
            if directory.error is None and (homes is None or directory in homes)
        ]
        return all_written(written)

    def checkpoint_failed(self, directory: LogDirectory, error: OSError) -> None:
        """A checkpoint file could not be written."""
        if passes(error) and isinstance(error, ShortageError | NotBegunError):
            # Nothing is lost: the one that is there counts, and the next write may find space.
            logger.error("%s: %s; it is tried again later", directory.path, error)
        else:
            self.take_offline(directory, error)

    def offsets_in(self, directory: LogDirectory, value: Callable[[PartitionLog], int]) -> Offsets:
        """What `CheckpointContents` says, gathered from all logs: the values not below 0."""
        home = self._home
        return {
            key: offset
            for key, log in self._logs.items()
            if home[key] is directory and (offset := value(log)) >= 0
        }

    def _limit(self, directory: LogDirectory, key: tuple[str, int], offset: int) -> None:
        """No checkpoint file may speak of records that are gone, or of an older log of the name."""
        self._contents.moved(directory, key)
        current = self._contents.current(directory)
        current[CLEANER_POINTS] = lambda: dict(directory.cleaner_points)
        directory.limit(key, offset, current)

    # -- stop ---------------------------------------------------------------------------------

    def drained(self) -> Pending[list[Pending[None]]]:
        """Done when every sync under way has ended: what it reports, no second one would."""
        return gather([home.flusher.end() for home in self.directories])

    def shutdown(self, broker_epoch: int = -1, *, is_loaded: bool = True) -> None:
        """Write, sync and close everything, write the checkpoints, note the clean stop, unlock.

        Blocks; nothing may be appended any more. A directory that fails is left unclean. Where
        loading has not ended, checkpoints stay (they know of more logs than were opened), and
        a directory is as clean as it was.
        """
        self._stop_timers()
        for directory in self.directories:
            try:
                logs, offsets_of = self.logs_in(directory), partial(self.offsets_in, directory)
                close_directory(directory, logs, offsets_of, broker_epoch, is_loaded=is_loaded)
            except OSError as error:
                self.take_offline(directory, error)
            finally:
                directory.unlock()

    def write_out(self) -> bool:
        """Have the files be as a clean stop leaves them, and go on: for a copy of the directories
        that is made before anything else happens. False where they are not. Blocks."""
        try:
            return all(
                write_out(home, self.logs_in(home), partial(self.offsets_in, home))
                for home in self.directories
            )
        except OSError as error:
            logger.warning("the files are not written out: %s", error)
            return False

    def _stop_timers(self) -> None:
        self._timers.cancel()
        self._checkpoints.close()
        self.shortages.close()
        self._idle_files.close()
        self.moves.close()
        if self.cleaner is not None:
            self.cleaner.stop()

    def abandon(self) -> None:
        """Let go of everything as a kill would: files and locks, nothing else (tests)."""
        self._stop_timers()
        for log in self.logs():
            log.abandon()
        for directory in self.directories:
            directory.unlock()
