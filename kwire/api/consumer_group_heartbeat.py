"""ConsumerGroupHeartbeat, versions 0-1: membership of a consumer group of KIP-848.

Joining (epoch 0), going on, leaving (-1; -2 for a static member that comes back). Version 1 has
patterns and wants the member to choose its id. Where the protocol is not among
group.coordinator.rebalance.protocols it is UNSUPPORTED_VERSION. Topics that the principal may not
describe are TOPIC_AUTHORIZATION_FAILED. Source: KIP-848; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.api.plain.consumer_heartbeats import PlainConsumerHeartbeats
from kwire.coordinator.group.caller import Caller
from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.authorizer import unaudited
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import DescribedTopics
from kwire.server.context import RequestContext

VERSIONS = (0, 1)
WAITS_FOR_WRITES = False
TAKES_TURNS = True  # members are many
plain_road = PlainConsumerHeartbeats
READ_GROUP = Requires(Operation.READ, ResourceType.GROUP, "group_id")
DESCRIBE_TOPIC = Requires(Operation.DESCRIBE, ResourceType.TOPIC, "subscribed_topic_names[]")
AUTHORIZATION = (
    READ_GROUP,
    DESCRIBE_TOPIC,
    Requires(
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        denied=Denied.LEFT_OUT,
        note="topics that its pattern fits",
    ),
)


def handle(
    context: RequestContext, request: m.ConsumerGroupHeartbeatRequest
) -> Answer[m.ConsumerGroupHeartbeatResponse]:
    """See the module."""
    parts = context.parts
    if "consumer" not in parts.config["group.coordinator.rebalance.protocols"]:
        return error_response(context, KafkaError(ErrorCode.UNSUPPORTED_VERSION))
    if not context.allows(READ_GROUP, request.group_id):
        return error_response(context, KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    for name in request.subscribed_topic_names or ():
        if not context.allows(DESCRIBE_TOPIC, name):
            return error_response(context, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    describes = None
    if parts.authorizer is not None:
        describes = DescribedTopics(
            unaudited(parts.authorizer), context.principal, context.client_host
        )
    caller = Caller(context.api_version, context.client_id or "", context.client_host, describes)
    return parts.coordinators.groups.consumer_heartbeat(request, caller)


def error_response(context: RequestContext, error: KafkaError) -> m.ConsumerGroupHeartbeatResponse:
    """The code and its text."""
    return m.ConsumerGroupHeartbeatResponse(error_code=int(error.code), error_message=error.message)
