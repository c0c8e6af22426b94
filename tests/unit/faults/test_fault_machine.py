"""Which requests the faults meet: by selectors, counts and seeded draws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.faults.errors import FaultError
from kwire.faults.kinds import Acts, Given
from kwire.faults.machine import FAULTS_MAX, Asked, Faults
from kwire.faults.plan import Plan
from kwire.faults.rules import parse_rule
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.structs import Message


def nobody(_: bytes) -> None:
    return None


def produce(*names: tuple[str, int]) -> m.ProduceRequest:
    shape = m.ProduceRequest
    return shape(
        acks=-1,
        topic_data=[
            shape.TopicProduceData(
                name=name, partition_data=[shape.PartitionProduceData(index=index)]
            )
            for name, index in names or [("t", 0)]
        ],
    )


def fetch(*names: tuple[str, int], epoch: int = 0, replica: int = -1) -> m.FetchRequest:
    shape = m.FetchRequest
    return shape(
        session_epoch=epoch,
        replica_id=replica,
        topics=[
            shape.FetchTopic(topic=name, partitions=[shape.FetchPartition(partition=index)])
            for name, index in names
        ],
    )


class Node:
    """One node's faults, asked with requests."""

    def __init__(self, broker_id: int = 1) -> None:
        self.faults = Faults(broker_id)

    def add(self, kind: str, **options: Given) -> Node:
        self.faults.add(parse_rule({"kind": kind, **options}))
        return self

    def plan(
        self,
        request: Message,
        version: int = 9,
        client_id: str | None = "c",
        principal: str = "User:ANONYMOUS",
        *,
        is_of_node: bool = False,
    ) -> Plan | None:
        key = int(request.API_KEY or 0)
        if not self.faults.may_meet(key, client_id, principal):
            return None
        asked = Asked(key, version, client_id, principal, request, is_of_node)
        return self.faults.plan(asked, nobody)

    def hits(self) -> list[int]:
        return [fault.hits for fault in self.faults.standing()]


@pytest.mark.parametrize(
    ("selector", "value", "met"),
    [
        ("api", "Produce", True),
        ("api", "Fetch", False),
        ("client_id", "c", True),
        ("client_id", "d", False),
        ("principal", "User:ANONYMOUS", True),
        ("principal", "User:bob", False),
        ("topic", "t", True),
        ("topic", "u", False),
        ("broker", 1, True),
        ("broker", 2, False),
        ("group", "g", False),
        ("transactional_id", "x", False),
    ],
)
def test_a_selector_picks(selector: str, value: Given, met: bool) -> None:
    node = Node().add("delay", ms=5, **{selector: value})
    assert (node.plan(produce()) is not None) == met
    assert node.hits() == [int(met)]


def test_partitions_groups_and_transactional_ids_are_picked() -> None:
    node = Node().add("delay", ms=5, topic="t", partition=1)
    assert node.plan(produce(("t", 0), ("u", 1))) is None
    assert node.plan(produce(("t", 0), ("t", 1))) is not None
    node = Node().add("delay", ms=5, group="g")
    assert node.plan(m.HeartbeatRequest(group_id="h")) is None
    assert node.plan(m.HeartbeatRequest(group_id="g")) is not None
    assert node.plan(m.FindCoordinatorRequest(key="g", key_type=0)) is not None
    assert node.plan(m.FindCoordinatorRequest(coordinator_keys=["g"], key_type=1)) is None
    node = Node().add("delay", ms=5, transactional_id="x")
    assert node.plan(m.EndTxnRequest(transactional_id="x")) is not None
    assert node.plan(m.EndTxnRequest(transactional_id="y")) is None


def test_what_nodes_ask_each_other_and_the_tests_own_client_are_spared() -> None:
    node = Node().add("delay", ms=5)
    assert node.plan(produce(), is_of_node=True) is None
    assert node.plan(fetch(("t", 0), replica=2)) is None
    assert node.plan(produce(), client_id="kwire-testing") is None
    node.add("delay", ms=5, client_id="kwire-testing")
    assert node.plan(produce(), client_id="kwire-testing") is not None


