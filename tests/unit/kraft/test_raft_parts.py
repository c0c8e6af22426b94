"""The small parts of raft: arithmetic, tally, log bookkeeping, voter history, files, the table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.kraft.raft import quorum
from kwire.kraft.raft.control_records import ControlType, batch_shapes, build_control_batch
from kwire.kraft.raft.election import ElectionState, QuorumStateError
from kwire.kraft.raft.log_state import LogState, Position
from kwire.kraft.raft.roles.leader import Leader
from kwire.kraft.raft.transitions import ALLOWED, SAME_EPOCH, RoleName
from kwire.kraft.raft.types import OffsetAndEpoch, RaftInvariantError, ReplicaKey
from kwire.kraft.raft.voters import VoterHistory, VoterNode, VoterSet
from kwire.protocol import messages as m
from kwire.protocol import records
from tests.support.raft_cluster import directory_of, voter_node

# ---- arithmetic


@given(st.lists(st.integers(-1, 50), min_size=1, max_size=7))
def test_a_majority_has_the_majority_offset(ends: list[int]) -> None:
    offset = quorum.majority_offset(ends)
    assert sum(end >= offset for end in ends) >= quorum.majority(len(ends))
    assert sum(end >= offset + 1 for end in ends) < quorum.majority(len(ends))


@pytest.mark.parametrize(
    ("voters", "is_voter", "needed"),
    [(1, True, 0), (2, True, 1), (3, True, 1), (4, True, 2), (5, True, 2), (3, False, 2)],
)
def test_check_quorum_counts_the_leader(voters: int, is_voter: bool, needed: int) -> None:
    assert quorum.fetches_for_check_quorum(voters, is_voter) == needed


def test_tally() -> None:
    tally = quorum.Tally([3, 1, 2])
    tally.record(1, True)
    tally.record(9, True)
    assert (tally.won, tally.lost) == (False, False)
    tally.record(2, False)
    assert tally.unrecorded() == [3]
    tally.record(3, False)
    assert (tally.won, tally.lost) == (False, True)
    tally.record(3, True)
    assert (tally.won, tally.lost) == (True, False)


# ---- votes


@pytest.mark.parametrize(
    ("candidate", "voter", "is_up_to_date"),
    [
        ((5, 2), (5, 2), True),
        ((6, 2), (5, 2), True),
        ((4, 2), (5, 2), False),
        ((4, 3), (9, 2), True),  # shorter, and of a newer epoch
        ((9, 2), (4, 3), False),  # longer, and of an older one: what the voter has is committed
        ((4, 2), (5, 1), True),
    ],
)
def test_a_newer_epoch_is_more_complete_than_a_longer_log(
    candidate: tuple[int, int], voter: tuple[int, int], is_up_to_date: bool
) -> None:
    assert OffsetAndEpoch(*candidate).is_up_to_date(OffsetAndEpoch(*voter)) is is_up_to_date


# ---- the leader


def leader_of(*voter_ids: int, start_offset: int = 10) -> Leader:
    return Leader(
        2,
        VoterSet(voter_node(voter_id) for voter_id in voter_ids),
        local=ReplicaKey(1, directory_of(1)),
        endpoints=(),
        start_offset=start_offset,
        granting_voters=[1],
        fetch_timeout_ms=2000,
        now_ms=0,
    )


def key_of(node_id: int, generation: int = 0) -> ReplicaKey:
    return ReplicaKey(node_id, directory_of(node_id, generation))


def test_only_its_own_epoch_commits() -> None:
    """Raft's figure 8: copies of older records on a majority prove nothing."""
    leader = leader_of(1, 2, 3)
    assert not leader.local_flushed(11)
    assert not leader.replica_fetched(key_of(2), 10, 11, 5)
    assert leader.high_watermark is None
    assert leader.replica_fetched(key_of(2), 11, 11, 6)
    assert leader.high_watermark == 11


def test_another_directory_is_another_replica() -> None:
    """A disk that was replaced must not count for what its predecessor had (KIP-853)."""
    leader = leader_of(1, 2, 3)
    leader.local_flushed(11)
    assert not leader.replica_fetched(key_of(2, generation=1), 11, 11, 5)
    assert leader.high_watermark is None
    assert [key.id for key in leader.observers] == [2]


