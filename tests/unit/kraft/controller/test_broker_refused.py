"""A broker whose process is gone is fenced at once, and nobody else is."""

from __future__ import annotations

import pytest

from tests.support.controllers import ControllerBench


@pytest.fixture
def bench() -> ControllerBench:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [2, 3, 1], 1: [3, 1, 2]})
    return bench


def refused(bench: ControllerBench, broker_id: int, epoch: int, since_ms: int) -> int:
    """How many records there were; they are appended."""
    records = bench.controller.broker_refused(broker_id, epoch, since_ms, bench.now_ms)
    bench.append(records)
    return len(records)


def test_its_partitions_move_and_its_session_is_over(bench: ControllerBench) -> None:
    assert refused(bench, 2, bench.epochs[2], bench.now_ms)
    assert bench.image.brokers[2].fenced
    assert bench.partition("t").leader == 3
    assert 2 not in bench.partition("t", 1).isr
    assert bench.register(2, life=2).error_code == 0, "its next life need not wait for a session"


def test_one_that_was_heard_of_since_lives(bench: ControllerBench) -> None:
    since_ms = bench.now_ms
    bench.now_ms += 5
    bench.heartbeat(2)
    assert refused(bench, 2, bench.epochs[2], since_ms) == 0
    assert not bench.image.brokers[2].fenced


def test_one_that_has_registered_anew_is_another(bench: ControllerBench) -> None:
    old = bench.epochs[2]
    assert refused(bench, 2, old, bench.now_ms)
    bench.register(2, life=2)
    bench.heartbeat(2, current_metadata_offset=len(bench.log))
    assert not bench.image.brokers[2].fenced
    assert refused(bench, 2, old, bench.now_ms) == 0
    assert not bench.image.brokers[2].fenced


def test_one_that_stops_in_order_may_die_on_the_way(bench: ControllerBench) -> None:
    bench.heartbeat(2, want_shut_down=True)
    assert bench.image.brokers[2].in_controlled_shutdown
    assert refused(bench, 2, bench.epochs[2], bench.now_ms)
    assert bench.image.brokers[2].fenced


def test_one_that_is_fenced_or_unknown_stays_as_it_is(bench: ControllerBench) -> None:
    assert refused(bench, 2, bench.epochs[2], bench.now_ms)
    assert refused(bench, 2, bench.epochs[2], bench.now_ms) == 0
    assert refused(bench, 9, 0, bench.now_ms) == 0


def test_the_controllers_own_broker_never_is(bench: ControllerBench) -> None:
    assert bench.config.node_id == 1
    assert refused(bench, 1, bench.epochs[1], bench.now_ms) == 0


def test_only_the_active_controller_decides(bench: ControllerBench) -> None:
    bench.controller.deactivate()
    assert refused(bench, 2, bench.epochs[2], bench.now_ms) == 0
