"""Leader and follower state: high watermark, ISR, truncation, roles."""

from __future__ import annotations

import ast
from dataclasses import fields as fields_of
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.replica.state import (
    AdvanceHighWatermark,
    AlterIsr,
    Assigned,
    BecomeFollower,
    BecomeLeader,
    FollowerFetched,
    FollowerProgress,
    IsrAnswered,
    LeaderAnswered,
    LogEndMoved,
    LogOpened,
    LogRestarted,
    MinIsrChanged,
    Removed,
    ReplicaState,
    StopReplica,
    Tick,
    TruncateTo,
)


def assigned(
    leader: int = 1,
    epoch: int = 0,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    end: int = 0,
) -> Assigned:
    return Assigned(leader, epoch, partition_epoch, replicas, isr or replicas, end)


def fetched(replica: int, offset: int) -> FollowerFetched:
    return FollowerFetched(replica, 1, offset, 0)


def leader(min_isr: int = 1, **fields: object) -> ReplicaState:
    state = ReplicaState(1, lag_time_max_ms=100, min_isr=min_isr)
    state.step(assigned(**fields), 0)  # type: ignore[arg-type]
    return state


def test_alone_the_high_watermark_is_the_log_end() -> None:
    state = ReplicaState(1)
    assert state.step(assigned(replicas=(1,)), 0) == [BecomeLeader(0)]
    assert state.step(LogEndMoved(10), 0) == [AdvanceHighWatermark(10)]
    assert state.step(LogEndMoved(10), 0) == []
    assert state.high_watermark == 10


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.sampled_from((LogEndMoved, LogRestarted, MinIsrChanged, Assigned)), st.integers(0, 9)
        ),
        max_size=12,
    ),
)
def test_a_write_of_the_only_replica_is_the_event_of_one(
    min_isr: int, told: list[tuple[type, int]]
) -> None:
    """The short way of every write, beside the event that it stands for."""
    short, general = leader(min_isr, replicas=(1,)), leader(min_isr, replicas=(1,))
    for at, (kind, number) in enumerate(told):
        if kind is LogEndMoved:
            moved = general.step(LogEndMoved(number), 0)
            assert moved == [AdvanceHighWatermark(number)] * short.end_moved_alone(number)
        else:
            event = (
                kind(number)
                if kind is not Assigned
                else assigned(epoch=at, partition_epoch=at, replicas=(1,), end=number)
            )
            assert short.step(event, 0) == general.step(event, 0)
        assert short == general


def test_a_restarted_leader_alone_has_everything_committed() -> None:
    state = ReplicaState(1)
    effects = state.step(assigned(replicas=(1,), end=7), 0)
    assert effects == [BecomeLeader(0), AdvanceHighWatermark(7)]


def test_the_high_watermark_is_the_smallest_end_in_the_isr() -> None:
    state = leader()
    assert state.step(LogEndMoved(10), 0) == []
    assert state.step(fetched(2, 8), 1) == []
    assert state.step(fetched(3, 5), 1) == [AdvanceHighWatermark(5)]
    assert state.step(fetched(3, 10), 2) == [AdvanceHighWatermark(8)]
    assert state.step(fetched(2, 10), 2) == [AdvanceHighWatermark(10)]


def test_the_high_watermark_never_goes_back() -> None:
    state = leader(isr=(1, 2))
    state.step(LogEndMoved(10), 0)
    assert state.step(fetched(2, 10), 1) == [AdvanceHighWatermark(10)]
    assert state.step(fetched(2, 3), 2) == []
    assert state.high_watermark == 10


def test_a_replica_outside_of_the_isr_does_not_hold_it_back() -> None:
    state = leader(isr=(1, 2))
    state.step(LogEndMoved(10), 0)
    assert state.step(fetched(2, 10), 1) == [AdvanceHighWatermark(10)]


def test_a_follower_that_has_caught_up_is_added_and_holds_the_mark_at_once() -> None:
    state = leader(isr=(1, 2), partition_epoch=4)
    state.step(LogEndMoved(10), 0)
    state.step(fetched(2, 10), 1)
    assert state.step(fetched(3, 9), 1) == []
    assert state.step(fetched(3, 10), 1) == [AlterIsr((1, 2, 3), 0, 4)]
    assert state.step(fetched(3, 10), 1) == [], "one question at a time"
    assert state.maximal_isr == (1, 2, 3)
    state.step(LogEndMoved(12), 2)
    assert state.step(fetched(2, 12), 2) == [], "the one to be added counts already (KIP-497)"
    assert state.step(IsrAnswered(True, (1, 2, 3), 5), 3) == []
    assert state.isr == (1, 2, 3)
    assert state.step(fetched(3, 12), 3) == [AdvanceHighWatermark(12)]


