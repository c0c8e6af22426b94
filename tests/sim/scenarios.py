"""Faults in a row, aimed at what single ones rarely meet: elections, lone leaders, quorum changes.

Each is a coroutine over `Faults` (its cluster, chance and network); none waits for anything for
ever, and each heals what it has broken.
"""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Any

from kwire.log.directories.refusals import refusals
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.testing.simulation.network import NetworkConditions
from tests.sim.client import Retry, RoutingClient
from tests.sim.cluster import BROKER_PORT, CLUSTER_ID, CONTROLLER_PORT, IDS, directory_id
from tests.sim.model import Violation

if TYPE_CHECKING:
    from tests.sim.faults import Faults

LOOK_S = 0.01
USUAL_LATENCY_MAX_S = NetworkConditions().latency_max_s
QUORUM_CHANGE_LIMIT_S = 8.0
SHORT_CALLS = {
    errno.ENOSPC: ("pwritev", "allocate", "make_directory"),
    errno.EDQUOT: ("pwritev", "allocate"),
    errno.EMFILE: ("open", "read_file", "sync_directory"),
    errno.ENOMEM: ("pwritev", "open", "truncate", "make_directory"),
}
"""The calls that fail for want of each; a sync that is under way is none of them."""
SHORT = tuple(SHORT_CALLS)
PASSED_TICKS = 80  # of 0.1 s, after which a shortage is over for whoever was in it
DONE = (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_NOT_FOUND)


async def shortage(faults: Faults) -> None:
    """Space, descriptors or memory are used up on one node for a while that nobody gives it up for.

    The node goes on living, and soon afterwards there is nothing that it refuses.
    """
    cluster, node_id = faults.cluster, faults.node()
    life, host = cluster.lives[node_id], cluster.hosts[node_id]
    if not cluster.is_up(node_id) or node_id in cluster.stopping or host.disk.fault is not None:
        return
    below, number = faults.below, SHORT[faults.below(len(SHORT))]
    one_in = (1, 1, 3, 20)[below(4)]

    def fault(operation: str, path: str) -> OSError | None:
        if operation not in SHORT_CALLS[number] or below(one_in):
            return None
        return OSError(number, os.strerror(number), path)

    host.disk.fault = fault
    await asyncio.sleep(faults.uniform(0.2, 5.0))
    host.disk.fault = None
    for _ in range(PASSED_TICKS):
        await asyncio.sleep(0.1)
        while host.up and host.loop.held is not None and cluster.lives[node_id] == life:
            await asyncio.sleep(0.1)
        node = cluster.nodes.get(node_id)
        if node is None or cluster.lives[node_id] != life or node_id in cluster.stopping:
            return
        if host.disk.capacity_bytes is not None or host.disk.fault is not None:
            return  # another one has begun
        refused = refusals(node.log_manager, node.metadata.waits_for)
        if not refused:
            return
    raise Violation(f"n{node_id} still refuses what it was short for: {refused}")


async def election_storm(faults: Faults) -> None:
    """Two nodes that do not hear each other court the third, which loses power after its vote, or
    after it has acknowledged, again and again; what it writes may take a while to be safe."""
    cluster, network = faults.cluster, faults.network
    voter = faults.node()
    disk, conditions = cluster.hosts[voter], network.conditions
    if faults.below(2):
        disk.disk_delay_s = faults.uniform(0.02, 0.4)
    if faults.below(2):  # what two ask of the voter at about the same time gets there together
        conditions.latency_max_s = 0.1
    one, other = (node_id for node_id in IDS if node_id != voter)
    network.block(f"n{one}", f"n{other}")
    network.block(f"n{other}", f"n{one}")
    for number in range(2 + faults.below(4)):
        await _until_epoch_moves(faults, voter, faults.uniform(0.05, 3.0 if number else 0.8))
        await asyncio.sleep(faults.uniform(0.0, 0.03))
        if cluster.is_up(voter) and faults.may_lose(voter):
            cluster.kill(voter, power_loss=True)
        elif cluster.is_up(voter) and faults.may_kill(voter):
            cluster.kill(voter)
        # Long enough, and the other two both stand for election when it is back.
        await faults.down(voter, 0.02, 0.4 if faults.below(3) else 4.0)
    disk.disk_delay_s = 0.0
    conditions.latency_max_s = USUAL_LATENCY_MAX_S
    network.heal(f"n{one}", f"n{other}")
    network.heal(f"n{other}", f"n{one}")


