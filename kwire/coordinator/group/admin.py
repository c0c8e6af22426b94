"""ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwire.coordinator.group import carried, records
from kwire.coordinator.group.classic.group import ClassicGroup, ClassicMember
from kwire.coordinator.group.classic.rebalance import ClassicGroups
from kwire.coordinator.group.classic.states import ClassicState
from kwire.coordinator.group.consumer import records as consumer_records
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.storage import CLASSIC, CONSUMER
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class GroupAdmin:
    """The administrators' view of a shard."""

    def __init__(self, groups: ClassicGroups, offsets: OffsetOperations) -> None:
        self._groups = groups
        self._offsets = offsets
        self._storage = groups.storage

    def list_groups(self, states: Sequence[str], types: Sequence[str]) -> list[Any]:
        """ListedGroups whose state and type are among the given ones, in any case; an empty
        filter lets all pass."""
        state_filter = frozenset(x.lower() for x in states)
        type_filter = frozenset(x.lower() for x in types)
        listed = []
        if not type_filter or CLASSIC in type_filter:
            for group_id, stored in self._storage.classic.items():
                live = self._groups.live.get(group_id)
                if live is not None:
                    state, protocol_type = live.state, live.protocol_type
                else:
                    state, protocol_type = ClassicState.EMPTY, stored.protocol_type
                if not state_filter or state.value.lower() in state_filter:
                    listed.append(_listed(group_id, protocol_type or "", state.value, CLASSIC))
        if not type_filter or CONSUMER in type_filter:
            for group_id, consumer in self._storage.consumer.items():
                name = consumer.state_name()
                if not state_filter or name.lower() in state_filter:
                    listed.append(_listed(group_id, CONSUMER, name, CONSUMER))
        for kind, kept in self._storage.carried.items():
            if type_filter and kind not in type_filter:
                continue
            for group_id in kept:
                name = carried.state(self._storage, kind, group_id)
                if not state_filter or name.lower() in state_filter:
                    protocol_type = carried.PROTOCOL_TYPES[kind]
                    listed.append(_listed(group_id, protocol_type, name, kind))
        return listed

    def describe(self, group_id: str) -> Any:
        """The DescribedGroup of one group: Dead when there is no classic group of that name."""
        kind = self._storage.kind(group_id)
        if kind is not None and kind != CLASSIC:
            return not_described(group_id, f"Group {group_id} is not a classic group.")
        group = self._groups.look(group_id)
        if group is None:
            return not_described(group_id, f"Group {group_id} not found.")
        stable = group.state is ClassicState.STABLE
        return m.DescribeGroupsResponse.DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=(group.protocol or "") if stable else "",
            members=[_described(group, x, stable) for x in group.members.values()],
        )

    def share_topics(self, group_id: str) -> list[tuple[str, bytes, list[int]]]:
        """(topic, id, partitions) that a share group reads."""
        return carried.share_topics(self._storage, group_id)

    def delete(self, group_ids: Sequence[str], moment: Moment) -> Result:
        """Delete groups that have no members, with their offsets; the others get an error."""
        results: list[Any] = []
        made: list[CoordinatorRecord] = []
        deleted: list[str] = []
        for group_id in dict.fromkeys(group_ids):
            code = self._deletable(group_id)
            if code == ErrorCode.NONE:
                made += self._offsets.delete_all(group_id)
                if group_id in self._storage.consumer:
                    made += consumer_records.group_tombstones(group_id)
                else:
                    made.append(records.group_tombstone(group_id))
                deleted.append(group_id)
            results.append(
                m.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=code)
            )

        def appended() -> None:
            for group_id in deleted:
                self._groups.forget(group_id)

        return Result(made, results, appended, atomic=False)

    def _deletable(self, group_id: str) -> ErrorCode:
        kind = self._storage.kind(group_id)
        if kind == CLASSIC:
            group = self._groups.look(group_id)
            empty = group is None or group.state is ClassicState.EMPTY
            return ErrorCode.NONE if empty else ErrorCode.NON_EMPTY_GROUP
        if kind == CONSUMER:
            empty = not self._storage.consumer[group_id].members
            return ErrorCode.NONE if empty else ErrorCode.NON_EMPTY_GROUP
        if kind is not None and carried.has_members(self._storage, kind, group_id):
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.GROUP_ID_NOT_FOUND


def not_described(group_id: str, message: str) -> m.DescribeGroupsResponse.DescribedGroup:
    """A DescribedGroup that says that there is none."""
    return m.DescribeGroupsResponse.DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=message,
        group_id=group_id,
        group_state=ClassicState.DEAD.value,
    )


def _listed(group_id: str, protocol_type: str, state: str, kind: str) -> Any:
    return m.ListGroupsResponse.ListedGroup(
        group_id=group_id, protocol_type=protocol_type, group_state=state, group_type=kind
    )


def _described(group: ClassicGroup, member: ClassicMember, stable: bool) -> Any:
    return m.DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol) if stable else b"",
        member_assignment=member.assignment,
    )
