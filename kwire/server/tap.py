"""Who is shown the requests of a node's connections and their responses whole, for a trace.

Whoever counts or decides hooks into the arrival or the response step, which know plain values only.
"""

from __future__ import annotations

from typing import Protocol

from kwire.server.context import RequestContext, Response


class Tap(Protocol):
    """Is called on the loop; nothing of what it gets may be changed or kept."""

    def arrived(self, context: RequestContext, body: memoryview) -> None:
        """A request has come; `body` is its frame without the size, header included."""
        ...

    def answered(self, context: RequestContext, response: Response, size_bytes: int) -> None:
        """Its response is made, a message, or what says that none is sent."""
        ...
