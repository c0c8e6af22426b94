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
SPARE_SHARE = 8  # and so large a part is for those alone, whatever the others take
OPEN_MIN = 4
UNBOUNDED = 1 << 62


class Openable(Protocol):
    """A segment, as far as its open file goes.

    `is_used` and `is_dirty`: it was used, and may have been written to, since somebody has set that
    to False. While it `is_closing` nobody writes to it who can wait.
    """

    is_sealed: bool
    is_used: bool
    is_dirty: bool
    is_closing: bool

    @property
    def flusher(self) -> Flusher | None: ...
    def add_file_to_sync(self, request: SyncRequest) -> None: ...
    def release(self) -> None: ...


class OpenSegments:
    """The segments whose files are open, over all logs.

    Of sealed ones the first opened goes first, at once. An active one has what is not synced yet:
    a file's error of a later write by the kernel is told to whoever has it open. So who writes to
    one more than there may be waits, and `on_many()` is told: it syncs what is `idle`, releases it,
    and lets those go on that wait.
    """

    def __init__(
        self,
        sealed_max: int = SEALED_MAX,
        active_max: int = UNBOUNDED,
        spare_from: int = UNBOUNDED,
    ) -> None:
        self._sealed_max = sealed_max
        self._active_max = active_max
        self._spare_from = spare_from
        self._sealed: dict[Openable, None] = {}
        self._active: dict[Openable, None] = {}
        self._waiting: dict[Openable, Callable[[], None]] = {}
        self._is_tight = False
        self.on_many: Callable[[], None] = lambda: None

    @classmethod
    def of_descriptors(cls, limit: int, *, gives_lowest: bool = False) -> OpenSegments:
        """What fits into a process that may have so many descriptors; 0: any number.

        Where a file `gives_lowest` free descriptor, that tells how many are taken by all.
        """
        if not limit:
            return cls()
        sealed_max = min(SEALED_MAX, max(OPEN_MIN, limit // SEALED_SHARE))
        active_max = max(OPEN_MIN, limit // ACTIVE_SHARE)
        spare_from = limit - limit // SPARE_SHARE if gives_lowest else UNBOUNDED
        return cls(sealed_max, active_max, spare_from)

    @property
    def is_full(self) -> bool:
        """Whether no other active segment should be opened."""
        return self._is_tight or len(self._active) >= self._active_max

    @property
    def is_over(self) -> bool:
        """Whether some should be released now."""
        return self._is_tight or bool(self._waiting) or len(self._active) > self._active_max

    def has_room_for(self, segment: Openable) -> bool:
        """Whether this one may be opened, to stay open."""
        return not (self._is_tight if segment.is_sealed else self.is_full)

    def opened(self, segment: Openable, descriptor: int) -> None:
        """A segment's file was opened, or the segment sealed; releases another sealed one where
        there are too many."""
        if descriptor >= self._spare_from:
            self.refused()
        if not segment.is_sealed:
            self._active[segment] = None
            if len(self._active) > self._active_max:
                self.on_many()
            return
        self._active.pop(segment, None)
        self._sealed[segment] = None
        self._release_sealed(self._sealed_max, segment)

    def refused(self) -> None:
        """There are no descriptors left, or hardly any."""
        self._is_tight = True
        self.on_many()

    def closed(self, segment: Openable) -> None:
        """An active segment's file is closed, or not to be."""
        self._active.pop(segment, None)

    def wait(self, segment: Openable, go_on: Callable[[], None]) -> None:
        """Call back when this segment may be written to: one call for each segment."""
        self._waiting[segment] = go_on
        self.on_many()

    def resume(self, segment: Openable) -> None:
        """This one stays open after all: who waits for it goes on."""
        go_on = self._waiting.pop(segment, None)
        if go_on is not None:
            go_on()

    def admit(self) -> None:
        """Let go on who waits, in order, as far as there is room. Some have been released."""
        if self._is_tight:
            self._release_sealed(len(self._sealed) // 2)
            self._is_tight = False
        for segment in list(self._waiting):
            if self.is_full:
                break
            if not segment.is_closing:
                self.resume(segment)

    def idle(self) -> list[Openable]:
        """Active segments to be released, so that an eighth of their number is free and more where
        more wait: the first opened first, of those that nobody has used since they were passed over
        here. They are marked as closing and not dirty."""
        active = self._active
        wanted = len(active) - self._active_max * 7 // 8
        if self._is_tight:
            wanted = max(wanted, len(active) // 8, 1)
        wanted = max(wanted, min(len(self._waiting), len(active) // 2))
        found: dict[Openable, None] = {}
        for segment in [*active, *active]:  # nobody has used those that come a second time
            if len(found) >= wanted:
                break
            if segment.is_used:
                segment.is_used = False
                active[segment] = active.pop(segment)
            elif not segment.is_closing:
                segment.is_closing, segment.is_dirty = True, False
                found[segment] = None
        return list(found)

    def _release_sealed(self, left: int, but: Openable | None = None) -> None:
        """Release the first opened ones, so that so many are left."""
        while len(self._sealed) > left:
            oldest = next(iter(self._sealed))
            del self._sealed[oldest]
            if oldest is not but and oldest.is_sealed:
                oldest.release()
