"""The requests of one connection that pass the arrival and the response step, in between.

A connection whose requests are all plain has none, and asks only whether `open` is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeAlias

from kwire.network.frames import SIZE_PREFIX_BYTES
from kwire.protocol.frame import encode_response
from kwire.protocol.structs import Struct
from kwire.server.arrival import Arrival, Refusal, arrive
from kwire.server.context import RequestContext
from kwire.server.dispatch import Response
from kwire.server.request_steps import RequestSteps
from kwire.server.response import Answered, error_counts, responded, throttle_ms

Buffers: TypeAlias = Sequence[Any]
"""What an encoder made of a response: buffers and, until they are sent, `FileSlice`s."""


class Watched:
    """One request that has arrived. `executed_s` is 0 until its handler has returned."""

    __slots__ = ("arrival", "executed_s")

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival
        self.executed_s = 0.0


class WatchedRequests:
    """See the module. `open` are those without a response yet."""

    __slots__ = ("_loop", "_steps", "open")

    def __init__(self, steps: RequestSteps, loop: asyncio.AbstractEventLoop) -> None:
        self._steps = steps
        self._loop = loop
        self.open: dict[RequestContext, Watched] = {}

    def arrives(
        self, context: RequestContext, request_bytes: int, is_authenticated: bool
    ) -> Refusal | None:
        """The arrival step: None when the request is to be executed."""
        arrival = Arrival(
            context.api_key,
            context.api_version,
            context.principal,
            context.client_id,
            context.client_host,
            context.listener_name,
            request_bytes,
            self._loop.time(),
        )
        self.open[context] = Watched(arrival)
        return arrive(arrival, is_authenticated, self._steps.arrival_hooks)

    def executed(self, context: RequestContext) -> None:
        """The handler has returned, its response is still to come."""
        watched = self.open.get(context)
        if watched is not None:
            watched.executed_s = self._loop.time()

    def responds(
        self, context: RequestContext, response: Response, parts: Buffers | None
    ) -> tuple[Buffers | None, int]:
        """The response step: what is to be sent, and for how many ms nothing is to be read.

        `parts` is the encoded response, None where none is sent.
        """
        watched = self.open.pop(context, None)
        if watched is None:
            return parts, 0
        now_s, wait_ms, response_bytes = self._loop.time(), 0, 0
        if parts is not None:
            response_bytes = sum(map(len, parts)) - SIZE_PREFIX_BYTES
            hooks = self._steps.throttle_hooks
            wait_ms = throttle_ms(watched.arrival, response_bytes, now_s, hooks)
            if wait_ms > 0 and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = max(response.throttle_time_ms, wait_ms)
                parts = encode_response(
                    context.api_key, context.api_version, context.correlation_id, response
                )
        answered = Answered(
            error_counts(response) if isinstance(response, Struct) else {},
            response_bytes,
            wait_ms,
            watched.executed_s or now_s,
            now_s,
        )
        responded(watched.arrival, answered, self._steps.response_hooks)
        return parts, wait_ms
