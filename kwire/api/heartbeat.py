"""Heartbeat, versions 0-4: a member of a classic group is alive; REBALANCE_IN_PROGRESS asks it to
join again.

v3 has static members. While the group is being loaded the answer is NONE. Source: KIP-62, KIP-345;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.plain.heartbeats import PlainHeartbeats
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 4)
WAITS_FOR_WRITES = False
TAKES_TURNS = True  # members are many
AUTHORIZATION = (Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),)
plain_road = PlainHeartbeats


def handle(context: RequestContext, request: m.HeartbeatRequest) -> Answer[m.HeartbeatResponse]:
    """See the module."""
    return context.parts.coordinators.groups.heartbeat(request)


def error_response(context: RequestContext, error: KafkaError) -> m.HeartbeatResponse:
    """The code."""
    return m.HeartbeatResponse(error_code=error.code)
