"""The leader's assignment of a large group on its way into its record, a slice a turn.

The record has all members: to make and to encode it takes 5 ms with a thousand. Until it is made
the group waits for its assignment, as it does while the leader is assigning; whatever ends that
(somebody joins, leaves, is too late) ends this, and the leader hears that it has to join again. A
second SyncGroup of the leader changes nothing: the first one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from kwire.coordinator.group.classic import records
from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.open_batch import Encoded
from kwire.coordinator.shard_interface import CoordinatorRecord

AT_ONCE_MEMBERS_MAX = 200
"""Of a group of so many all is done within the request."""
SLICE_MEMBERS = 200
"""A slice is about 1 ms."""


class Storing:
    """One generation's assignment, by member."""

    def __init__(self, group: ClassicGroup, given: Mapping[str, bytes]) -> None:
        self._group = group
        self._generation = group.generation
        self.assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        self._members = iter(list(group.members.values()))
        self._made = records.SlicedGroup()

    def is_current(self, group: ClassicGroup | None) -> bool:
        """Whether the group still waits for it."""
        return (
            group is self._group
            and group.state is ClassicState.COMPLETING_REBALANCE
            and group.generation == self._generation
        )

    @property
    def has_more(self) -> bool:
        """Whether there is another slice."""
        return self._made.count < len(self.assignments)

    def step(self) -> None:
        """One slice."""
        protocol, assignments = self._group.protocol, self.assignments
        part = list(islice(self._members, SLICE_MEMBERS))
        self._made.add([x.to_stored(protocol, assignments[x.member_id]) for x in part])

    def record(self) -> tuple[CoordinatorRecord, list[Encoded] | None]:
        """See `SlicedGroup.record`."""
        group = self._group
        return self._made.record(group.group_id, group.to_stored_without_members())
