"""Observer: a follower that does not vote. It never times out into an election.

A controller that may vote joins the voters by itself where `controller.quorum.auto.join.enable`
says so (KIP-853): it asks the leader to add it, after removing what its node id had before under
another directory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.kraft.raft.roles.follower import Follower
    from kwire.kraft.raft.state import RaftState


def poll(follower: Follower, raft: RaftState, now_ms: int) -> int:
    """What is due for a follower that is no voter."""
    if now_ms >= follower.update_voter_at_ms:
        if raft.changes.should_join(raft):
            if raft.changes.send_join(raft, follower, now_ms):
                follower.update_voter_at_ms = now_ms + raft.update_voter_period_ms
                return follower.update_voter_at_ms
        else:
            follower.update_voter_at_ms = now_ms + raft.update_voter_period_ms
    deadline_ms = raft.fetch_from_leader(follower, now_ms)
    if follower.update_voter_at_ms <= now_ms:
        # Its turn comes when the Fetch that is out has been answered.
        return deadline_ms
    return min(follower.update_voter_at_ms, deadline_ms)
