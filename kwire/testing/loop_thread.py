"""An event loop in a thread of its own, so that whoever uses it may block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from kwire.testing.owner import Owner

TIMEOUT_S = 60.0

T = TypeVar("T")


class LoopThread:
    """`loop` runs from `start` to `stop`, and is closed by whoever made it or by `close`.

    With `daemon` the thread does not keep the process alive. A callback that raises SystemExit ends
    it at once: what else the loop has been given is not done.
    """

    def __init__(
        self, name: str, loop: asyncio.AbstractEventLoop | None = None, *, daemon: bool = True
    ) -> None:
        self.loop = loop or asyncio.new_event_loop()
        self.owner = Owner(name)
        self._thread = threading.Thread(target=self._turn, name=name, daemon=daemon)

    def _turn(self) -> None:
        with suppress(SystemExit):
            self.loop.run_forever()

    @property
    def thread_id(self) -> int | None:
        return self._thread.ident

    def start(self) -> None:
        self._thread.start()

    def submit(self, work: Coroutine[None, None, T]) -> Future[T]:
        """Begin a coroutine there; BrokerFailed in a fork of its process."""
        if not self.owner.is_here:
            work.close()
            self.owner.check()
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def run(self, work: Coroutine[None, None, T], timeout_s: float = TIMEOUT_S) -> T:
        """What a coroutine returns or raises there; TimeoutError."""
        return self.submit(work).result(timeout_s)

    def stop(self) -> None:
        """The loop turns no more, and the thread ends."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()

    def join(self) -> None:
        """Until the loop has stopped."""
        self._thread.join(TIMEOUT_S)

    def close(self) -> None:
        """Stop it and close the loop."""
        self.stop()
        self.loop.close()
