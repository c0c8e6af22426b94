"""The place of one request in the order of a connection's replies."""

from __future__ import annotations

from kwire.pending import Pending
from kwire.server.context import RequestContext
from kwire.server.dispatch import Response
from kwire.server.watched_requests import Buffers


class Slot:
    """The place of one request in the order of replies."""

    __slots__ = ("context", "disconnect", "done", "parts", "pending")

    def __init__(self, context: RequestContext | None) -> None:
        self.context = context
        self.pending: Pending[Response] | None = None
        self.parts: Buffers | None = None
        self.done = False
        self.disconnect: str | None = None
