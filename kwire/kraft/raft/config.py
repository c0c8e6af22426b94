"""What a replica of the quorum is told about itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kwire.kraft.raft.types import Endpoints, ReplicaKey
from kwire.kraft.raft.voters import VoterNode, VoterSet

KRAFT_VERSION_MIN = 0
KRAFT_VERSION_MAX = 1
"""The range of kraft.version that this node supports."""


@dataclass(frozen=True)
class RaftConfig:
    """One replica's place in the quorum and its times (Kafka's `controller.quorum.*`).

    `endpoints` are this node's own controller listeners, `listener_name` the one that requests to
    others use; `bootstrap_servers` host and port of nodes to ask for the leader. `can_be_voter` is
    true for a node with the controller role.
    """

    node_id: int
    directory_id: bytes
    cluster_id: str
    listener_name: str = "CONTROLLER"
    endpoints: Endpoints = ()
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    static_voters: VoterSet | None = None
    can_be_voter: bool = True
    auto_join: bool = False
    election_timeout_ms: int = 1000
    election_backoff_max_ms: int = 1000
    fetch_timeout_ms: int = 2000
    fetch_wait_max_ms: int = 500
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_bytes_max: int = 1_048_576
    fetch_snapshot_bytes_max: int = 1_048_576

    @cached_property
    def key(self) -> ReplicaKey:
        return ReplicaKey.of(self.node_id, self.directory_id)

    @property
    def stagger_ms(self) -> int:
        """How much later than the one before it each follower of a dead leader stands: longer
        than an election takes, votes made durable included."""
        return max(1, self.election_timeout_ms // 10)

    @property
    def voter_node(self) -> VoterNode:
        return VoterNode(self.key, self.endpoints, KRAFT_VERSION_MIN, KRAFT_VERSION_MAX)
