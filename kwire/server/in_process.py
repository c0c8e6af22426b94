"""Requests from within this process: to a handler without a connection, and without a byte sent.

They are the node's own, so that nothing refuses them on arrival. Whoever counts or records is told
of them as of others; their sizes are 0.
"""

from __future__ import annotations

import asyncio

from kwire.pending import Pending, after
from kwire.protocol.structs import Message, Struct
from kwire.server.arrival import Arrival
from kwire.server.context import RequestContext, Response
from kwire.server.dispatch import Dispatcher
from kwire.server.request_steps import RequestSteps
from kwire.server.response import Answered, error_counts, responded
from kwire.server.sliced_response import SlicedResponse


def execute(
    dispatcher: Dispatcher,
    steps: RequestSteps,
    loop: asyncio.AbstractEventLoop,
    context: RequestContext,
    request: Message,
) -> Pending[Response]:
    """The response of this node's own handler."""
    context.is_internal = True
    arrived_s = loop.time()
    outcome = dispatcher.route_local(context.api_key).execute(context, request)
    pending: Pending[Response]
    if isinstance(outcome, Pending):
        pending = after(outcome, _whole)
    else:
        pending = Pending.completed(outcome)
    if steps.response_hooks:
        _report_outcome(pending, steps, loop, context, arrived_s)
    return pending


def _whole(done: Pending[Response]) -> Response:
    response = done.result()
    return response.decoded() if isinstance(response, SlicedResponse) else response


def _report_outcome(
    pending: Pending[Response],
    steps: RequestSteps,
    loop: asyncio.AbstractEventLoop,
    context: RequestContext,
    arrived_s: float,
) -> None:
    executed_s = loop.time()
    arrival = Arrival(
        context.api_key,
        context.api_version,
        context.principal,
        context.client_id,
        context.client_host,
        context.listener_name,
        0,
        arrived_s,
    )

    def settle(done: Pending[Response]) -> None:
        error = done.error()
        if error is not None:
            errors = {int(getattr(error, "code", -1)): 1}
        else:
            response = done.result()
            errors = error_counts(response) if isinstance(response, Struct) else {}
        responded(arrival, Answered(errors, 0, 0, executed_s, loop.time()), steps.response_hooks)

    pending.add_done_callback(settle)
