"""How many segments are open: who reads years of them needs few at a time, and a node may well have
more partitions that are written to than descriptors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kwire.log.flushing import Flusher, SyncRequest

SEALED_MAX = 512
SEALED_SHARE, ACTIVE_SHARE = 8, 2
"""Of the process's descriptors so large a part may be of sealed and of active segments: the others
are for connections, the metadata log and files that are open for a moment."""
OPEN_MIN = 4
UNBOUNDED = 1 << 62


class Openable(Protocol):
    """A segment, as far as its open file goes. `is_used` since somebody has set it to False."""

    is_sealed: bool
    is_used: bool

    @property
    def flusher(self) -> Flusher | None: ...
    def add_to_sync(self, request: SyncRequest) -> None: ...
    def release(self) -> None: ...


class OpenSegments:
    """The segments whose files are open, over all logs.

    Of sealed ones the first opened goes first, at once. An active one has what is not synced yet:
    a file's error of a later write by the kernel is told to whoever has it open. So `on_many()`
    hears of too many of them, and who hears it syncs what is `idle` before it is released.
    """

    def __init__(self, sealed_max: int = SEALED_MAX, active_max: int = UNBOUNDED) -> None:
        self._sealed_max = sealed_max
        self._active_max = active_max
        self._sealed: dict[Openable, None] = {}
        self._active: dict[Openable, None] = {}
        self.on_many: Callable[[], None] = lambda: None

    @classmethod
    def of_descriptors(cls, limit: int) -> OpenSegments:
        """What fits into a process that may have so many descriptors; 0: any number."""
        if not limit:
            return cls()
        sealed_max = min(SEALED_MAX, max(OPEN_MIN, limit // SEALED_SHARE))
        return cls(sealed_max, max(OPEN_MIN, limit // ACTIVE_SHARE))

    def opened(self, segment: Openable) -> None:
        """A segment's file was opened, or the segment sealed; releases another sealed one where
        there are too many."""
        if not segment.is_sealed:
            self._active[segment] = None
            if len(self._active) > self._active_max:
                self.on_many()
            return
        self._active.pop(segment, None)
        self._sealed[segment] = None
        while len(self._sealed) > self._sealed_max:
            oldest = next(iter(self._sealed))
            del self._sealed[oldest]
            if oldest is not segment and oldest.is_sealed:
                oldest.release()

    def closed(self, segment: Openable) -> None:
        """An active segment's file is closed, or not to be."""
        self._active.pop(segment, None)

    def idle(self) -> list[Openable]:
        """Active segments to be released so that an eighth of their number is free: the first
        opened first, of those that nobody has used since they were passed over here."""
        active = self._active
        wanted = len(active) - self._active_max * 7 // 8
        found: dict[Openable, None] = {}
        for segment in [*active, *active]:  # nobody has used those that come a second time
            if len(found) >= wanted:
                break
            if segment.is_used:
                segment.is_used = False
                active[segment] = active.pop(segment)
            else:
                found[segment] = None
        return list(found)
