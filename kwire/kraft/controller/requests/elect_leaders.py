"""ElectLeaders: preferred and unclean elections on request (KIP-460)."""

from __future__ import annotations

from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.partition_change import Election, PartitionChange
from kwire.kraft.controller.results import Records, Result, put_error
from kwire.kraft.controller.state import ControllerState
from kwire.kraft.images.topics import NO_LEADER
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.metadata_records import VersionedRecord

PREFERRED, UNCLEAN = 0, 1


def elect_leaders(
    state: ControllerState, request: m.ElectLeadersRequest, context: ControllerContext, now_ms: int
) -> Result[m.ElectLeadersResponse]:
    """Answer an ElectLeadersRequest (versions 0-2); without partitions it is about all of them."""
    if request.topic_partitions is not None and not request.topic_partitions:
        # Measured: an empty list is no error, whatever the election type.
        return [], m.ElectLeadersResponse(replica_election_results=[])
    kind = request.election_type if context.api_version >= 1 else PREFERRED
    if kind not in (PREFERRED, UNCLEAN):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
    answer = m.ElectLeadersResponse
    records: Records = []
    results = []
    for topic_name, indexes in _wanted(state, request):
        partitions = []
        for index in indexes:
            result = answer.PartitionResult(partition_id=index, error_message=None)
            try:
                records.append(_elect(state, topic_name, index, kind))
            except KafkaError as error:
                if request.topic_partitions is None and (
                    error.code == ErrorCode.ELECTION_NOT_NEEDED
                ):
                    continue
                put_error(result, error)
            partitions.append(result)
        results.append(answer.ReplicaElectionResult(topic=topic_name, partition_result=partitions))
    return records, answer(replica_election_results=results)


def _wanted(state: ControllerState, request: m.ElectLeadersRequest) -> list[tuple[str, list[int]]]:
    if request.topic_partitions is not None:
        return [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    topics = state.image.topics.by_name
    return [(name, sorted(topics[name].partitions)) for name in sorted(topics)]


def _elect(state: ControllerState, topic_name: str, index: int, kind: int) -> VersionedRecord:
    topic = state.image.topics.by_name.get(topic_name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic_name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic_name}-{index}"
        )
    needed = (
        partition.leader == NO_LEADER if kind == UNCLEAN else not (partition.has_preferred_leader)
    )
    if not needed:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    change = PartitionChange(state, topic_name, topic.topic_id, index, partition)
    change.election = Election.UNCLEAN if kind == UNCLEAN else Election.PREFERRED
    record = change.build()
    if record is None:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            if kind == UNCLEAN
            else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        )
    return record
