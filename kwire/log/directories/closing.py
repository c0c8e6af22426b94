"""Closing a log directory in order: what `loading` opened is made durable, and noted as clean.

Also what goes on, once written out in the same way: a copy of it is opened as after a clean stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.log.directories.checkpoint_contents import VALUES
from kwire.log.directories.checkpoint_format import Offsets
from kwire.log.directories.directory import LogDirectory
from kwire.log.flushing import SyncRequest, sync_files
from kwire.log.partition.partition_log import PartitionLog


def close_directory(
    directory: LogDirectory,
    logs: Sequence[PartitionLog],
    offsets_of: Callable[[Callable[[PartitionLog], int]], Offsets],
    broker_epoch: int,
    *,
    is_loaded: bool,
) -> None:
    """Write, sync and close the directory's logs, then its checkpoints, then the note.

    `offsets_of` gives what a checkpoint file holds. A directory whose logs were not all loaded (not
    `is_loaded`) stays as clean as it was, with its checkpoints. Blocks. Raises OSError.
    """
    if not is_loaded and not directory.was_clean:
        for log in logs:
            log.abandon()
        return
    request = SyncRequest()
    for log in logs:
        if log.is_short:
            log.resume_appends()  # the shortage may just be over
        if not log.is_closed:
            request.add(log.begin_close())
    # Everything is written before anything is synced: the first syncs take most along.
    if directory.error is None:
        sync_files(directory.files, request)
    for log in logs:
        log.end_close(is_durable=directory.error is None)
    if directory.error is not None:
        return
    if is_loaded:
        _write_checkpoints(directory, offsets_of)
    if all(log.error is None for log in logs):
        directory.finish(broker_epoch)


def write_out(
    directory: LogDirectory,
    logs: Sequence[PartitionLog],
    offsets_of: Callable[[Callable[[PartitionLog], int]], Offsets],
) -> bool:
    """Write what `close_directory` writes, and go on; nothing is synced, nothing noted.

    Returns whether the files are whole: not where anything has failed. Blocks. Raises OSError.
    """
    if directory.error is not None:
        return False
    for log in logs:
        if not log.is_closed:
            log.begin_close(goes_on=True)
    _write_checkpoints(directory, offsets_of)
    return all(log.error is None and not log.is_closed and not log.is_short for log in logs)


def _write_checkpoints(
    directory: LogDirectory, offsets_of: Callable[[Callable[[PartitionLog], int]], Offsets]
) -> None:
    for name, value in VALUES.items():
        directory.write_checkpoint(name, offsets_of(value))
