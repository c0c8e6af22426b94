"""Replicas move under a throttle while nodes die: nothing that was acknowledged is lost, every move
finishes, and replicas in sync are never held back (KIP-73)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.node.replication import Replication
from kwire.protocol import messages as m
from kwire.replica.partition import Partition
from kwire.replica.quota import ReplicationQuota
from tests.sim.client import Retry
from tests.sim.faults import Plan
from tests.sim.history import History
from tests.sim.workload import Actor
from tests.support.effort import seeds

KINDS = ("kill", "isolation", "resets", "slow network", "frozen process")
TOPIC, BROKER = 2, 4
MOVED, INDEX = "plain", 0
PLACES = ([1, 2], [2, 3], [3, 1], [1, 2, 3])
BYTES_A_SECOND = 1_000
"""So little that followers are held back again and again, and more than is written."""
PAUSE_S = 2.0


class Mover(Actor):
    """Moves a partition round, under a throttle; `operations` counts the moves that finished."""

    def __init__(self, *asked: Any, rate: int, moves: bool, is_in_sync: Callable[[], bool]) -> None:
        super().__init__(*asked)
        self._rate = rate
        self._moves = moves
        self._is_in_sync = is_in_sync

    async def run(self) -> None:
        sides = ("leader", "follower")
        rates = {f"{side}.replication.throttled.rate": str(self._rate) for side in sides}
        await self._configure(BROKER, "", rates)
        replicas = {f"{side}.replication.throttled.replicas": "*" for side in sides}
        await self._configure(TOPIC, MOVED, replicas)
        while not self.stop:
            await self.client.pause(PAUSE_S)
            if self._moves:
                await self._move(PLACES[self.operations % len(PLACES)])
            elif not self._is_in_sync():
                self.checkers.fail("nothing is broken, and a replica is not in sync")
            self.operations += 1
        if self._moves:
            await self._move([1, 2, 3])

    async def _configure(self, kind: int, name: str, values: dict[str, str]) -> None:
        shape = m.IncrementalAlterConfigsRequest
        configs = [
            shape.AlterableConfig(name=key, config_operation=0, value=value)
            for key, value in values.items()
        ]
        resource = shape.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=configs
        )
        answer = await self._answer(shape(resources=[resource]), 1)
        assert not answer.responses[0].error_code, answer

    async def _answer(self, request: Any, version: int) -> Any:
        while True:
            try:
                return await self.client.ask(self.client.any_broker(), request, version, 5.0)
            except Retry:
                await self.client.pause()

    async def _move(self, replicas: list[int]) -> None:
        shape = m.AlterPartitionReassignmentsRequest
        wanted = shape.ReassignablePartition(partition_index=INDEX, replicas=replicas)
        topics = [shape.ReassignableTopic(name=MOVED, partitions=[wanted])]
        while True:
            answer = await self._answer(shape(topics=topics, timeout_ms=3000), 0)
            if not answer.error_code and not answer.responses[0].partitions[0].error_code:
                break
            await self.client.pause()
        self.client.note(f"moves {MOVED}-{INDEX} to {replicas}")
        listing = m.ListPartitionReassignmentsRequest(topics=None, timeout_ms=3000)
        while True:
            answer = await self._answer(listing, 0)
            if not answer.error_code and not answer.topics:
                return
            await self.client.pause()


class Moves(History):
    """A history with a mover."""

    def __init__(
        self, seed: int, plan: Plan, *, rate: int = BYTES_A_SECOND, moves: bool = True
    ) -> None:
        super().__init__(seed, plan)
        self._rate = rate
        self._moves = moves

    def _make_actors(self) -> None:
        super()._make_actors()
        host = self.simulation.host("clients")
        self.actors.append(
            Mover(
                host,
                "mover",
                self.checkers,
                rate=self._rate,
                moves=self._moves,
                is_in_sync=self.cluster.is_in_sync,
            )
        )


def told(seed: int, *kinds: str, **options: Any) -> str | None:
    """What a history breaks; None for nothing."""
    return Moves(seed, Plan(kinds=kinds, groups=()), **options).run().violation


@pytest.mark.parametrize("seed", seeds(1))
def test_moves_under_a_throttle_finish_and_lose_nothing(seed: int) -> None:
    assert told(seed, *KINDS) is None


def test_replicas_in_sync_are_not_held_back_by_the_lowest_rate() -> None:
    assert told(1, rate=1, moves=False) is None


# -- faults that have to be found


def in_sync_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader holds back whoever follows."""
    monkeypatch.setattr(
        Replication,
        "holds_back",
        lambda self, partition, replica_id: (
            self._names(partition)[0] and self.leader_quota.is_exceeded(self.now_ms())
        ),
    )


def never_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted is never forgotten."""
    monkeypatch.setattr(
        ReplicationQuota, "is_exceeded", lambda self, now_ms: self._measured.total > self.rate
    )


def held_back_counts_as_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that gets nothing for its quota counts as having everything."""
    original = Partition._follower_read

    def follower_read(self: Partition, request: Any, limits: Any, result: Any, quota: Any) -> None:
        if quota is not None and quota.holds_back(self, limits.replica_id):
            request = _at(request, self.log.log_end_offset)
        original(self, request, limits, result, quota)

    monkeypatch.setattr(Partition, "_follower_read", follower_read)


def _at(request: Any, offset: int) -> Any:
    class Moved:
        fetch_offset = offset
        log_start_offset = request.log_start_offset

    return Moved()


MUTATIONS: list[tuple[Callable[[pytest.MonkeyPatch], None], dict[str, Any]]] = [
    (in_sync_too, {"rate": 1, "moves": False}),
    (never_over, {}),
    (held_back_counts_as_caught_up, {}),
]


@pytest.mark.parametrize(
    ("mutation", "options"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS]
)
def test_a_fault_is_found(
    mutation: Callable[[pytest.MonkeyPatch], None],
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutation(monkeypatch)
    assert any(told(seed, **options) is not None for seed in range(1, 4))
