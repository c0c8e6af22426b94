"""What an assignor gets and gives.

Topics are 16-byte ids, partitions their indexes; an assignment maps member -> topic -> partitions
in ascending order. Members without any partition have an empty dictionary.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import NamedTuple

TopicPartitions = dict[bytes, tuple[int, ...]]
Assignment = dict[str, TopicPartitions]
Assigning = Generator[None, None, Assignment]

#: Steps between two yields: a few hundred microseconds of pure Python.
STEPS_PER_SLICE = 1000


class MemberSpec(NamedTuple):
    """A member: its static name if it has one, the existing topics it subscribes to, and the
    partitions that are its target now."""

    instance_id: str | None
    topics: tuple[bytes, ...]
    target: Mapping[bytes, tuple[int, ...]]


class GroupSpec(NamedTuple):
    """The members by id, and the number of partitions of every topic that any of them names."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]

    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions, None)
        return first is None or all(member.topics == first.topics for member in subscriptions)


def collected(assigned: Mapping[str, list[tuple[bytes, int]]]) -> Assignment:
    """From lists of (topic, partition) to the form of an assignment."""
    result: Assignment = {}
    for member_id, partitions in assigned.items():
        topics: dict[bytes, list[int]] = {}
        for topic, partition in sorted(partitions):
            topics.setdefault(topic, []).append(partition)
        result[member_id] = {topic: tuple(indexes) for topic, indexes in topics.items()}
    return result
