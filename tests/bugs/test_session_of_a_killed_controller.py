"""A node that is broker and active controller is killed: its successor gave the broker another
whole session, so its partitions had no leader for an election and a session (KIP-631's rule, that
a new controller has just heard of everybody, is for brokers that the old one may have heard of).
"""

from __future__ import annotations

from tests.support.controllers import ControllerBench
from tests.support.raft_script import Script


def test_the_new_controller_counts_from_the_last_sign_of_life() -> None:
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]})
    bench.controller.deactivate()
    heard_ms = bench.now_ms
    bench.now_ms += 2_500  # a fetch time-out and an election
    records = bench.controller.activate(bench.now_ms, len(bench.log), 2, None, None, (1, heard_ms))
    bench.append(records)
    for broker_id in (2, 3):
        bench.heartbeat(broker_id)
    bench.now_ms = heard_ms + 9_000
    bench.expire()
    assert not bench.image.brokers[1].fenced, "its session is not over"
    bench.now_ms += 1
    bench.expire()
    assert bench.image.brokers[1].fenced
    assert not any(bench.image.brokers[broker_id].fenced for broker_id in (2, 3))
    assert bench.partition("t").leader == 2


def test_a_follower_knows_when_it_heard_of_which_leader() -> None:
    script = Script()
    for command in ("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20"):
        script.execute(command)
    cluster = script.cluster
    follower = cluster.nodes[2].raft
    assert follower is not None
    assert follower.leader_id == 1
    heard_ms = cluster.now_ms
    assert follower.leader_heard is not None
    assert follower.leader_heard[0] == 1
    assert heard_ms - 20 <= follower.leader_heard[1] <= heard_ms
    script.execute("crash 1")
    script.execute("run 4000")
    leader = next(n.raft for n in cluster.nodes.values() if n.raft and n.raft.is_leader)
    assert leader.leader_heard is not None
    assert leader.leader_heard[0] == 1
    assert leader.leader_heard[1] <= heard_ms, "silent since it crashed"


def test_whoever_led_in_between_makes_it_forget() -> None:
    script = Script()
    for command in ("cluster 1 2 3", "start", "run 1100", "append 1 a", "run 20"):
        script.execute(command)
    script.execute("shutdown 1")
    script.execute("run 4000")
    nodes = script.cluster.nodes
    second = next(n for n in nodes.values() if n.raft and n.raft.is_leader)
    assert second.raft is not None
    assert second.raft.leader_heard is not None
    script.execute("start 1")
    script.execute("run 1000")
    assert second.raft.is_leader
    script.execute(f"resign {second.id}")
    resigned_ms = script.cluster.now_ms
    script.execute("run 4000")
    heard = second.raft.leader_heard
    assert heard is None or heard[1] >= resigned_ms, "1 was heard of long before"
