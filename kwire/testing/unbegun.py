"""What a loop was to do that ends before it begins."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


def drop_unbegun(loop: asyncio.AbstractEventLoop) -> None:
    """Close the coroutines of tasks that have not begun, so that Python does not warn that they
    were never awaited. Those of uvloop are coroutines without being Python's."""
    for task in asyncio.all_tasks(loop):
        work = task.get_coro()
        if (
            isinstance(work, Coroutine)
            and not getattr(work, "cr_running", False)
            and getattr(work, "cr_await", None) is None
        ):
            work.close()
