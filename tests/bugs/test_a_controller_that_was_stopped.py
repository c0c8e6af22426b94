"""The only controller was stopped for a while: when it went on, it fenced every broker.

It looked at its timers before it read the heartbeats that had arrived meanwhile; all partitions
lost their leaders and got them back a moment later, at new epochs and with smaller ISRs. Kafka's
controller did the same when it had too much to do to handle heartbeats in time (KAFKA-15019).
"""

from __future__ import annotations

from tests.support.controllers import ControllerBench, make_config

STOPPED_MS = 60_000


def test_who_has_sent_heartbeats_meanwhile_is_not_fenced() -> None:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]})
    before = bench.partition("t")
    bench.expire(bench.now_ms + STOPPED_MS)
    assert not any(broker.fenced for broker in bench.image.brokers.values())
    for broker_id in (1, 2):
        bench.heartbeat(broker_id)
    assert bench.partition("t") == before
    bench.now_ms += 4_000
    for broker_id in (1, 2):
        bench.heartbeat(broker_id)
    bench.expire(bench.now_ms + 500)
    fenced = [broker_id for broker_id in (1, 2, 3) if bench.image.brokers[broker_id].fenced]
    assert fenced == [3], "nothing was heard of it"
    assert bench.partition("t").leader == 1


def test_a_new_controller_was_not_away_while_another_one_led() -> None:
    """The broker of the node that led before may have been silent for longer than a session."""
    bench = ControllerBench(config=make_config(session_timeout_ms=1_500))
    bench.start(1, 2)
    bench.create("t", {0: [1, 2]})
    bench.controller.deactivate()
    heard_ms = bench.now_ms
    bench.now_ms += 5_000
    bench.append(
        bench.controller.activate(bench.now_ms, len(bench.log), 2, None, None, (1, heard_ms))
    )
    bench.expire(bench.now_ms + 1)
    assert bench.image.brokers[1].fenced
    assert not bench.image.brokers[2].fenced
    assert bench.partition("t").leader == 2
