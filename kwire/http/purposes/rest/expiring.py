"""What a caller opens and may forget: it is given up when nobody has used it for its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from kwire.http.purposes.rest.problems import Problem


class Closable(Protocol):
    """What is opened."""

    async def close(self) -> None:
        """Let everything go; nothing raises."""
        ...


T = TypeVar("T", bound=Closable)


class _Entry(Generic[T]):
    def __init__(self, value: T, timeout_s: float) -> None:
        self.value = value
        self.timeout_s = timeout_s
        self.lock = asyncio.Lock()
        self.users = 0
        self.timer: asyncio.TimerHandle | None = None


class Expiring(Generic[T]):
    """See the module. `missing(key)` is the refusal of a key that is not there."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, most: int, missing: Callable[[str], Problem]
    ) -> None:
        self._loop = loop
        self._most = most
        self._missing = missing
        self._entries: dict[str, _Entry[T]] = {}
        self._closing: dict[asyncio.Task[None], None] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def check_room(self) -> None:
        """Whether one more may be opened; Problem 429."""
        if len(self._entries) >= self._most:
            message = f"{self._most} are open already: close one, or wait until one expires"
            raise Problem(429, "too_many_open", message, headers={"retry-after": "10"})

    def add(self, key: str, value: T, timeout_s: float) -> None:
        """Keep it; what had its key is closed."""
        self.drop(key)
        entry = self._entries[key] = _Entry(value, timeout_s)
        self._rest(key, entry)

    @asynccontextmanager
    async def used(self, key: str) -> AsyncIterator[T]:
        """It, for one at a time; Problem where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            raise self._missing(key)
        entry.users += 1
        if entry.timer is not None:
            entry.timer.cancel()
            entry.timer = None
        try:
            async with entry.lock:
                if self._entries.get(key) is not entry:
                    raise self._missing(key)
                yield entry.value
        finally:
            entry.users -= 1
            if entry.users == 0 and self._entries.get(key) is entry:
                self._rest(key, entry)

    def drop(self, key: str) -> None:
        """Close it, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        if entry.timer is not None:
            entry.timer.cancel()
        task = self._loop.create_task(entry.value.close())
        self._closing[task] = None
        task.add_done_callback(lambda done: self._closing.pop(done, None))

    async def close(self) -> None:
        """Close all."""
        for key in list(self._entries):
            self.drop(key)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _rest(self, key: str, entry: _Entry[T]) -> None:
        entry.timer = self._loop.call_later(entry.timeout_s, self.drop, key)
