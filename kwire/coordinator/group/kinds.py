"""A kind of group, as a shard sees it: the registry of what each does differently.

Everything that is asked of a group by its id goes to the kind that has it on record (`GroupKinds`).
A new kind of group is a `StoredGroups` in storage.py (its records), a `GroupKind` in shard.py, and
the requests that only it knows (ConsumerGroupHeartbeat) in coordinator.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from kwire.coordinator.deadlines import Deadlines
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import AnyReply, CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

# What the deadline is for, the group, and maybe a member of it.
TimerKey: TypeAlias = tuple[str, ...]
GroupDeadlines: TypeAlias = Deadlines[TimerKey]
# Acts on a deadline that has passed.
TimerAction: TypeAlias = Callable[[TimerKey, Moment], Result[None]]


class ListedGroup(NamedTuple):
    """A group as ListGroups shows it; `state` is Kafka's name."""

    group_id: str
    protocol_type: str
    state: str


class SubscribedGroup(Protocol):
    """One group, for those who delete offsets."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether members are known to, or may, read the topic."""
        ...

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        """Whether an offset of a topic that nobody is subscribed to is past its retention."""
        ...


class GroupKind(Protocol):
    """The groups of one kind in one shard. Methods with a group id are for groups on record."""

    @property
    def name(self) -> str:
        """The type that ListGroups shows, and filters by."""
        ...

    @property
    def group_ids(self) -> Collection[str]:
        """The groups on record, in the order of their records."""
        ...

    @property
    def timers(self) -> Mapping[str, TimerAction]:
        """By the first part of the deadline's key; no two kinds have the same one."""
        ...

    # --- soft state

    def load(self, moment: Moment) -> None:
        """The records were replayed: set up soft state."""
        ...

    def forget(self, group_id: str) -> None:
        """Drop the soft state of a group that is gone."""
        ...

    def topics_changed(self) -> None:
        """The metadata has other topics or partitions than before."""
        ...

    def waiting(self) -> list[AnyReply]:
        """The shard is given up: the replies that are parked."""
        ...

    # --- the requests of the classic protocol; those that refuse raise KafkaError or answer so

    def join(
        self, request: m.JoinGroupRequest, caller: Caller, moment: Moment
    ) -> Result[m.JoinGroupResponse]: ...

    def sync(self, request: m.SyncGroupRequest, moment: Moment) -> Result[m.SyncGroupResponse]: ...

    def heartbeat(
        self, request: m.HeartbeatRequest, moment: Moment
    ) -> Result[m.HeartbeatResponse]: ...

    def leave(self, request: m.LeaveGroupRequest, moment: Moment) -> Result[m.LeaveGroupResponse]:
        """A request in the form of v3-5."""
        ...

    # --- administration

    def listed(self) -> Iterable[ListedGroup]: ...

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        """For DescribeGroups, which is about classic groups."""
        ...

    def deletable(self, group_id: str) -> ErrorCode:
        """NONE, or why the group may not be deleted."""
        ...

    def tombstones(self, group_id: str) -> Sequence[CoordinatorRecord]:
        """What deletes a group without members, but for its offsets."""
        ...

    @property
    def expires(self) -> bool:
        """Whether a group of this kind goes by itself when it has neither members nor offsets."""
        ...

    # --- offsets

    @property
    def has_offsets(self) -> bool:
        """Whether groups of this kind commit offsets here."""
        ...

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        """Raise unless the sender may commit; it counts as a sign of life."""
        ...

    def check_transactional_commit(
        self, request: m.TxnOffsetCommitRequest, api_version: int
    ) -> None:
        """Raise unless the sender may commit."""
        ...

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        """Raise unless the sender may ask."""
        ...

    def check_delete_offsets(self, group_id: str) -> None:
        """Raise where no offset of the group may be deleted."""
        ...

    def subscribed_group(self, group_id: str) -> SubscribedGroup: ...


class GroupKinds:
    """The kinds of a shard, in the order in which ListGroups shows their groups."""

    def __init__(self, kinds: Sequence[GroupKind]) -> None:
        self._kinds = tuple(kinds)

    def __iter__(self) -> Iterator[GroupKind]:
        return iter(self._kinds)

    def of(self, group_id: str) -> GroupKind | None:
        """The kind of a group on record, None when there is none of that name."""
        for kind in self._kinds:
            if group_id in kind.group_ids:
                return kind
        return None

    def of_member(self, group_id: str) -> GroupKind:
        """The kind of the group that a member names; raises UNKNOWN_MEMBER_ID when there is no
        such group."""
        kind = self.of(group_id)
        if kind is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return kind

    def timers(self) -> dict[str, TimerAction]:
        """Of all kinds."""
        return {name: action for kind in self._kinds for name, action in kind.timers.items()}

    def forget(self, group_id: str) -> None:
        """A group was deleted: nobody keeps soft state of it."""
        for kind in self._kinds:
            kind.forget(group_id)
