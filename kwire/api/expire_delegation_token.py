"""ExpireDelegationToken, versions 1-2: a token's life, shortened or ended.

Refused on a connection that a token or nothing authenticated, else sent on to the controller.
Source: KIP-48, KIP-373, KIP-900; kwire/kraft/controller/requests/tokens.py.
"""

from __future__ import annotations

from kwire.api.shared.delegation_tokens import forward_of_owner
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.requirements import Authorization
from kwire.server.context import RequestContext

VERSIONS = (1, 2)
AUTHORIZATION: Authorization = ()


def handle(
    context: RequestContext, request: m.ExpireDelegationTokenRequest
) -> Answer[m.ExpireDelegationTokenResponse]:
    """See the module."""
    return forward_of_owner(context, request)
