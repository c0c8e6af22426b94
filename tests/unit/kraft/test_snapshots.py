"""When snapshots are taken and given up, and how their files are read, torn and left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.kraft.raft.voters import VoterSet
from kwire.kraft.snapshots.content import (
    SnapshotError,
    build_snapshot,
    parse_snapshot,
    parse_snapshot_name,
    read_header,
    snapshot_name,
)
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.kraft.snapshots.policy import (
    AFTER_START_MS,
    SHORT_BYTES,
    SnapshotPolicy,
    SnapshotTrigger,
    snapshot_to_start_at,
)
from kwire.log.files import SystemFiles
from kwire.protocol import messages as m
from kwire.protocol import records
from tests.support.raft_cluster import voter_node

DAY_MS = 86_400_000


class StillClock:
    def wall_ms(self) -> int:
        return 50


def test_due_by_size_or_time_but_never_without_records() -> None:
    trigger = SnapshotTrigger(SnapshotPolicy(bytes_between=100, interval_ms=1000), now_ms=0)
    assert not trigger.is_due(5000)
    trigger.committed(99)
    assert not trigger.is_due(999)
    assert trigger.is_due(1000)
    trigger.reset(1000)
    trigger.committed(100)
    assert trigger.is_due(1000)
    trigger.reset(1000)
    assert not trigger.is_due(9000)


def test_due_when_the_log_is_longer_than_the_snapshot_but_not_at_a_start() -> None:
    """Each restart of a broker changes its partitions twice: a start does not replay them all."""
    trigger = SnapshotTrigger(SnapshotPolicy(interval_ms=0), now_ms=0)
    trigger.snapshot_bytes = SHORT_BYTES + 100
    trigger.committed(SHORT_BYTES + 101)
    assert not trigger.is_due(AFTER_START_MS - 1)
    assert trigger.is_due(AFTER_START_MS)
    trigger.reset(AFTER_START_MS)
    trigger.committed(SHORT_BYTES + 100)
    assert not trigger.is_due(AFTER_START_MS)
    trigger.reset(AFTER_START_MS)
    trigger.snapshot_bytes = 10
    trigger.committed(SHORT_BYTES)
    assert not trigger.is_due(AFTER_START_MS)


def test_no_interval_means_by_size_only() -> None:
    trigger = SnapshotTrigger(SnapshotPolicy(bytes_between=100, interval_ms=0), now_ms=0)
    trigger.committed(99)
    assert not trigger.is_due(10 * DAY_MS)


def facts(*entries: tuple[int, int, int]) -> list[tuple[OffsetAndEpoch, int, int]]:
    return [(OffsetAndEpoch(offset, 1), size, stamp) for offset, size, stamp in entries]


def test_retention_by_size_keeps_the_last_snapshot() -> None:
    policy = SnapshotPolicy(retention_bytes=100, retention_ms=-1)
    snapshots = facts((0, 30, 0), (10, 30, 0), (20, 30, 0))
    assert snapshot_to_start_at(snapshots, 10, policy, 0) is None
    assert snapshot_to_start_at(snapshots, 20, policy, 0) == (10, 1)
    assert snapshot_to_start_at(snapshots, 10_000, policy, 0) == (20, 1)
    assert snapshot_to_start_at(snapshots[:1], 10_000, policy, 0) is None


def test_retention_by_time() -> None:
    policy = SnapshotPolicy(retention_bytes=-1, retention_ms=DAY_MS)
    snapshots = facts((0, 1, DAY_MS), (10, 1, 2 * DAY_MS), (20, 1, 5 * DAY_MS))
    assert snapshot_to_start_at(snapshots, 1, policy, DAY_MS) is None
    assert snapshot_to_start_at(snapshots, 1, policy, 2 * DAY_MS + 1) == (10, 1)
    assert snapshot_to_start_at(snapshots, 1, policy, 9 * DAY_MS) == (20, 1)


def test_names() -> None:
    snapshot = OffsetAndEpoch(308, 2)
    assert snapshot_name(snapshot) == "00000000000000000308-0000000002.checkpoint"
    assert parse_snapshot_name(snapshot_name(snapshot)) == snapshot
    for other in ("quorum-state", "1-2.checkpoint", snapshot_name(snapshot) + ".deleted"):
        assert parse_snapshot_name(other) is None


def content_of(count: int) -> bytes:
    metadata = [(m.FeatureLevelRecord(name=f"f{i}", feature_level=1), 0) for i in range(count)]
    return b"".join(
        build_snapshot(
            metadata,
            epoch=3,
            clock=StillClock(),
            last_timestamp_ms=40,
            kraft_version=1,
            voters=VoterSet([voter_node(1)]),
        )
    )


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 3000])
def test_round_trip(count: int) -> None:
    content = content_of(count)
    found = parse_snapshot(content)
    assert [record.name for record in found.records] == [f"f{i}" for i in range(count)]
    assert found.last_timestamp_ms == 40
    assert found.kraft_version == 1
    assert found.voters == VoterSet([voter_node(1)])
    assert read_header(content) == (40, 1, found.voters)
    offset = 0
    for _, header in records.iterate_headers(content):
        assert header.base_offset == offset, "offsets count from 0 without a gap"
        assert header.partition_leader_epoch == 3
        offset = header.next_offset


def test_every_cut_and_every_changed_byte_is_noticed() -> None:
    content = content_of(2)
    for end in range(len(content)):
        with pytest.raises(SnapshotError):
            parse_snapshot(content[:end])
    for position in range(21, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x20
        if bytes(damaged[:position]) and position % 7 == 0:
            try:
                found = parse_snapshot(bytes(damaged))
            except SnapshotError:
                continue
            # Base offset and leader epoch of a batch are outside of its checksum.
            assert [record.name for record in found.records] == ["f0", "f1"]


def test_leftovers_are_removed(tmp_path: Path) -> None:
    files = SnapshotFiles(SystemFiles(), str(tmp_path))
    snapshot, later = OffsetAndEpoch(5, 1), OffsetAndEpoch(9, 1)
    files.write(snapshot, [content_of(1)])
    files.write_piece(later, 0, b"half")
    gone = files.mark_deleted(snapshot)
    assert gone is not None
    files.close()
    assert files.recover() == []
    assert list(tmp_path.iterdir()) == []


def test_a_fetched_snapshot_appears_when_it_is_whole(tmp_path: Path) -> None:
    files = SnapshotFiles(SystemFiles(), str(tmp_path))
    snapshot, content = OffsetAndEpoch(5, 1), content_of(3)
    files.write_piece(snapshot, 0, b"from another leader, longer than what follows" * 50)
    files.write_piece(snapshot, 0, content[:50])
    files.write_piece(snapshot, 50, content[50:])
    assert not files._files.exists(files.path(snapshot))
    files.freeze(snapshot)
    assert files.read(snapshot) == content
    assert files.read_piece(snapshot, 10, 20) == content[10:30]
    assert SnapshotFiles(SystemFiles(), str(tmp_path)).recover() == [snapshot]
