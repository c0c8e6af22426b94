"""The range assignor: of every topic each subscriber gets a range of consecutive partitions.

Subscribers are ordered by instance id (static members first), then member id, so that topics with
the same number of partitions and the same subscribers are co-partitioned: partition n of each goes
to the same member. The first (partitions mod subscribers) members get one more.
"""

from __future__ import annotations

from kwire.coordinator.group.assignors.spec import (
    STEPS_PER_SLICE,
    Assigning,
    Assignment,
    GroupSpec,
)


def assign_range(spec: GroupSpec) -> Assigning:
    """See the module."""
    ordered = sorted(
        spec.members.items(),
        key=lambda item: (item[1].instance_id is None, item[1].instance_id or "", item[0]),
    )
    subscribers: dict[bytes, list[str]] = {}
    for member_id, member in ordered:
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(member_id)
    result: Assignment = {member_id: {} for member_id in spec.members}
    steps = 0
    for topic in sorted(subscribers):
        members = subscribers[topic]
        quota, extra = divmod(spec.partition_counts[topic], len(members))
        start = 0
        for position, member_id in enumerate(members):
            end = start + quota + (1 if position < extra else 0)
            if end > start:
                result[member_id][topic] = tuple(range(start, end))
            start = end
            steps += 1
            if steps % STEPS_PER_SLICE == 0:
                yield
    return result
