"""A reduced log gives the shard that the whole log gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.coordinator import batches, loading
from kwire.coordinator.group.classic.stored import SIMPLE_GROUP
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.partition import ShardState
from kwire.coordinator.reduction import LogReduction
from kwire.coordinator.shard_interface import CoordinatorRecord, Producer
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, UnsupportedRecordError
from kwire.protocol.records import Codec, Record, build_batch, iterate_headers, stamp
from kwire.protocol.records.compaction_kernel import OffsetMap
from kwire.protocol.records.control import end_transaction_marker
from tests.support.groups import GroupWorld, codes

MODULE = "group-coordinator"
GROUPS = st.sampled_from("gh")
PARTITIONS = st.integers(0, 2)
PRODUCERS = st.integers(1, 2)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), GROUPS, PARTITIONS, st.booleans()),
        st.tuples(st.just("several"), GROUPS, PARTITIONS, st.booleans()),
        st.tuples(st.just("txn"), GROUPS, PARTITIONS, PRODUCERS),
        st.tuples(st.just("marker"), PRODUCERS, st.booleans()),
        st.tuples(st.just("delete"), GROUPS, PARTITIONS),
        st.tuples(st.just("group"), GROUPS),
        st.tuples(st.just("forget"), GROUPS),
        st.tuples(st.just("share"), GROUPS, st.booleans()),
    ),
    max_size=60,
)


def offset_record(group: str, partition: int, offset: int | None) -> CoordinatorRecord:
    key = m.OffsetCommitKey(group=group, topic="t", partition=partition)
    value = None if offset is None else m.OffsetCommitValue(offset=offset)
    return CoordinatorRecord(key, value, 4)


def records_of(step: Any, number: int) -> tuple[list[CoordinatorRecord], Producer | None]:
    kind, *rest = step
    if kind == "commit":
        return [offset_record(rest[0], rest[1], number)], None
    if kind == "several":
        return [offset_record(rest[0], i, number) for i in (*range(3), rest[1])], None
    if kind == "txn":
        return [offset_record(rest[0], rest[1], number)], Producer(rest[2], 0)
    if kind == "delete":
        return [offset_record(rest[0], rest[1], None)], None
    if kind == "share":
        key = m.ShareGroupMetadataKey(group_id=rest[0] + "-share")
        value = m.ShareGroupMetadataValue(epoch=number) if rest[1] else None
        return [CoordinatorRecord(key, value, 0)], None
    key = m.GroupMetadataKey(group=rest[0])
    if kind == "group":
        return [CoordinatorRecord(key, m.GroupMetadataValue(generation=number), 3)], None
    # Whoever deletes a group deletes its offsets first.
    gone = [offset_record(rest[0], i, None) for i in range(3)]
    return [*gone, CoordinatorRecord(key, None)], None


def log_of(steps: list[Any]) -> bytes:
    """The batches of `steps`, with offsets; some are compressed, as no coordinator does."""
    data, offset = b"", 0
    for number, step in enumerate(steps):
        if step[0] == "marker":
            batch = end_transaction_marker(step[1], 0, step[2], 1, 1)
            count = 1
        else:
            records, producer = records_of(step, number)
            encoded = [batches.encode(x) for x in records]
            count = len(encoded)
            if step[0] == "commit" and step[3]:
                made = [Record(i, 1, key, value) for i, (key, value) in enumerate(encoded)]
                batch = build_batch(made, codec=Codec.GZIP)
            else:
                batch = batches.build(encoded, 1, producer)
        stamp(batch, 0, offset, 3)
        data, offset = data + bytes(batch), offset + count
    return data


def snapshot(storage: GroupStorage) -> dict[str, Any]:
    """Without simple groups that have nothing: they are not remembered."""
    found = storage.snapshot()
    holds = {*storage.offsets.by_group, *storage.open_transactions}
    found["classic"] = {
        group: stored
        for group, stored in storage.classic.groups.items()
        if stored != SIMPLE_GROUP or group in holds
    }
    return found


def whole(data: bytes, start: int = 0) -> GroupStorage:
    storage = GroupStorage()
    shard: Any = storage
    for _ in batches.replay_steps(shard, MODULE, memoryview(data), start):
        pass
    return storage


def reduced(
    data: bytes, start: int = 0, offsets: OffsetMap | None = None, cut_bytes: int | None = None
) -> GroupStorage:
    """With a map the log is gone through twice; `cut_bytes` cuts it into pieces of about that."""
    storage = GroupStorage()
    shard: Any = storage
    reduction = LogReduction(offsets)
    pieces = [data] if cut_bytes is None else pieces_of(data, cut_bytes)
    passes = [reduction.take] if offsets is None else [reduction.index, reduction.take]
    for go_through in passes:
        reached = start
        for piece in pieces:
            reached = max(reached, go_through(piece, reached))
    for _ in reduction.replay_steps(shard, MODULE):
        pass
    return storage


def pieces_of(data: bytes, cut_bytes: int) -> list[bytes]:
    pieces, begun = [], 0
    for position, header in iterate_headers(data):
        end = position + header.size_bytes
        if end - begun >= cut_bytes or end == len(data):
            pieces.append(data[begun:end])
            begun = end
    return pieces


@given(STEPS, st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_the_same_state(steps: list[Any], start: int) -> None:
    data = log_of(steps)
    assert snapshot(reduced(data, start)) == snapshot(whole(data, start))


@given(STEPS, st.integers(2, 9), st.sampled_from([None, 200, 1000]))
@settings(max_examples=300, deadline=None)
def test_the_same_state_with_a_map_of_last_offsets(
    steps: list[Any], keys: int, cut_bytes: int | None
) -> None:
    """Also when the map has no place for all keys."""
    data = log_of(steps)
    offsets = OffsetMap(24 * keys, bytes(16), 1.0 - 1e-9)
    assert snapshot(reduced(data, 0, offsets, cut_bytes)) == snapshot(whole(data))


def test_a_tombstone_ends_what_is_pending_although_another_commit_follows() -> None:
    steps: list[Any] = [
        ("txn", "g", 0, 1),
        ("delete", "g", 0),
        ("commit", "g", 0, False),
    ]
    found = reduced(log_of(steps), 0, OffsetMap(4096, bytes(16)))
    assert not found.pending
    assert found.offsets.by_group["g"]["t"][0].offset == 2


@pytest.mark.parametrize("later", [False, True])
def test_a_long_log_is_loaded_by_a_worker(later: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jobs end when they like; requests meanwhile hear that the group is being loaded."""
    if not loading.COMPILED:
        pytest.skip("jobs are for compiled kernels")
    monkeypatch.setattr(loading, "REPLAYED_MAX", 50)
    jobs: list[tuple[Pending[int], Any]] = []

    def run(job: Any) -> Pending[int]:
        pending: Pending[int] = Pending()
        if later:
            jobs.append((pending, job))
        else:
            pending.complete(job())
        return pending

    world = GroupWorld(worker=loading.Worker(run, lambda: bytes(16)), load_bytes=2000)
    for i in range(100):
        world.commit(i, partition=i % 3)
    before = world.shard.storage.snapshot()
    world.coordinator.runtime.unload(0)
    world.coordinator.runtime.load(0, 5)
    world.loop.run()
    while jobs:
        answer = world.commit(1)
        assert codes(answer) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        pending, job = jobs.pop(0)
        pending.complete(job())
        world.loop.run()
    assert world.shard.storage.snapshot() == before


