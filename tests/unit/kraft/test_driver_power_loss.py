"""Drivers whose machines lose power: what was answered is never lost, no epoch has two leaders.

Each node has a simulated disk that keeps what was synced and a seeded part of the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from kwire.clock import SeededRandom
from kwire.kraft.metadata_log import MetadataLog
from kwire.kraft.raft.election import ElectionState, QuorumStateError
from kwire.log.files import write_atomically
from kwire.pending import Pending
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.driver_cluster import IDS, Cluster

SEEDS = range(int(os.environ.get("KWIRE_POWER_SEEDS", "12")))
ROUNDS = 60


class Machines:
    """Three nodes, their disks, and what clients were told."""

    def __init__(self, seed: int) -> None:
        self.random = SeededRandom(seed)
        self.disks = {n: SimulatedDisk(SeededRandom(seed * 10 + n)) for n in (*IDS, 4)}
        self.cluster = Cluster("/data", seed, self.disks)
        for disk in self.disks.values():
            disk.sync_directory("/data")
        self.answered: list[str] = []
        self.asked = 0
        self.leaders: dict[int, int] = {}
        self.start(*IDS)

    def start(self, *node_ids: int) -> None:
        self.cluster.start(*node_ids)
        for node_id in node_ids:
            driver = self.cluster.nodes[node_id].driver
            driver.on_leader_change(
                lambda leader, epoch, n=node_id: self.led(n, leader, epoch)  # type: ignore[misc]
            )

    def led(self, node_id: int, leader_id: int | None, epoch: int) -> None:
        if leader_id is not None:
            known = self.leaders.setdefault(epoch, leader_id)
            assert known == leader_id, f"epoch {epoch} has the leaders {known} and {leader_id}"

    def write(self) -> None:
        node = self.cluster.active()
        if node is None:
            return
        self.asked += 1
        name = f"r{self.asked}"

        def done(reply: Pending[None]) -> None:
            if reply.error() is None:
                self.answered.append(name)

        node.write(name).add_done_callback(done)

    def power_loss(self, node_id: int) -> None:
        self.cluster.kill(node_id)
        self.disks[node_id].crash()

    def round(self) -> None:
        for _ in range(self.random.below(5)):
            self.write()
        self.cluster.loop.run_for(self.random.below(120))
        draw = self.random.below(10)
        running = list(self.cluster.nodes)
        down = [node_id for node_id in IDS if node_id not in self.cluster.nodes]
        if draw < 2 and running:
            self.power_loss(running[self.random.below(len(running))])
        elif draw < 6 and down:
            self.start(down[0])
        elif draw == 6 and running:
            self.cluster.nodes[running[0]].driver.snapshotter.take()
        elif draw == 7:
            one, other = IDS[self.random.below(3)], IDS[self.random.below(3)]
            self.cluster.cut = {(one, other)} if one != other else set()


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_answered_is_lost(seed: int) -> None:
    machines = Machines(seed)
    for _ in range(ROUNDS):
        machines.round()
    cluster = machines.cluster
    cluster.cut = set()
    machines.start(*(node_id for node_id in IDS if node_id not in cluster.nodes))
    cluster.wait_active()
    cluster.wait_same()
    for node in cluster.nodes.values():
        assert not node.errors
        missing = [name for name in machines.answered if not node.image.config(2, name)]
        assert not missing, f"node {node.id} lacks {missing}"
        assert node.image == node.controller.image


def test_something_is_answered_and_lost() -> None:
    runs = [Machines(seed) for seed in range(3)]
    for machines in runs:
        for _ in range(ROUNDS):
            machines.round()
    assert sum(len(machines.answered) for machines in runs) > 30
    assert any(machines.asked > len(machines.answered) for machines in runs)


def _no_flush_before_counting(patch: pytest.MonkeyPatch) -> None:
    """The flush is reported as done before it has happened."""
    patch.setattr(MetadataLog, "flush", lambda self: Pending.completed(None))


def _vote_without_sync(patch: pytest.MonkeyPatch) -> None:
    """quorum-state is written, but not synced."""

    def write_election(
        self: MetadataLog, election: ElectionState, kraft_version: int
    ) -> Pending[None]:
        path = f"{self.directory}/quorum-state"
        content = election.encode(kraft_version)
        write_atomically(self._files, path, content, sync=False)
        return Pending.completed(None)

    patch.setattr(MetadataLog, "write_election", write_election)


@pytest.mark.parametrize("mutation", [_no_flush_before_counting, _vote_without_sync])
def test_a_driver_that_does_not_sync_is_caught(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)

    def search() -> None:
        for seed in range(200):
            test_nothing_answered_is_lost(seed)

    with pytest.raises((AssertionError, QuorumStateError)):
        search()
