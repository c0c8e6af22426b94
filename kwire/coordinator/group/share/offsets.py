"""AlterShareGroupOffsets and DeleteShareGroupOffsets: what the group remembers of it.

Altering initializes partitions anew at the offsets given; deleting forgets whole topics. The state
itself is with the persister, which is asked between two records of the group. Only a group without
members may be touched: NON_EMPTY_GROUP. Source: KIP-932; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from kwire.coordinator.group.share import records
from kwire.coordinator.group.share.groups import ShareGroups
from kwire.coordinator.group.share.state import ShareGroup, StatePartitions, StateTopic
from kwire.coordinator.group.share.state_partitions import Initialization, with_initializing
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.share.persister import InitializePartition, PartitionId

UNKNOWN_PARTITION = "This server does not host this topic-partition."
NOTHING_TO_DELETE = "There is no offset information to delete."


class Altering(NamedTuple):
    """The topics of the answer, and what the persister is to be asked."""

    topics: list[m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]
    initialization: Initialization


class Deleting(NamedTuple):
    """The topics that are refused, the names of the others by id, and the partitions that the
    persister is to delete."""

    refused: list[m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]
    names: Mapping[bytes, str]
    partitions: list[PartitionId]


class DeletedGroup(NamedTuple):
    """A group whose state goes: its partitions, or why it stays."""

    partitions: list[PartitionId]
    error_code: ErrorCode = ErrorCode.NONE


def check_empty(group: ShareGroup) -> None:
    """Raise NON_EMPTY_GROUP for a group with members."""
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")


def alter(
    groups: ShareGroups, request: m.AlterShareGroupOffsetsRequest, moment: Moment
) -> Result[Altering]:
    """Operation: begin to alter. A group that there is not is made; partitions that do not exist
    are UNKNOWN_TOPIC_OR_PARTITION."""
    shape = m.AlterShareGroupOffsetsResponse
    group_id = request.group_id
    group = groups.find_or_new(group_id)
    check_empty(group)
    topics = []
    wanted: dict[bytes, StateTopic] = {}
    asked: list[InitializePartition] = []
    for topic in request.topics:
        info = groups.topics.find(topic.topic_name)
        count = 0 if info is None else info.partition_count
        partitions = []
        offsets: dict[int, int] = {}
        for partition in topic.partitions:
            index = partition.partition_index
            made = shape.AlterShareGroupOffsetsResponsePartition(partition_index=index)
            if 0 <= index < count:
                offsets[index] = partition.start_offset
            else:
                made.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                made.error_message = UNKNOWN_PARTITION
            partitions.append(made)
        answered = shape.AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name, partitions=partitions
        )
        if info is not None:
            answered.topic_id = info.topic_id
            wanted[info.topic_id] = StateTopic(topic.topic_name, tuple(sorted(offsets)))
            asked += [
                InitializePartition(info.topic_id, index, group.epoch, offset)
                for index, offset in offsets.items()
            ]
        topics.append(answered)
    made_records = []
    if wanted:
        made_records.append(records.state_partitions(group_id, with_initializing(group, wanted)))
    return Result(made_records, Altering(topics, Initialization(group_id, asked)))


def begin_delete(
    groups: ShareGroups, group_id: str, topic_names: Sequence[str]
) -> Result[Deleting]:
    """Operation: topics of the group are on the way out."""
    group = groups.find(group_id)
    check_empty(group)
    known = group.state_partitions
    if known is None:
        return Result((), Deleting([], {}, []))
    initialized = dict(known.initialized)
    deleting = dict(known.deleting)
    refused = []
    names: dict[bytes, str] = {}
    partitions: list[PartitionId] = []
    for name in topic_names:
        info = groups.topics.find(name)
        if info is None:
            refused.append(_refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic = initialized.pop(info.topic_id, None)
        if topic is not None:
            indexes: Collection[int] = topic.partitions
        elif info.topic_id in deleting:
            indexes = range(info.partition_count)
        else:
            refused.append(_refused(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOTHING_TO_DELETE))
            continue
        deleting[info.topic_id] = name
        names[info.topic_id] = name
        partitions += [PartitionId(info.topic_id, x) for x in indexes]
    after = StatePartitions(known.initializing, initialized, deleting)
    made = [records.state_partitions(group_id, after)]
    return Result(made, Deleting(refused, names, partitions))


def complete_delete(
    groups: ShareGroups, group_id: str, topic_ids: Collection[bytes]
) -> Result[None]:
    """Operation: the persister has forgotten the topics."""
    group = groups.stored.get(group_id)
    known = None if group is None else group.state_partitions
    if known is None:
        return Result()
    left = {x: name for x, name in known.deleting.items() if x not in topic_ids}
    return Result([records.state_partitions(group_id, known._replace(deleting=left))])


def begin_delete_groups(
    groups: ShareGroups, group_ids: Sequence[str]
) -> Result[dict[str, DeletedGroup]]:
    """Operation: the share groups among these are on the way out, with all of their state."""
    found: dict[str, DeletedGroup] = {}
    made: list[CoordinatorRecord] = []
    for group_id in group_ids:
        group = groups.stored.get(group_id)
        if group is None:
            continue
        if group.members:
            found[group_id] = DeletedGroup([], ErrorCode.NON_EMPTY_GROUP)
            continue
        known = group.state_partitions
        if known is None:
            continue
        indexes: dict[bytes, dict[int, None]] = {}
        names: dict[bytes, str] = {}
        for topics in (known.initialized, known.initializing):
            for topic_id, topic in topics.items():
                names[topic_id] = topic.name
                indexes.setdefault(topic_id, {}).update(dict.fromkeys(topic.partitions))
        for topic_id in known.deleting:
            name = groups.topics.name_of(topic_id)
            info = None if name is None else groups.topics.find(name)
            if info is not None and name is not None:
                names[topic_id] = name
                indexes.setdefault(topic_id, {}).update(dict.fromkeys(range(info.partition_count)))
        made.append(records.state_partitions(group_id, StatePartitions({}, {}, names)))
        partitions = [PartitionId(x, index) for x, of in indexes.items() for index in sorted(of)]
        if partitions:
            found[group_id] = DeletedGroup(partitions)
    return Result(made, found, atomic=False)


def _refused(
    name: str, code: ErrorCode, text: str = UNKNOWN_PARTITION
) -> m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic:
    return m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, error_code=code, error_message=text
    )
