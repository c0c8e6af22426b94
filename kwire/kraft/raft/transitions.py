"""The roles of a replica and which may follow which, as a table.

    from \\ to    unattached follower prospective candidate leader resigned
    unattached       x         x         x          .        .       .
    follower         x         x         x          .        .       .
    prospective      x         x         .          x        .       .
    candidate        x         x         x          .        x       .
    leader           x         x         .          .        .       x
    resigned         x         x         x          .        .       .

A leader leaves only for a higher epoch or to resign; a candidate of a quorum of one leads at
once. "Voted" is unattached with a vote, as in Kafka. An observer is a replica that is no voter: it
is only ever unattached or follower (or what it was when it was removed from the voters).
"""

from __future__ import annotations

from enum import Enum


class RoleName(Enum):
    """Kafka's names of the states."""

    UNATTACHED = "Unattached"
    FOLLOWER = "Follower"
    PROSPECTIVE = "Prospective"
    CANDIDATE = "Candidate"
    LEADER = "Leader"
    RESIGNED = "Resigned"


_U, _F, _P, _C, _L, _R = RoleName

ALLOWED: dict[RoleName, frozenset[RoleName]] = {
    _U: frozenset((_U, _F, _P)),
    _F: frozenset((_U, _F, _P)),
    _P: frozenset((_U, _F, _C)),
    _C: frozenset((_U, _F, _P, _L)),
    _L: frozenset((_U, _F, _R)),
    _R: frozenset((_U, _F, _P)),
}

SAME_EPOCH: dict[RoleName, frozenset[RoleName]] = {
    _U: frozenset((_F, _P)),
    _F: frozenset((_F, _P)),
    _P: frozenset((_U, _F)),
    _C: frozenset((_F, _P, _L)),
    _L: frozenset((_R,)),
    _R: frozenset((_F, _P)),
}
"""Those that are allowed without a new epoch."""
