"""Offsets beyond the recorded scripts: transactions, retention, deleted topics, odd records."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.coordinator.group import expiry
from kwire.coordinator.group.storage import GroupStorage
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records.control import end_transaction_marker
from tests.support.groups import GroupWorld, answered, codes

DAY_MS = 86_400_000


def end(world: GroupWorld, producer_id: int, commit: bool) -> None:
    marker = end_transaction_marker(producer_id, 0, commit, 1, 1)
    done = world.coordinator.complete_transaction(0, marker, producer_id, 0, commit)
    assert done.done
    assert done.error() is None


def fetched(world: GroupWorld, *, stable: bool) -> tuple[int, ErrorCode]:
    found = world.now(world.fetch({"t": [0]}, require_stable=stable)).topics[0].partitions[0]
    return found.committed_offset, ErrorCode(found.error_code)


# -------------------------------------------------------------------------- transactions


def test_a_transactions_offsets_show_when_its_marker_comes() -> None:
    world = GroupWorld()
    world.commit(5)
    assert codes(world.now(world.commit_in_transaction(9, 1))) == [ErrorCode.NONE]
    assert fetched(world, stable=False) == (5, ErrorCode.NONE)
    assert fetched(world, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    end(world, 2, True)
    assert fetched(world, stable=False) == (5, ErrorCode.NONE)
    end(world, 1, True)
    assert fetched(world, stable=True) == (9, ErrorCode.NONE)
    world.commit_in_transaction(12, 1)
    end(world, 1, False)
    assert fetched(world, stable=True) == (9, ErrorCode.NONE)
    world.reload()
    assert fetched(world, stable=True) == (9, ErrorCode.NONE)


def test_open_transactions_survive_a_reload() -> None:
    world = GroupWorld()
    world.commit_in_transaction(9, 1)
    world.reload()
    assert fetched(world, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    end(world, 1, True)
    assert world.offset() == 9


def test_what_is_answered_in_slices_is_of_one_moment() -> None:
    """A transaction that ends between two slices is told in all partitions, or in none."""
    world = GroupWorld()
    world.commit(5)
    world.commit(6, partition=1)
    asked = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    found = world.now(world.coordinator.fetch_offsets(asked, False))
    before = answered(found)
    for partition in range(3):
        world.commit_in_transaction(9, 1, partition=partition)
    end(world, 1, True)
    assert answered(found) == before
    assert world.offset() == 9


def test_many_topics_are_told_to_some_shards_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GroupWorld()
    world.commit(5, topic_id=b"t" * 16)
    runtime = world.coordinator.runtime
    led, written = list(range(25)), list[int]()
    monkeypatch.setattr(runtime, "partitions", lambda: led)

    def write(partition: int, operation: Any) -> Pending[None]:
        written.append(partition)
        return Pending.completed(None)

    monkeypatch.setattr(runtime, "write", write)
    slices = []
    for _ in world.coordinator.follow_topics({"t": b"t" * 16}):
        slices.append(list(written))
        written.clear()
        if len(slices) == 1:
            led = [3, *range(5, 27)]  # what is led changes in between
    assert slices[0] == [each for each in range(10) for _ in range(2)]
    assert [len(each) for each in slices] == [20, 20, 14]
    assert sorted({each for told in slices for each in told}) == list(range(27))
    monkeypatch.undo()
    list(world.coordinator.follow_topics({"t": b"t" * 16}))
    world.loop.run()
    assert world.offset() == -1


def test_the_later_record_counts_not_the_later_marker() -> None:
    world = GroupWorld()
    world.commit_in_transaction(1, 1)
    world.commit_in_transaction(2, 2)
    world.commit(3)
    end(world, 1, True)
    assert world.offset() == 3
    world.commit_in_transaction(4, 1)
    end(world, 1, True)
    end(world, 2, True)
    assert world.offset() == 4


@pytest.mark.parametrize(
    ("member", "generation", "expected"),
    [
        ("", -1, ErrorCode.NONE),
        ("member", 1, ErrorCode.NONE),
        ("member", 0, ErrorCode.ILLEGAL_GENERATION),
        ("member", -1, ErrorCode.ILLEGAL_GENERATION),
        ("nobody", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit_in_a_transaction(member: str, generation: int, expected: ErrorCode) -> None:
    """Producers of before KIP-447 name no member: they are let in whatever state the group has."""
    world = GroupWorld()
    (stable,) = world.stable(1)
    member = stable if member == "member" else member
    answer = world.commit_in_transaction(1, 1, member_id=member, generation=generation)
    assert codes(world.now(answer)) == [expected]


def test_a_transaction_for_a_generation_that_does_not_exist() -> None:
    world = GroupWorld()
    answer = world.commit_in_transaction(1, 1, group="none", member_id="m", generation=3)
    assert codes(world.now(answer)) == [ErrorCode.ILLEGAL_GENERATION]


def test_deleting_offsets_ends_what_a_transaction_holds_of_them() -> None:
    world = GroupWorld()
    world.commit_in_transaction(9, 1)
    world.commit_in_transaction(9, 1, partition=1)
    world.delete_offsets("t", 0)
    assert fetched(world, stable=True) == (-1, ErrorCode.NONE)
    world.delete_offsets("t", 1)
    assert world.shard.storage.open_transactions == {}
    world.commit_in_transaction(10, 1)
    end(world, 1, True)
    assert world.offset() == 10


def test_deleting_a_group_deletes_its_pending_offsets() -> None:
    world = GroupWorld()
    world.commit(1)
    world.commit_in_transaction(9, 1, partition=1)
    world.now(world.coordinator.delete_groups(["g"]))
    end(world, 1, True)
    assert world.shard.storage.snapshot() == GroupStorage().snapshot()


# -------------------------------------------------------------------------- retention


def check_days(world: GroupWorld, days: int) -> None:
    world.loop.advance(days * DAY_MS + 600_000)


def test_a_simple_groups_offsets_go_a_week_after_their_commit() -> None:
    world = GroupWorld()
    world.commit(1, partition=0)
    check_days(world, 3)
    world.commit(2, partition=1)
    check_days(world, 5)
    assert (world.offset(), world.offset(partition=1)) == (-1, 2)
    assert world.state() == "Empty"
    check_days(world, 3)
    assert world.offset(partition=1) == -1
    assert world.state() == "Dead"
    assert world.shard.storage.classic.groups == {}


def test_an_empty_groups_offsets_go_a_week_after_it_became_empty() -> None:
    world = GroupWorld()
    (member,) = world.stable(1, session_ms=1_800_000)
    world.commit(1, member_id=member, generation=1)
    for _ in range(12 * 24 * 3):
        world.loop.advance(1_200_000)
        assert world.now(world.heartbeat(member, 1)).error_code == 0
    world.now(world.leave((member, None)))
    check_days(world, 6)
    assert world.offset() == 1
    world.reload()
    check_days(world, 1)
    assert world.offset() == -1
    assert world.state() == "Dead"


def test_an_open_transaction_keeps_offsets_and_group() -> None:
    world = GroupWorld()
    world.commit(1)
    world.commit_in_transaction(2, 1)
    check_days(world, 8)
    assert world.offset() == 1
    end(world, 1, False)
    check_days(world, 1)
    assert world.state() == "Dead"


def test_rounds_are_cut_into_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "SLICE_GROUPS", 3)
    world = GroupWorld()
    for i in range(20):
        world.commit(i, group=f"g{i}")
    appended = len(world.log.batches[0])
    check_days(world, 8)
    assert world.shard.storage.classic.groups == {}
    assert len(world.log.batches[0]) - appended == 7


# -------------------------------------------------------------------------- deleted topics


def test_deleted_topics_take_their_offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "SLICE_GROUPS", 3)
    world = GroupWorld()
    old, new = b"\x01" * 16, b"\x02" * 16
    for i in range(10):
        world.commit(i, group=f"g{i}", topic="t", topic_id=old)
        world.commit(i, group=f"g{i}", topic="u")
    world.commit_in_transaction(7, 1, group="g1", topic_id=old, partition=5)
    world.follow_topics(t=old)
    world.commit(77, group="g9", topic="t", topic_id=new)
    world.loop.run()
    assert [world.offset(f"g{i}") for i in range(10)] == [-1] * 9 + [77]
    assert [world.offset(f"g{i}", "u") for i in range(10)] == list(range(10))
    end(world, 1, True)
    assert world.offset("g1", partition=5) == -1
    before = world.shard.storage.snapshot()
    world.reload()
    assert world.shard.storage.snapshot() == before


def test_offsets_of_an_unknown_topic_id_belong_to_the_name() -> None:
    """Commits that Kafka wrote before topic ids were stored."""
    world = GroupWorld()
    world.commit(1)
    world.follow_topics(t=b"\x01" * 16)
    world.loop.run()
    assert world.offset() == -1


# -------------------------------------------------------------------------- records


def replay(storage: GroupStorage, key: Any, value: Any, offset: int = 0) -> None:
    storage.replay(key, value, offset, -1, -1)


def test_records_of_old_versions() -> None:
    storage = GroupStorage()
    legacy = m.LegacyOffsetCommitKey(group="g", topic="t", partition=0)
    replay(storage, legacy, m.LegacyOffsetCommitValue(offset=5, metadata="m", commit_timestamp=9))
    stored = storage.offsets.get("g", "t", 0)
    assert stored is not None
    assert (stored.offset, stored.leader_epoch, stored.metadata, stored.commit_ms) == (
        5,
        -1,
        "m",
        9,
    )
    member = m.GroupMetadataValue.MemberMetadata(member_id="a", session_timeout=6000)
    value = m.GroupMetadataValue(protocol_type="consumer", generation=3, members=[member])
    again = m.GroupMetadataValue.decode(value.encode(0), 0)
    replay(storage, m.GroupMetadataKey(group="h"), again)
    group = storage.classic.groups["h"]
    assert (group.members[0].rebalance_timeout_ms, group.state_timestamp_ms) == (6000, None)
    replay(storage, legacy, None)
    replay(storage, m.GroupMetadataKey(group="g"), None)
    replay(storage, m.GroupMetadataKey(group="h"), None)
    assert storage.snapshot() == GroupStorage().snapshot()


def test_an_expiry_of_its_own_is_stored_in_the_old_version() -> None:
    world = GroupWorld()
    world.commit(1, retention_ms=5000)
    world.commit(2, partition=1)
    world.reload()
    stored = world.shard.storage.offsets
    first, second = stored.get("g", "t", 0), stored.get("g", "t", 1)
    assert first is not None
    assert second is not None
    assert (first.expire_ms, second.expire_ms) == (first.commit_ms + 5000, None)
    world.loop.advance(600_000)
    assert (world.offset(), world.offset(partition=1)) == (-1, 2)


def test_metadata_is_measured_in_utf16_units() -> None:
    world = GroupWorld(offset_metadata_bytes_max=4)
    assert codes(world.now(world.commit(1, metadata="\U0001f600\U0001f600"))) == [0]
    too_large = world.now(world.commit(1, metadata="\U0001f600\U0001f600x"))
    assert codes(too_large) == [ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert codes(world.now(world.commit(1, metadata="éééé"))) == [0]


def test_a_commit_behind_a_deletion_of_its_group_is_not_deleted_with_it() -> None:
    """Requests of one connection need not wait for each other: nothing is committed yet."""
    world = GroupWorld(lagging=True)
    first = world.commit(1)
    deletion = world.coordinator.delete_groups(["g"])
    second = world.commit(2)
    world.log.commit_all()
    assert [each.done for each in (first, deletion, second)] == [True] * 3
    assert codes(second.result()) == [ErrorCode.NONE]
    assert world.offset() == 2


# -------------------------------------------------------------------------- many partitions


def many(world: GroupWorld, count: int = 1000, metadata: str = "", **fields: Any) -> Any:
    """A commit of many partitions, made and not decided on."""
    shape = m.OffsetCommitRequest
    partitions = [
        shape.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=7, committed_metadata=metadata
        )
        for index in range(count)
    ]
    fields.setdefault("generation_id_or_member_epoch", -1)
    topics = [shape.OffsetCommitRequestTopic(name="t", partitions=partitions)]
    request = shape(group_id="g", topics=topics, **fields)
    made = world.coordinator.make_commit(request)
    for _ in made.steps():
        assert len(made.records) <= count
    return request, made


def test_many_offsets_are_one_batch() -> None:
    world = GroupWorld()
    request, made = many(world)
    before = len(world.log.batches.get(0, []))
    answer = world.now(world.coordinator.commit_made(request, 9, made))
    assert set(codes(answer)) == {ErrorCode.NONE}
    assert len(world.log.batches[0]) == before + 1
    assert [world.offset(partition=index) for index in (0, 299, 300, 999)] == [7] * 4
    world.reload()
    assert [world.offset(partition=index) for index in (0, 299, 300, 999)] == [7] * 4


def test_a_member_that_is_out_when_many_offsets_are_made_commits_none() -> None:
    """The rebalance between two slices gave its partitions to somebody else."""
    world = GroupWorld()
    (member_id,) = world.stable(1)
    request, made = many(world, member_id=member_id, generation_id_or_member_epoch=1)
    world.leave((member_id, None))
    answer = world.now(world.coordinator.commit_made(request, 9, made))
    assert set(codes(answer)) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert world.offset() == -1


def test_of_many_offsets_that_the_log_refuses_none_is_stored() -> None:
    world = GroupWorld()
    request, made = many(world, metadata="x" * 4000)
    answer = world.now(world.coordinator.commit_made(request, 9, made))
    assert set(codes(answer)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert world.offset() == world.offset(partition=999) == -1


def test_a_shard_that_is_loaded_anew_between_the_slices_takes_many_offsets() -> None:
    world = GroupWorld()
    request, made = many(world)
    world.reload()
    assert set(codes(world.now(world.coordinator.commit_made(request, 9, made)))) == {0}
    world.coordinator.runtime.unload(0)
    answer = world.now(world.coordinator.commit_made(request, 9, made))
    assert set(codes(answer)) == {ErrorCode.NOT_COORDINATOR}
