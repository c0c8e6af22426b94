"""WriteTxnMarkers, versions 1-2: a coordinator tells partitions how a transaction ended.

Only brokers may send it. Each partition gets a control batch of one record and is answered when
that is committed; a marker in `__consumer_offsets` also decides the offsets that the transaction
committed. Version 2 carries the transaction version: from 2 on the marker's epoch must be higher
than that of the records it ends. Source: KIP-98, KIP-890; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from typing import Any

from kwire.broker.context import RequestContext
from kwire.broker.leaders import missing_partition_error
from kwire.broker.operations import ALTER, CLUSTER, CLUSTER_ACTION, CLUSTER_NAME
from kwire.log.types import Origin
from kwire.pending import Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import end_transaction_marker

VERSIONS = (1, 2)
OFFSETS_TOPIC = "__consumer_offsets"
ACKS_ALL = -1


def handle(context: RequestContext, request: Any) -> Any:
    """See the module."""
    allowed = context.authorize(ALTER, CLUSTER, CLUSTER_NAME) or context.authorize(
        CLUSTER_ACTION, CLUSTER, CLUSTER_NAME
    )
    writes: list[Pending[Any]] = []
    for marker in request.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                if allowed:
                    writes.append(_write(context, marker, topic.name, index))
                else:
                    denied = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
                    writes.append(Pending.failed(denied))
    return after(gather(writes), lambda done: _response(request.markers, done.result()))


def error_response(context: RequestContext, error: KafkaError) -> Any:
    """Nothing in the response can carry an error of the whole request."""
    return m.WriteTxnMarkersResponse()


def _write(context: RequestContext, marker: Any, topic: str, index: int) -> Pending[Any]:
    node = context.node
    wall_ms = node.clock.wall_ms()
    batch = end_transaction_marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        wall_ms,
    )
    if topic == OFFSETS_TOPIC:
        written: Pending[Any] = node.groups.complete_transaction(
            index,
            batch,
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.transaction_version,
        )
        return written
    try:
        partition = node.replicas.partition(topic, index)
        if partition is None:
            raise KafkaError(missing_partition_error(node, topic, index))
        info = partition.append(
            batch,
            acks=ACKS_ALL,
            wall_ms=wall_ms,
            origin=Origin.COORDINATOR,
            transaction_version=marker.transaction_version,
        )
    except KafkaError as error:
        return Pending.failed(error)
    committed: Pending[Any] = Pending()
    waiter = partition.wait_for_commit(
        info.last_offset + 1, lambda code: _settle(committed, ErrorCode(code))
    )
    if waiter is None:
        committed.complete(None)
    else:
        committed.set_on_cancel(waiter.cancel)
    return committed


def _settle(committed: Pending[Any], code: ErrorCode) -> None:
    if code == ErrorCode.NONE:
        committed.complete(None)
    else:
        committed.fail(KafkaError(code))


def _response(markers: list[Any], writes: list[Pending[Any]]) -> Any:
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
                        partition_index=index, error_code=_code(writes[position])
                    )
                )
                position += 1
            topics.append(
                result.WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions)
            )
        entries.append(
            result.WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics)
        )
    return result(markers=entries)


def _code(write: Pending[Any]) -> int:
    error = write.error()
    if error is None:
        return 0
    if not isinstance(error, KafkaError):
        raise error
    if error.code == ErrorCode.NOT_COORDINATOR:
        return int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return int(error.code)
