"""AlterReplicaLogDirs, versions 1-2: move replicas of this broker to other log directories.

A move goes on behind the answer; DescribeLogDirs shows the copy as a future replica with its lag. A
path that is no log directory of this broker is LOG_DIR_NOT_FOUND, one that is offline
KAFKA_STORAGE_ERROR, one that is cordoned INVALID_REPLICA_ASSIGNMENT (also for what is in it
already), a partition that has no replica here REPLICA_NOT_AVAILABLE. Source: KIP-113, KIP-1066;
measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from kwire.pending import Answer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext

VERSIONS = (1, 2)
ALTER_CLUSTER = Requires(Operation.ALTER, ResourceType.CLUSTER, denied=Denied.ENTRY)
AUTHORIZATION = (ALTER_CLUSTER,)

# The copy on its way lies in `topic-index.<32 hex digits>-future`, whose name must be possible.
FUTURE_SUFFIX_CHARS = len(".") + 32 + len("-future")
DIRECTORY_NAME_CHARS_MAX = 255


def handle(
    context: RequestContext, request: m.AlterReplicaLogDirsRequest
) -> Answer[m.AlterReplicaLogDirsResponse]:
    """See the module."""
    is_allowed = context.allows(ALTER_CLUSTER)
    shape = m.AlterReplicaLogDirsResponse
    wanted: dict[str, dict[int, str]] = {}  # a replica that is named twice goes where it is last
    for directory in request.dirs:
        for topic in directory.topics:
            if topic.partitions:
                paths = wanted.setdefault(topic.name, {})
                paths.update((index, directory.path) for index in topic.partitions)
    results = []
    for name, paths in wanted.items():
        result = shape.AlterReplicaLogDirTopicResult(topic_name=name, partitions=[])
        for index, path in paths.items():
            code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            if is_allowed:
                code = _move(context, path, name, index)
            result.partitions.append(
                shape.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=int(code))
            )
        results.append(result)
    return shape(results=results)


def _move(context: RequestContext, path: str, topic: str, index: int) -> ErrorCode:
    parts = context.parts
    logs = parts.logs
    if len(f"{topic}-{index}") + FUTURE_SUFFIX_CHARS > DIRECTORY_NAME_CHARS_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    directory = next((d for d in logs.directories if d.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if directory.error is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if directory in logs.cordoned:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    hosted = parts.replicas.partition(topic, index)
    if hosted is None:
        known = parts.metadata.image.topics.by_name.get(topic)
        is_known = known is not None and index in known.partitions
        return ErrorCode.REPLICA_NOT_AVAILABLE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        logs.moves.begin((topic, index), directory)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
