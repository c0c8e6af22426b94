"""AlterUserScramCredentials, version 0: SCRAM passwords, salted by the client.

Source: KIP-554; kwire/kraft/controller/requests/scram.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.ALTER, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.AlterUserScramCredentialsRequest
) -> Answer[m.AlterUserScramCredentialsResponse]:
    """See the module."""
    return forward(context, request)
