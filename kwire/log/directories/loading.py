"""Loading the partitions' directories of a node at its start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from kwire.clock import Random
from kwire.kept_errors import kept
from kwire.log.directories.checkpoint_contents import VALUES
from kwire.log.directories.checkpoint_format import (
    CLEANER_POINTS,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    Offsets,
)
from kwire.log.directories.directory import (
    DELETE_SUFFIX,
    FUTURE_SUFFIX,
    METADATA_PARTITION,
    STRAY_SUFFIX,
    LogDirectory,
    LogDirectoryError,
    PartitionName,
    holds_log,
    parse_name,
    suffixed_name,
)
from kwire.log.directories.identity_files import PARTITION_METADATA, parse_partition_metadata
from kwire.log.files import Files
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog
from kwire.log.segment.segment import LOG_SUFFIX
from kwire.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

ExpectedTopic = Callable[[str, int], bytes | None]
Key = tuple[str, int]


class Moves(Protocol):
    """Moves between log directories: see `LogMoves`."""

    def begin(self, key: Key, directory: LogDirectory) -> None: ...
    def resume(self, key: Key, directory: LogDirectory, path: str) -> bool: ...


class LoadedLogs(Protocol):
    """The logs of a node that were loaded so far, and how another one is opened."""

    @property
    def directories(self) -> Sequence[LogDirectory]: ...
    @property
    def files(self) -> Files: ...
    @property
    def random(self) -> Random: ...
    @property
    def moves(self) -> Moves: ...
    @property
    def known_logs(self) -> Mapping[Key, KnownLog]: ...
    def get(self, topic: str, partition: int) -> PartitionLog | None: ...
    def directory_of(self, topic: str, partition: int) -> LogDirectory | None: ...
    def logs_in(self, directory: LogDirectory) -> list[PartitionLog]: ...
    def offsets_in(
        self, directory: LogDirectory, value: Callable[[PartitionLog], int]
    ) -> Offsets: ...
    def open_apart(
        self, directory: LogDirectory, path: str, key: Key, topic_id: bytes
    ) -> PartitionLog: ...
    def open_future(
        self, directory: LogDirectory, path: str, key: Key, topic_id: bytes
    ) -> PartitionLog: ...
    def adopt(self, log: PartitionLog, directory: LogDirectory) -> None: ...
    def take_offline(self, directory: LogDirectory, error: Exception) -> None: ...
    def remove_later(self, path: str) -> None: ...
    def write_partition_metadata(
        self, path: str, topic_id: bytes, *, sync: bool = False
    ) -> None: ...


class Opening:
    """A partition's log on its way: `open` may be done by any thread, `finish` by the loop's.

    `is_long` says that its batches have to be checked: its node did not stop cleanly.
    """

    def __init__(
        self,
        logs: LoadedLogs,
        directory: LogDirectory,
        path: str,
        key: tuple[str, int],
        topic_id: bytes,
    ) -> None:
        self._logs = logs
        self._directory = directory
        self._path = path
        self._key = key
        self._topic_id = topic_id
        self._log: PartitionLog | None = None
        self._error: Exception | None = None
        self.is_long = not directory.was_clean

    def open(self) -> None:
        """Open the log, repairing what needs repair; `finish` raises its errors."""
        try:
            self._log = self._logs.open_apart(
                self._directory, self._path, self._key, self._topic_id
            )
        except (KafkaError, OSError) as error:
            self._error = kept(error)

    def finish(self) -> None:
        """Make the log the partition's. Raises LogDirectoryError."""
        if self._log is None and self._error is None:
            self.open()
        if isinstance(self._error, KafkaError):
            raise LogDirectoryError(f"{self._path} cannot be opened: {self._error.message}")
        if self._error is not None:
            self._logs.take_offline(self._directory, self._error)
        elif self._log is not None:
            self._logs.adopt(self._log, self._directory)


def load_directories(
    logs: LoadedLogs, expected_topic: ExpectedTopic | None
) -> Iterator[Opening | None]:
    """Load every partition's directory, one a step: who goes on with it finishes each Opening,
    and all that were given out before a None.

    `expected_topic(topic, partition)` is the topic id that the metadata has for this replica,
    None when it has none: such a directory is set aside as `-stray`, as one with another id
    or without `partition.metadata` is. Without the function nothing is stray. Raises
    LogDirectoryError where going on would lose something silently.
    """
    futures: list[tuple[LogDirectory, str, PartitionName]] = []
    for directory in logs.directories:
        if directory.error is not None:
            continue
        try:
            directory.begin_loading()
            yield from _load_steps(logs, directory, expected_topic, futures)
        except OSError as error:
            logs.take_offline(directory, error)
        yield None
    for directory, path, future in futures:
        if directory.error is None:
            _go_on_with_move(logs, directory, path, (future.topic, future.partition))
    if all(directory.error is not None for directory in logs.directories):
        raise LogDirectoryError(
            f"no log directory can be read; {logs.directories[0].path}: {logs.directories[0].error}"
        )
    _forget_gone(logs)