def test_a_refused_isr_changes_nothing() -> None:
    state = leader(isr=(1, 2))
    state.step(LogEndMoved(10), 0)
    state.step(fetched(2, 10), 1)
    state.step(fetched(3, 10), 1)
    state.step(LogEndMoved(12), 1)
    state.step(fetched(2, 12), 1)
    state.is_eligible = lambda replica_id, replica_epoch: replica_id != 3
    assert state.step(IsrAnswered(False), 2) == [AdvanceHighWatermark(12)]
    assert state.isr == (1, 2)


def test_who_may_not_be_in_sync_is_not_added_however_far_it_is() -> None:
    """Fenced, on its way out, or a broker epoch that is not its newest (KIP-903)."""
    state = leader(isr=(1, 2))
    state.is_eligible = lambda replica_id, replica_epoch: False
    assert not [e for e in state.step(fetched(3, 10), 1) if isinstance(e, AlterIsr)]
    assert state.pending_isr is None
    state.is_eligible = lambda replica_id, replica_epoch: replica_epoch == 1
    assert AlterIsr((1, 2, 3), 0, 0) in state.step(fetched(3, 10), 2)


def test_a_follower_about_to_join_holds_the_high_watermark_back() -> None:
    state = leader(isr=(1, 2))
    state.step(LogEndMoved(10), 0)
    state.step(fetched(2, 10), 1)
    state.step(fetched(3, 10), 1)
    state.step(IsrAnswered(False), 2)
    state.step(LogEndMoved(12), 3)
    assert state.step(fetched(2, 12), 3) == [], "else it would never reach the mark (Kafka's rule)"
    assert state.step(fetched(3, 12), 3)[0] == AdvanceHighWatermark(12)


def test_the_high_watermark_stands_still_below_min_insync_replicas() -> None:
    state = leader(isr=(1,), min_isr=2)
    assert state.step(LogEndMoved(10), 0) == []
    assert state.step(MinIsrChanged(1), 0) == [AdvanceHighWatermark(10)]


def test_an_answer_to_an_older_question_changes_nothing() -> None:
    state = leader(isr=(1, 2), partition_epoch=4)
    state.step(fetched(2, 0), 1)
    assert state.step(fetched(3, 0), 1) == [AlterIsr((1, 2, 3), 0, 4)]
    state.step(IsrAnswered(True, (1, 2), 9, asked_at=3), 2)
    assert state.pending_isr == (1, 2, 3)
    state.step(IsrAnswered(True, (1, 2, 3), 5, asked_at=4), 2)
    assert state.isr == (1, 2, 3)


def test_an_earlier_life_of_a_follower_is_not_heard() -> None:
    state = leader(isr=(1, 2))
    state.step(LogEndMoved(10), 0)
    state.step(FollowerFetched(2, 7, 4, 0), 1)
    state.step(FollowerFetched(2, 5, 10, 0), 1)
    assert state.followers[2].log_end_offset == 4


def test_a_follower_below_the_epoch_start_is_not_added() -> None:
    state = leader(isr=(1, 2), epoch=3, end=10)
    assert state.high_watermark == 0
    assert state.step(fetched(3, 9), 1) == []
    assert state.step(fetched(3, 10), 1) == [AlterIsr((1, 2, 3), 3, 0)]


def test_a_follower_that_lags_is_dropped_by_the_controller_only() -> None:
    state = leader()
    state.step(LogEndMoved(10), 0)
    state.step(fetched(2, 10), 50)
    assert state.step(Tick(), 100) == []
    state.step(LogEndMoved(11), 120)
    state.step(fetched(2, 11), 150)
    assert state.step(Tick(), 160) == [AlterIsr((1, 2), 0, 0)]
    assert state.isr == (1, 2, 3)
    assert state.high_watermark == 0
    assert state.step(IsrAnswered(True, (1, 2), 1), 170) == [AdvanceHighWatermark(11)]


def test_a_follower_that_reads_steadily_stays_although_it_is_never_level() -> None:
    state = leader(isr=(1, 2), replicas=(1, 2))
    end = 0
    for turn in range(20):
        end += 10
        state.step(LogEndMoved(end), turn * 50)
        state.step(fetched(2, end - 10), turn * 50)
        assert state.step(Tick(), turn * 50) == []


def test_an_older_partition_epoch_is_ignored() -> None:
    state = leader(partition_epoch=5, epoch=2)
    assert state.step(assigned(leader=2, epoch=2, partition_epoch=4), 0) == []
    assert state.is_leader


