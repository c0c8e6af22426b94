"""Who may ask for delegation tokens, which is for the broker to see: the controller does not know
how a client's connection was authenticated. Source: KIP-48."""

from __future__ import annotations

from typing import TypeVar

from kwire.api.shared.forwarding import forward
from kwire.kraft.controller.errors import error_response
from kwire.pending import Answer
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.security.authorizer import ANONYMOUS
from kwire.server.context import RequestContext

ResponseT = TypeVar("ResponseT", bound=Message)


def may_ask(context: RequestContext) -> bool:
    """Not on a connection that a token or nothing authenticated."""
    connection = context.connection
    if connection is None or connection.token_authenticated:
        return False
    if connection.security_protocol == "SSL":
        return context.principal != ANONYMOUS
    return connection.security_protocol != "PLAINTEXT"


def forward_of_owner(context: RequestContext, request: Request[ResponseT]) -> Answer[ResponseT]:
    """The controller's answer, or the refusal of a client that may not ask."""
    if may_ask(context):
        return forward(context, request)
    error = KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return error_response(request, error, context.api_version, principal=context.principal)
