"""ReadShareGroupState, version 0: the leader of a partition takes over a share partition (KIP-932).

It gets all of the state; leaders of a lower leader epoch are fenced from then on, which is written
down before the answer. Only brokers may. No group, no topics or a topic without partitions give no
results. Errors stand at their partitions: FENCED_LEADER_EPOCH, INVALID_REQUEST for negative numbers
and for a share partition that was not initialized, UNKNOWN_TOPIC_OR_PARTITION, and those of a
coordinator. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.share.messages import read_asked, read_response
from kwire.share.persister import PartitionState

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.ReadShareGroupStateRequest
) -> Answer[m.ReadShareGroupStateResponse]:
    """See the module."""
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        return m.ReadShareGroupStateResponse(results=[])
    asked = read_asked(request)
    share = context.parts.coordinators.share
    return after(share.read(request.group_id, asked), lambda done: read_response(done.result()))


def denied_response(
    context: RequestContext, request: m.ReadShareGroupStateRequest, error: KafkaError
) -> m.ReadShareGroupStateResponse:
    """The code at every partition."""
    message = DEFAULT_TEXTS.get(ErrorCode(error.code), error.message)
    return read_response(
        PartitionState(asked.topic_id, asked.partition, error.code, message)
        for asked in read_asked(request)
    )