def test_followers_are_met_by_a_shrink_alone() -> None:
    node = Node().add("isr-shrink", topic="t", replica=2)
    assert node.plan(fetch(("t", 0))) is None
    assert node.plan(fetch(("t", 0), replica=3)) is None
    plan = node.plan(fetch(("t", 0), replica=2))
    assert plan is not None
    assert len(plan.hidden) == 1
    plan = node.plan(fetch(epoch=5, replica=2))
    assert plan is not None
    assert plan.asks_for_names


def test_a_fetch_of_a_session_is_asked_for_its_partitions() -> None:
    node = Node().add("error", api="Fetch", code="NOT_LEADER_OR_FOLLOWER", topic="t", times=1)
    plan = node.plan(fetch(epoch=3), 12)
    assert plan is not None
    assert plan.asks_for_names
    assert node.hits() == [0]
    plan = node.plan(fetch(("u", 0)), 12)
    assert plan is not None, "it opens no session, so that the next one names its partitions too"
    assert plan.has_names
    assert not plan.refused
    plan = node.plan(fetch(("t", 0)), 12)
    assert plan is not None
    assert [one.code for one in plan.refused] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert node.plan(fetch(epoch=1), 12) is None, "the fault is spent"


def test_an_error_meets_what_may_carry_it() -> None:
    node = Node().add("error", code="REBALANCE_IN_PROGRESS")
    assert node.plan(produce()) is None
    assert node.plan(m.HeartbeatRequest(group_id="g"), 4) is not None
    node = Node().add("coordinator-loading")
    assert node.plan(m.FindCoordinatorRequest(key="g")) is None
    assert node.plan(m.OffsetFetchRequest(group_id="g"), 5) is not None
    groups = [m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g")]
    plan = node.plan(m.OffsetFetchRequest(groups=groups), 8)
    assert plan is not None
    assert plan.refused[0].place.answered == ("groups",)
    node = Node().add("error", api="Metadata", code="LEADER_NOT_AVAILABLE")
    assert node.plan(m.MetadataRequest(topics=None), 12) is None, "it names no topic"


def test_faults_of_several_rules_come_together() -> None:
    node = Node().add("delay", ms=5).add("delay", ms=7).add("drop-reply", how="silence")
    plan = node.plan(produce())
    assert plan is not None
    assert (plan.delay_ms, plan.drops_reply) == (12, "silence")


def test_the_list_has_a_bound_and_its_numbers_are_not_used_again() -> None:
    node = Node()
    first = node.faults.add(parse_rule({"kind": "delay", "ms": 1})).number
    node.faults.remove(first)
    with pytest.raises(FaultError, match="there is no fault 1; accepted: none"):
        node.faults.remove(first)
    for _ in range(FAULTS_MAX):
        node.add("delay", ms=1)
    with pytest.raises(FaultError, match="remove some"):
        node.add("delay", ms=1)
    assert node.faults.standing()[0].number == 2
    node.faults.clear()
    assert node.faults.here(Acts.REQUEST) == []


@settings(max_examples=60, deadline=None)
@given(
    times=st.none() | st.integers(1, 20),
    skip=st.integers(0, 10),
    probability=st.floats(0.05, 1),
    seed=st.integers(0, 2**63 - 1),
    asked=st.integers(0, 60),
)
def test_counts_and_draws(
    times: int | None, skip: int, probability: float, seed: int, asked: int
) -> None:
    """Never more than `times`, nothing of the first `skip`, and the same again by the same seed."""

    def run() -> list[bool]:
        node = Node().add("delay", ms=1, times=times, skip=skip, probability=probability, seed=seed)
        met = [node.plan(produce()) is not None for _ in range(asked)]
        assert node.hits() == [sum(met)]
        return met

    met = run()
    assert not any(met[:skip])
    assert sum(met) <= (asked if times is None else times)
    if probability == 1:
        assert sum(met) == min(max(asked - skip, 0), asked if times is None else times)
    assert met == run()
