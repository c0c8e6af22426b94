"""WriteShareGroupState, versions 0-1: what became of records at their leader (KIP-932).

The batches are laid over those that are known, and the start offset never goes back; see
`kwire/share/state_batches.py`. Version 1 has the delivery-complete count (KIP-1226). Only brokers
may. No group, no topics or a topic without partitions give no results. Errors stand at their
partitions: FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH, INVALID_REQUEST for negative numbers and for a
share partition that was not initialized, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_SERVER_ERROR for
batches that end before they begin, and those of a coordinator. Source: KIP-932, KIP-1226; measured
on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.share.messages import write_asked, write_response
from kwire.share.persister import PartitionResult

VERSIONS = (0, 1)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.WriteShareGroupStateRequest
) -> Answer[m.WriteShareGroupStateResponse]:
    """See the module."""
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        return m.WriteShareGroupStateResponse(results=[])
    asked = write_asked(request)
    share = context.parts.coordinators.share
    return after(share.write(request.group_id, asked), lambda done: write_response(done.result()))


def denied_response(
    context: RequestContext, request: m.WriteShareGroupStateRequest, error: KafkaError
) -> m.WriteShareGroupStateResponse:
    """The code at every partition."""
    message = DEFAULT_TEXTS.get(ErrorCode(error.code), error.message)
    return write_response(
        PartitionResult(asked.topic_id, asked.partition, error.code, message)
        for asked in write_asked(request)
    )
