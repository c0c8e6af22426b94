"""InitializeShareGroupState, version 0: share partitions get a state to begin with (KIP-932).

The group coordinator asks for it when a share group subscribes to a topic or its offsets are set:
with a state epoch, below which everybody is fenced from then on (FENCED_STATE_EPOCH), and a start
offset. Only brokers may. No group or no topics give no results. Errors stand at their partitions:
INVALID_REQUEST for negative numbers, UNKNOWN_TOPIC_OR_PARTITION, and those of a coordinator.
Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.share.messages import initialize_asked, initialize_response
from kwire.share.persister import PartitionResult

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.InitializeShareGroupStateRequest
) -> Answer[m.InitializeShareGroupStateResponse]:
    """See the module."""
    topics = request.topics
    if not request.group_id or not topics:
        return m.InitializeShareGroupStateResponse(results=[])
    asked = initialize_asked(request)
    share = context.parts.coordinators.share
    return after(
        share.initialize(request.group_id, asked), lambda done: initialize_response(done.result())
    )


def denied_response(
    context: RequestContext, request: m.InitializeShareGroupStateRequest, error: KafkaError
) -> m.InitializeShareGroupStateResponse:
    """The code at every partition."""
    message = DEFAULT_TEXTS.get(ErrorCode(error.code), error.message)
    return initialize_response(
        PartitionResult(asked.topic_id, asked.partition, error.code, message)
        for asked in initialize_asked(request)
    )
