"""JoinGroup, versions 0-9: become a member of a classic group, or join its next generation.

v0 has no rebalance timeout, the session timeout counts for it. From v4 on a dynamic newcomer first
gets MEMBER_ID_REQUIRED with its id (KIP-394); v5 has static members (KIP-345); v7 names the
protocol type; v9 tells a returning static leader to skip the assignment (KIP-814). The answer waits
until the join phase of the group is complete. Source: KIP-62, KIP-345, KIP-394, KIP-559, KIP-814;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.coordinator.group.caller import Caller
from kwire.pending import Answer, Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext

VERSIONS = (0, 9)
TAKES_TURNS = True  # members are many
AUTHORIZATION = (Requires(Operation.READ, ResourceType.GROUP, "group_id", checked=Checked.BEFORE),)
NULL_PROTOCOL_FROM = 7


def handle(context: RequestContext, request: m.JoinGroupRequest) -> Answer[m.JoinGroupResponse]:
    """See the module."""
    caller = Caller(context.api_version, str(context.client_id), context.client_host)
    answer = context.parts.coordinators.groups.join(request, caller)
    if isinstance(answer, Pending):
        return after(answer, lambda done: _for_version(context, done.result()))
    return _for_version(context, answer)


def error_response(context: RequestContext, error: KafkaError) -> m.JoinGroupResponse:
    """The code, no generation and no member id."""
    return _refusal(context, error.code)


def _for_version(context: RequestContext, response: m.JoinGroupResponse) -> m.JoinGroupResponse:
    if context.api_version < NULL_PROTOCOL_FROM and response.protocol_name is None:
        response.protocol_name = ""
    return response


def _refusal(context: RequestContext, code: ErrorCode) -> m.JoinGroupResponse:
    response = m.JoinGroupResponse(error_code=code, member_id="", protocol_name=None)
    return _for_version(context, response)
