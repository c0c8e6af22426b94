"""A process that was killed is noticed by what its machine says, with Kafka's default time-outs.

Sessions and fetch time-outs are so long here that nothing happens in time without it.
"""

from __future__ import annotations

import pytest

from tests.sim.checkers import Checkers
from tests.sim.faults import Plan
from tests.sim.history import History

LONG = {
    "broker.session.timeout.ms": "60000",
    "broker.heartbeat.interval.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "60000",
    "controller.quorum.request.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
}
NOTICED_S = 1.0
SETTLED_S = 8.0
"""Listeners of new brokers are looked at for so long."""
OFF = {"kwire.dead.process.detection.enable": "false"}
KINDS = ("controller", "another")


def started(seed: int, settings: dict[str, str] | None = None) -> History:
    history = History(seed, Plan(settings={**LONG, **(settings or {})}))
    history.begin()
    history.simulation.run_for(SETTLED_S)
    return history


def victim_of(history: History, kind: str) -> int:
    active = history.cluster.active_controller()
    assert active is not None
    if kind == "controller":
        return active.broker_id
    return next(node_id for node_id in history.cluster.nodes if node_id != active.broker_id)


def is_fenced(history: History, broker_id: int) -> bool:
    """In the eyes of an active controller, and of everybody who runs."""
    cluster = history.cluster
    lives = [node for node in cluster.nodes.values() if cluster.is_up(node.broker_id)]
    return cluster.active_controller() is not None and all(
        node.image.brokers[broker_id].fenced for node in lives if node.broker_id != broker_id
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_killed_process_is_fenced_long_before_its_session_is_over(kind: str, seed: int) -> None:
    history = started(seed)
    victim = victim_of(history, kind)
    with history.checkers.watch():
        history.cluster.kill(victim)
        history.until(lambda: is_fenced(history, victim), NOTICED_S, "not fenced")
        history.cluster.start(victim)
        history.until(history.cluster.is_in_sync, SETTLED_S, "it does not come back")
    history.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_machine_without_power_is_a_matter_of_the_session(kind: str) -> None:
    history = started(4)
    victim = victim_of(history, kind)
    history.cluster.kill(victim, power_loss=True)
    history.simulation.run_for(10)
    assert not is_fenced(history, victim)
    history.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_process_is_too(kind: str) -> None:
    """SIGSTOP: its connections stay, and its kernel accepts new ones."""
    history = started(5)
    victim = victim_of(history, kind)
    host = history.cluster.hosts[victim]
    host.freeze()
    history.simulation.run_for(10)
    assert not is_fenced(history, victim)
    host.thaw()
    history.until(history.cluster.is_in_sync, SETTLED_S, "it does not go on")
    history.close()


@pytest.mark.parametrize("kind", KINDS)
def test_switched_off_nothing_is_noticed_before_the_time_outs(kind: str) -> None:
    history = started(6, OFF)
    victim = victim_of(history, kind)
    history.cluster.kill(victim)
    history.simulation.run_for(10)
    assert not is_fenced(history, victim)
    history.close()


def test_connections_that_break_fence_nobody() -> None:
    """Every connection breaks, over and over: all processes accept the next one."""
    history = started(7)
    epochs = {i: node.lifecycle.epoch for i, node in history.cluster.nodes.items()}
    leader_epoch = history.cluster.nodes[1].metadata.driver.epoch
    hosts = [host.name for host in history.cluster.hosts.values()]
    for _ in range(20):
        for one in hosts:
            for other in hosts:
                if one != other:
                    history.simulation.network.reset_connections(one, other)
        history.simulation.run_for(0.3)
        assert not any(is_fenced(history, node_id) for node_id in history.cluster.nodes)
    assert history.cluster.nodes[1].metadata.driver.epoch == leader_epoch
    history.until(history.cluster.is_in_sync, SETTLED_S, "not in sync")
    assert epochs == {i: node.lifecycle.epoch for i, node in history.cluster.nodes.items()}
    history.close()


def test_a_listener_that_never_accepted_says_nothing() -> None:
    """A firewall between controllers and brokers refuses everybody: no proof of any death."""
    history = started(8)
    active = history.cluster.active_controller()
    assert active is not None
    watch = active.metadata._dead_processes
    assert watch is not None
    victim = victim_of(history, "another")
    assert watch._accepted.pop(victim) == history.cluster.nodes[victim].lifecycle.epoch
    history.cluster.kill(victim)
    history.simulation.run_for(10)
    assert not is_fenced(history, victim)
    history.close()


def test_the_checker_knows_who_lives() -> None:
    history = started(9)
    checkers: Checkers = history.checkers
    node = history.cluster.nodes[2]
    with pytest.raises(Exception, match="is fenced as gone, and lives"):
        checkers.fenced_as_gone(2, node.lifecycle.epoch)
    checkers.fenced_as_gone(2, node.lifecycle.epoch - 1)
    history.cluster.kill(2)
    checkers.fenced_as_gone(2, node.lifecycle.epoch)
    history.close()
