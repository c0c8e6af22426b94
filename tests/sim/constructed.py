"""Rows of events that chance hardly ever makes, each step brought about and waited for.

They are written against the protocols (who has which records, who has voted) and not against the
code's timing: links are cut when the state that a step needs is there, with messages slow enough
(`LATENCY_S`) for a cut to come before what follows. A step whose state does not come within its
limit ends the row, and everything is healed; the next one begins anew.

Only plans that name them have them (`mutations.AIMED`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kwire.kraft.raft.transitions import RoleName
from tests.sim.cluster import BROKER_PORT, CONTROLLER_PORT, IDS
from tests.sim.workload import Actor

if TYPE_CHECKING:
    from tests.sim.faults import Faults

LOOK_S = 0.002
LATENCY_S = (0.02, 0.03)
STEP_LIMIT_S = 10.0
SLOW_DISK_S = 0.5
ROWS = "rows brought about"
WRITTEN_TOPIC = "plain"  # two idempotent producers write to it all the time
ONE_BATCH_A_FETCH = {"controller.quorum.fetch.max.bytes": "1"}
"""A replica of the metadata gets one batch with each fetch, so a link can be cut between two."""


class NotThere(Exception):
    """What a step needs has not come in time."""


class Row:
    """Cuts links, waits for states."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.cluster = faults.cluster
        self.actors: list[Actor] = []

    def actor(self, name: str) -> Actor:
        """A client of the row's own; its connections end with the row."""
        host = self.cluster.simulation.host("world")
        self.actors.append(Actor(host, name, self.faults.checkers))
        return self.actors[-1]

    def cut(self, one: int, other: int, port: int = CONTROLLER_PORT) -> None:
        self.faults.network.block(f"n{one}", f"n{other}", port)
        self.faults.network.block(f"n{other}", f"n{one}", port)

    def join(self, one: int, other: int, port: int = CONTROLLER_PORT) -> None:
        self.faults.network.heal(f"n{one}", f"n{other}", port)
        self.faults.network.heal(f"n{other}", f"n{one}", port)

    def raft(self, node_id: int) -> Any:
        """The quorum's state at a node that runs; None otherwise."""
        node = self.cluster.nodes.get(node_id)
        driver = None if node is None else node.metadata.driver
        return None if driver is None else driver.raft

    def end(self, node_id: int) -> int:
        raft = self.raft(node_id)
        return -1 if raft is None else int(raft.log.end_offset)

    def leads(self, node_id: int) -> bool:
        raft = self.raft(node_id)
        return raft is not None and raft.is_leader

    def is_a(self, role: RoleName, node_id: int) -> bool:
        raft = self.raft(node_id)
        return raft is not None and raft.role.name is role

    async def until(self, condition: Callable[[], bool], limit_s: float = STEP_LIMIT_S) -> None:
        end = self.faults.now + limit_s
        while not condition():
            if self.faults.now > end:
                raise NotThere
            await asyncio.sleep(LOOK_S)

    async def first_leader(self, *node_ids: int) -> int:
        """Whichever of them leads first."""
        await self.until(lambda: any(map(self.leads, node_ids)))
        return next(node_id for node_id in node_ids if self.leads(node_id))


@contextmanager
def _slow(faults: Faults) -> Iterator[None]:
    conditions = faults.network.conditions
    before = conditions.latency_min_s, conditions.latency_max_s
    conditions.latency_min_s, conditions.latency_max_s = LATENCY_S
    try:
        yield
    finally:
        conditions.latency_min_s, conditions.latency_max_s = before


async def run_row(faults: Faults, steps: Callable[[Row], Awaitable[None]]) -> None:
    """One row at a time, from a cluster that is in sync; healed in the end."""
    if faults.row_is_under_way:
        return
    faults.row_is_under_way = True
    row = Row(faults)
    try:
        await row.until(faults.cluster.is_in_sync)
        with _slow(faults):
            await steps(row)
        faults.counts[ROWS] = faults.counts.get(ROWS, 0) + 1
    except NotThere:
        pass
    finally:
        faults.network.heal()
        faults.row_is_under_way = False
        for actor in row.actors:
            actor.client.close()


