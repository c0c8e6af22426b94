"""ListPartitionReassignments, version 0: the moves that are under way.

Source: KIP-455; kwire/kraft/controller/requests/reassignment.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.DESCRIBE, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.ListPartitionReassignmentsRequest
) -> Answer[m.ListPartitionReassignmentsResponse]:
    """See the module."""
    return forward(context, request)
