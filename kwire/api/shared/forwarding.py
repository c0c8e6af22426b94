"""Requests that the controller answers: sent on as they came, with the client's identity.

The broker does not authorise them: the controller does, for the principal that goes with the
request (KIP-590). `Forwarder.forward` reaches the active controller, in this process or by
Envelope, and waits for one as long as the request may take.
"""

from __future__ import annotations

from typing import TypeVar

from kwire.kraft.controller.errors import error_response
from kwire.pending import Pending, after
from kwire.protocol.errors import KafkaError
from kwire.protocol.structs import Message, Request
from kwire.server.context import RequestContext

ResponseT = TypeVar("ResponseT", bound=Message)


def forward(context: RequestContext, request: Request[ResponseT]) -> Pending[ResponseT]:
    """The controller's answer to `request`; errors on the way are answers in the API's shape."""

    def settle(done: Pending[ResponseT]) -> ResponseT:
        error = done.error()
        if isinstance(error, KafkaError):
            refused: ResponseT = error_response(request, error, context.api_version)
            return refused
        return done.result()

    sent = context.parts.forwarder.forward(
        request, context, api_key=context.api_key, version=context.api_version
    )
    return after(sent, settle)