def test_roles_follow_the_metadata() -> None:
    state = leader()
    assert state.step(assigned(leader=2, epoch=1, partition_epoch=1), 0) == [BecomeFollower(2, 1)]
    assert state.step(LogEndMoved(5), 0) == []
    assert state.step(assigned(leader=2, epoch=1, partition_epoch=2, isr=(1, 2)), 0) == []
    assert state.step(assigned(leader=-1, epoch=2, partition_epoch=3), 0) == [BecomeFollower(-1, 2)]
    assert state.step(assigned(epoch=3, partition_epoch=4, end=5), 0) == [BecomeLeader(3)]
    assert state.step(assigned(replicas=(2, 3), leader=2, epoch=4, partition_epoch=5), 0) == [
        StopReplica()
    ]


def test_a_follower_truncates_where_the_epochs_diverge_and_never_trusts_a_mark_beyond() -> None:
    state = ReplicaState(1)
    state.step(assigned(leader=2, end=20), 0)
    assert state.step(LeaderAnswered(15, 20), 0) == [AdvanceHighWatermark(15)]
    assert state.step(LeaderAnswered(30, 20, diverging_end_offset=17), 0) == [
        TruncateTo(17),
        AdvanceHighWatermark(17),
    ]
    assert state.step(LeaderAnswered(40, 18), 0) == [AdvanceHighWatermark(18)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(LogEndMoved, st.integers(0, 50)),
            st.builds(fetched, st.sampled_from([2, 3]), st.integers(0, 50)),
            st.just(Tick()),
            st.builds(IsrAnswered, st.booleans(), st.sampled_from([(1,), (1, 2), (1, 2, 3)])),
        ),
        max_size=40,
    )
)
def test_the_mark_is_monotone_and_never_beyond_an_in_sync_replica(events: list[object]) -> None:
    state = leader()
    end, known, mark = 0, {2: -1, 3: -1}, 0
    for now_ms, event in enumerate(events):
        if isinstance(event, LogEndMoved):
            end = max(end, event.log_end_offset)
            event = LogEndMoved(end)
        if isinstance(event, FollowerFetched):
            event = fetched(event.replica_id, min(event.fetch_offset, end))
            known[event.replica_id] = event.fetch_offset
        if isinstance(event, IsrAnswered):
            event = IsrAnswered(event.accepted, event.isr, state.partition_epoch + 1)
        effects = state.step(event, now_ms * 40)  # type: ignore[arg-type]
        for effect in effects:
            if isinstance(effect, AdvanceHighWatermark):
                assert effect.offset > mark
                mark = effect.offset
                assert mark <= end
                for replica in state.maximal_isr:
                    assert replica == 1 or mark <= known[replica]
        assert state.high_watermark == mark


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_events_of_the_other_role_do_nothing(role: str) -> None:
    state = leader(leader=1 if role == "leader" else 2)
    if role == "leader":
        assert state.step(LeaderAnswered(5, 5), 0) == []
    else:
        assert state.step(fetched(3, 5), 0) == []
        assert state.step(Tick(), 10_000) == []
        assert state.step(IsrAnswered(True, (1,), 9), 0) == []


def test_an_opened_log_tells_what_is_committed_in_it() -> None:
    state = ReplicaState(1)
    assert state.step(LogOpened(7, 2), 0) == []
    assert (state.high_watermark, state.min_isr) == (7, 2)


def test_a_log_that_begins_anew_takes_the_high_watermark_with_it() -> None:
    state = leader(leader=2)
    state.step(LeaderAnswered(50, 60), 0)
    assert state.step(LogRestarted(20), 0) == []
    assert (state.high_watermark, state.log_end_offset) == (20, 20)
    assert state.step(LeaderAnswered(30, 25), 0) == [AdvanceHighWatermark(25)]


def test_a_removed_replica_leads_no_more() -> None:
    state = leader()
    assert state.step(Removed(), 0) == []
    assert not state.is_leader
    assert state.step(LogEndMoved(5), 0) == []


def test_nobody_else_assigns_to_a_replicas_state() -> None:
    """Only `step` does: what happens comes in as an event."""
    root = Path(__file__).resolve().parents[3] / "kwire"
    names = {field.name for cls in (ReplicaState, FollowerProgress) for field in fields_of(cls)}
    wrong = []
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name == "replica/state.py" or name.startswith("kraft/"):
            continue  # raft and the controller have states of their own
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and node.attr in names
                and ast.unparse(node.value).rpartition(".")[2] in ("state", "progress")
            ):
                wrong.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)
