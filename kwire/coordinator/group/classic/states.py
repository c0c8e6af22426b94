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

from kwire.protocol.errors import ErrorCode


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


# What a Heartbeat of a member of the right generation is answered with.
HEARTBEAT_BY_STATE: dict[ClassicState, ErrorCode] = {
    _S.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    _S.PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    _S.COMPLETING_REBALANCE: ErrorCode.NONE,
    _S.STABLE: ErrorCode.NONE,
    _S.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
# With these answers it has counted: the member's session goes on.
HEARTBEAT_ACCEPTED = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
