"""ListPartitionReassignments, version 0: the moves that are under way.

Source: KIP-455; kwire/kraft/controller/reassignment.py.
"""

from __future__ import annotations

from kwire.api.shared.forwarding import forward
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.server.context import RequestContext

VERSIONS = (0, 0)


def handle(
    context: RequestContext, request: m.ListPartitionReassignmentsRequest
) -> Answer[m.ListPartitionReassignmentsResponse]:
    """See the module."""
    return forward(context, request)
