"""Broker sessions: every state with every wish, and who may take a broker's id."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kwire.kraft.controller.heartbeats import BrokerState, Heartbeats
from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
LEAVING, GONE = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW
REGISTERED_AT = 100


def _request(want_fence: bool, want_shut_down: bool, caught_up: bool) -> Any:
    return m.BrokerHeartbeatRequest(
        broker_id=1,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
        current_metadata_offset=REGISTERED_AT if caught_up else REGISTERED_AT - 1,
    )


def _expected(state: BrokerState, fence: bool, down: bool, caught_up: bool, leads: bool) -> Any:
    """The table of the module, spelled out."""
    if state == FENCED:
        if down:
            return GONE
        return UNFENCED if caught_up and not fence else FENCED
    if state == UNFENCED:
        if fence:
            return GONE if down else FENCED
        if down:
            return LEAVING if leads else GONE
        return UNFENCED
    return LEAVING if leads else GONE


@pytest.mark.parametrize("state", [FENCED, UNFENCED, LEAVING])
@pytest.mark.parametrize(
    ("fence", "down", "caught_up", "leads"), list(itertools.product((False, True), repeat=4))
)
def test_every_transition(
    state: BrokerState, fence: bool, down: bool, caught_up: bool, leads: bool
) -> None:
    heartbeats = Heartbeats(9000)
    heartbeats.touch(1, state == FENCED, 500)
    if state == LEAVING:
        heartbeats.enter_controlled_shutdown(1, 400)
    assert heartbeats.state(1) == state
    current, wanted = heartbeats.next_state(
        1, _request(fence, down, caught_up), REGISTERED_AT, lambda broker_id: leads
    )
    assert current == state
    assert wanted == _expected(state, fence, down, caught_up, leads)


def test_a_broker_may_go_once_every_active_one_has_read_that_it_goes() -> None:
    heartbeats = Heartbeats(9000)
    for broker_id in (1, 2, 3):
        heartbeats.touch(broker_id, False, 10)
    heartbeats.touch(4, True, 0)
    heartbeats.enter_controlled_shutdown(1, 20)

    def wanted() -> BrokerState:
        request = _request(False, True, True)
        return heartbeats.next_state(1, request, REGISTERED_AT, lambda broker_id: False)[1]

    assert wanted() == LEAVING
    heartbeats.touch(2, False, 20)
    assert wanted() == LEAVING
    heartbeats.touch(3, False, 25)
    assert wanted() == GONE, "the fenced one does not count"


def test_the_first_offset_of_a_controlled_shutdown_stays() -> None:
    heartbeats = Heartbeats(9000)
    heartbeats.touch(1, False, 10)
    heartbeats.touch(2, False, 30)
    heartbeats.enter_controlled_shutdown(1, 20)
    heartbeats.enter_controlled_shutdown(1, 50)
    request = _request(False, True, True)
    assert heartbeats.next_state(1, request, 0, lambda broker_id: False)[1] == GONE


def test_a_silent_broker_is_fenced_and_its_partitions_move() -> None:
    bench = ControllerBench()
    bench.start(1, 2)
    bench.create("t", {0: [1, 2]})
    start = bench.now_ms
    bench.now_ms = start + 8_000
    bench.heartbeat(2)
    bench.expire(start + 9_000)
    assert not bench.image.brokers[1].fenced, "the timeout itself is still in time"
    bench.expire(start + 9_001)
    assert bench.image.brokers[1].fenced
    assert not bench.image.brokers[2].fenced
    partition = bench.partition("t")
    assert (partition.leader, partition.isr) == (2, (2,))


def test_stale_brokers_are_fenced_one_after_the_other() -> None:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]})
    bench.expire(bench.now_ms + 9_001)
    assert all(broker.fenced for broker in bench.image.brokers.values())
    partition = bench.partition("t")
    assert partition.leader == -1
    assert partition.isr == ()
    assert partition.elr == (3,), "the last one in sync stays eligible"
    assert partition.last_known_elr == (3,)


def test_an_id_is_taken_while_its_session_lasts() -> None:
    """KIP-631: two brokers configured with one id must not take turns."""
    bench = ControllerBench()
    bench.start(1)
    assert bench.register(1, life=2).error_code == 101
    assert bench.register(1, life=1).error_code == 0, "the same incarnation may come again"
    bench.heartbeat(1, want_fence=True)
    assert bench.register(1, life=2).error_code == 101, "fenced, but alive"
    bench.now_ms += 9_001
    bench.expire()
    assert bench.register(1, life=2).error_code == 0


def test_a_broker_that_was_let_go_may_come_back_at_once() -> None:
    bench = ControllerBench()
    bench.start(1)
    assert bench.heartbeat(1, want_shut_down=True).should_shut_down
    assert bench.register(1, life=2).error_code == 0


def test_a_new_controller_gives_every_unfenced_broker_a_whole_session() -> None:
    bench = ControllerBench()
    bench.start(1, 2)
    bench.heartbeat(2, want_fence=True)
    bench.controller.deactivate()
    bench.now_ms += 60_000
    bench.append(bench.controller.activate(bench.now_ms, len(bench.log), 2))
    sessions = [at for name, at in bench.controller.timers() if name == "session"]
    assert sessions == [bench.now_ms + 9_001]
    bench.expire(bench.now_ms + 5_000)
    assert not bench.image.brokers[1].fenced
    assert bench.register(2, life=2).error_code == 0, "fenced ones have no session"
