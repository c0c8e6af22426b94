"""AlterPartitionReassignments, versions 0-1: moves partitions, or stops moving them.

Source: KIP-455, KIP-860; kwire/kraft/controller/requests/reassignment.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
AUTHORIZATION = (Requires(Operation.ALTER, ResourceType.CLUSTER, checked=Checked.CONTROLLER),)


def handle(
    context: RequestContext, request: m.AlterPartitionReassignmentsRequest
) -> Answer[m.AlterPartitionReassignmentsResponse]:
    """See the module."""
    return forward(context, request)
