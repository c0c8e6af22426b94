"""What the checkpoint files of the log directories shall hold, kept up with the logs that move."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from kwire.log.directories.checkpoint_format import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    Offsets,
)

if TYPE_CHECKING:
    from kwire.log.directories.directory import LogDirectory
    from kwire.log.partition.partition_log import PartitionLog

Key = tuple[str, int]


def recovery_point(log: PartitionLog) -> int:
    """What `recovery-point-offset-checkpoint` says of a log: below it all is durable."""
    return log.recovery_point


def high_watermark(log: PartitionLog) -> int:
    """What `replication-offset-checkpoint` says of a log."""
    return log.high_watermark


def moved_start(log: PartitionLog) -> int:
    """What `log-start-offset-checkpoint` says of a log: its start where that lies inside of the
    first segment, -1 (not listed) else. A truncation to nothing that failed leaves no segment."""
    if not log.segments or log.log_start_offset <= log.segments.first.base_offset:
        return -1
    return log.log_start_offset


VALUES: dict[str, Callable[[PartitionLog], int]] = {
    RECOVERY_POINTS: recovery_point,
    HIGH_WATERMARKS: high_watermark,
    LOG_STARTS: moved_start,
}


class _Content:
    """Of one file: the `offsets` of its logs, but for those that have `moved` since."""

    __slots__ = ("is_given", "moved", "offsets")

    def __init__(self) -> None:
        self.offsets: Offsets = {}
        self.is_given = False  # to somebody who may still read it: copied before it changes
        self.moved: dict[Key, None] = {}

    def put(self, key: Key, offset: int) -> None:
        if self.offsets.get(key, -1) == offset:
            return
        if self.is_given:
            self.offsets, self.is_given = self.offsets.copy(), False
        if offset < 0:
            del self.offsets[key]
        else:
            self.offsets[key] = offset


class CheckpointContents:
    """Costs what has moved since a file was last made, however many logs there are.

    `find(directory, key)` is the log of a partition that lives in the directory, if there is one.
    A log tells of its moves while it `is_noted`, and is in every file's `moved` until then.
    """

    def __init__(self, find: Callable[[LogDirectory, Key], PartitionLog | None]) -> None:
        self._find = find
        self._files: dict[tuple[str, str], _Content] = {}

    def moved(self, directory: LogDirectory, key: Key) -> None:
        """What the directory's files say of a partition may be different, or nothing."""
        for name in VALUES:
            self._file(directory, name).moved[key] = None

    def moved_count(self, directory: LogDirectory, name: str) -> int:
        return len(self._file(directory, name).moved)

    def take_in(self, directory: LogDirectory, name: str, count_max: int | None = None) -> None:
        """Bring a file's offsets up to date, of all logs that have moved or only of some."""
        content, value = self._file(directory, name), VALUES[name]
        for key in list(islice(content.moved, count_max)):
            del content.moved[key]
            log = self._find(directory, key)
            if log is None:
                content.put(key, -1)
            else:
                log.is_noted = True
                content.put(key, value(log))

    def offsets(self, directory: LogDirectory, name: str) -> Offsets:
        """What a file shall hold as of now; the same object until that is something else."""
        self.take_in(directory, name)
        content = self._file(directory, name)
        content.is_given = True
        return content.offsets

    def current(self, directory: LogDirectory) -> dict[str, Callable[[], Offsets]]:
        """The `offsets` of each file, by its name."""
        return {name: partial(self.offsets, directory, name) for name in VALUES}

    def _file(self, directory: LogDirectory, name: str) -> _Content:
        file = directory.path, name
        content = self._files.get(file)
        if content is None:
            content = self._files[file] = _Content()
        return content
