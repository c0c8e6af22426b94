"""`kwire` on asyncio's loop, which tells of its long turns.

    python -m bench.timed_serve FILE serve ...

FILE gets a line for every turn that takes LONG_TURN_S of processor time: when it ended, in seconds
of the wall clock, and what it took.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

from kwire.cli.main import main

LONG_TURN_S = 0.005


class TellingLoop(asyncio.SelectorEventLoop):
    """Writes down its long turns."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._told = open(path, "a", buffering=1)  # noqa: SIM115

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        took = time.thread_time() - began
        if took >= LONG_TURN_S:
            self._told.write(f"{time.time():.3f} {took:.4f}\n")


def serve() -> Any:
    """The rest of the command line is that of `kwire`."""
    path = sys.argv.pop(1)
    import kwire.network.loop

    kwire.network.loop.new_event_loop = lambda use_uvloop=True: TellingLoop(path)
    return main()


if __name__ == "__main__":
    raise SystemExit(serve())
