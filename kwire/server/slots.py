"""The places of a connection's requests in the order of its replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from kwire.log.types import FileSlice
from kwire.pending import Pending
from kwire.server.context import RequestContext, Response
from kwire.server.request_counts import RequestCounts

Buffers: TypeAlias = Sequence[Any]
"""What an encoder made of a response: buffers and, until they are sent, `FileSlice`s."""


class Slot:
    """The place of one request in the order of replies, and where it is counted. The times of one
    that is timed go with what waits for its answer: few are."""

    __slots__ = ("context", "counts", "disconnect", "done", "parts", "pending")

    context: RequestContext | None
    counts: RequestCounts

    def __init__(self, context: RequestContext, counts: RequestCounts) -> None:
        self.context = context
        self.counts = counts
        self.pending: Pending[Response] | None = None
        self.parts: Buffers | None = None
        self.done = False
        self.disconnect: str | None = None

    def hold(self, parts: Buffers | None) -> OSError | None:
        """Keep a reply that others are in front of; the error if its file cannot be read."""
        try:
            if parts is not None and len(parts) > 1:
                parts = [part.read() if type(part) is FileSlice else part for part in parts]
        except OSError as error:
            return error.with_traceback(None)
        self.parts = parts
        return None


class NoRequest(Slot):
    """A place that stands for no request, so that nothing is counted there."""

    __slots__ = ()

    def __init__(self) -> None:
        self.context = self.pending = self.parts = self.disconnect = None
        self.done = False


WRITES = NoRequest()
"""In the place of a blocking request: the next one waits for every write before it."""
HELD = NoRequest()
"""The same: the connection is not served yet."""
MUTED = NoRequest()
"""In the place of a blocking request: the next one waits until the client's throttle time is over
(KIP-219)."""
LATER = NoRequest()
"""The same: one turn of the loop starts only so many requests of its kind (`turn_budget.py`)."""
BETWEEN = (WRITES, HELD, MUTED, LATER)
