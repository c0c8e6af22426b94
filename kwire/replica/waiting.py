"""Who waits at a partition: for its high watermark, or for a write that many appends share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from kwire.protocol.errors import ErrorCode

UNSEEN_MAX = 1000
"""Appends that are kept apart; what comes behind is counted with the last of them."""


class UnseenBytes:
    """What was appended above the high watermark, and will be read once that has passed it."""

    __slots__ = ("_appends",)

    def __init__(self) -> None:
        self._appends: deque[tuple[int, int]] = deque()  # (end offset, bytes)

    def add(self, end: int, size_bytes: int) -> None:
        """An append ends at `end`."""
        if len(self._appends) >= UNSEEN_MAX:
            size_bytes += self._appends.pop()[1]
        self._appends.append((end, size_bytes))

    def take_to(self, offset: int) -> int:
        """The bytes of appends that end at `offset` or before it: they are seen from now on."""
        appends = self._appends
        size_bytes = 0
        while appends and appends[0][0] <= offset:
            size_bytes += appends.popleft()[1]
        return size_bytes


class CommitCallback:
    """A callback for when the high watermark reaches `offset` (exclusive end)."""

    __slots__ = ("callback", "leader_epoch", "offset", "order")

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        order: int,
        callback: Callable[[ErrorCode], None] | None,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.order = order
        self.callback = callback

    def __lt__(self, other: CommitCallback) -> bool:
        return (self.offset, self.order) < (other.offset, other.order)

    def cancel(self) -> None:
        """The callback will not run."""
        self.callback = None

    def run(self, code: ErrorCode) -> None:
        callback, self.callback = self.callback, None
        if callback is not None:
            callback(code)


class WriteWaiter(Protocol):
    """Who has appended to a partition without another and waits for the write.

    `commit_end` is what the high watermark has to reach as well, -1 for nothing.
    """

    @property
    def commit_end(self) -> int: ...

    def written(self) -> None:
        """It is written, and committed where that was asked for."""
        ...

    def ended(self, code: ErrorCode) -> None:
        """It is not, or nobody will hear of it here."""
        ...

    def uncommitted(self) -> None:
        """It is written, and the high watermark stays behind: others have to have it first."""
        ...


class SharedWrite:
    """What one write of a partition has: its first offset, its end, bytes, and who waits for it,
    in order."""

    __slots__ = ("end", "first", "size_bytes", "waiters")

    def __init__(self, first: int, end: int, size_bytes: int) -> None:
        self.first = first
        self.end = end
        self.size_bytes = size_bytes
        self.waiters: list[WriteWaiter] = []

    def end_commits(self, code: ErrorCode) -> None:
        """Whoever waits for the high watermark is answered with `code`."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if waiter.commit_end < 0:
                self.waiters.append(waiter)
            else:
                waiter.ended(code)

    def failed(self, code: ErrorCode) -> None:
        """Nothing of it is written."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            waiter.ended(code)

    def written(self, high_watermark: int, enough_replicas: bool) -> None:
        """All of it is; the high watermark has moved by that as far as it does."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if waiter.commit_end > high_watermark:
                waiter.uncommitted()
            elif enough_replicas or waiter.commit_end < 0:
                waiter.written()
            else:
                waiter.ended(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