def _forget_gone(logs: LoadedLogs) -> None:
    """What checkpoints say of logs that are not there is not for later ones of the same name."""
    for directory in logs.directories:
        for offsets in directory.offsets():
            for key in [key for key in offsets if logs.directory_of(*key) is not directory]:
                del offsets[key]
        if directory.error is None:
            try:
                _forget_cleanings(logs, directory)
                _limit_shortened(logs, directory)
                if not directory.has_recovery_points:
                    _begin_checkpoints(logs, directory)
            except OSError as error:
                logs.take_offline(directory, error)


def _begin_checkpoints(logs: LoadedLogs, directory: LogDirectory) -> None:
    """A new directory says that nothing is durable yet: without the files the start after a power
    loss would have to take them for lost, and what never became durable for damage."""
    for name in (RECOVERY_POINTS, LOG_STARTS):
        directory.write_checkpoint(name, logs.offsets_in(directory, VALUES[name]))
    directory.has_recovery_points = True


def _limit_shortened(logs: LoadedLogs, directory: LogDirectory) -> None:
    """A log may be shorter than its files say, where a kill came between its truncation and the
    note of that: what is appended next is not durable, committed or deleted for it."""
    for name, offsets in (
        (RECOVERY_POINTS, directory.recovery_points),
        (HIGH_WATERMARKS, directory.high_watermarks),
        (LOG_STARTS, directory.log_starts),
    ):
        shortened = {
            (log.topic, log.partition): log.log_end_offset
            for log in logs.logs_in(directory)
            if offsets.get((log.topic, log.partition), -1) > log.log_end_offset
        }
        if shortened:
            offsets.update(shortened)
            directory.write_checkpoint(name, logs.offsets_in(directory, VALUES[name]))


def _forget_cleanings(logs: LoadedLogs, directory: LogDirectory) -> None:
    """What is appended where cleaned records were lost is not clean."""
    points = directory.cleaner_points
    lost = [
        log
        for log in logs.logs_in(directory)
        if points.get((log.topic, log.partition), -1) > log.log_end_offset
    ]
    for log in lost:
        logger.warning(
            "%s was cleaned up to offset %d, and ends before; it is cleaned anew",
            log.directory,
            points.pop((log.topic, log.partition)),
        )
    if lost:
        directory.write_checkpoint(CLEANER_POINTS, dict(points))


def _load_steps(
    logs: LoadedLogs,
    directory: LogDirectory,
    expected_topic: ExpectedTopic | None,
    futures: list[tuple[LogDirectory, str, PartitionName]],
) -> Iterator[Opening]:
    names = logs.files.directories(directory.path)
    if not directory.was_clean and any(_is_partition(name) for name in names):
        logger.info("%s: no clean shutdown was noted; recovering", directory.path)
    for name in names:
        found = parse_name(name)
        if found is None:
            logger.warning(
                "%s/%s is not a partition's directory; it is left alone", directory.path, name
            )
            continue
        if (found.topic, found.partition) == METADATA_PARTITION:
            continue
        if found.suffix == FUTURE_SUFFIX:
            futures.append((directory, f"{directory.path}/{name}", found))
            continue
        if found.suffix:
            _leave_suffixed(logs, directory, name, found)
            continue
        opening = _load(logs, directory, name, found, expected_topic)
        if opening is not None:
            yield opening
        if directory.error is not None:
            return


def _is_partition(name: str) -> bool:
    found = parse_name(name)
    return found is not None and found[:2] != METADATA_PARTITION


def _go_on_with_move(
    logs: LoadedLogs, directory: LogDirectory, path: str, key: tuple[str, int]
) -> None:
    """The copy of a move that had not ended: go on with it, or begin anew when it is asked for."""
    log = logs.get(*key)
    if log is None:
        logger.warning("%s is a copy without its original; it is left alone", path)
        return
    try:
        topic_id = _topic_id(logs, path)
        if topic_id == log.topic_id and logs.moves.resume(key, directory, path):
            logger.info("%s: going on with a move that had not ended", path)
            return
    except (KafkaError, LogDirectoryError) as error:
        logger.error("%s: %s; moving it anew", path, error)
        topic_id = None
    logger.info("%s: the copy of a move that did not end; removing it", path)
    logs.remove_later(path)
    if topic_id is None:
        try:
            logs.moves.begin(key, directory)
        except KafkaError as error:
            logger.error("%s: %s", path, error)


