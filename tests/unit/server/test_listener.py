"""A listener without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kwire.network.buffers import BufferPool
from kwire.server.dispatch import Dispatcher
from kwire.server.listener import Listener
from kwire.server.request_steps import RequestSteps
from tests.support.connections import FakeLoop, FakeTimer
from tests.support.parts import made_parts


class Loop(FakeLoop):
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        return self.call_at(delay_s, callback)


def test_one_that_is_started_twice_has_one_timer_and_none_when_it_has_ended() -> None:
    """A controller's may serve before the others."""
    loop: Any = Loop()
    listener = Listener(
        "CONTROLLER",
        Dispatcher({}),
        loop=loop,
        pool=BufferPool(),
        parts=made_parts(),
        steps=RequestSteps(),
        request_bytes_max=1,
    )

    async def start_twice() -> None:
        await listener.start()
        await listener.start()

    asyncio.run(start_twice())
    assert len(loop.timers) == 1
    listener.stop_accepting()
    assert all(timer.cancelled for timer in loop.timers)
