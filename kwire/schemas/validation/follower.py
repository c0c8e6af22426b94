"""Follows the topic of a registry: what is registered, up to the end of the topic when asked.

`Source` reads it, at its leader. Nothing is read before somebody asks. A topic that was made anew,
or whose log begins behind where we are, is read from its beginning; so is one that was not read for
so long that tombstones may be gone unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from kwire.log.scheduling import Scheduler, Timer
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.records.header import Buffer, iterate_headers
from kwire.protocol.records.reading import iterate_batch
from kwire.schemas.registry.state import UNREAD_MS_MAX, State

REFRESH_MS_MAX = 5000
"""How long a refresh may take; then whoever waits is told to try again."""


class Page(NamedTuple):
    """Whole batches, and where what is committed ends."""

    buffers: Sequence[Buffer]
    high_watermark: int


class Source(Protocol):
    """The topic, one partition of it."""

    def topic_id(self) -> bytes | None:
        """None where there is none."""
        ...

    def read(self, offset: int) -> Pending[Page]:
        """Fails with KafkaError; OFFSET_OUT_OF_RANGE where the log begins behind or ends before."""
        ...

    def start(self) -> Pending[int]:
        """The first offset of the log."""
        ...


class Follower:
    """See the module. `state` is replaced where the topic is read anew."""

    def __init__(self, source: Source, scheduler: Scheduler) -> None:
        self._source = source
        self._scheduler = scheduler
        self._topic_id: bytes | None = None
        self._next_offset = 0
        self._under_way: _Refresh | None = None
        self._next: Pending[None] | None = None
        self._aging: Timer | None = None
        self._is_old = False
        self._again: State | None = None
        """What is read from the beginning again; until it is whole, `state` holds."""
        self.state = State()
        self.is_loaded = False
        """Whether `state` has been at the end of the topic: of what was read so far something may
        be deleted behind."""

    def refresh(self) -> Pending[None]:
        """Done when everything that was committed at this moment is in `state`. Fails with
        KafkaError REQUEST_TIMED_OUT where the topic cannot be read."""
        if self._under_way is None:
            self._under_way = refresh = _Refresh()
            refresh.timer = self._scheduler.call_later(
                REFRESH_MS_MAX, lambda: self._failed(refresh, "it took too long")
            )
            self._begin(refresh)
            return refresh.done
        # What is under way may have seen the end of the topic already.
        if self._next is None:
            self._next = Pending()
        return self._next

    def load(self) -> Pending[None]:
        """Done when the end of the topic has been read once. Fails as `refresh`."""
        return self.refresh() if self._under_way is None else self._under_way.done

    @property
    def is_refreshing(self) -> bool:
        return self._under_way is not None

    def _begin(self, refresh: _Refresh) -> None:
        topic_id = self._source.topic_id()
        if topic_id != self._topic_id:
            self._topic_id = topic_id
            self._anew(0)
        elif self._is_old:
            self._is_old = False
            self._next_offset, self._again = 0, State()
        if topic_id is None:
            self._ended(refresh)
        else:
            self._read(refresh)

    def _anew(self, offset: int) -> None:
        self._next_offset = offset
        self._is_old = False
        self._again = None
        self.state = State()
        self.is_loaded = False

    def _read(self, refresh: _Refresh) -> None:
        if self._under_way is refresh:
            pending = self._source.read(self._next_offset)
            pending.add_done_callback(lambda done: self._got(refresh, done))

    def _got(self, refresh: _Refresh, done: Pending[Page]) -> None:
        if self._under_way is not refresh:
            return
        error = done.error()
        if isinstance(error, KafkaError) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if refresh.has_started_anew:
                self._failed(refresh, "its log has no beginning")
                return
            refresh.has_started_anew = True
            self._source.start().add_done_callback(lambda found: self._started(refresh, found))
            return
        if error is not None:
            self._failed(refresh, str(error))
            return
        page = done.result()
        before = self._next_offset
        try:
            for buffer in page.buffers:
                self._replay(buffer)
        except (KafkaError, MalformedError) as damaged:
            self._failed(refresh, str(damaged))
            return
        if self._next_offset >= page.high_watermark:
            self._ended(refresh)
        elif self._next_offset == before:
            self._failed(refresh, "nothing could be read")
        else:
            self._scheduler.call_soon(lambda: self._read(refresh))

    def _started(self, refresh: _Refresh, found: Pending[int]) -> None:
        if self._under_way is not refresh:
            return
        if found.error() is not None:
            self._failed(refresh, str(found.error()))
            return
        if self._again is None:
            self._anew(found.result())
        else:  # records at its beginning were deleted: what is known holds
            self._next_offset, self._again = found.result(), State()
        self._read(refresh)

    def _replay(self, buffer: Buffer) -> None:
        state = self.state if self._again is None else self._again
        for position, header in iterate_headers(buffer):
            if not header.is_control:
                for records in iterate_batch(buffer, position, header):
                    for record in records:
                        if record.offset >= self._next_offset:
                            key, value = record.key, record.value
                            state.replay(key, value, record.timestamp)
            self._next_offset = max(self._next_offset, header.last_offset + 1)

    def _ended(self, refresh: _Refresh) -> None:
        self.is_loaded = True
        if self._again is not None:
            self.state, self._again = self._again, None
        if self._aging is not None:
            self._aging.cancel()
        self._aging = self._scheduler.call_later(UNREAD_MS_MAX, self._grow_old)
        self._finish(refresh, lambda pending: pending.complete(None))

    def _grow_old(self) -> None:
        self._is_old = True

    def _failed(self, refresh: _Refresh, why: str) -> None:
        told = f"The schemas of the cluster cannot be read: {why}"
        self._finish(
            refresh, lambda pending: pending.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, told))
        )

    def _finish(self, refresh: _Refresh, settle: Callable[[Pending[None]], object]) -> None:
        if self._under_way is not refresh:
            return
        self._under_way = None
        if refresh.timer is not None:
            refresh.timer.cancel()
        waiting, self._next = self._next, None
        settle(refresh.done)
        if waiting is not None:
            again = self.refresh()
            again.add_done_callback(lambda done: _pass_on(done, waiting))


def _pass_on(done: Pending[None], waiting: Pending[None]) -> None:
    error = done.error()
    if error is None:
        waiting.complete(None)
    else:
        waiting.fail(error)


class _Refresh:
    def __init__(self) -> None:
        self.done: Pending[None] = Pending()
        self.timer: Timer | None = None
        self.has_started_anew = False
