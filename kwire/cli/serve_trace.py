"""`kwire serve --trace FILE`: what a broker is asked and answers, as lines of JSON."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kwire.cli.serve_arguments import UsageError
from kwire.clock import Clock, ticks_ns
from kwire.trace.background import BackgroundTrace
from kwire.trace.files import TraceWriter
from kwire.trace.filters import Filters, api_names
from kwire.trace.recorder import KEPT_BYTES_MAX, Recorder
from kwire.trace.tap import BrokerTap

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

logger = logging.getLogger(__name__)


class ServeTrace:
    """A trace of a node; UsageError where its file cannot be written, or an option is wrong."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        clock: Clock,
        path: str,
        options: Mapping[str, Sequence[str]],
    ) -> None:
        filters = _filters(options)
        kept_bytes = int(_number(options, "--trace-records", KEPT_BYTES_MAX) or 0)
        try:
            writer = TraceWriter(path)
        except OSError as error:
            raise UsageError(f"--trace {path}: {error.strerror or error}") from None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="kwire-trace")
        self._file = BackgroundTrace(loop, self._executor, writer, logger.error)
        began_ns = ticks_ns()
        self._recorder = Recorder(lambda: (ticks_ns() - began_ns) / 1e6, filters, kept_bytes)
        self._recorder.add(self._file.write)
        self._recorder.begins("kwire serve", clock.wall_ms())

    def tap(self, broker: Callable[[str], str]) -> BrokerTap:
        """What shows it the node's requests; `broker(listener)` is the address of a listener."""
        return BrokerTap(self._recorder, broker)

    async def close(self) -> None:
        """Write what is left."""
        await self._file.close()
        self._executor.shutdown()


def _filters(options: Mapping[str, Sequence[str]]) -> Filters:
    try:
        apis = api_names(list(options.get("--trace-api", ())))
    except ValueError as error:
        raise UsageError(f"--trace-api {error}") from None
    return Filters(
        client_id=_text(options, "--trace-client-id"),
        apis=apis,
        topic=_text(options, "--trace-topic"),
        group=_text(options, "--trace-group"),
        errors_only="--trace-errors" in options,
        slower_than_ms=_number(options, "--trace-slower-than"),
    )


def _text(options: Mapping[str, Sequence[str]], name: str) -> str | None:
    """The last one counts, as of other options."""
    given = options.get(name)
    return given[-1] if given else None


def _number(
    options: Mapping[str, Sequence[str]], name: str, most: float = math.inf
) -> float | None:
    text = _text(options, name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    is_whole = most == math.inf or value == value // 1
    if not (0 <= value <= most and math.isfinite(value) and is_whole):
        accepted = "a number from 0 on" if most == math.inf else f"0 to {most}"
        raise UsageError(f"{name} {text}: expected {accepted}")
    return value
