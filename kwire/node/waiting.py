"""Waiting for a Pending in a coroutine."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from kwire.pending import Pending

T = TypeVar("T")


def end_of(loop: asyncio.AbstractEventLoop, pending: Pending[T]) -> asyncio.Future[None]:
    """A future that is done when `pending` is, whatever became of it."""
    future: asyncio.Future[None] = loop.create_future()
    pending.add_done_callback(lambda _: _finish(future))
    return future


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
