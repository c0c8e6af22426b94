"""WriteTxnMarkers, versions 1-2: a coordinator tells partitions how a transaction ended.

Only brokers may send it. Each partition gets a control batch of one record and is answered when
that is committed; a marker in `__consumer_offsets` also decides the offsets that the transaction
committed. Version 2 carries the transaction version: from 2 on the marker's epoch must be higher
than that of the records it ends. A marker without partitions is left out of the answer. Source:
KIP-98, KIP-890; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.api.shared.local_transactions import marker_code, write_marker
from kwire.pending import Answer, Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 2)
WRITE_MARKERS = Requires(
    Operation.CLUSTER_ACTION,
    ResourceType.CLUSTER,
    denied=Denied.ENTRY,
    instead=(Requires(Operation.ALTER, ResourceType.CLUSTER),),
)
AUTHORIZATION = (WRITE_MARKERS,)

Marker: TypeAlias = "m.WriteTxnMarkersRequest.WritableTxnMarker"


def handle(
    context: RequestContext, request: m.WriteTxnMarkersRequest
) -> Answer[m.WriteTxnMarkersResponse]:
    """See the module."""
    allowed = context.allows(WRITE_MARKERS)
    writes: list[Pending[None]] = []
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                if allowed:
                    writes.append(_write(context, marker, topic.name, index))
                else:
                    denied = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                    writes.append(Pending.failed(denied))
    return after(gather(writes), lambda done: _response(request.markers, done.result()))


def error_response(context: RequestContext, error: KafkaError) -> m.WriteTxnMarkersResponse:
    """Nothing in the response can carry an error of the whole request."""
    return m.WriteTxnMarkersResponse()


def _write(context: RequestContext, marker: Marker, topic: str, index: int) -> Pending[None]:
    return write_marker(
        context.parts,
        topic,
        index,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _response(markers: list[Marker], writes: list[Pending[None]]) -> m.WriteTxnMarkersResponse:
    result = m.WriteTxnMarkersResponse
    entries = []
    position = 0
    for marker in markers:
        topics = []
        for topic in marker.topics:
            partitions = []
            for index in topic.partition_indexes:
                partitions.append(
                    result.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=marker_code(writes[position])
                    )
                )
                position += 1
            topics.append(
                result.WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions)
            )
        if topics:
            entries.append(
                result.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
            )
    return result(markers=entries)
