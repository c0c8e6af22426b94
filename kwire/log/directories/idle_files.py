"""Closes files of partitions that are written to seldom, where a node has more than descriptors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.scheduling import Scheduler
from kwire.log.segment.open_file_limit import Openable, OpenSegments
from kwire.pending import Pending

AGAIN_MS = 5  # after a sweep that was not enough


class IdleFiles:
    """Syncs and releases what `open_segments` says is idle, when it says that there are too many.

    `failed(flusher, error)` hears of a sync that has failed; `released()` that descriptors are
    free.
    """

    def __init__(
        self,
        open_segments: OpenSegments,
        scheduler: Scheduler,
        failed: Callable[[Flusher, Exception], None],
        released: Callable[[], None],
    ) -> None:
        self._open_segments = open_segments
        self._scheduler = scheduler
        self._failed = failed
        self._released = released
        self._is_due = False
        self._syncs = 0  # under way
        self._is_closed = False
        open_segments.on_many = self._begin

    def close(self) -> None:
        """Nothing is closed for others any more."""
        self._is_closed = True

    def _begin(self) -> None:
        """Not at once: who opens a file may be about to sync others by their handles."""
        if not self._is_due and not self._syncs and not self._is_closed:
            self._is_due = True
            self._scheduler.call_soon(self._sync)

    def _sync(self) -> None:
        self._is_due = False
        if self._is_closed:
            return
        together: dict[Flusher, list[Openable]] = {}
        for segment in self._open_segments.idle():
            if segment.flusher is not None:
                together.setdefault(segment.flusher, []).append(segment)
        self._syncs = len(together)
        if not together:
            self._go_on()
        for flusher, segments in together.items():
            request = SyncRequest()
            for segment in segments:
                segment.add_file_to_sync(request)
            flusher.request(request).add_done_callback(partial(self._synced, flusher, segments))

    def _synced(self, flusher: Flusher, segments: list[Openable], done: Pending[None]) -> None:
        self._syncs -= 1
        error = done.error()
        for segment in segments:
            segment.is_closing = False
            if error is not None:
                self._open_segments.closed(segment)  # the directory's logs are
            elif segment.is_sealed or segment.is_dirty:
                self._open_segments.resume(segment)  # it has again what is not synced
            else:
                segment.release()
        if error is not None:
            self._failed(flusher, error)
        self._go_on()

    def _go_on(self) -> None:
        self._open_segments.admit()
        self._released()
        if self._open_segments.is_over and not self._syncs and not self._is_due:
            self._is_due = True
            self._scheduler.call_later(AGAIN_MS, self._sync)