def test_the_high_watermark_never_falls() -> None:
    leader = leader_of(1, 2, 3)
    leader.local_flushed(20)
    leader.replica_fetched(key_of(2), 15, 20, 5)
    assert leader.high_watermark == 15
    assert not leader.replica_fetched(key_of(2), 12, 20, 6)
    assert leader.high_watermark == 15


def test_a_removed_voter_no_longer_counts() -> None:
    leader = leader_of(1, 2, 3)
    leader.local_flushed(20)
    leader.replica_fetched(key_of(3), 20, 20, 5)
    assert leader.high_watermark == 20
    leader.set_voters(VoterSet([voter_node(1), voter_node(2)]))
    assert [key.id for key in leader.observers] == [3]
    leader.local_flushed(30)
    assert not leader.replica_fetched(key_of(3), 30, 30, 6)
    assert leader.high_watermark == 20


# ---- the log's bookkeeping


def log_of(*batches: tuple[int, int, int]) -> LogState:
    log = LogState()
    for base_offset, last_offset, epoch in batches:
        log.append(base_offset, last_offset, epoch)
    return log


def test_end_offset_for_epoch() -> None:
    """KIP-279: the largest epoch that is not above the one asked for, and where it ends."""
    log = log_of((0, 4, 1), (5, 9, 3))
    assert log.end_offset_for_epoch(0) == (0, 0)
    assert log.end_offset_for_epoch(1) == (5, 1)
    assert log.end_offset_for_epoch(2) == (5, 1)
    assert log.end_offset_for_epoch(3) == (10, 3)
    assert log.end_offset_for_epoch(7) == (10, 3)


def test_validate() -> None:
    log = log_of((0, 4, 1), (5, 9, 3))
    assert log.validate(0, 0).position is Position.VALID
    assert log.validate(5, 1).position is Position.VALID
    assert log.validate(6, 1) == (Position.DIVERGING, (5, 1))
    assert log.validate(8, 2) == (Position.DIVERGING, (5, 1))
    assert log.validate(11, 3) == (Position.DIVERGING, (10, 3))
    log.high_watermark = 10
    log.add_snapshot(OffsetAndEpoch(0, 0))
    log.add_snapshot(OffsetAndEpoch(7, 3))
    assert log.validate(0, 0) == (Position.SNAPSHOT, (7, 3))
    assert log.validate(5, 1).position is Position.VALID
    assert log.delete_before(OffsetAndEpoch(7, 3)) == [(0, 0)]
    assert log.validate(5, 1) == (Position.SNAPSHOT, (7, 3))
    assert log.validate(7, 1) == (Position.SNAPSHOT, (7, 3))
    assert log.validate(7, 3).position is Position.VALID


def test_nothing_committed_is_truncated() -> None:
    log = log_of((0, 9, 1))
    log.high_watermark = 5
    with pytest.raises(RaftInvariantError):
        log.truncate_to(4)
    log.truncate_to(5)
    assert log.end == (5, 1)


@settings(deadline=None)
@given(st.data())
def test_truncation_finds_the_common_prefix(data: st.DataObject) -> None:
    """Two logs with a common beginning: following the leader's hints ends at a shared prefix."""
    common = data.draw(st.lists(st.integers(1, 3), min_size=0, max_size=6))
    common.sort()
    top = common[-1] if common else 1
    mine = sorted(data.draw(st.lists(st.sampled_from([top, top + 1, top + 3]), max_size=6)))
    theirs = sorted(data.draw(st.lists(st.sampled_from([top + 2, top + 4]), max_size=6)))
    follower_log, leader_log = [*common, *mine], [*common, *theirs]
    follower = log_of(*((i, i, epoch) for i, epoch in enumerate(follower_log)))
    leader = log_of(*((i, i, epoch) for i, epoch in enumerate(leader_log)))
    for _ in range(20):
        verdict = leader.validate(follower.end_offset, follower.last_epoch)
        if verdict.position is Position.VALID:
            break
        follower.truncate_to(follower.truncation_offset(verdict.at))
    else:
        pytest.fail("the follower never gets to a valid position")
    end = follower.end_offset
    assert follower_log[:end] == leader_log[:end]
    assert end >= len(common) or not common


# ---- voters


