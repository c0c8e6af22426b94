"""AlterPartitionReassignments and ListPartitionReassignments (KIP-455, 860).

A reassignment adds the new replicas behind the wanted ones and takes the old ones away once all
new ones are in sync; partition_change.py finishes it.
"""

from __future__ import annotations

from kwire.kraft.controller import new_partitions
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.partition_change import Election, PartitionChange
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.topics import PartitionImage, TopicImage
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.metadata_records import VersionedRecord


def alter_partition_reassignments(
    state: ControllerState,
    request: m.AlterPartitionReassignmentsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AlterPartitionReassignmentsResponse]:
    """Answer an AlterPartitionReassignmentsRequest (versions 0-1)."""
    answer = m.AlterPartitionReassignmentsResponse
    records: Records = []
    responses = []
    for topic in request.topics:
        partitions = []
        for target in topic.partitions:
            result = answer.ReassignablePartitionResponse(
                partition_index=target.partition_index, error_message=None
            )
            try:
                record = _reassign(
                    state, topic.name, target, request.allow_replication_factor_change
                )
                if record is not None:
                    records.append(record)
            except KafkaError as error:
                put_error(result, error, generic_text=False)
            partitions.append(result)
        responses.append(answer.ReassignableTopicResponse(name=topic.name, partitions=partitions))
    if not request.topics:
        # Measured: without topics the text is empty, not null, and the flag is the default.
        return [], answer(error_message="", responses=[])
    return records, answer(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )


def _reassign(
    state: ControllerState,
    name: str,
    target: m.AlterPartitionReassignmentsRequest.ReassignablePartition,
    may_change_factor: bool,
) -> VersionedRecord | None:
    topic = state.image.topics.by_name.get(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    partition = topic.partitions.get(target.partition_index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {name}:{target.partition_index}.",
        )
    if target.replicas is None:
        return _cancel(state, topic, target.partition_index, partition)
    new_partitions.check_manual(state, target.replicas, None)
    if not may_change_factor:
        _check_factor(partition, len(target.replicas))
    return _change(state, topic, target.partition_index, target.replicas, partition)


def _check_factor(partition: PartitionImage, wanted: int) -> None:
    """KIP-860: the factor that the partition has once what is in progress is done."""
    current = len([r for r in partition.replicas if r not in partition.removing])
    if current != wanted:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {current} to {wanted}",
        )


def _cancel(
    state: ControllerState, topic: TopicImage, index: int, partition: PartitionImage
) -> VersionedRecord | None:
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [replica for replica in partition.replicas if replica not in partition.adding]
    isr = [replica for replica in partition.isr if replica not in partition.adding]
    unclean_allowed = state.unclean_election_enabled(topic.name)
    if not isr:
        if not replicas:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Invalid replica assignment: addingReplicas contains all replicas.",
            )
        # None of the replicas that were there before is in sync: going back loses records.
        isr = [replicas[0]]
        if not unclean_allowed:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic.name}:{index} because it "
                "would require an unclean leader election.",
            )
    change = PartitionChange(state, topic.name, topic.topic_id, index, partition)
    if unclean_allowed:
        change.election = Election.UNCLEAN
    change.isr, change.replicas = isr, replicas
    change.removing, change.adding = [], []
    return change.build()


def _change(
    state: ControllerState,
    topic: TopicImage,
    index: int,
    wanted: list[int],
    partition: PartitionImage,
) -> VersionedRecord | None:
    removing = sorted(set(partition.replicas) - set(wanted))
    adding = sorted(set(wanted) - set(partition.replicas))
    change = PartitionChange(state, topic.name, topic.topic_id, index, partition)
    change.replicas = [*wanted, *removing]
    if removing:
        change.removing = removing
    if adding:
        change.adding = adding
    return change.build()


def list_partition_reassignments(
    state: ControllerState,
    request: m.ListPartitionReassignmentsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.ListPartitionReassignmentsResponse]:
    """Answer a ListPartitionReassignmentsRequest (version 0)."""
    topics = []
    image = state.image.topics
    if request.topics is None:
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, index in sorted(state.index.reassigning):
            by_topic.setdefault(topic_id, []).append(index)
        for topic_id, indexes in by_topic.items():
            topics.append(_ongoing(image.by_id[topic_id], indexes))
    else:
        for wanted in request.topics:
            topic = image.by_name.get(wanted.name)
            if topic is not None:
                topics.append(_ongoing(topic, wanted.partition_indexes))
    return [], m.ListPartitionReassignmentsResponse(
        error_message=None, topics=[topic for topic in topics if topic.partitions]
    )


def _ongoing(
    topic: TopicImage, indexes: list[int]
) -> m.ListPartitionReassignmentsResponse.OngoingTopicReassignment:
    answer = m.ListPartitionReassignmentsResponse
    partitions = []
    for index in indexes:
        partition = topic.partitions.get(index)
        if partition is not None and partition.is_reassigning:
            partitions.append(
                answer.OngoingPartitionReassignment(
                    partition_index=index,
                    replicas=list(partition.replicas),
                    adding_replicas=list(partition.adding),
                    removing_replicas=list(partition.removing),
                )
            )
    return answer.OngoingTopicReassignment(name=topic.name, partitions=partitions)