def test_a_job_that_fails_fails_the_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    if not loading.COMPILED:
        pytest.skip("jobs are for compiled kernels")
    monkeypatch.setattr(loading, "REPLAYED_MAX", 50)
    world = GroupWorld()
    for i in range(100):
        world.commit(i)

    def run(job: Any) -> Pending[int]:
        return Pending.failed(ValueError("a damaged log"))

    world.coordinator.runtime._worker = loading.Worker(run, lambda: bytes(16))
    world.coordinator.runtime.unload(0)
    world.coordinator.runtime.load(0, 5)
    world.loop.run()
    assert world.coordinator.runtime.state(0) is ShardState.FAILED


def test_only_what_counts_is_replayed() -> None:
    steps: list[Any] = [("commit", "g", i % 3, False) for i in range(5000)]
    reduction = LogReduction()
    reached = list(reduction.steps(log_of(steps), 0))
    assert reached[-1] == 5000
    assert len(reached) >= 5
    assert reduction.record_count == 5000
    shard: Any = GroupStorage()
    assert list(reduction.replay_steps(shard, MODULE)) == [4998, 4999, 5000]
    assert list(reduction.replay_steps(shard, MODULE)) == []


def test_an_unknown_record_is_not_dropped() -> None:
    data = bytes(batches.build([(b"\x00\x63key", b"value")], 1, None))
    with pytest.raises(UnsupportedRecordError):
        reduced(data)


def test_a_long_log_is_loaded_through_the_reduction(monkeypatch: pytest.MonkeyPatch) -> None:
    world = GroupWorld()
    world.stable(2)
    for i in range(400):
        world.commit(i, group=f"g{i % 7}", partition=i % 3)
        world.commit_in_transaction(i, i % 2, group="x")
    before = world.shard.storage.snapshot()
    made: list[LogReduction] = []

    class Counted(LogReduction):
        def __init__(self, offsets: OffsetMap | None) -> None:
            super().__init__(offsets)
            made.append(self)

    monkeypatch.setattr(loading, "LogReduction", Counted)
    world.reload()
    assert (made, world.shard.storage.snapshot()) == ([], before)
    monkeypatch.setattr(loading, "REPLAYED_MAX", 100)
    monkeypatch.setattr(loading, "SLICE_STEPS_MAX", 3)
    world.coordinator.runtime._load_bytes = 10_000
    world.reload()
    assert world.shard.storage.snapshot() == before
    assert [x.record_count > 800 for x in made] == [True]
    assert world.state() == "Stable"
