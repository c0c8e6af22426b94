"""CreatePartitions: more partitions for topics that exist."""

from __future__ import annotations

from kwire.kraft.controller import new_partitions
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.placement import place
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import MAX_RECORDS_PER_USER_OPERATION, ControllerState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType


def create_partitions(
    state: ControllerState,
    request: m.CreatePartitionsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.CreatePartitionsResponse]:
    """Answer a CreatePartitionsRequest (versions 0-3)."""
    counts: dict[str, int] = {}
    for topic in request.topics:
        counts[topic.name] = counts.get(topic.name, 0) + 1
    results: list[m.CreatePartitionsResponse.CreatePartitionsTopicResult] = []
    for name, count in counts.items():
        if count > 1:
            error = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            results.append(put_error(_result(name), error))
    wanted = []
    for topic in request.topics:
        if counts[topic.name] == 1:
            if context.authorize(Operation.ALTER, ResourceType.TOPIC, topic.name):
                wanted.append(topic)
            else:
                error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                results.append(put_error(_result(topic.name), error, generic_text=False))
    _check_total(state, wanted)
    records: Records = []
    for topic in wanted:
        result = _result(topic.name)
        try:
            records.extend(_new_partitions(state, topic, context))
        except KafkaError as error:
            put_error(result, error, generic_text=False)
        results.append(result)
    response = m.CreatePartitionsResponse(results=results)
    return ([] if request.validate_only else records), response


def _result(name: str) -> m.CreatePartitionsResponse.CreatePartitionsTopicResult:
    return m.CreatePartitionsResponse.CreatePartitionsTopicResult(name=name)


def _check_total(
    state: ControllerState, topics: list[m.CreatePartitionsRequest.CreatePartitionsTopic]
) -> None:
    total = 0
    for topic in topics:
        known = state.image.topics.by_name.get(topic.name)
        if known is not None:
            total += max(topic.count - len(known.partitions), 0)
    if total > MAX_RECORDS_PER_USER_OPERATION:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of additional partitions per request.",
        )


def _new_partitions(
    state: ControllerState,
    topic: m.CreatePartitionsRequest.CreatePartitionsTopic,
    context: ControllerContext,
) -> Records:
    known = state.image.topics.by_name.get(topic.name)
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    have = len(known.partitions)
    if topic.count == have:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {have} partition(s).")
    if topic.count < have:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {have} partition(s); {topic.count} would not "
            "be an increase.",
        )
    additional = topic.count - have
    if topic.assignments is not None and len(topic.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(topic.assignments)} assignment(s) were specified.",
        )
    context.apply_partition_quota(additional)
    factor = len(known.partitions[min(known.partitions)].replicas)
    pairs = []
    if topic.assignments is not None:
        for i, assigned in enumerate(topic.assignments):
            replicas = assigned.broker_ids
            new_partitions.check_manual(state, replicas, factor)
            pairs.append((replicas, new_partitions.manual_isr(state, replicas, have + i)))
    else:
        for replicas in place(state.usable_brokers(), additional, factor, state.random):
            pairs.append((replicas, new_partitions.placed_isr(state, replicas, factor)))
    return [
        new_partitions.new_partition(state, replicas, isr).to_record(
            known.topic_id, have + i, state.gates
        )
        for i, (replicas, isr) in enumerate(pairs)
    ]