def test_the_history_follows_the_log() -> None:
    first, second, third = (
        VoterSet(voter_node(n) for n in ids) for ids in ([1, 2, 3], [1, 2], [1, 2, 4])
    )
    history = VoterHistory()
    history.add_level(-1, 1)
    history.add_voters(-1, first)
    history.add_voters(7, second)
    history.add_voters(12, third)
    assert history.voters == third
    assert history.voters_before == second
    assert history.voters_at(11) == second
    history.truncate_to(12)
    assert history.voters == second
    history.truncate_before(9)
    assert history.voters_at(8) == second
    assert history.voters_offset == 7
    assert history.level == 1


def test_two_changes_at_once_are_refused() -> None:
    history = VoterHistory()
    history.add_voters(3, VoterSet(voter_node(n) for n in (1, 2, 3)))
    with pytest.raises(RaftInvariantError):
        history.add_voters(4, VoterSet(voter_node(n) for n in (1, 4, 5)))


def test_voter_set_round_trip_and_changes() -> None:
    voters = VoterSet(voter_node(n) for n in (3, 1, 2))
    assert voters.ids == [1, 2, 3]
    assert VoterSet.from_record(voters.to_record()) == voters
    assert voters.with_added(voter_node(2, generation=1)) is None
    assert voters.with_removed(key_of(2, generation=1)) is None
    removed = voters.with_removed(key_of(2))
    assert removed is not None
    assert removed.ids == [1, 3]
    moved = VoterNode(key_of(1), (), 0, 1)
    assert voters.needs_update(moved)
    updated = voters.with_updated(moved)
    assert updated is not None
    assert updated.endpoints(1) == ()
    assert VoterSet([voter_node(1)]).with_removed(key_of(1)) is None


# ---- quorum-state


def test_quorum_state_is_written_as_kafka_writes_it() -> None:
    state = ElectionState(1, 1, None, (1,))
    assert state.encode(0) == (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert state.encode(1) == (
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )


@given(
    st.integers(0, 2**31 - 1),
    st.none() | st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
def test_quorum_state_round_trip(epoch: int, leader: int | None, voted: int | None) -> None:
    key = None if voted is None else key_of(voted)
    state = ElectionState(epoch, leader, key)
    assert ElectionState.decode(state.encode(1)) == state


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b'{"data_version":7}', b"\xff\xfe", b'{"data_version":"x"}'],
)
def test_a_damaged_quorum_state_is_one_error(content: bytes) -> None:
    with pytest.raises(QuorumStateError):
        ElectionState.decode(content)


# ---- what a leader sends


def test_only_sound_batches_are_taken() -> None:
    entries = ((ControlType.KRAFT_VERSION, m.KRaftVersionRecord(version=0, kraft_version=1)),)
    good = bytes(build_control_batch(entries, base_offset=5, epoch=2, timestamp_ms=1))
    after = bytes(build_control_batch(entries, base_offset=6, epoch=2, timestamp_ms=1))
    both = good + after
    assert batch_shapes(both, next_offset=5, epoch_max=2)[1] == len(both)
    assert batch_shapes(both, next_offset=4, epoch_max=2) == ([], 0), "a gap"
    assert batch_shapes(both, next_offset=5, epoch_max=1) == ([], 0), "an epoch yet to come"
    assert batch_shapes(both[:-1], next_offset=5, epoch_max=2)[1] == len(good), "cut off"
    for position in range(12, len(after)):
        damaged = bytearray(after)
        damaged[position] ^= 0x55
        shapes, size = batch_shapes(good + damaged, next_offset=5, epoch_max=2)
        assert size == len(good), f"byte {position}"
        assert len(shapes) == 1
    data = records.build_batch([records.Record(0, 1, None, b"x", [])], base_offset=6)
    assert batch_shapes(good + bytes(data), next_offset=5, epoch_max=2)[1] == len(good)


# ---- the table of roles


def test_the_table_is_closed() -> None:
    assert set(ALLOWED) == set(SAME_EPOCH) == set(RoleName)
    for role, following in SAME_EPOCH.items():
        assert following <= ALLOWED[role]
    assert all(
        RoleName.LEADER not in ALLOWED[role] for role in RoleName if role.value != "Candidate"
    )
