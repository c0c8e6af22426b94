"""RenewDelegationToken, versions 1-2: a token's life, prolonged by its owner or a renewer.

Refused on a connection that a token or nothing authenticated, else sent on to the controller.
Source: KIP-48, KIP-373, KIP-900; kwire/kraft/controller/requests/tokens.py.
"""

from __future__ import annotations

from kwire.api.describe_delegation_token import may_ask
from kwire.api.shared.forwarding import forward
from kwire.kraft.controller.errors import error_response as shape
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (1, 2)
AUTHORIZATION: Authorization = ()


def handle(
    context: RequestContext, request: m.RenewDelegationTokenRequest
) -> Answer[m.RenewDelegationTokenResponse]:
    """See the module."""
    if not may_ask(context):
        error = KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        refused: m.RenewDelegationTokenResponse = shape(
            request, error, context.api_version, principal=context.principal
        )
        return refused
    return forward(context, request)