def _leave_suffixed(
    logs: LoadedLogs, directory: LogDirectory, name: str, found: PartitionName
) -> None:
    path = f"{directory.path}/{name}"
    if found.suffix == DELETE_SUFFIX:
        logs.remove_later(path)
    elif found.suffix == STRAY_SUFFIX:
        logger.warning("%s is a stray log; it is left alone", path)


def _load(
    logs: LoadedLogs,
    directory: LogDirectory,
    name: str,
    found: PartitionName,
    expected_topic: ExpectedTopic | None,
) -> Opening | None:
    path = f"{directory.path}/{name}"
    key = (found.topic, found.partition)
    known_files = logs.known_logs.get(key) if directory.was_clean else None
    topic_id = _topic_id(logs, path) if known_files is None else known_files.topic_id
    if expected_topic is not None:
        expected = expected_topic(*key)
        if topic_id is None and expected is not None and _is_empty(logs, path):
            logger.warning("%s holds nothing: its creation was cut short, or it was emptied", path)
            for offsets in directory.offsets():
                offsets.pop(key, None)
            topic_id = expected
            logs.write_partition_metadata(path, expected, sync=True)
        if expected is None and _is_foreign(logs, path, name):
            logger.warning("%s holds no log; it is left alone", path)
            return None
        if expected is None or topic_id != expected:
            _set_aside(logs, directory, name, found)
            return None
    known = logs.get(*key)
    if known is not None:
        if topic_id == known.topic_id and _is_same(logs, directory, path, known):
            _set_aside(logs, directory, name, found)  # a move ended between its two renames
            return None
        raise LogDirectoryError(
            f"{path} and {known.directory} hold the same partition; move the wrong one away"
        )
    return Opening(logs, directory, path, key, topic_id or bytes(16))


def _topic_id(logs: LoadedLogs, path: str) -> bytes | None:
    """The topic id in `partition.metadata`, None without one.

    A damaged one is an error, but not where there are no records: a power loss may leave that of a
    new partition empty, whose creation nobody has heard of then.
    """
    file = f"{path}/{PARTITION_METADATA}"
    try:
        return parse_partition_metadata(logs.files.read_file(file))
    except FileNotFoundError:
        return None
    except ValueError as error:
        if _is_empty(logs, path):
            logger.warning("%s: %s; there are no records, making it anew", file, error)
            logs.files.unlink(file)
            return None
        raise LogDirectoryError(
            f"{file} cannot be read: {error}; restore it, or move the directory away"
        ) from None


def _is_foreign(logs: LoadedLogs, path: str, name: str) -> bool:
    """Whether a directory that is named like a partition's is somebody else's, as `.Trash-1000`.

    An empty one is taken for ours, but where its name says that others hide it.
    """
    files = logs.files
    if holds_log(files, path):
        return False
    return bool(name.startswith(".") or files.listing(path) or files.directories(path))


def _is_empty(logs: LoadedLogs, path: str) -> bool:
    """Whether there are no records in a partition's directory."""
    listing = logs.files.listing(path)
    return not any(size for name, size in listing.items() if LOG_SUFFIX in name)


def _is_same(logs: LoadedLogs, directory: LogDirectory, path: str, known: PartitionLog) -> bool:
    """Whether another directory of a partition ends where the known one does."""
    key = (known.topic, known.partition)
    try:
        other = logs.open_future(directory, path, key, known.topic_id)
    except KafkaError:
        return False
    end_offset = other.log_end_offset
    other.close()
    return end_offset == known.log_end_offset


def _set_aside(logs: LoadedLogs, directory: LogDirectory, name: str, found: PartitionName) -> None:
    unique = logs.random.random_bytes(16).hex()
    target = suffixed_name(found.topic, found.partition, unique, STRAY_SUFFIX)
    logger.warning(
        "%s/%s belongs to no partition of this node; renaming it to %s",
        directory.path,
        name,
        target,
    )
    logs.files.rename(f"{directory.path}/{name}", f"{directory.path}/{target}")
    logs.files.sync_directory(directory.path)
