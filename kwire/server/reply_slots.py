"""Where the requests of a connection wait for their turn to be replied to."""

from __future__ import annotations

import logging

from kwire.clock import stamp_ns
from kwire.log.types import FileSlice
from kwire.pending import Pending
from kwire.server.context import RequestContext
from kwire.server.dispatch import Response
from kwire.server.request_counts import RequestCounts
from kwire.server.watched_requests import Buffers

logger = logging.getLogger(__name__)


class Slot:
    """The place of one request in the order of replies, and when its handler returned."""

    __slots__ = (
        "context",
        "counts",
        "disconnect",
        "done",
        "executed_ns",
        "local_ns",
        "parts",
        "pending",
        "request_bytes",
    )

    def __init__(
        self,
        context: RequestContext | None,
        counts: RequestCounts | None = None,
        request_bytes: int = 0,
        started_ns: int = 0,
    ) -> None:
        self.context = context
        self.counts = counts
        self.request_bytes = request_bytes
        self.executed_ns = executed_ns = stamp_ns()
        self.local_ns = executed_ns - started_ns
        self.pending: Pending[Response] | None = None
        self.parts: Buffers | None = None
        self.done = False
        self.disconnect: str | None = None

    def count(self, version: int, answer: Response) -> None:
        """The request is answered."""
        if self.counts is not None:
            remote_ns = stamp_ns() - self.executed_ns
            self.counts.late(version, self.request_bytes, answer, self.local_ns, remote_ns)


def held(parts: Buffers | None) -> Buffers | None:
    """A reply that others are in front of; None when it cannot be read from its file."""
    if parts is None or len(parts) == 1:
        return parts
    try:
        return [part.read() if type(part) is FileSlice else part for part in parts]
    except OSError as error:
        logger.error("a response cannot be sent: %s", error)
        return None
