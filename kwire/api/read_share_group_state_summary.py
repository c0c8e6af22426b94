"""ReadShareGroupStateSummary, versions 0-1: start offsets and epochs of share partitions (KIP-932).

The group coordinator asks for it to describe offsets. The leader epoch of the request is not
looked at; one without state has start offset -1. Version 1 has the delivery-complete count
(KIP-1226). Only brokers may. No group, no topics or a topic without partitions give no results.
Errors stand at their partitions: INVALID_REQUEST for a negative number,
UNKNOWN_TOPIC_OR_PARTITION, and those of a coordinator. Source: KIP-932, KIP-1226; measured on
Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.kraft.controller.results import DEFAULT_TEXTS
from kwire.pending import Answer, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Checked, Requires
from kwire.server.context import RequestContext
from kwire.share.messages import summary_asked, summary_response
from kwire.share.persister import PartitionSummary

VERSIONS = (0, 1)
AUTHORIZATION = (Requires(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, checked=Checked.BEFORE),)


def handle(
    context: RequestContext, request: m.ReadShareGroupStateSummaryRequest
) -> Answer[m.ReadShareGroupStateSummaryResponse]:
    """See the module."""
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        return m.ReadShareGroupStateSummaryResponse(results=[])
    asked = summary_asked(request)
    share = context.parts.coordinators.share
    return after(
        share.read_summary(request.group_id, asked), lambda done: summary_response(done.result())
    )


def denied_response(
    context: RequestContext, request: m.ReadShareGroupStateSummaryRequest, error: KafkaError
) -> m.ReadShareGroupStateSummaryResponse:
    """The code at every partition."""
    message = DEFAULT_TEXTS.get(ErrorCode(error.code), error.message)
    return summary_response(
        PartitionSummary(asked.topic_id, asked.partition, error.code, message)
        for asked in summary_asked(request)
    )