async def _until_epoch_moves(faults: Faults, node_id: int, limit_s: float) -> None:
    """Until the node is at another quorum epoch, or has voted, or the time is over."""
    end = faults.now + limit_s
    before = _election(faults, node_id)
    while faults.now < end and _election(faults, node_id) == before:
        await asyncio.sleep(LOOK_S)


def _election(faults: Faults, node_id: int) -> Any:
    node = faults.cluster.nodes.get(node_id)
    driver = None if node is None else node.metadata.driver
    return None if driver is None else (driver.raft.epoch, driver.raft.role.voted)


async def brokers_cut_off(faults: Faults) -> None:
    """Brokers do not reach each other, controllers do: every leader is alone in its ISR. Then one
    loses power, and when it is back another one is killed."""
    network, cluster = faults.network, faults.cluster
    pairs = [(f"n{a}", f"n{b}") for a in IDS for b in IDS if a != b]
    for pair in pairs:
        network.block(*pair, BROKER_PORT)
    end = faults.now + 8
    while faults.now < end and not any(
        len(partition.isr) == 1
        for node in cluster.nodes.values()
        for topic in node.image.topics.by_name.values()
        for partition in topic.partitions.values()
    ):
        await asyncio.sleep(0.2)
    first = faults.node()
    if cluster.is_up(first) and faults.may_kill(first):
        cluster.kill(first, power_loss=faults.may_lose(first))
        await faults.down(first, 0.1, 1.0)
    await asyncio.sleep(faults.uniform(1.0, 5.0))
    second = faults.node()
    if second != first and cluster.is_up(second) and faults.may_kill(second):
        cluster.kill(second)
        await faults.down(second, 0.5, 5.0)
    for pair in pairs:
        network.heal(*pair, BROKER_PORT)


async def blackout(faults: Faults) -> None:
    """Every machine loses power at about the same time. Only where each record is flushed."""
    for node_id in IDS:
        if faults.below(8):
            await asyncio.sleep(faults.uniform(0.0, 0.05))
            if faults.cluster.is_up(node_id):
                faults.cluster.kill(node_id, power_loss=True)
    await asyncio.gather(*(faults.down(node_id, 0.1, 2.0) for node_id in IDS))


async def changing_leaders(faults: Faults) -> None:
    """One leader of a partition after the other is killed or stopped for a moment."""
    cluster = faults.cluster
    for _ in range(3 + faults.below(3)):
        leaders = sorted(
            {
                partition.leader
                for node in cluster.nodes.values()
                for topic in node.image.topics.by_name.values()
                for partition in topic.partitions.values()
                if partition.leader >= 0
            }
        )
        if leaders:
            leader = leaders[faults.below(len(leaders))]
            if cluster.is_up(leader) and faults.below(2) and faults.may_kill(leader):
                cluster.kill(leader)
                await faults.down(leader, 0.1, 1.0)
            elif cluster.is_up(leader):
                await faults.frozen(leader, 2.0, 5.0)
        await asyncio.sleep(faults.uniform(0.1, 2.0))


async def quorum_change(faults: Faults) -> None:
    """A voter is removed, and added again some time later."""
    node_id = faults.node()
    if await set_voter(faults, node_id, is_voter=False):
        await asyncio.sleep(faults.uniform(0.5, 5.0))
    await set_voter(faults, node_id, is_voter=True)


async def set_voter(faults: Faults, node_id: int, *, is_voter: bool) -> bool:
    """Ask until it is so; False when that takes too long."""
    client = RoutingClient(faults.cluster.simulation.host("world"), "operator")
    end = faults.now + QUORUM_CHANGE_LIMIT_S
    try:
        while faults.now < end:
            try:
                request = _add(node_id) if is_voter else _remove(node_id)
                answer = await client.ask(client.any_broker(), request, 0, 4.0)
            except Retry:
                await client.pause()
                continue
            if answer.error_code in DONE:
                client.note(f"voter {node_id} {'added' if is_voter else 'removed'}")
                return True
            await client.pause()
        return False
    finally:
        client.close()


def _add(node_id: int) -> Any:
    request = m.AddRaftVoterRequest
    return request(
        cluster_id=CLUSTER_ID,
        timeout_ms=3000,
        voter_id=node_id,
        voter_directory_id=directory_id(node_id),
        listeners=[request.Listener(name="CONTROLLER", host=f"n{node_id}", port=CONTROLLER_PORT)],
    )


def _remove(node_id: int) -> Any:
    return m.RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node_id, voter_directory_id=directory_id(node_id)
    )
