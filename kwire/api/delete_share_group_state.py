"""DeleteShareGroupState, version 0: the state of share partitions is forgotten (KIP-932).

The group coordinator asks for it when a share group or its offsets are deleted. One without state
is no error. Only brokers may. No group, no topics or a topic without partitions give no results.
Errors stand at their partitions: INVALID_REQUEST for a negative number, UNKNOWN_TOPIC_OR_PARTITION,
and those of a coordinator. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.share.messages import delete_asked, delete_response
from kwire.share.persister import PartitionResult

VERSIONS = (0, 0)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.DeleteShareGroupStateRequest
) -> Answer[m.DeleteShareGroupStateResponse]:
    """See the module."""
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        return m.DeleteShareGroupStateResponse(results=[])
    asked = delete_asked(request)
    share = context.parts.coordinators.share
    return after(share.delete(request.group_id, asked), lambda done: delete_response(done.result()))


def denied_response(
    context: RequestContext, request: m.DeleteShareGroupStateRequest, error: KafkaError
) -> m.DeleteShareGroupStateResponse:
    """The code at every partition."""
    message = DEFAULT_TEXTS.get(ErrorCode(error.code), error.message)
    return delete_response(
        PartitionResult(asked.topic_id, asked.partition, error.code, message)
        for asked in delete_asked(request)
    )
