"""UnregisterBroker, version 0: forget a broker that will not return.

Source: KIP-500, KIP-631; kwire/kraft/controller/requests/brokers.py.
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
    context: RequestContext, request: m.UnregisterBrokerRequest
) -> Answer[m.UnregisterBrokerResponse]:
    """See the module."""
    return forward(context, request)
