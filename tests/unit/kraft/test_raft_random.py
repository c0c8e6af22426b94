"""Raft under faults from a seed: loss, duplication, reordering, partitions, crashes, slow disks.

Checked after every step: at most one leader an epoch; no two nodes apply different records; high
watermarks and epochs never fall; nobody votes twice in an epoch. At the end the faults stop, and
every node must have every committed record within bounded time.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.raft import RaftState
from kwire.kraft.raft import effects as fx
from kwire.kraft.raft import messages as msg
from kwire.kraft.raft.handlers import append, fetch
from kwire.kraft.raft.log_state import LogState, Position, Validated
from kwire.kraft.raft.roles import leader as leader_role
from kwire.kraft.raft.types import OffsetAndEpoch
from kwire.protocol import messages as m
from tests.support.raft_cluster import (
    CLUSTER_ID,
    RaftCluster,
    RaftNode,
    directory_of,
    endpoint_of,
)

SEEDS = range(int(os.environ.get("KWIRE_RAFT_SEEDS", "40")))
STEPS = 3500
SETTLE_MS = 30_000


class Checker:
    """What must hold, over the whole history."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.committed: list[tuple[int, int, bytes]] = []
        self.votes: dict[tuple[int, int], Any] = {}
        self.epochs: dict[int, int] = {}
        self.high_watermarks: dict[int, int] = {}

    def effect(self, node: RaftNode, effect: fx.Effect) -> None:
        if isinstance(effect, fx.PersistElection):
            self._election(node, effect)
        elif isinstance(effect, fx.AppendControl | fx.AppendBatch):
            leader = self.leaders.setdefault(effect.epoch, node.id)
            assert leader == node.id, f"epoch {effect.epoch} has the leaders {leader}, {node.id}"
        elif isinstance(effect, fx.Reply) and isinstance(effect.response, m.VoteResponse):
            self._vote(node, effect)
        elif isinstance(effect, fx.Commit):
            before = self.high_watermarks.get(node.id, 0)
            assert effect.offset >= before, f"{node.id}: high watermark falls from {before}"
            self.high_watermarks[node.id] = effect.offset

    def _election(self, node: RaftNode, effect: fx.PersistElection) -> None:
        election = effect.election
        assert election.epoch >= self.epochs.get(node.id, 0), f"{node.id}: the epoch falls"
        self.epochs[node.id] = election.epoch
        if election.voted is not None:
            vote = self.votes.setdefault((node.id, election.epoch), election.voted.id)
            assert vote == election.voted.id, f"{node.id}: a second vote in epoch {election.epoch}"

    def _vote(self, node: RaftNode, effect: fx.Reply) -> None:
        assert node.raft is not None
        voted, source = node.raft.role.voted, effect.reply_to[0]
        partition = effect.response.topics[0].partitions[0]
        if partition.vote_granted and voted is not None and voted.id == source:
            vote = self.votes.setdefault((node.id, partition.leader_epoch), source)
            assert vote == source, f"{node.id}: a second vote in epoch {partition.leader_epoch}"

    def restarted(self, node: RaftNode) -> None:
        self.high_watermarks[node.id] = 0

    def states(self, nodes: list[RaftNode]) -> None:
        for node in nodes:
            common = min(len(node.state), len(self.committed))
            assert node.state[:common] == self.committed[:common], f"{node.id} has forked"
            self.committed.extend(node.state[common:])


class Chaos:
    """One seeded run."""

    def __init__(self, seed: int, static: bool, reconfigure: bool) -> None:
        self.random = SeededRandom(seed)
        self.cluster = RaftCluster(seed)
        self.checker = Checker()
        self.cluster.listeners.append(self.checker.effect)
        self.reconfigure = reconfigure
        size = (1, 2, 3, 3, 3, 5)[self.random.below(6)]
        voters = list(range(1, size + 1))
        for node_id in voters:
            self.cluster.add(node_id, voters=voters, static=static, flush_at_once=False)
        if reconfigure:
            for node_id in (size + 1, size + 2):
                self.cluster.add(node_id, bootstrap=voters, formatted=False, flush_at_once=False)
        self.cluster.start()
        self.appended = 0

    def chance(self, percent: int) -> bool:
        return self.random.below(100) < percent

    def any_of(self, items: list[Any]) -> Any:
        return items[self.random.below(len(items))] if items else None

    def step(self) -> None:
        cluster = self.cluster
        draw = self.random.below(1000)
        if draw < 560:
            if cluster.network:
                self._network()
        elif draw < 720:
            node = self.any_of([node for node in cluster.running() if node.flushes])
            if node is not None:
                node.flush(cluster.now_ms)
        elif draw < 880:
            cluster.now_ms += self.random.below(100)
            cluster.fire()
        elif draw < 950:
            self._append()
        elif draw < 964:
            self._crash_or_restart()
        elif draw < 973:
            self._partition()
        elif draw < 982:
            self._snapshot()
        elif self.reconfigure:
            self._change_voters()
        cluster.collect()
        self.checker.states(list(cluster.nodes.values()))

    def _network(self) -> None:
        network = self.cluster.network
        flight = network[self.random.below(min(len(network), 6))]
        if self.chance(6):
            network.remove(flight)
            return
        if self.chance(5):
            network.append(flight)
        self.cluster.deliver(flight)

    def _append(self) -> None:
        for node in self.cluster.leaders():
            if node.raft is not None and node.leads_since == node.raft.epoch:
                self.appended += 1
                node.append(b"%d" % self.appended, self.cluster.now_ms)

    def _crash_or_restart(self) -> None:
        node = self.any_of(list(self.cluster.nodes.values()))
        if node.raft is None:
            self.checker.restarted(node)
            self.cluster.start(node.id)
        elif self.chance(60):
            self.cluster.crash(node.id)

    def _partition(self) -> None:
        if self.cluster.cut and self.chance(60):
            self.cluster.cut.clear()
            return
        one, other = (self.any_of(list(self.cluster.nodes)) for _ in range(2))
        if one != other:
            self.cluster.cut.add((one, other))
            if self.chance(60):
                self.cluster.cut.add((other, one))

    def _snapshot(self) -> None:
        node = self.any_of(self.cluster.running())
        if node is None:
            return
        node.take_snapshot(self.cluster.now_ms)
        latest = node.raft.log.latest_snapshot
        if latest is not None and latest.offset > 0 and self.chance(70):
            node.step(msg.DeletePrefix(latest), self.cluster.now_ms)

    def _change_voters(self) -> None:
        leader = self.any_of(self.cluster.leaders())
        if leader is None:
            return
        node_id = self.any_of(list(self.cluster.nodes))
        if self.chance(50):
            request: Any = m.RemoveRaftVoterRequest(
                cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=directory_of(node_id)
            )
        else:
            endpoint = endpoint_of(node_id)
            request = m.AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout_ms=3000,
                voter_id=node_id,
                voter_directory_id=directory_of(node_id),
                listeners=[
                    m.AddRaftVoterRequest.Listener(
                        name=endpoint.name, host=endpoint.host, port=endpoint.port
                    )
                ],
            )
        self.cluster.ask(leader.id, request)

    def recover(self) -> None:
        """No more faults: everybody gets everything."""
        cluster = self.cluster
        cluster.cut.clear()
        for node in cluster.nodes.values():
            node.flush_at_once = True
            if node.raft is None:
                self.checker.restarted(node)
                cluster.start(node.id)
            while node.flushes:
                node.flush(cluster.now_ms)
        cluster.collect()

        def is_whole() -> bool:
            self.checker.states(list(cluster.nodes.values()))
            leaders = cluster.leaders()
            if not leaders:
                return False
            leader = cluster.leader()
            assert leader.raft is not None
            if leader.leads_since != leader.raft.epoch:
                return False
            end = leader.raft.log.end_offset
            return leader.applied == end and all(node.applied == end for node in cluster.running())

        cluster.run_until(is_whole, SETTLE_MS)


