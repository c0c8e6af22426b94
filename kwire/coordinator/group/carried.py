"""Groups of kinds that are not coordinated here: kept, listed and described from their records.

A group exists as long as one of its records does. Its state is what the records say, as nobody
can act as its member.
"""

from __future__ import annotations

from typing import Any

from kwire.coordinator.group.storage import SHARE, STREAMS, GroupStorage

# Per kind: record types of members, of the target assignment's epoch, of a member's assignment,
# and of the group itself.
_MEMBER_TYPES = {SHARE: 10, STREAMS: 19}
_TARGET_TYPES = {SHARE: 12, STREAMS: 20}
_CURRENT_TYPES = {SHARE: 14, STREAMS: 22}
_GROUP_TYPES = {SHARE: 11, STREAMS: 17}
PROTOCOL_TYPES = {SHARE: "share", STREAMS: "streams"}
_STABLE_MEMBER = 0
_SHARE_STATE_TYPE = 15


def values(storage: GroupStorage, kind: str, group_id: str, record_type: int) -> list[Any]:
    """The values of a group's records of one type."""
    records = storage.carried[kind].get(group_id, {})
    return [value for (t, _), (_, value) in records.items() if t == record_type]


def has_members(storage: GroupStorage, kind: str, group_id: str) -> bool:
    """Whether the group has members on record."""
    return bool(values(storage, kind, group_id, _MEMBER_TYPES[kind]))


def state(storage: GroupStorage, kind: str, group_id: str) -> str:
    """The state of the group by Kafka's name."""
    if not has_members(storage, kind, group_id):
        return "Empty"
    if kind == SHARE:
        return "Stable"
    groups = values(storage, kind, group_id, _GROUP_TYPES[kind])
    targets = values(storage, kind, group_id, _TARGET_TYPES[kind])
    epoch = groups[0].epoch if groups else 0
    target_epoch = targets[0].assignment_epoch if targets else -1
    if epoch > target_epoch:
        return "Assigning"
    current = values(storage, kind, group_id, _CURRENT_TYPES[kind])
    settled = all(x.state == _STABLE_MEMBER and x.member_epoch == target_epoch for x in current)
    return "Stable" if settled else "Reconciling"


def share_topics(storage: GroupStorage, group_id: str) -> list[tuple[str, bytes, list[int]]]:
    """(topic, id, partitions) that a share group's state was initialized for; none of a group
    that is unknown or no share group."""
    found = values(storage, SHARE, group_id, _SHARE_STATE_TYPE)
    return [
        (topic.topic_name, bytes(topic.topic_id), sorted(topic.partitions))
        for value in found
        for topic in value.initialized_topics
    ]


def subscribes(storage: GroupStorage, kind: str, group_id: str, topic: str) -> bool:
    """Whether a member on record names `topic` in its subscription."""
    members = values(storage, kind, group_id, _MEMBER_TYPES[kind])
    return any(topic in getattr(x, "subscribed_topic_names", ()) for x in members)
