"""Writing checkpoint files off the loop, one write of a file at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.log.directories.checkpoint_format import Offsets
from kwire.log.directories.directory import LogDirectory
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending, settle_all

if TYPE_CHECKING:
    from kwire.log.partition.partition_log import PartitionLog

File = tuple[str, str]


class CheckpointWriter:
    """Whoever asks for a file that is being written shares its next write, of the offsets of then.

    `failed(directory, error)` hears of what could not be written, before who waits for it does.
    """

    def __init__(
        self, scheduler: Scheduler, failed: Callable[[LogDirectory, OSError], None]
    ) -> None:
        self._scheduler = scheduler
        self._failed = failed
        self._waiting: dict[File, list[Pending[None]]] = {}  # by the files that are being written

    def write(
        self, directory: LogDirectory, name: str, offsets: Callable[[], Offsets]
    ) -> Pending[None]:
        """Done when the offsets of now are durable; fails with OSError."""
        result: Pending[None] = Pending()
        file = directory.path, name
        if file in self._waiting:
            self._waiting[file].append(result)
            return result
        self._waiting[file] = []
        known = offsets()

        def finished(done: Pending[None]) -> None:
            error = done.error()
            if isinstance(error, OSError):
                self._failed(directory, error)
            waiting = self._waiting.pop(file)
            if waiting:
                again = self.write(directory, name, offsets)
                again.add_done_callback(lambda done: settle_all(waiting, done.error()))
            settle_all([result], error)

        job = directory.checkpoint_job(name, known)
        self._scheduler.run(job).add_done_callback(finished)
        return result


def recovery_point(log: PartitionLog) -> int:
    """What `recovery-point-offset-checkpoint` says of a log: below it all is durable."""
    return log.recovery_point


def high_watermark(log: PartitionLog) -> int:
    """What `replication-offset-checkpoint` says of a log."""
    return log.high_watermark


def moved_start(log: PartitionLog) -> int:
    """What `log-start-offset-checkpoint` says of a log: its start where that lies inside of the
    first segment, -1 (not listed) else."""
    return log.log_start_offset if log.log_start_offset > log.segments.first.base_offset else -1