async def tail_of_an_old_epoch(faults: Faults) -> None:
    """A leader of the quorum gives a tail of an older epoch to a majority, but not the first record
    of its own, and is replaced by a node that has neither (Raft, figure 8)."""
    await run_row(faults, _tail_of_an_old_epoch)


async def _tail_of_an_old_epoch(row: Row) -> None:
    old = await row.first_leader(*IDS)
    others = [node_id for node_id in IDS if node_id != old]
    # The leader alone has a tail.
    for other in others:
        row.cut(old, other)
    await row.until(lambda: row.end(old) > max(map(row.end, others)))
    # Another one is elected, which alone has its epoch's first record.
    newer = await row.first_leader(*others)
    row.cut(*others)
    voter = next(node_id for node_id in others if node_id != newer)
    await row.until(lambda: not row.leads(old) and row.end(newer) > row.end(voter))
    # The first one leads again, by the vote of the third.
    common = row.end(voter)
    row.join(old, voter)
    await row.until(lambda: row.leads(old))
    # The third one has a part of the tail, and its leader knows; it gets no more.
    await row.until(lambda: row.end(voter) > common)
    row.faults.network.block(f"n{old}", f"n{voter}", CONTROLLER_PORT)
    await asyncio.sleep(4 * LATENCY_S[1])
    row.cut(old, voter)
    # The second one, whose log is newer than the third's, leads once more and cuts the tail off.
    row.join(newer, voter)
    epoch = row.raft(old).epoch
    await row.until(lambda: row.leads(newer) and row.raft(newer).epoch > epoch)
    await row.until(lambda: bool(row.raft(voter).log.end == row.raft(newer).log.end))


async def acknowledged_and_lost(faults: Faults) -> None:
    """A replica of the metadata whose disk is slow loses power while it syncs what it has just
    got, and elects with the third one, which has not got it."""
    await run_row(faults, _acknowledged_and_lost)


async def _acknowledged_and_lost(row: Row) -> None:
    faults, cluster = row.faults, row.cluster
    leader = await row.first_leader(*IDS)
    followers = [node_id for node_id in IDS if node_id != leader]
    slow = followers[faults.below(2)]
    third = next(node_id for node_id in followers if node_id != slow)
    if not faults.may_lose(slow):
        raise NotThere
    disk = cluster.hosts[slow]
    row.cut(leader, third)
    row.cut(slow, third)
    disk.disk_delay_s = SLOW_DISK_S
    try:
        await row.until(lambda: row.end(slow) > row.end(third))
        await asyncio.sleep(2 * LATENCY_S[1])  # whatever it says of that is with the leader
        cluster.kill(slow, power_loss=True)
        row.cut(leader, slow)
    finally:
        disk.disk_delay_s = 0.0
        if not cluster.is_up(slow):
            cluster.start(slow)
    row.join(slow, third)
    newer = await row.first_leader(slow, third)
    await row.until(lambda: row.raft(newer).role.high_watermark is not None)


async def two_candidates(faults: Faults) -> None:
    """Two nodes that do not hear each other stand in the same epoch; their requests reach the third
    one together, before either can know that it has won."""
    await run_row(faults, _two_candidates)


