"""Putting a compacted segment in the place of those it came from, in steps that a crash survives.

    .cleaned  ->  .swap        from here on recovery completes the replacement
    originals ->  .deleted     in order, oldest first, so that what is left is never older than gone
    .swap     ->  the name     of the first original

Each step is durable before the next one begins. A crash before the first undoes everything: the
originals are all there.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.kept_errors import kept
from kwire.log.flushing import SyncRequest
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.segment.segment import DELETED_SUFFIX, SWAP_SUFFIX, Segment
from kwire.pending import Pending


def still_there(log: PartitionLog, old: Sequence[Segment], sizes: Sequence[int]) -> bool:
    """Whether the log still holds these segments as they were."""
    if log.is_closed or log.error is not None:
        return False
    active = log.segments.active
    known = dict.fromkeys(log.segments)
    return all(
        segment in known and segment is not active and segment.size_bytes == size
        for segment, size in zip(old, sizes, strict=True)
    )


def replace(
    log: PartitionLog, old: Sequence[Segment], sizes: Sequence[int], new: Segment
) -> Pending[bool]:
    """Put `new` (synced, named `.cleaned`) in the place of `old`; False when the log has changed.

    Fails with OSError; the log then goes on with whichever segments it has.
    """
    if not still_there(log, old, sizes):
        new.delete_files()
        return Pending.completed(False)
    result: Pending[bool] = Pending()
    try:
        new.rename(SWAP_SUFFIX)
    except OSError as error:
        return Pending.failed(error)

    def swapped(done: Pending[None]) -> None:
        error = done.error()
        if error is not None:
            result.fail(error)
        elif not still_there(log, old, sizes):
            new.delete_files()
            result.complete(False)
        else:
            _exchange(log, old, new, result)

    _sync_directory(log).add_done_callback(swapped)
    return result


def _exchange(
    log: PartitionLog, old: Sequence[Segment], new: Segment, result: Pending[bool]
) -> None:
    """The second and third step."""
    try:
        for segment in old:
            segment.rename(DELETED_SUFFIX)
    except OSError as error:
        result.fail(error)
        return
    log.local.exchange(old, new)

    def renamed(done: Pending[None]) -> None:
        error = done.error()
        if error is None:
            try:
                if not new.is_deleted and new.has_suffix(SWAP_SUFFIX):
                    new.rename("")
            except OSError as failure:
                error = kept(failure)
        if error is not None:
            result.fail(error)
            return
        log.local.remove_later(old)
        final = _sync_directory(log)
        final.add_done_callback(lambda done: _settle(done, result))

    _sync_directory(log).add_done_callback(renamed)


def _settle(done: Pending[None], result: Pending[bool]) -> None:
    error = done.error()
    if error is not None:
        result.fail(error)
    else:
        result.complete(True)


def _sync_directory(log: PartitionLog) -> Pending[None]:
    request = SyncRequest()
    request.directories.append(log.directory)
    pending = log.local.flusher.request(request)
    pending.add_done_callback(lambda done: _sync_failed(log, done.error()))
    return pending


def _sync_failed(log: PartitionLog, error: Exception | None) -> None:
    if error is not None:
        log.fail(error, lost=True)
