"""ElectLeaders, versions 0-2: preferred or unclean leader elections.

Source: KIP-183, KIP-460; kwire/kraft/controller/requests/elect_leaders.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 2)
AUTHORIZATION = (Requires(Operation.ALTER, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.ElectLeadersRequest
) -> Answer[m.ElectLeadersResponse]:
    """See the module."""
    return forward(context, request)
