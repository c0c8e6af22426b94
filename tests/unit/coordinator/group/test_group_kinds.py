"""A kind of group is one entry: what the rest asks of groups goes through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwire.coordinator.group.admin import GroupAdmin
from kwire.coordinator.group.kinds import GroupKinds, ListedGroup, TimerKey
from kwire.coordinator.group.offset_records import offset_commit
from kwire.coordinator.group.offsets import OffsetOperations
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.stored_offsets import StoredOffset
from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.groups import GroupWorld

MOMENT = Moment(1000, 5000)


class EchoGroups:
    """A made-up kind: groups that stay as long as they are asked for, subscribed to `t`."""

    name = "echo"
    has_offsets = True
    expires = True

    def __init__(self, *group_ids: str) -> None:
        self.group_ids = list(group_ids)
        self.timers = {"echo": self.echoed}
        self.calls: list[Any] = []

    def echoed(self, key: TimerKey, moment: Moment) -> Result[None]:
        self.calls.append(key)
        return Result()

    def load(self, moment: Moment) -> None:
        self.calls.append("load")

    def forget(self, group_id: str) -> None:
        self.calls.append(("forget", group_id))

    def topics_changed(self) -> None: ...

    def waiting(self) -> list[Any]:
        return []

    def refuse(self, *_: Any) -> Any:
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    join = sync = heartbeat = leave = check_transactional_commit = refuse

    def check_commit(
        self, request: m.OffsetCommitRequest, api_version: int, moment: Moment
    ) -> None:
        self.calls.append(("commit", request.group_id))

    def check_fetch(self, request: m.OffsetFetchRequest.OffsetFetchRequestGroup) -> None:
        self.calls.append(("fetch", request.group_id))

    def check_delete_offsets(self, group_id: str) -> None: ...

    def listed(self) -> Iterator[ListedGroup]:
        return (ListedGroup(group_id, "echoes", "Loud") for group_id in self.group_ids)

    def describe(self, group_id: str) -> m.DescribeGroupsResponse.DescribedGroup:
        return m.DescribeGroupsResponse.DescribedGroup(group_id=group_id, group_state="Loud")

    def deletable(self, group_id: str) -> ErrorCode:
        return ErrorCode.NONE

    def tombstones(self, group_id: str) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(m.GroupMetadataKey(group=f"echo of {group_id}"), None)]

    def subscribed_group(self, group_id: str) -> EchoGroups:
        return self

    def is_subscribed(self, topic: str) -> bool:
        return topic == "t"

    def is_expired(self, stored: StoredOffset, moment: Moment) -> bool:
        return True


class Parts:
    """What a shard makes of its kinds, with one kind more."""

    def __init__(self, *group_ids: str) -> None:
        shard = GroupWorld().shard
        self.echoes = EchoGroups(*group_ids)
        self.storage: GroupStorage = shard.storage
        self.kinds = GroupKinds([*shard.kinds, self.echoes])
        self.offsets = OffsetOperations(self.storage, self.kinds, 4096)
        self.admin = GroupAdmin(self.kinds, self.offsets)

    def commit(self, topic: str) -> None:
        stored = StoredOffset(4, -1, "", 0, None, bytes(16), -1)
        record = offset_commit("e", topic, 0, stored)
        self.storage.replay(record.key, record.value, 0, -1, -1)


def test_administrators_see_it_and_delete_it() -> None:
    parts = Parts("e")
    listed = parts.admin.list_groups([], ["Echo"])
    assert [(x.group_id, x.protocol_type, x.group_state, x.group_type) for x in listed] == [
        ("e", "echoes", "Loud", "echo")
    ]
    assert parts.admin.list_groups(["loud"], []) == listed
    assert parts.admin.list_groups(["empty"], []) == []
    assert parts.admin.describe("e").group_state == "Loud"
    deleted = parts.admin.delete(["e"], MOMENT)
    assert deleted.records == parts.echoes.tombstones("e")
    assert deleted.appended is not None
    deleted.appended()
    assert ("forget", "e") in parts.echoes.calls


def test_it_is_asked_who_may_commit_and_fetch() -> None:
    parts = Parts("e")
    shape = m.OffsetCommitRequest
    topic = shape.OffsetCommitRequestTopic(
        name="u", partitions=[shape.OffsetCommitRequestPartition(partition_index=0)]
    )
    request = shape(group_id="e", generation_id_or_member_epoch=7, topics=[topic])
    assert len(parts.offsets.commit(request, 9, MOMENT).records) == 1
    parts.offsets.fetch(m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="e"), False)
    assert parts.echoes.calls == [("commit", "e"), ("fetch", "e")]


def test_it_says_which_offsets_are_kept() -> None:
    parts = Parts()
    parts.commit("t")
    parts.commit("u")
    parts.echoes.group_ids.append("e")
    parts.storage.classic.drop_simple("e")
    shape = m.OffsetDeleteRequest
    request = shape(
        group_id="e",
        topics=[
            shape.OffsetDeleteRequestTopic(
                name=name, partitions=[shape.OffsetDeleteRequestPartition(partition_index=0)]
            )
            for name in ("t", "u")
        ],
    )
    deleted = [x.key for x in parts.offsets.delete(request).records]
    assert deleted == [m.OffsetCommitKey(group="e", topic="u", partition=0)]


def test_the_kinds_of_a_shard_share_no_record_type_timer_or_name() -> None:
    world = GroupWorld()
    kinds, stored = list(world.shard.kinds), world.shard.storage.kinds
    assert [x.name for x in kinds] == [x.name for x in stored]
    timers = [name for kind in kinds for name in kind.timers]
    assert len(timers) == len(set(timers))
    types = [record_type for kind in stored for record_type in kind.replayers]
    assert sorted(types) == sorted(set(types))
    assert not {0, 1} & set(types)
    echoes = EchoGroups()
    assert set(GroupKinds([*kinds, echoes]).timers()) == {*timers, "echo"}