def run(seed: int, static: bool, reconfigure: bool) -> Chaos:
    chaos = Chaos(seed, static, reconfigure)
    for _ in range(STEPS):
        chaos.step()
    chaos.recover()
    return chaos


@pytest.mark.parametrize("seed", SEEDS)
def test_fixed_voters(seed: int) -> None:
    run(seed, static=seed % 2 == 0, reconfigure=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_changing_voters(seed: int) -> None:
    run(seed, static=False, reconfigure=True)


def test_the_same_seed_gives_the_same_history() -> None:
    first, second = run(3, False, True), run(3, False, True)
    assert first.checker.committed == second.checker.committed
    assert first.cluster.now_ms == second.cluster.now_ms


def test_something_happens() -> None:
    """The runs commit records, lose leaders and load snapshots; else they prove nothing."""
    runs = [run(seed, False, True) for seed in range(8)]
    assert sum(len(chaos.checker.committed) for chaos in runs) > 300
    assert sum(len(chaos.checker.leaders) for chaos in runs) > 25


def _count_unflushed(patch: pytest.MonkeyPatch) -> None:
    """The leader counts its own records before they are on disk."""
    original = append.appended

    def appended(raft: RaftState) -> None:
        original(raft)
        leader = raft.leader()
        if leader is not None and leader.local_flushed(raft.log.end_offset):
            append.leader_committed(raft, leader)

    patch.setattr(append, "appended", appended)


def _acknowledge_unflushed(patch: pytest.MonkeyPatch) -> None:
    """A follower fetches on before its log is on disk."""
    original = fetch.send_to_leader

    def send(raft: RaftState, follower: Any, now_ms: int) -> int:
        flushed = raft.log.flushed_offset
        raft.log.flushed_offset = raft.log.end_offset
        result = original(raft, follower, now_ms)
        raft.log.flushed_offset = flushed
        append.request_flush(raft)
        return result

    patch.setattr(fetch, "send_to_leader", send)


def _vote_for_anybody(patch: pytest.MonkeyPatch) -> None:
    """A voter does not look at the candidate's log."""
    patch.setattr(OffsetAndEpoch, "is_up_to_date", lambda self, other: True)


def _forget_votes(patch: pytest.MonkeyPatch) -> None:
    """A vote is not written down."""

    def add_vote(self: RaftState, role: Any, candidate: Any) -> None:
        role._voted = candidate

    patch.setattr(RaftState, "add_vote", add_vote)


def _no_truncation(patch: pytest.MonkeyPatch) -> None:
    """The leader takes every position for valid."""
    patch.setattr(
        LogState,
        "validate",
        lambda self, offset, epoch: Validated(Position.VALID, OffsetAndEpoch(offset, epoch)),
    )


def _minority_commits(patch: pytest.MonkeyPatch) -> None:
    """One replica too few is taken for a majority."""
    patch.setattr(leader_role, "majority_offset", lambda ends: max(ends))


@pytest.mark.parametrize(
    ("mutation", "seed"),
    [
        (_count_unflushed, 2),
        (_acknowledge_unflushed, 131),
        (_vote_for_anybody, 5),
        (_forget_votes, 158),
        (_no_truncation, 7),
        (_minority_commits, 0),
    ],
)
def test_a_broken_raft_is_caught(mutation: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is found by its pinned seed, or, after a change of raft, by another one."""
    mutation(monkeypatch)

    def search() -> None:
        for tried in (seed, *range(400)):
            run(tried, static=tried % 2 == 0, reconfigure=False)

    with pytest.raises(AssertionError):
        search()
