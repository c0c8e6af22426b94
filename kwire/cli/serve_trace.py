"""`kwire serve --trace FILE`: what a broker is asked and answers, as lines of JSON."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kwire.cli.serve_arguments import UsageError
from kwire.clock import Clock, ticks_ns
from kwire.trace.background import BackgroundTrace
from kwire.trace.files import TraceWriter
from kwire.trace.filters import Filters
from kwire.trace.recorder import Recorder
from kwire.trace.tap import BrokerTap

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

logger = logging.getLogger(__name__)


class ServeTrace:
    """A trace of a node; UsageError where its file cannot be written."""

    def __init__(self, loop: AbstractEventLoop, clock: Clock, path: str) -> None:
        try:
            writer = TraceWriter(path)
        except OSError as error:
            raise UsageError(f"--trace {path}: {error.strerror or error}") from None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="kwire-trace")
        self._file = BackgroundTrace(loop, self._executor, writer, logger.error)
        began_ns = ticks_ns()
        self._recorder = Recorder(lambda: (ticks_ns() - began_ns) / 1e6, Filters(), 0)
        self._recorder.add(self._file.write)
        self._recorder.begins("kwire serve", clock.wall_ms())

    def tap(self, broker: Callable[[str], str]) -> BrokerTap:
        """What shows it the node's requests; `broker(listener)` is the address of a listener."""
        return BrokerTap(self._recorder, broker)

    async def close(self) -> None:
        """Write what is left."""
        await self._file.close()
        self._executor.shutdown()
