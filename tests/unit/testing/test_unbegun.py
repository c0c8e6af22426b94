"""What a killed broker was to do next ends without a warning, uvloop's coroutines too."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest

from kwire.testing.unbegun import drop_unbegun


async def waits(turns: list[str]) -> None:
    try:
        turns.append("begun")
        await asyncio.Event().wait()
    finally:
        turns.append("ended")


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_nothing_is_said_of_what_has_not_begun(kind: str) -> None:
    loop = asyncio.new_event_loop() if kind == "asyncio" else made_by_uvloop()
    turns: list[str] = []
    begun = loop.create_task(waits(turns))
    loop.run_until_complete(asyncio.sleep(0))
    unbegun = [
        loop.create_task(waits(turns)),
        loop.create_task(loop.create_connection(asyncio.Protocol, "127.0.0.1", 1)),
    ]
    drop_unbegun(loop)
    assert turns == ["begun"], "what has begun is left alone"
    for task in (begun, *unbegun):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.close()
        del unbegun, task
        gc.collect()
    begun.get_coro().close()  # type: ignore[union-attr]
    assert turns == ["begun", "ended"]


def made_by_uvloop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
    return loop
