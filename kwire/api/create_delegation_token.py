"""CreateDelegationToken, versions 1-3: a token with which its owner may authenticate.

Refused on a connection that a token or nothing authenticated, else sent on to the controller.
Source: KIP-48, KIP-373, KIP-900; kwire/kraft/controller/requests/tokens.py.
"""

from __future__ import annotations

from kwire.api.shared.delegation_tokens import forward_of_owner
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 3)
AUTHORIZATION = (
    Requires(
        Operation.CREATE_TOKENS,
        ResourceType.USER,
        checked=Checked.CONTROLLER,
        note="tokens for another owner",
    ),
)


def handle(
    context: RequestContext, request: m.CreateDelegationTokenRequest
) -> Answer[m.CreateDelegationTokenResponse]:
    """See the module."""
    return forward_of_owner(context, request)
