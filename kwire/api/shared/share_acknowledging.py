"""What ShareFetch and ShareAcknowledge have in common: acknowledgements, leaders, who may ask.

A partition's acknowledgements are checked as a whole: batches ascend, each has one type or one for
every offset, a renewal only where the request says that it renews (KIP-1222); else INVALID_REQUEST,
and the others are taken. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.replica.traffic import Traffic
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.context import RequestContext
from kwire.share.acknowledgement import check
from kwire.share.changes import AcknowledgedBatch
from kwire.share.sessions import PartitionKey

READ_GROUP = Requires(Operation.READ, ResourceType.GROUP, "group_id")
READ_TOPIC = Requires(
    Operation.READ, ResourceType.TOPIC, denied=Denied.ENTRY, note="topics are named by id"
)
MEMBER_ID_MAX = 36
SHARE_VERSION = "share.version"

Batches: TypeAlias = (
    "list[m.ShareFetchRequest.AcknowledgementBatch]"
    " | list[m.ShareAcknowledgeRequest.AcknowledgementBatch]"
)


class Asked(NamedTuple):
    """What is acknowledged of one partition."""

    key: PartitionKey
    batches: list[AcknowledgedBatch]


class Acknowledged(NamedTuple):
    """What came of it: no error for what is written."""

    key: PartitionKey
    error: KafkaError | None


def refused(context: RequestContext, group_id: str | None, member_id: str | None) -> ErrorCode:
    """Why the whole request is refused; NONE."""
    if context.parts.metadata.finalized_features().get(SHARE_VERSION, 0) < 1:
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None or not member_id or len(member_id) > MEMBER_ID_MAX:
        return ErrorCode.INVALID_REQUEST
    if not context.allows(READ_GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def asked(key: PartitionKey, batches: Batches) -> Asked:
    """A partition's acknowledgements, as plain values."""
    return Asked(
        key,
        [
            AcknowledgedBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in batches
        ],
    )


def acknowledge(
    context: RequestContext,
    group_id: str,
    member_id: str,
    partitions: Iterable[Asked],
    is_renewal: bool,
) -> list[Acknowledged] | Pending[list[Acknowledged]]:
    """Take the acknowledgements of all partitions; answered when they are written."""
    found: list[Acknowledged] = []
    traffics: dict[PartitionKey, Traffic] = {}
    waiting: list[tuple[PartitionKey, Pending[None]]] = []
    for key, batches in partitions:
        try:
            partition = _checked(context, key, batches, is_renewal)
            traffics[key] = partition.traffic
            written = _acknowledge(context, group_id, member_id, partition, batches)
        except KafkaError as error:
            found.append(Acknowledged(key, error))
            continue
        if written.done:
            found.append(Acknowledged(key, _error(written)))
        else:
            waiting.append((key, written))
    for traffic in dict.fromkeys(traffics.values()):
        traffic.share_acknowledge_requests += 1
    if not waiting:
        _count_failed(found, traffics)
        return found
    outcome: Pending[list[Acknowledged]] = Pending()
    left = [len(waiting)]

    def one_written(key: PartitionKey, done: Pending[None]) -> None:
        found.append(Acknowledged(key, _error(done)))
        left[0] -= 1
        if not left[0]:
            _count_failed(found, traffics)
            outcome.complete(found)

    for key, written in waiting:
        written.add_done_callback(partial(one_written, key))
    return outcome


def _count_failed(found: Iterable[Acknowledged], traffics: Mapping[PartitionKey, Traffic]) -> None:
    """A request counts once for a topic, as in Apache Kafka 4.4."""
    failed = {traffics[key]: None for key, error in found if error is not None and key in traffics}
    for traffic in failed:
        traffic.failed_share_acknowledge_requests += 1


def _checked(
    context: RequestContext, key: PartitionKey, batches: list[AcknowledgedBatch], is_renewal: bool
) -> Partition:
    """The partition, led here; raises why its acknowledgements are not looked at."""
    topic_id, index = key
    parts = context.parts
    topics = parts.metadata.image.topics
    topic = topics.by_id.get(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if check(batches, is_renewal) is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not context.allows(READ_TOPIC, topic.name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topics.partition(topic.name, index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    partition = parts.replicas.partition_by_id(topic_id, index)
    if partition is None or not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return partition


def _acknowledge(
    context: RequestContext,
    group_id: str,
    member_id: str,
    partition: Partition,
    batches: list[AcknowledgedBatch],
) -> Pending[None]:
    shares = context.parts.shares.partitions
    led = shares.led(group_id, partition.topic_id, partition.index)
    if led is None:
        # Nobody has fetched since we lead it: whoever acquired did so elsewhere.
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return led.acknowledge(member_id, batches)


def _error(done: Pending[None]) -> KafkaError | None:
    error = done.error()
    if error is None or isinstance(error, KafkaError):
        return error
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
