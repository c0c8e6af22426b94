"""AlterPartition: a leader changes its partition's ISR (KIP-497, 704, 841, 903)."""

from __future__ import annotations

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.partition_change import Election, PartitionChange
from kwire.kraft.controller.results import Records, Result
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.topics import (
    NO_LEADER_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionImage,
    TopicImage,
)
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


def alter_partition(
    state: ControllerState,
    request: m.AlterPartitionRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AlterPartitionResponse]:
    """Answer an AlterPartitionRequest (versions 2-3).

    Raises KafkaError(STALE_BROKER_EPOCH), but not where nothing is asked: the answer is empty then
    (measured on Apache Kafka 4.4). Other errors are per partition.
    """
    if not request.topics:
        return [], m.AlterPartitionResponse()
    state.check_epoch(request.broker_id, request.broker_epoch)
    records: Records = []
    topics = []
    for wanted in request.topics:
        topic = state.image.topics.by_id.get(wanted.topic_id)
        partitions = []
        for data in wanted.partitions:
            if topic is None:
                partitions.append(_failed(data, ErrorCode.UNKNOWN_TOPIC_ID))
            else:
                partitions.append(_alter(state, request.broker_id, topic, data, context, records))
        topics.append(
            m.AlterPartitionResponse.TopicData(topic_id=wanted.topic_id, partitions=partitions)
        )
    return records, m.AlterPartitionResponse(topics=topics)


def _failed(
    data: m.AlterPartitionRequest.PartitionData, code: ErrorCode
) -> m.AlterPartitionResponse.PartitionData:
    return m.AlterPartitionResponse.PartitionData(
        partition_index=data.partition_index, error_code=int(code)
    )


def _new_isr(
    data: m.AlterPartitionRequest.PartitionData, api_version: int
) -> list[tuple[int, int]]:
    """(broker id, broker epoch or -1) of the wanted ISR."""
    if api_version < 3:
        return [(broker_id, -1) for broker_id in data.new_isr]
    return [(item.broker_id, item.broker_epoch) for item in data.new_isr_with_epochs]


def _alter(
    state: ControllerState,
    broker_id: int,
    topic: TopicImage,
    data: m.AlterPartitionRequest.PartitionData,
    context: ControllerContext,
    records: Records,
) -> m.AlterPartitionResponse.PartitionData:
    partition = topic.partitions.get(data.partition_index)
    if partition is None:
        return _failed(data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    isr = _new_isr(data, context.api_version)
    code = _check(state, broker_id, partition, data, isr)
    if code != ErrorCode.NONE:
        return _failed(data, code)
    change = PartitionChange(state, topic.name, topic.topic_id, data.partition_index, partition)
    if state.unclean_election_enabled(topic.name):
        change.election = Election.UNCLEAN
    change.isr = [replica for replica, _ in isr]
    change.recovery_state = data.leader_recovery_state
    record = change.build()
    if record is not None:
        records.append(record)
        partition = partition.merge(record[0])
        if record[0].leader not in (broker_id, NO_LEADER_CHANGE):
            return _failed(data, ErrorCode.NEW_LEADER_ELECTED)
    return m.AlterPartitionResponse.PartitionData(
        partition_index=data.partition_index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _check(
    state: ControllerState,
    broker_id: int,
    partition: PartitionImage,
    data: m.AlterPartitionRequest.PartitionData,
    isr: list[tuple[int, int]],
) -> ErrorCode:
    if data.leader_epoch > partition.leader_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if data.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if data.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    ids = [replica for replica, _ in isr]
    if len(set(ids)) != len(ids) or any(replica not in partition.replicas for replica in ids):
        return ErrorCode.INVALID_REQUEST
    if partition.leader not in ids:
        return ErrorCode.INVALID_REQUEST
    recovery = data.leader_recovery_state
    if recovery not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if recovery == RECOVERING and len(ids) > 1:
        return ErrorCode.INVALID_REQUEST
    if recovery == RECOVERING and partition.leader_recovery_state == RECOVERED:
        return ErrorCode.INVALID_REQUEST
    if any(_is_ineligible(state, replica, epoch) for replica, epoch in isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_ineligible(state: ControllerState, broker_id: int, epoch: int) -> bool:
    broker = state.image.brokers.get(broker_id)
    if broker is None or not broker.is_active:
        return True
    return epoch not in (-1, broker.epoch)
