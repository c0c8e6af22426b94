"""AlterUserScramCredentials, version 0: SCRAM passwords, salted by the client.

Source: KIP-554; kwire/kraft/controller/scram.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 0)


def handle(
    context: RequestContext, request: m.AlterUserScramCredentialsRequest
) -> Answer[m.AlterUserScramCredentialsResponse]:
    """See the module."""
    return forward(context, request)
