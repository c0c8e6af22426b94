"""Logs that are short of something: cut back to what was written, and opened again afterwards.

A full disk, used-up descriptors, no memory: that passes, and what the log holds is unharmed. What
was not written is taken back at once: offsets, producers, epochs and the places in the segment,
which nobody has seen, since the log's end moves only behind a write. In the files it is cut off at
once too, or, where that fails, before anything else. Only then, when what was short is there again
and the cut is durable, the log takes appends. Before that it refuses them; whatever fails in
another way closes it for good, as does a sync that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from kwire.kept_errors import kept
from kwire.log.files import DESCRIPTORS, FULL, passes
from kwire.log.partition.local_log import LocalLog
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

PROBE_BYTES_MIN = 4096
PROBE_BYTES_MAX = 1 << 20


class Fail(Protocol):
    """Lets the log refuse appends, for good or for a shortage (`PartitionLog.fail`)."""

    def __call__(self, error: Exception, *, lost: bool = False, for_good: bool = False) -> None: ...


class Shortage:
    """What a log is short of, and what is left to be done to its files before it goes on.

    `error` is why it refuses appends for a while, None while it does not. `fail` and `over` are the
    log's: `over(offset)` hears that it takes appends again, and up to where all is durable by that
    (None: as before).
    """

    __slots__ = (
        "_fail",
        "_is_syncing",
        "_is_uncut",
        "_local",
        "_needed_bytes",
        "_over",
        "error",
        "is_unsynced",
        "truncation",
    )

    def __init__(self, local: LocalLog, fail: Fail, over: Callable[[int | None], None]) -> None:
        self._local = local
        self._fail = fail
        self._over = over
        self.error: OSError | None = None
        self.truncation: Callable[[], None] | None = None  # to be done again, to its end
        self.is_unsynced = False  # what was cut off might come back after a power loss
        self._is_uncut = False  # the files may hold more than the log
        self._is_syncing = False
        self._needed_bytes = 0

    def cut_back(self, needed_bytes: int) -> None:
        """Cut what is not written off the files: now, or when `retry` can.

        An append of `needed_bytes` has failed, and the log has taken it back.
        """
        self._needed_bytes = max(self._needed_bytes, needed_bytes)
        self._is_uncut = True
        if self.truncation is not None:
            return
        try:
            self._cut_files()
        except (OSError, KafkaError) as error:
            local = self._local
            logger.error(
                "%s: cannot be cut back to offset %d: %s",
                local.directory,
                local.written_offset,
                error,
            )
            if not passes(error):
                self._fail(error, for_good=True)

    def _cut_files(self) -> None:
        if self._local.undo_roll():
            self.is_unsynced = True  # also when the cut fails behind its truncate
        self._local.cut_back()
        self._is_uncut = False

    def clear(self) -> None:
        """The log takes appends again."""
        self.error = None
        self._needed_bytes = 0

    def retry(self) -> Pending[None]:
        """Try to let the log take appends again.

        Fails with what is still short, or with what closes the log for good. A log that does not
        refuse appends for a shortage is left as it is.
        """
        if self.error is None or self._is_syncing:
            return Pending.completed(None)
        try:
            truncation = self.truncation
            if truncation is not None:
                truncation()
                self._is_uncut = False
                if self.truncation is truncation:
                    self.truncation = None
                elif self.error is not None:  # but for its syncs, which are to be done again
                    return Pending.failed(self.error)
            if self.error is None:  # the truncation closed it for good
                return Pending.failed(
                    KafkaError(
                        ErrorCode.KAFKA_STORAGE_ERROR,
                        f"{self._local.directory}: a truncation has failed",
                    )
                )
            if self._is_uncut:
                self._cut_files()
            self._local.epoch_file.save_missing()
            self._probe(self.error)
        except KafkaError as error:
            self._fail(error, for_good=True)
            return Pending.failed(kept(error))
        except OSError as error:
            if passes(error):
                self.error = kept(error)
            else:
                self._fail(error, for_good=True)
            return Pending.failed(kept(error))
        if not self.is_unsynced:
            self._over(None)
            return Pending.completed(None)
        return self._sync()

    def _sync(self) -> Pending[None]:
        """Make the cut durable: what was cut off must not come back among newer batches."""
        local = self._local
        result: Pending[None] = Pending()
        self._is_syncing = True
        end, truncations = local.written_offset, local.truncations

        def synced(done: Pending[None]) -> None:
            self._is_syncing = False
            error = done.error()
            if error is not None:
                self._fail(error, lost=True)
                result.fail(error)
                return
            self.is_unsynced = False
            if self.error is not None:
                self._over(end if truncations == local.truncations else None)
            result.complete(None)

        local.flusher.request(local.sync_request(end + 1)).add_done_callback(synced)
        return result

    def _probe(self, error: OSError) -> None:
        """Raise the OSError that an append would raise now. Reserves and changes nothing."""
        files, active = self._local.files, self._local.segments.active
        if error.errno in DESCRIPTORS:
            files.close(files.open(active.log_path))
        elif error.errno in FULL:
            size_bytes = min(max(self._needed_bytes, PROBE_BYTES_MIN), PROBE_BYTES_MAX)
            if files.allocate(active.handle, active.size_bytes, size_bytes):
                active.give_back()
            # else the file system does not know: the next append will show it
