"""The table of states: every pair, and that a group moves along it only."""

from __future__ import annotations

import itertools

import pytest

from kwire.coordinator.group.classic.group import ClassicGroup
from kwire.coordinator.group.classic.states import (
    HEARTBEAT_BY_STATE,
    TRANSITIONS,
    ClassicState,
    may_move,
)

S = ClassicState
LEGAL = {
    (S.EMPTY, S.PREPARING_REBALANCE),
    (S.PREPARING_REBALANCE, S.EMPTY),
    (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.PREPARING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.STABLE),
    (S.STABLE, S.PREPARING_REBALANCE),
    *((state, S.DEAD) for state in S),
}


@pytest.mark.parametrize(("origin", "target"), list(itertools.product(S, S)))
def test_every_pair(origin: ClassicState, target: ClassicState) -> None:
    legal = (origin, target) in LEGAL
    assert may_move(origin, target) is legal
    group = ClassicGroup("g")
    group.state = origin
    if legal:
        group.move_to(target, 7)
        assert (group.previous_state, group.state, group.state_timestamp_ms) == (origin, target, 7)
    else:
        with pytest.raises(AssertionError, match="is no move"):
            group.move_to(target, 7)
        assert group.state is origin


def test_the_tables_cover_all_states() -> None:
    assert set(TRANSITIONS) == set(HEARTBEAT_BY_STATE) == set(S)