async def _two_candidates(row: Row) -> None:
    faults, cluster = row.faults, row.cluster
    leader = await row.first_leader(*IDS)
    followers = [node_id for node_id in IDS if node_id != leader]
    voter = followers[faults.below(2)]
    one, other = (node_id for node_id in IDS if node_id != voter)
    if not faults.may_kill(voter):
        raise NotThere
    cluster.kill(voter)
    try:
        # Both have more than the voter, so it may vote for either.
        have = max(map(row.end, IDS))
        await row.until(lambda: min(row.end(one), row.end(other)) > have + 1)
        row.cut(one, other)
        await row.until(lambda: all(row.is_a(RoleName.PROSPECTIVE, i) for i in (one, other)))
    finally:
        cluster.start(voter)
    held: dict[int, None] = {}

    def both_stand() -> bool:
        for node_id in (one, other):
            if node_id not in held and row.is_a(RoleName.CANDIDATE, node_id):
                held[node_id] = None
                faults.network.block(f"n{node_id}", f"n{voter}", CONTROLLER_PORT)
        return len(held) == 2

    await row.until(both_stand)
    if row.raft(one).epoch != row.raft(other).epoch:
        raise NotThere
    for node_id in (one, other):
        faults.network.heal(f"n{node_id}", f"n{voter}", CONTROLLER_PORT)
    await row.until(lambda: row.leads(one) or row.leads(other))
    await asyncio.sleep(4 * LATENCY_S[1])


async def tail_that_nobody_has(faults: Faults) -> None:
    """The leader of partitions appends what no follower gets, another one leads and appends, and
    the first one comes back with its tail."""
    await run_row(faults, _tail_that_nobody_has)


async def _tail_that_nobody_has(row: Row) -> None:
    faults, cluster = row.faults, row.cluster
    topic = next(iter(cluster.nodes.values())).image.topics.by_name.get(WRITTEN_TOPIC)
    if topic is None:
        raise NotThere
    topic_id, index = topic.topic_id, faults.below(len(topic.partitions))
    leader = topic.partitions[index].leader
    others = [node_id for node_id in IDS if node_id != leader]
    if not faults.may_kill(leader):
        raise NotThere

    def end(node_id: int) -> int:
        partition = cluster.nodes[node_id].replicas.partition_by_id(topic_id, index)
        log = None if partition is None else partition.log
        return -1 if log is None else int(log.log_end_offset)

    for other in others:
        row.cut(leader, other, BROKER_PORT)
    # Before its followers leave the ISR.
    await row.until(lambda: end(leader) > max(map(end, others)), 1.5)
    cluster.kill(leader)
    try:
        await row.until(
            lambda: all(
                cluster.nodes[i].image.topics.by_id[topic_id].partitions[index].leader in others
                for i in others
            )
        )
        have = max(map(end, others))
        await row.until(lambda: min(map(end, others)) > have)
    finally:
        for other in others:
            row.join(leader, other, BROKER_PORT)
        cluster.start(leader)
    await row.until(cluster.is_in_sync)


async def longer_tail_of_an_old_epoch(faults: Faults) -> None:
    """A leader of the quorum that is cut off has a long tail of its epoch; the others have
    committed less, in a newer one; one of them and the first one elect."""
    await run_row(faults, _longer_tail_of_an_old_epoch)


async def _longer_tail_of_an_old_epoch(row: Row) -> None:
    old = await row.first_leader(*IDS)
    others = [node_id for node_id in IDS if node_id != old]
    for other in others:
        row.cut(old, other)
    newer = await row.first_leader(*others)
    voter = next(node_id for node_id in others if node_id != newer)
    begun = row.raft(newer).role.start_offset

    def is_committed() -> bool:
        return int(row.cluster.nodes[newer].image.offset) >= begun

    await row.until(is_committed)
    await row.until(lambda: row.end(voter) > row.cluster.nodes[newer].image.offset)
    row.cut(*others)
    if row.end(old) <= row.end(voter):
        raise NotThere
    row.join(old, voter)
    elected = await row.first_leader(old, voter)
    await row.until(lambda: row.raft(elected).role.high_watermark is not None)


ROW_KINDS: dict[str, Callable[[Faults], Awaitable[None]]] = {
    "tail of an old epoch": tail_of_an_old_epoch,
    "acknowledged and lost": acknowledged_and_lost,
    "two candidates": two_candidates,
    "longer tail of an old epoch": longer_tail_of_an_old_epoch,
    "tail that nobody has": tail_that_nobody_has,
}
"""By the kind of fault that a plan names."""
