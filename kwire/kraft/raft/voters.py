"""Who votes: the voter set, and its history in the log (KIP-853).

With kraft.version 0 the voters are those of `controller.quorum.voters`, without directory ids.
With kraft.version 1 they come from the VotersRecords of the snapshot and the log. A voter set
counts from the moment it is appended, not only once it is committed; when the log is truncated,
the set before it counts again. That is why the history keeps an offset with every set: that of
its record, or the end of the snapshot minus one (-1 for the formatted checkpoint).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kwire.kraft.raft.types import Endpoint, Endpoints, ReplicaKey, check
from kwire.protocol import messages as m


class VoterNode(NamedTuple):
    """A voter: key, controller listeners, supported range of kraft.version."""

    key: ReplicaKey
    endpoints: Endpoints
    kraft_version_min: int = 0
    kraft_version_max: int = 0

    def supports(self, kraft_version: int) -> bool:
        return self.kraft_version_min <= kraft_version <= self.kraft_version_max


class VoterSet:
    """An immutable set of voters, one per node id, in the order of their ids."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Iterable[VoterNode]) -> None:
        ordered = sorted(nodes, key=lambda node: node.key.id)
        self._nodes: dict[int, VoterNode] = {node.key.id: node for node in ordered}
        check(len(self._nodes) == len(ordered), f"a node id is twice among the voters {ordered}")

    def __len__(self) -> int:
        return len(self._nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._nodes == other._nodes

    def __hash__(self) -> int:
        return hash(tuple(self._nodes.values()))

    def __repr__(self) -> str:
        return f"VoterSet({[node.key.id for node in self._nodes.values()]})"

    @property
    def ids(self) -> list[int]:
        return list(self._nodes)

    @property
    def nodes(self) -> list[VoterNode]:
        return list(self._nodes.values())

    @property
    def keys(self) -> list[ReplicaKey]:
        return [node.key for node in self._nodes.values()]

    def get(self, voter_id: int) -> VoterNode | None:
        return self._nodes.get(voter_id)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether this very replica votes; a voter without a known directory matches by id."""
        node = self._nodes.get(key.id)
        return node is not None and node.key.directory_id in (None, key.directory_id)

    def is_only_voter(self, key: ReplicaKey) -> bool:
        return len(self._nodes) == 1 and self.is_voter(key)

    def endpoints(self, voter_id: int) -> Endpoints:
        node = self._nodes.get(voter_id)
        return node.endpoints if node is not None else ()

    def supports(self, kraft_version: int) -> bool:
        return all(node.supports(kraft_version) for node in self._nodes.values())

    def with_added(self, node: VoterNode) -> VoterSet | None:
        """With one voter more; None if its id is there already."""
        return None if node.key.id in self._nodes else VoterSet([*self._nodes.values(), node])

    def with_removed(self, key: ReplicaKey) -> VoterSet | None:
        """Without a voter; None if it is not there with that directory, or the last one."""
        node = self._nodes.get(key.id)
        if node is None or node.key != key or len(self._nodes) == 1:
            return None
        return VoterSet(other for other in self._nodes.values() if other.key.id != key.id)

    def with_updated(self, node: VoterNode) -> VoterSet | None:
        """With a voter's listeners and versions replaced; None if it is no voter."""
        if not self.is_voter(node.key):
            return None
        return self.with_replaced(node)

    def with_replaced(self, node: VoterNode) -> VoterSet | None:
        """Like `with_updated`, whatever directory the voter had; None if the id is unknown."""
        if node.key.id not in self._nodes:
            return None
        return VoterSet([*(n for n in self._nodes.values() if n.key.id != node.key.id), node])

    def needs_update(self, node: VoterNode) -> bool:
        """Whether a voter's entry differs from what the voter says of itself."""
        return self.is_voter(node.key) and self._nodes[node.key.id] != node

    def has_overlapping_majority(self, other: VoterSet) -> bool:
        """At most one voter added or removed, so that any two majorities share a voter."""
        mine, theirs = set(self.keys), set(other.keys)
        return len(mine - theirs) <= 1 and len(theirs - mine) <= 1

    def to_record(self) -> m.VotersRecord:
        """VotersRecord, version 0."""
        record = m.VotersRecord
        return record(
            version=0,
            voters=[
                record.Voter(
                    voter_id=node.key.id,
                    voter_directory_id=node.key.directory_or_zero,
                    endpoints=[
                        record.Endpoint(name=name, host=host, port=port)
                        for name, host, port in node.endpoints
                    ],
                    kraft_version_feature=record.KRaftVersionFeature(
                        min_supported_version=node.kraft_version_min,
                        max_supported_version=node.kraft_version_max,
                    ),
                )
                for node in self._nodes.values()
            ],
        )

    @classmethod
    def from_record(cls, record: m.VotersRecord) -> VoterSet:
        return cls(
            VoterNode(
                ReplicaKey.of(voter.voter_id, voter.voter_directory_id),
                tuple(Endpoint(e.name, e.host, e.port) for e in voter.endpoints),
                voter.kraft_version_feature.min_supported_version,
                voter.kraft_version_feature.max_supported_version,
            )
            for voter in record.voters
        )


EMPTY_VOTER_SET = VoterSet([])


class VoterHistory:
    """The voter sets and levels of kraft.version that the log holds, by offset."""

    __slots__ = ("_levels", "_sets", "static_voters")

    def __init__(self, static_voters: VoterSet | None = None) -> None:
        self.static_voters = static_voters
        self._sets: list[tuple[int, VoterSet]] = []
        self._levels: list[tuple[int, int]] = []

    def add_voters(self, offset: int, voters: VoterSet) -> None:
        check(not self._sets or offset > self._sets[-1][0], f"voters at {offset} come too late")
        if self._sets and offset >= 0:
            check(
                self._sets[-1][1].has_overlapping_majority(voters),
                f"voters {voters} at {offset} share no majority with {self._sets[-1][1]}",
            )
        self._sets.append((offset, voters))

    def add_level(self, offset: int, level: int) -> None:
        self._levels.append((offset, level))

    def truncate_to(self, end_offset: int) -> None:
        """Forget what was appended at `end_offset` and after it."""
        self._sets = [entry for entry in self._sets if entry[0] < end_offset]
        self._levels = [entry for entry in self._levels if entry[0] < end_offset]

    def truncate_before(self, start_offset: int) -> None:
        """Forget what only the deleted beginning of the log needed: the last one before stays."""
        for entries in (self._sets, self._levels):
            while len(entries) > 1 and entries[1][0] < start_offset:
                del entries[0]

    def clear(self) -> None:
        self._sets.clear()
        self._levels.clear()

    @property
    def voters(self) -> VoterSet:
        """The newest set: with kraft.version 0 the configured one."""
        if self._sets:
            return self._sets[-1][1]
        return self.static_voters or EMPTY_VOTER_SET

    @property
    def voters_offset(self) -> int | None:
        """Where the newest set stands; None if it is not in the log."""
        return self._sets[-1][0] if self._sets else None

    @property
    def voters_before(self) -> VoterSet:
        """The set before the newest one."""
        return self._sets[-2][1] if len(self._sets) > 1 else EMPTY_VOTER_SET

    @property
    def level(self) -> int:
        """The newest kraft.version."""
        return self._levels[-1][1] if self._levels else 0

    def voters_at(self, offset: int) -> VoterSet | None:
        """The set in the log as of the records up to and including `offset`, None if none."""
        found = None
        for at, voters in self._sets:
            if at <= offset:
                found = voters
        return found

    def level_at(self, offset: int) -> int:
        found = 0
        for at, level in self._levels:
            if at <= offset:
                found = level
        return found
