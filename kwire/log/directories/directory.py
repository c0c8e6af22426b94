"""One log directory (an entry of `log.dirs`): its lock, its id, its checkpoints."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from kwire.log.directories import checkpoint_format
from kwire.log.directories.checkpoint_format import Offsets, encode_checkpoint, parse_checkpoint
from kwire.log.directories.identity_files import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    META_VERSIONS,
    PARTITION_METADATA,
    encode_clean_shutdown,
    encode_meta_properties,
    parse_clean_shutdown,
    parse_properties,
)
from kwire.log.files import TEMPORARY_SUFFIX, Files, LockedError, write_atomically
from kwire.log.flushing import Flusher, Syncs
from kwire.log.recovery.quarantine import set_strange_aside
from kwire.log.scheduling import Scheduler
from kwire.protocol import uuids

logger = logging.getLogger(__name__)

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
FUTURE_SUFFIX = "-future"
NAME_SIZE_MAX = 255
OFFSET_DIGITS = 20
"""What the name of each file of a log begins with."""
# Files that a running node replaces.
_REPLACED = (
    checkpoint_format.RECOVERY_POINTS,
    checkpoint_format.HIGH_WATERMARKS,
    checkpoint_format.LOG_STARTS,
    checkpoint_format.CLEANER_POINTS,
    CLEAN_SHUTDOWN,
)
METADATA_PARTITION = ("__cluster_metadata", 0)


class LogDirectoryError(Exception):
    """A log directory cannot be used; the message is one line that says why and what to do."""


class PartitionName(NamedTuple):
    """What the name of a partition's directory says; `suffix` as `-delete`, empty without."""

    topic: str
    partition: int
    suffix: str


def parse_name(name: str) -> PartitionName | None:
    """The partition that a directory's name means, None for another directory.

    `TOPIC-PARTITION`, or `TOPIC-PARTITION.UNIQUE` with one of the suffixes.
    """
    suffix = ""
    for known in (DELETE_SUFFIX, STRAY_SUFFIX, FUTURE_SUFFIX):
        if name.endswith(known):
            name, dot, _ = name[: -len(known)].rpartition(".")
            if not dot:
                return None
            suffix = known
            break
    topic, dash, number = name.rpartition("-")
    if not dash or not topic or not number.isdecimal() or len(number) > 10:
        return None
    if number != str(int(number)):
        return None  # nobody writes `topic-00`; read as `topic-0` it would be there twice
    return PartitionName(topic, int(number), suffix)


def holds_log(files: Files, path: str) -> bool:
    """Whether there are files of a log in a directory: `.Trash-1000`, which a desktop puts on a
    volume, and `backup-2024` have the names of partitions, and none. Raises OSError."""
    return any(
        name == PARTITION_METADATA or (name[:OFFSET_DIGITS].isdecimal() and name[OFFSET_DIGITS:])
        for name in files.listing(path)
    )


def suffixed_name(topic: str, partition: int, unique: str, suffix: str) -> str:
    """`TOPIC-PARTITION.UNIQUE-SUFFIX`, the topic cut where it would be too long for a name."""
    ending = f"-{partition}.{unique}{suffix}"
    return topic[: NAME_SIZE_MAX - len(ending)] + ending


