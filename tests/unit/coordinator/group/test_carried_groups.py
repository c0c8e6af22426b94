"""Groups that are not of the consumer's protocols: kept as they are, listed, refused to members of
those."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator import batches
from kwire.coordinator.group.carried.stored import CARRIED_KINDS
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.shard_interface import CoordinatorRecord
from kwire.protocol import coordinator_records
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.groups import GroupWorld, codes

# Of the consumer protocol (KIP-848), which is built.
CONSUMER_TYPES = (3, 4, 5, 6, 7, 8, 16)
# Of share groups (KIP-932), which are built.
SHARE_TYPES = (10, 11, 12, 13, 14, 15)
RECORDS: dict[str, list[tuple[Any, Any]]] = {
    "share": [
        (m.ShareGroupMetadataKey(group_id="g"), m.ShareGroupMetadataValue(epoch=2)),
        (
            m.ShareGroupMemberMetadataKey(group_id="g", member_id="m"),
            m.ShareGroupMemberMetadataValue(subscribed_topic_names=["t"]),
        ),
    ],
    "streams": [
        (m.StreamsGroupMetadataKey(group_id="g"), m.StreamsGroupMetadataValue(epoch=2)),
        (
            m.StreamsGroupMemberMetadataKey(group_id="g", member_id="m"),
            m.StreamsGroupMemberMetadataValue(),
        ),
        (
            m.StreamsGroupTargetAssignmentMetadataKey(group_id="g"),
            m.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=1),
        ),
    ],
}
STATES = {"share": "Stable", "streams": "Assigning"}


def world_with(kind: str, count: int | None = None) -> GroupWorld:
    """A partition whose log holds the first `count` records of a group."""
    world = GroupWorld()
    records = [CoordinatorRecord(key, value, 0) for key, value in RECORDS[kind][:count]]
    batch = batches.build([batches.encode(x) for x in records], 1, None)
    world.log.append(0, batch, 0)
    world.reload()
    return world


@pytest.mark.parametrize("kind", list(RECORDS))
def test_listed_and_described_as_what_they_are(kind: str) -> None:
    world = world_with(kind)
    listed = world.now(world.coordinator.list_groups([], [])).groups
    assert [(x.group_id, x.group_type, x.group_state) for x in listed] == [
        ("g", kind, STATES[kind])
    ]
    for types, states, found in (
        ([kind], [], 1),
        ([], [STATES[kind].upper()], 1),
        (["classic"], [], 0),
    ):
        assert len(world.now(world.coordinator.list_groups(states, types)).groups) == found
    described = world.now(world.coordinator.describe_groups(["g"]))[0]
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (described.group_state, described.error_message) == (
        "Dead",
        "Group g is not a classic group.",
    )


@pytest.mark.parametrize("kind", list(RECORDS))
def test_refused_to_members_and_kept(kind: str) -> None:
    """Measured on Apache Kafka 4.4: see the codes."""
    world = world_with(kind)
    before = world.shard.storage.snapshot()
    end = world.log.end_offset(0)
    for version in (3, 5, 9):
        joined = world.now(world.join(version=version))
        assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert joined.member_id == ""
    assert world.now(world.sync("m", 2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert world.now(world.heartbeat("m", 2)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    left = world.now(world.leave(("m", None)))
    assert [x.error_code for x in left.members] == [ErrorCode.UNKNOWN_MEMBER_ID]
    refused = ErrorCode.GROUP_ID_NOT_FOUND if kind == "share" else ErrorCode.UNKNOWN_MEMBER_ID
    assert codes(world.now(world.commit(1))) == [refused]
    assert codes(world.now(world.commit(1, member_id="m", generation=2))) == [refused]
    deleted = world.now(world.coordinator.delete_groups(["g"]))
    assert deleted[0].error_code == ErrorCode.NON_EMPTY_GROUP
    if kind == "streams":  # nobody times its members out here
        world.loop.advance(30 * 86_400_000)
    assert world.offset() == -1
    assert world.log.end_offset(0) == end
    assert world.shard.storage.snapshot() == before


@pytest.mark.parametrize("kind", ["streams"])
def test_an_empty_one_takes_commits_from_outside_and_is_never_tombstoned(kind: str) -> None:
    world = world_with(kind, 1)
    listed = world.now(world.coordinator.list_groups([], [])).groups
    assert [(x.group_type, x.group_state) for x in listed] == [(kind, "Empty")]
    assert codes(world.now(world.commit(4))) == [ErrorCode.NONE]
    assert world.offset() == 4
    assert world.shard.storage.classic.groups == {}
    world.loop.advance(30 * 86_400_000)
    assert world.offset() == 4
    deleted = world.now(world.coordinator.delete_groups(["g"]))
    assert deleted[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.shard.storage.kind("g") == kind


def test_offsets_of_a_share_group_are_not_here() -> None:
    world = world_with("share")
    assert world.now(world.delete_offsets("t", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("record_type", sorted(CARRIED_KINDS))
def test_every_type_is_carried_and_deleted_by_its_tombstone(record_type: int) -> None:
    key = m.coordinator_key_class("group-coordinator", record_type)(group_id="g")
    value = m.coordinator_value_class("group-coordinator", record_type)()
    storage = GroupStorage()
    kind = CARRIED_KINDS[record_type]
    storage.replay(key, value, 0, -1, -1)
    assert storage.kind("g") == kind
    assert storage.group_ids() == ["g"]
    kept = list(storage.streams.groups["g"].values())
    assert kept == [(key, value)]
    storage.replay(key, None, 1, -1, -1)
    storage.replay(key, None, 2, -1, -1)
    assert storage.snapshot() == GroupStorage().snapshot()


def test_the_types_are_all_that_kafka_has() -> None:
    known = {0, 1, 2, *CONSUMER_TYPES, *SHARE_TYPES, *CARRIED_KINDS}
    for record_type in range(64):
        try:
            m.coordinator_key_class("group-coordinator", record_type)
        except KeyError:
            assert record_type not in known
        else:
            assert record_type in known


def test_a_version_that_is_too_high_refuses_to_load() -> None:
    world = GroupWorld()
    key = m.ConsumerGroupMetadataKey(group_id="g")
    raw = coordinator_records.encode_key(key)
    world.log.append(0, batches.build([(raw, b"\x00\x09\x00")], 1, None), 0)
    world.reload()
    with pytest.raises(KafkaError) as caught:
        world.coordinator.runtime.read(0, lambda shard, moment: None).result()
    assert caught.value.code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("kind", ["consumer", *RECORDS])
def test_offsets_in_front_of_the_groups_records(kind: str) -> None:
    """What compaction leaves: the first record of the group is gone, its newest one is last."""
    storage = GroupStorage()
    committed = m.OffsetCommitKey(group="g", topic="t", partition=0)
    storage.replay(committed, m.OffsetCommitValue(offset=4), 0, -1, -1)
    assert storage.kind("g") == "classic"
    key: Any = m.ConsumerGroupMetadataKey(group_id="g")
    value: Any = m.ConsumerGroupMetadataValue(epoch=2)
    if kind in RECORDS:
        key, value = RECORDS[kind][0]
    storage.replay(key, value, 1, -1, -1)
    assert (storage.kind("g"), storage.classic.groups) == (kind, {})
    assert storage.offsets.get("g", "t", 0) is not None
