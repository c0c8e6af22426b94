"""AssignReplicasToDirs: where a broker's replicas really live (KIP-858)."""

from __future__ import annotations

from kwire.kraft.controller import elections
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.partition_change import PartitionChange
from kwire.kraft.controller.results import Records, Result
from kwire.kraft.controller.state import ControllerState
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.metadata_records import VersionedRecord


def assign_replicas_to_dirs(
    state: ControllerState,
    request: m.AssignReplicasToDirsRequest,
    context: ControllerContext,
    now_ms: int,
) -> Result[m.AssignReplicasToDirsResponse]:
    """Answer an AssignReplicasToDirsRequest (version 0).

    A replica put into a directory that is not online leaves the ISR like that of a failed one.
    """
    if not state.gates.directory_assignment:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet."
        )
    broker = state.check_epoch(request.broker_id, request.broker_epoch)
    answer = m.AssignReplicasToDirsResponse
    records: Records = []
    offline: dict[tuple[bytes, int], None] = {}
    directories = []
    for directory in request.directories:
        is_online = broker.has_online_directory(directory.id)
        topics = []
        for topic in directory.topics:
            partitions = []
            for partition in topic.partitions:
                index = partition.partition_index
                code, record = _assign(
                    state, request.broker_id, directory.id, topic.topic_id, index
                )
                if record is not None:
                    records.append(record)
                if code == ErrorCode.NONE and not is_online:
                    offline[topic.topic_id, index] = None
                partitions.append(answer.PartitionData(partition_index=index, error_code=int(code)))
            topics.append(answer.TopicData(topic_id=topic.topic_id, partitions=partitions))
        directories.append(answer.DirectoryData(id=directory.id, topics=topics))
    records += elections.leader_and_isr_updates(state, sorted(offline), remove=request.broker_id)
    return records, answer(directories=directories)


def _assign(
    state: ControllerState, broker_id: int, directory: bytes, topic_id: bytes, index: int
) -> tuple[ErrorCode, VersionedRecord | None]:
    known = state.image.topics.by_id.get(topic_id)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_ID, None
    partition = known.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    change = PartitionChange(state, known.name, known.topic_id, index, partition)
    change.directories[broker_id] = directory
    return ErrorCode.NONE, change.build()