class LogDirectory:
    """A locked log directory. `error` says why it is offline, None while it works."""

    def __init__(
        self, path: str, files: Files, scheduler: Scheduler, syncs: Syncs | None = None
    ) -> None:
        self.path = path
        self.files = files
        self.flusher = Flusher(files, scheduler, syncs)
        self.error: Exception | None = None
        self.log_count = 0  # of partitions that live here
        self.directory_id = uuids.ZERO
        self.was_clean = False
        self.previous_broker_epoch = -1
        self.recovery_points: Offsets = {}
        self.high_watermarks: Offsets = {}
        self.log_starts: Offsets = {}
        self.cleaner_points: Offsets = {}
        self._lock = -1
        self.has_recovery_points = True
        # The loop itself writes in `limit`, while a thread may be writing the same file (ADR 3).
        self._writing = threading.Lock()
        self._asked = 0  # how many writes of checkpoints were asked for
        self._newest: dict[str, int] = {}  # the number of each file's last one
        # By number, what each file holds and what writes under way may yet make of it.
        self._contents: dict[str, dict[int, Offsets]] = {}

    def lock(self) -> None:
        """Create the directory and lock it. Raises LogDirectoryError naming the holder, OSError."""
        try:
            self.files.make_directory(self.path)
            self._lock = self.files.lock(self._file(LOCK))
        except LockedError as error:
            if error.pid == os.getpid():
                raise LogDirectoryError(
                    f"{self.path} is in use by this process already; is it named twice?"
                ) from None
            holder = f"process {error.pid}" if error.pid else "another process"
            raise LogDirectoryError(
                f"{self.path} is in use by {holder}; stop it, or choose another data directory"
            ) from None

    def unlock(self) -> None:
        if self._lock >= 0:
            handle, self._lock = self._lock, -1
            try:
                self.files.release_lock(handle, self._file(LOCK))
            except OSError as error:
                logger.warning("%s: %s", self._file(LOCK), error)

    def meta_properties(self) -> dict[str, str] | None:
        """What `meta.properties` says, None without one. Raises LogDirectoryError if it is damaged
        or of an unknown version, OSError if it cannot be read."""
        path = self._file(META_PROPERTIES)
        try:
            values = parse_properties(self.files.read_file(path))
            if values.get("version", META_VERSIONS[-1]) not in META_VERSIONS:
                raise LogDirectoryError(
                    f"{path} has version {values['version']}, known are "
                    f"{', '.join(META_VERSIONS)}; it was written by something newer, or is damaged"
                )
            if "directory.id" in values:
                self.directory_id = uuids.from_text(values["directory.id"])
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise LogDirectoryError(
                f"{path} cannot be read: {error}; restore it from another log directory"
            ) from None
        return values

    def give_id(self, found: Mapping[str, str], directory_id: bytes, wall_ms: int) -> None:
        """Add a `directory.id` durably to a `meta.properties` (`found`) that has none, as those of
        Apache Kafka before 3.7. Raises OSError."""
        node_id = int(found.get("node.id", found.get("broker.id", "-1")))
        content = encode_meta_properties(
            found.get("cluster.id", ""), node_id, directory_id, wall_ms
        )
        write_atomically(self.files, self._file(META_PROPERTIES), content)
        self.directory_id = directory_id

    def begin(self) -> None:
        """Read the checkpoints and whether the last stop was clean. Raises OSError."""
        set_strange_aside(
            self.files, self.path, lambda name: name.removesuffix(TEMPORARY_SUFFIX) in _REPLACED
        )
        path = self._file(CLEAN_SHUTDOWN)
        if self.files.exists(path):
            self.was_clean = True
            self.previous_broker_epoch = parse_clean_shutdown(self.files.read_file(path))
        self.has_recovery_points = self.files.exists(self._file(checkpoint_format.RECOVERY_POINTS))
        self.recovery_points = self._read(checkpoint_format.RECOVERY_POINTS)
        self.high_watermarks = self._read(checkpoint_format.HIGH_WATERMARKS)
        self.log_starts = self._read(checkpoint_format.LOG_STARTS)
        self.cleaner_points = self._read(checkpoint_format.CLEANER_POINTS)

    def _read(self, name: str) -> Offsets:
        path = self._file(name)
        try:
            data = self.files.read_file(path)
            if not data:
                # Kafka makes them so, and fills them later: no fault, but it may have been one.
                logger.warning("%s is empty", path)
            offsets = parse_checkpoint(data)
            self._contents[name] = {0: dict(offsets)}
            return offsets
        except FileNotFoundError:
            if self.has_recovery_points and name == checkpoint_format.LOG_STARTS:
                logger.warning("%s is missing: records that were deleted may come back", path)
            return {}
        except ValueError as error:
            # Recovery points, high watermarks and cleaner offsets cost time when lost. Log starts
            # bring deleted records back, which is better than to refuse all others.
            logger.error("%s: %s; going on without it", path, error)
            return {}

    def begin_loading(self) -> None:
        """Logs are opened from here on: the last stop is no longer what they are as of.

        Until then a start that fails, or is stopped, leaves the directory as clean as it was.
        Raises OSError.
        """
        if self.was_clean:
            self.files.unlink(self._file(CLEAN_SHUTDOWN))
            self.files.sync_directory(self.path)

    def offsets(self) -> tuple[Offsets, ...]:
        """Everything that is known of partitions by their keys."""
        return (
            self.recovery_points,
            self.high_watermarks,
            self.log_starts,
            self.cleaner_points,
        )

    def recovery_point(self, key: tuple[str, int]) -> int | None:
        """Below it a partition's records are durable; None when the file that says so is lost."""
        return self.recovery_points.get(key, 0) if self.has_recovery_points else None

    def write_checkpoint(self, name: str, offsets: Offsets) -> None:
        """Replace one of the checkpoint files durably. Raises OSError."""
        self.checkpoint_job(name, offsets)()

    def checkpoint_job(self, name: str, offsets: Offsets) -> Callable[[], None]:
        """What replaces a checkpoint file durably, for any thread to do. Raises OSError, then.

        Of two such jobs the one that was asked for last has the last word, whichever runs first.
        """
        self._asked += 1
        number = self._asked
        contents = self._contents.setdefault(name, {})
        contents[number] = offsets

        def write() -> None:
            with self._writing:
                if self._newest.get(name, 0) > number:
                    return
                write_atomically(self.files, self._file(name), encode_checkpoint(offsets))
                self._newest[name] = number
                for older in [other for other in list(contents) if other < number]:
                    del contents[older]

        return write

    def holds(self, name: str, offsets: Offsets) -> bool:
        """Whether these very offsets are what a checkpoint file was last asked to hold, and
        does, durably. A file that somebody else changes meanwhile is not looked at."""
        contents = self._contents.get(name)
        if not contents:
            return False
        number = max(contents)
        return contents[number] is offsets and self._newest.get(name) == number

    def limit(
        self, key: tuple[str, int], offset: int, current: Mapping[str, Callable[[], Offsets]]
    ) -> None:
        """Durably let no checkpoint file say more than `offset` of a log, before that goes on.

        Else a start after a kill takes what a file says of records that are gone for the later
        ones at their offsets: that they are durable, clean, deleted. `current` gives what each file
        shall hold. Blocks where there is something to take back. Raises OSError.
        """
        for name, known in current.items():
            contents = list(self._contents.get(name, {}).values())
            if any(content.get(key, -1) > offset for content in contents):
                self.write_checkpoint(name, known())

    def finish(self, broker_epoch: int) -> None:
        """Note the clean stop, the last file that a node writes; with the epoch before where this
        life got none, since that is the last which the controller knows."""
        if self.error is None:
            epoch = broker_epoch if broker_epoch >= 0 else self.previous_broker_epoch
            write_atomically(self.files, self._file(CLEAN_SHUTDOWN), encode_clean_shutdown(epoch))

    def _file(self, name: str) -> str:
        return f"{self.path}/{name}"
