"""The states of a classic group and the moves between them.

Empty               no members; offsets may remain
PreparingRebalance  members are being collected by JoinGroup
CompletingRebalance the generation is fixed, its assignment is awaited by SyncGroup
Stable              everybody can fetch their assignment
Dead                deleted

from \\ to            Empty  Preparing  Completing  Stable  Dead
Empty                  -       yes        -          -      yes
PreparingRebalance    yes       -        yes         -      yes
CompletingRebalance    -       yes        -         yes     yes
Stable                 -       yes        -          -      yes
Dead                   -        -         -          -      yes
"""

from __future__ import annotations

from enum import Enum


class ClassicState(Enum):
    """Values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_S = ClassicState

TRANSITIONS: dict[ClassicState, frozenset[ClassicState]] = {
    _S.EMPTY: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.PREPARING_REBALANCE: frozenset({_S.EMPTY, _S.COMPLETING_REBALANCE, _S.DEAD}),
    _S.COMPLETING_REBALANCE: frozenset({_S.PREPARING_REBALANCE, _S.STABLE, _S.DEAD}),
    _S.STABLE: frozenset({_S.PREPARING_REBALANCE, _S.DEAD}),
    _S.DEAD: frozenset({_S.DEAD}),
}


def may_move(origin: ClassicState, target: ClassicState) -> bool:
    """Whether a group may go from `origin` to `target`."""
    return target in TRANSITIONS[origin]


# Who may send what in which state, beyond being a member of the right generation: the error code
# names that a valid member gets, "ok" when it is served.
HEARTBEAT_BY_STATE: dict[ClassicState, str] = {
    _S.EMPTY: "UNKNOWN_MEMBER_ID",
    _S.PREPARING_REBALANCE: "REBALANCE_IN_PROGRESS",
    _S.COMPLETING_REBALANCE: "ok",
    _S.STABLE: "ok",
    _S.DEAD: "COORDINATOR_NOT_AVAILABLE",
}
