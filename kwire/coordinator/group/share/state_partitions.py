"""Which partitions of a share group have their state: on the way to it, there, on the way out.

A partition's state is with the share coordinator. Before a group's members may read a partition
its state is initialized there; the group remembers in one record what it has asked for and what
came of it, so that whoever coordinates the group next goes on with it. Kafka's rules, measured on
Apache Kafka 4.4: partitions of a topic that is new to the group begin where
share.auto.offset.reset says (-1), those that a known topic grows by at offset 0. (Kafka takes what
it has to ask for once more for growth, too, and begins at 0 there; here it begins where it would
have.)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from kwire.coordinator.group.share import records
from kwire.coordinator.group.share.groups import ShareGroups
from kwire.coordinator.group.share.state import ShareGroup, StatePartitions, StateTopic
from kwire.coordinator.group.topics import Topics
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.share.persister import UNKNOWN_START_OFFSET, InitializePartition

# What a topic is called that the metadata no longer has.
UNKNOWN_NAME = "<UNKNOWN>"

PartitionsByTopic = Mapping[bytes, Collection[int]]


class Initialization(NamedTuple):
    """What the persister is to be asked after the record is written."""

    group_id: str
    partitions: list[InitializePartition]


def missing(
    groups: ShareGroups,
    group_id: str,
    group: ShareGroup,
    topic_names: Iterable[str],
    moment: Moment,
) -> dict[bytes, StateTopic]:
    """The partitions of the topics that have no state and are not on the way to it, or have been
    for longer than group.share.initialize.retry.interval.ms."""
    known = group.state_partitions or StatePartitions()
    since = groups.initializing_since_ms.get(group_id, {})
    retry_ms = groups.settings.initialize_retry_interval_ms
    have: dict[bytes, set[int]] = {}
    for topic_id, topic in known.initialized.items():
        have.setdefault(topic_id, set()).update(topic.partitions)
    for topic_id, topic in known.initializing.items():
        if topic_id in since and moment.now_ms - since[topic_id] < retry_ms:
            have.setdefault(topic_id, set()).update(topic.partitions)
    found: dict[bytes, StateTopic] = {}
    for name in topic_names:
        info = groups.topics.find(name)
        if info is None:
            continue
        there = have.get(info.topic_id, set())
        if not there or len(there) < info.partition_count:
            wanted = tuple(x for x in range(info.partition_count) if x not in there)
            found[info.topic_id] = StateTopic(name, wanted)
    return found


def initialize(
    groups: ShareGroups,
    group_id: str,
    group: ShareGroup,
    epoch: int,
    topic_names: Iterable[str],
    moment: Moment,
    made: list[CoordinatorRecord],
) -> Initialization | None:
    """Add the record of what has to be initialized for the topics, if anything has."""
    wanted = missing(groups, group_id, group, topic_names, moment)
    if not wanted:
        return None
    made.append(records.state_partitions(group_id, with_initializing(group, wanted)))
    known = group.state_partitions or StatePartitions()
    partitions = []
    for topic_id, topic in wanted.items():
        is_known = topic_id in known.initialized
        waiting = known.initializing.get(topic_id)
        for index in topic.partitions:
            grows = is_known or (waiting is not None and index not in waiting.partitions)
            start = 0 if grows else UNKNOWN_START_OFFSET
            partitions.append(InitializePartition(topic_id, index, epoch, start))
    return Initialization(group_id, partitions)


def asked(
    groups: ShareGroups, group_id: str, initialization: Initialization | None, moment: Moment
) -> None:
    """The record of an initialization was written: remember when."""
    if initialization is not None:
        since = groups.initializing_since_ms.setdefault(group_id, {})
        since.update((x.topic_id, moment.now_ms) for x in initialization.partitions)


def with_initializing(group: ShareGroup, wanted: Mapping[bytes, StateTopic]) -> StatePartitions:
    """The group's partitions once `wanted` are on the way: their topics are no longer on the way
    out."""
    known = group.state_partitions or StatePartitions()
    initializing = _united(known.initializing, wanted)
    deleting = {x: name for x, name in known.deleting.items() if x not in initializing}
    return StatePartitions(initializing, known.initialized, deleting)


def initialized(groups: ShareGroups, group_id: str, partitions: PartitionsByTopic) -> Result[None]:
    """Operation: the persister has initialized these."""
    group = groups.stored.get(group_id)
    if group is None or not partitions:
        return Result()
    known = group.state_partitions or StatePartitions()
    topics = {
        topic_id: StateTopic(_name_of(groups.topics, topic_id), tuple(sorted(indexes)))
        for topic_id, indexes in partitions.items()
    }
    after = StatePartitions(
        _without(known.initializing, partitions), _united(known.initialized, topics), known.deleting
    )
    return Result([records.state_partitions(group_id, after)])


def uninitialized(
    groups: ShareGroups, group_id: str, partitions: PartitionsByTopic
) -> Result[None]:
    """Operation: the persister has refused these; they are asked for again by the next
    heartbeat."""
    group = groups.stored.get(group_id)
    known = None if group is None else group.state_partitions
    if known is None or not known.initializing or not partitions:
        return Result()
    after = known._replace(initializing=_without(known.initializing, partitions))
    return Result([records.state_partitions(group_id, after)])


def topics_deleted(groups: ShareGroups, topic_ids: Collection[bytes]) -> Result[None]:
    """Operation: topics are gone from the metadata; what is said of them goes, too."""
    made = [
        record
        for group_id, group in groups.stored.items()
        if (record := without_topics(group_id, group, topic_ids.__contains__)) is not None
    ]
    return Result(made, None, atomic=False)


def without_topics(
    group_id: str, group: ShareGroup, is_gone: Callable[[bytes], bool]
) -> CoordinatorRecord | None:
    """The record of what the group has without these topics; None where it has none of them."""
    known = group.state_partitions
    if known is None or not any(is_gone(topic_id) for part in known for topic_id in part):
        return None
    return records.state_partitions(
        group_id,
        StatePartitions(
            {k: v for k, v in known.initializing.items() if not is_gone(k)},
            {k: v for k, v in known.initialized.items() if not is_gone(k)},
            {k: v for k, v in known.deleting.items() if not is_gone(k)},
        ),
    )


def assignment_pending(group: ShareGroup) -> bool:
    """Whether partitions have been initialized that the target assignment does not have."""
    known = group.initialized()
    if not group.members or not known:
        return False
    return any(
        topic.name in group.subscriptions
        and group.assigned.get(topic_id, {}).keys() != set(topic.partitions)
        for topic_id, topic in known.items()
    )


def _united(
    left: Mapping[bytes, StateTopic], right: Mapping[bytes, StateTopic]
) -> dict[bytes, StateTopic]:
    found = dict(left)
    for topic_id, topic in right.items():
        before = found[topic_id].partitions if topic_id in found else ()
        found[topic_id] = StateTopic(topic.name, tuple(sorted({*before, *topic.partitions})))
    return found


def _without(
    topics: Mapping[bytes, StateTopic], partitions: PartitionsByTopic
) -> dict[bytes, StateTopic]:
    left = {}
    for topic_id, topic in topics.items():
        gone = partitions.get(topic_id, ())
        indexes = tuple(x for x in topic.partitions if x not in gone)
        if indexes:
            left[topic_id] = StateTopic(topic.name, indexes)
    return left


def _name_of(topics: Topics, topic_id: bytes) -> str:
    return topics.name_of(topic_id) or UNKNOWN_NAME
