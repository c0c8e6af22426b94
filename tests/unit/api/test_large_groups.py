"""A group whose description is answered over several turns of the loop."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.api import consumer_group_describe, describe_groups
from kwire.api.shared import described_groups
from kwire.protocol import messages as m
from tests.support.coordinator_scripts import SimulatedBroker, wait_until_ready

MEMBERS = 12


@pytest.mark.parametrize("members_of_a_turn", [MEMBERS, MEMBERS - 1, MEMBERS // 2, 1])
def test_a_large_group_is_described_like_a_small_one(
    members_of_a_turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is asked for on the same connection behind it is answered behind it."""
    for module in (consumer_group_describe, described_groups):
        monkeypatch.setattr(module, "SLICE_MEMBERS", members_of_a_turn)
    target = SimulatedBroker({"offsets.topic.num.partitions": 4})
    wait_until_ready(target, transactions=False)
    target.create_topic("t", MEMBERS)
    shape = m.ConsumerGroupHeartbeatRequest
    for _ in range(2):
        for i in range(MEMBERS):
            request: Any = shape(
                group_id="g", member_id=f"m{i}", member_epoch=0, rebalance_timeout_ms=60_000,
                subscribed_topic_names=["t"], topic_partitions=[],
            )  # fmt: skip
            target.post("a", "ConsumerGroupHeartbeat", 1, request)
            assert target.receive("a").error_code == 0
    asked = m.ConsumerGroupDescribeRequest(group_ids=["g", "other"])
    target.post("a", "ConsumerGroupDescribe", 1, asked)
    group, other = target.receive("a").groups
    assert sorted(x.member_id for x in group.members) == sorted(f"m{i}" for i in range(MEMBERS))
    assert (group.error_code, other.error_code) == (0, 69)
    partitions = [
        index
        for x in group.members
        for topic in x.target_assignment.topic_partitions
        for index in topic.partitions
    ]
    assert sorted(partitions) == list(range(MEMBERS))
    target.stop()


@pytest.mark.parametrize("members_of_a_turn", [3, 2, 1])
def test_a_large_classic_group_is_described_like_a_small_one(
    members_of_a_turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (describe_groups, described_groups):
        monkeypatch.setattr(module, "SLICE_MEMBERS", members_of_a_turn)
    target = SimulatedBroker({"group.initial.rebalance.delay.ms": "10"})
    wait_until_ready(target, transactions=False)
    shape = m.JoinGroupRequest
    for i in range(3):
        protocol = shape.JoinGroupRequestProtocol(name="range", metadata=b"m%d" % i)
        join: Any = shape(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        target.post(f"c{i}", "JoinGroup", 3, join)
    joined = [target.receive(f"c{i}") for i in range(3)]
    assert [x.error_code for x in joined] == [0, 0, 0]
    asked = m.DescribeGroupsRequest(groups=["g", "other"], include_authorized_operations=True)
    target.post("c0", "DescribeGroups", 6, asked)
    group, other = target.receive("c0").groups
    assert sorted(x.member_id for x in group.members) == sorted(x.member_id for x in joined)
    assert group.authorized_operations > 0
    assert (group.error_code, other.error_code, other.group_state) == (0, 69, "Dead")
    target.stop()
