"""A group whose description is answered over several turns of the loop."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.api import consumer_group_describe
from kwire.protocol import messages as m
from tests.support.coordinator_scripts import SimulatedBroker, wait_until_ready

MEMBERS = 12


@pytest.mark.parametrize("members_of_a_turn", [MEMBERS, MEMBERS - 1])
def test_a_large_group_is_described_like_a_small_one(
    members_of_a_turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is asked for on the same connection behind it is answered behind it."""
    monkeypatch.setattr(consumer_group_describe, "MEMBERS_PER_TURN_MAX", members_of_a_turn)
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
