"""Logs whose last append failed: cut back to what was written, and opened again after a shortage.

A full disk, used-up descriptors, no memory: that passes, and what the log holds is unharmed. What
was not written is taken back at once: offsets, producers, epochs and the places in the segment,
which nobody has seen, since the log's end moves only behind a write. In the files it is cut off at
once too, or, where that fails, before anything else. Only then, when what was short is there again
and the cut is durable, the log takes appends (`mend`). Before that it refuses them; whatever
fails in another way closes it for good, as does a sync that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.kept_errors import kept
from kwire.log.files import DESCRIPTORS, FULL, passes
from kwire.log.segment.segment import Segment
from kwire.pending import Pending
from kwire.protocol.errors import KafkaError

if TYPE_CHECKING:
    from kwire.log.partition.base import LogBase

logger = logging.getLogger(__name__)

PROBE_BYTES_MIN = 4096
PROBE_BYTES_MAX = 1 << 20


class Damage:
    """What is left to be done to a log whose files could not be changed as they should.

    `error` is why it refuses appends for a while, None while it does not. Paths that are `stray`
    belong to segments that were never finished.
    """

    __slots__ = ("begun", "error", "is_mending", "is_uncut", "is_unsynced", "needed_bytes", "stray")

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.needed_bytes = 0
        self.is_uncut = False  # the files may hold more than the log
        self.is_unsynced = False  # what was cut off might come back after a power loss
        self.is_mending = False
        self.stray: list[Segment] = []
        self.begun: Callable[[], None] | None = None  # a truncation to be done again, to its end


def cut_back(log: LogBase, needed_bytes: int = 0) -> None:
    """Take back whatever is not written: in memory now, in the files now or by `mend`."""
    damage = log.damage
    damage.needed_bytes = max(damage.needed_bytes, needed_bytes)
    end = log.take_back_unwritten()
    damage.is_uncut = True
    if damage.begun is not None:
        return
    try:
        cut_files(log)
    except (OSError, KafkaError) as error:
        logger.error("%s: cannot be cut back to offset %d: %s", log.directory, end, error)
        if not passes(error):
            log.fail(error, for_good=True)


def cut_files(log: LogBase) -> None:
    """Let the files hold what the log holds. Raises OSError; may be done again then."""
    damage = log.damage
    while damage.stray:
        damage.stray[-1].delete_files()
        damage.stray.pop()
    active = log.segments.active
    if active.is_sealed:
        active.reopen(log.config)  # a roll did not get to its end
    if log.files.size(active.handle) != active.size_bytes:
        damage.is_unsynced = True
    active.truncate_to(log.written_offset, active.size_bytes)
    damage.is_uncut = False


def mend(log: LogBase) -> Pending[None]:
    """Try to let the log take appends again.

    Fails with what is still short, or with what closes the log for good. One that does not
    refuse appends for a shortage is left as it is.
    """
    damage = log.damage
    if damage.error is None or damage.is_mending or log.is_closed:
        return Pending.completed(None)
    try:
        if damage.begun is not None:
            damage.begun()
            damage.begun = None
            damage.is_uncut = False
        if not log.is_short:  # the truncation closed it for good
            assert log.error is not None
            return Pending.failed(log.error)
        if damage.is_uncut:
            cut_files(log)
        log.save_missing_epochs()
        _probe(log, damage)
    except KafkaError as error:
        log.fail(error, for_good=True)
        return Pending.failed(kept(error))
    except OSError as error:
        if passes(error):
            damage.error = kept(error)
        else:
            log.fail(error, for_good=True)
        return Pending.failed(kept(error))
    if not damage.is_unsynced:
        log.take_appends()
        return Pending.completed(None)
    return _sync(log, damage)


def _sync(log: LogBase, damage: Damage) -> Pending[None]:
    """Make the cut durable: what was cut off must not come back among newer batches."""
    result: Pending[None] = Pending()
    damage.is_mending = True
    end, truncations = log.written_offset, log.truncations

    def synced(done: Pending[None]) -> None:
        damage.is_mending = False
        error = done.error()
        if error is not None:
            log.fail(error, lost=True)
            result.fail(error)
            return
        damage.is_unsynced = False
        if damage.error is not None and not log.is_closed:
            if truncations == log.truncations:
                log.recovery_point = max(log.recovery_point, end)
            log.take_appends()
        result.complete(None)

    log.flusher.request(log.sync_request(end + 1)).add_done_callback(synced)
    return result


def _probe(log: LogBase, damage: Damage) -> None:
    """Raise the OSError that an append would meet now. Reserves nothing and changes nothing."""
    error, active = damage.error, log.segments.active
    if error is None:
        return
    files = log.files
    if error.errno in DESCRIPTORS:
        files.close(files.open(active.log_path))
    elif error.errno in FULL:
        size_bytes = min(max(damage.needed_bytes, PROBE_BYTES_MIN), PROBE_BYTES_MAX)
        if files.allocate(active.handle, active.size_bytes, size_bytes):
            active.give_back()
        # else the file system cannot tell: the next append will
