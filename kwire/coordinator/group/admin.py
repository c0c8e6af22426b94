"""ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.coordinator.group.kinds import GroupKinds
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.refusals import not_described
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode


class GroupAdmin:
    """The administrators' view of a shard."""

    def __init__(self, kinds: GroupKinds, offsets: OffsetOperations) -> None:
        self._kinds = kinds
        self._offsets = offsets

    def list_groups(
        self, states: Sequence[str], types: Sequence[str]
    ) -> list[m.ListGroupsResponse.ListedGroup]:
        """ListedGroups whose state and type are among the given ones, in any case; an empty
        filter lets all pass."""
        state_filter = frozenset(x.lower() for x in states)
        type_filter = frozenset(x.lower() for x in types)
        return [
            m.ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type,
                group_state=group.state,
                group_type=kind.name,
            )
            for kind in self._kinds
            if not type_filter or kind.name in type_filter
            for group in kind.listed()
            if not state_filter or group.state.lower() in state_filter
        ]

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        """The DescribedGroup of one group: Dead when there is no classic group of that name."""
        kind = self._kinds.of(group_id)
        if kind is None:
            return not_described(group_id, f"Group {group_id} not found.")
        return kind.describe(group_id)

    def delete(
        self, group_ids: Sequence[str], moment: Moment
    ) -> Result[list[m.DeleteGroupsResponse.DeletableGroupResult]]:
        """Delete groups that have no members, with their offsets; the others get an error."""
        results = []
        made: list[CoordinatorRecord] = []
        deleted: list[str] = []
        for group_id in dict.fromkeys(group_ids):
            kind = self._kinds.of(group_id)
            code = ErrorCode.GROUP_ID_NOT_FOUND if kind is None else kind.deletable(group_id)
            if kind is not None and code == ErrorCode.NONE:
                made += self._offsets.delete_all(group_id)
                made += kind.tombstones(group_id)
                deleted.append(group_id)
            results.append(
                m.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=code)
            )

        def appended() -> None:
            for group_id in deleted:
                self._kinds.forget(group_id)

        return Result(made, results, appended, atomic=False)
