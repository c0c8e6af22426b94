"""The arithmetic of a quorum: majorities, tallies, the high watermark. Sets and offsets only."""

from __future__ import annotations

from collections.abc import Iterable

UNKNOWN_OFFSET = -1


def majority(voter_count: int) -> int:
    """How many of `voter_count` voters are a majority."""
    return voter_count // 2 + 1


def majority_offset(end_offsets: Iterable[int]) -> int:
    """The largest offset that a majority of the voters has reached.

    One end offset per voter, `UNKNOWN_OFFSET` for a voter that has not told its own yet.
    """
    descending = sorted(end_offsets, reverse=True)
    return descending[len(descending) // 2] if descending else UNKNOWN_OFFSET


def fetches_for_check_quorum(voter_count: int, leader_is_voter: bool) -> int:
    """How many other voters must fetch so that a leader knows that it still has a majority.

    A leader that is itself a voter counts for one.
    """
    return majority(voter_count) - (1 if leader_is_voter else 0)


class Tally:
    """The votes of one election, by voter id."""

    __slots__ = ("_votes",)

    def __init__(self, voter_ids: Iterable[int]) -> None:
        self._votes: dict[int, bool | None] = dict.fromkeys(sorted(voter_ids))

    def record(self, voter_id: int, granted: bool) -> None:
        """Note a vote; the vote of somebody who is no voter does not count.

        The newest answer wins: a voter that rejected may grant when asked again.
        """
        if voter_id in self._votes:
            self._votes[voter_id] = granted

    def unrecorded(self) -> list[int]:
        return [voter for voter, vote in self._votes.items() if vote is None]

    def granting(self) -> list[int]:
        return [voter for voter, vote in self._votes.items() if vote]

    def rejecting(self) -> list[int]:
        return [voter for voter, vote in self._votes.items() if vote is False]

    @property
    def won(self) -> bool:
        return len(self.granting()) >= majority(len(self._votes))

    @property
    def lost(self) -> bool:
        """No majority is possible any more."""
        return len(self._votes) - len(self.rejecting()) < majority(len(self._votes))
