"""Consumer groups of KIP-848: scripts measured on Apache Kafka 4.4, and a random model.

The model: members join, heartbeat, own what they are told, leave, fall silent; topics grow; the
shard is reloaded at any time, and the log refuses what is written for a while. Nobody ever owns a
partition that another one owns, and when it is quiet everything is assigned evenly at the group's
epoch, to those who are heard and nobody else.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.coordinator import batches
from kwire.coordinator.group.assignment_jobs import BEGIN_AFTER_MS
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.consumer import patterns, progress
from kwire.coordinator.group.consumer.jobs import PATTERNS_KEPT_MAX
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.consumer.state import MemberState
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import TopicInfo
from kwire.coordinator.shard_interface import Moment
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld

CALLER = Caller(1, "client", "/127.0.0.1")
CONSUMER_SESSION_MS = 45_000


class FakeTopics:
    """Metadata that the test changes."""

    def __init__(self, **counts: int) -> None:
        self.counts = counts

    def id_of(self, name: str) -> bytes:
        return name.encode().ljust(16, b"\0")

    def find(self, name: str) -> TopicInfo | None:
        count = self.counts.get(name)
        return None if count is None else TopicInfo(self.id_of(name), count)

    def name_of(self, topic_id: bytes) -> str | None:
        name = topic_id.rstrip(b"\0").decode()
        return name if name in self.counts else None

    def names(self) -> list[str]:
        return list(self.counts)

    def version(self) -> int:
        return len(self.counts)

    def has_all_of(self, now_ms: int) -> bool:
        return True


class Consumers:
    """Members that talk to one group."""

    def __init__(self, *, has_authorizer: bool = False, **counts: int) -> None:
        self.topics = FakeTopics(**(counts or {"t": 6}))
        self.caller = CALLER
        self.world = GroupWorld(
            topics=self.topics,
            consumer_settings=ConsumerGroupSettings(has_authorizer=has_authorizer),
        )

    def beat(self, member: str, epoch: int, **fields: Any) -> Any:
        request = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, **fields)
        request.member_epoch = epoch
        return self.world.now(self.world.coordinator.consumer_heartbeat(request, self.caller))

    def join(self, member: str, *names: str, **fields: Any) -> Any:
        wanted = {
            "rebalance_timeout_ms": 30_000,
            "subscribed_topic_names": list(names) or ["t"],
            "topic_partitions": [],
        }
        return self.beat(member, 0, **(wanted | fields))

    def owning(self, *partitions: int, topic: str = "t") -> list[Any]:
        return [
            m.ConsumerGroupHeartbeatRequest.TopicPartitions(
                topic_id=self.topics.id_of(topic), partitions=list(partitions)
            )
        ]

    def group(self) -> Any:
        return self.world.shard.storage.consumer.groups["g"]

    def describe(self) -> Any:
        return self.world.now(self.world.coordinator.describe_consumer_groups(["g"]))[0].whole()


def told(response: Any) -> list[int] | None:
    """The partitions in an answer; None where it says nothing of them."""
    if response.assignment is None:
        return None
    return [p for topic in response.assignment.topic_partitions for p in topic.partitions]


def test_the_first_member_gets_everything_at_once_at_epoch_2() -> None:
    consumers = Consumers()
    joined = consumers.join("m1")
    assert (joined.error_code, joined.member_epoch, told(joined)) == (0, 2, [0, 1, 2, 3, 4, 5])
    assert told(consumers.beat("m1", 2)) is None
    assert consumers.describe().group_state == "Stable"
    again = consumers.join("m1")
    assert (again.member_epoch, told(again)) == (2, [0, 1, 2, 3, 4, 5])


def test_a_second_member_waits_for_what_the_first_gives_up() -> None:
    consumers = Consumers()
    consumers.join("m1")
    second = consumers.join("m2")
    assert (second.member_epoch, told(second)) == (2, [])
    assert told(consumers.beat("m1", 2)) is None, "no new target within the assignment interval"
    consumers.world.loop.advance(1000)
    first = consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2, 3, 4, 5))
    assert (first.member_epoch, told(first)) == (2, [0, 1, 2])
    waiting = consumers.beat("m2", 2)
    assert (waiting.member_epoch, told(waiting)) == (3, None)
    described = consumers.describe()
    assert described.group_state == "Reconciling"
    held = [p for x in described.members[0].assignment.topic_partitions for p in x.partitions]
    assert held == [0, 1, 2, 3, 4, 5], "what has to be given up is still shown"
    done = consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2))
    assert (done.member_epoch, told(done)) == (3, None)
    taken = consumers.beat("m2", 3)
    assert (taken.member_epoch, told(taken)) == (3, [3, 4, 5])
    assert consumers.describe().group_state == "Stable"


def test_an_old_epoch_is_fenced_unless_the_answer_may_have_been_lost() -> None:
    consumers = Consumers()
    consumers.join("m1")
    consumers.join("m2")
    consumers.world.loop.advance(1000)
    consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2, 3, 4, 5))
    consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2))
    assert consumers.group().where("m1").epoch == 3
    repeated = consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2))
    assert (repeated.error_code, repeated.member_epoch) == (0, 3)
    for epoch, fields in ((2, {}), (2, {"topic_partitions": consumers.owning(5)}), (9, {})):
        assert consumers.beat("m1", epoch, **fields).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_who_leaves_or_falls_silent_is_replaced() -> None:
    consumers = Consumers()
    consumers.join("m1")
    consumers.join("m2")
    left = consumers.beat("m2", -1)
    assert (left.error_code, left.member_epoch) == (0, -1)
    assert list(consumers.group().members) == ["m1"]
    consumers.world.loop.advance(1000)
    assert told(consumers.beat("m1", 2)) is None
    consumers.world.loop.advance(45_001)
    assert consumers.group().members == {}
    assert consumers.describe().group_state == "Empty"


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    consumers = Consumers()
    consumers.join("m1", rebalance_timeout_ms=5_000)
    consumers.join("m2")
    consumers.world.loop.advance(1000)
    owned = consumers.owning(0, 1, 2, 3, 4, 5)
    consumers.beat("m1", 2, topic_partitions=owned)
    consumers.world.loop.advance(4_000)
    assert consumers.beat("m1", 2, topic_partitions=owned).error_code == 0
    consumers.world.loop.advance(2_000)
    gone = consumers.beat("m1", 2, topic_partitions=owned)
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_gave_up_in_time_has_all_the_time_again_for_what_the_next_rebalance_takes() -> None:
    """The timer of the first one went on: the second ended by it, 1 s after it had begun."""
    consumers = Consumers()
    consumers.join("m1", rebalance_timeout_ms=5_000)
    consumers.join("m2")
    consumers.world.loop.advance(1000)
    first = consumers.beat("m1", 2, topic_partitions=consumers.owning(0, 1, 2, 3, 4, 5))
    assert told(first) == [0, 1, 2]
    consumers.join("m3")
    consumers.world.loop.advance(4_000)
    left = consumers.owning(0, 1, 2)
    second = consumers.beat("m1", 2, topic_partitions=left)
    assert len(told(second) or []) == 2, "it has to give up one more"
    assert consumers.group().where("m1").state == MemberState.UNREVOKED_PARTITIONS
    consumers.world.loop.advance(4_900)
    assert consumers.beat("m1", 2, topic_partitions=left).error_code == 0
    consumers.world.loop.advance(200)
    gone = consumers.beat("m1", 2, topic_partitions=left)
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_to_what_it_had() -> None:
    consumers = Consumers()
    consumers.join("s1", instance_id="i")
    refused = consumers.join("s2", instance_id="i")
    assert refused.error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    fenced = consumers.beat("s2", 2, instance_id="i")
    assert fenced.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert consumers.beat("s1", -2, instance_id="i").member_epoch == -2
    epoch = consumers.group().epoch
    back = consumers.join("s2", instance_id="i")
    assert (back.error_code, back.member_epoch, told(back)) == (0, 2, [0, 1, 2, 3, 4, 5])
    assert consumers.group().epoch == epoch, "no rebalance"
    old = consumers.beat("s1", 2, instance_id="i")
    assert old.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_pattern_is_resolved_after_the_join_and_follows_the_metadata() -> None:
    consumers = Consumers(t1=2, t2=2, other=2)
    joined = consumers.join("m1", subscribed_topic_names=None, subscribed_topic_regex="t.*")
    assert (joined.member_epoch, told(joined)) == (1, [])
    got = consumers.beat("m1", 1)
    assert (got.member_epoch, told(got)) == (2, [0, 1, 0, 1])
    consumers.topics.counts["t3"] = 1
    consumers.world.follow_topics()
    consumers.world.loop.advance(1000)
    assert told(consumers.beat("m1", 2)) == [0, 1, 0, 1, 0]
    bad = consumers.join("m2", subscribed_topic_names=None, subscribed_topic_regex="[")
    assert bad.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert bad.error_message == (
        "SubscribedTopicRegex `[` is not a valid regular expression: missing closing ]."
    )


def test_a_pattern_matches_what_its_client_may_describe() -> None:
    """A client with READ on its group alone was assigned every topic that its pattern fits."""
    consumers = Consumers(has_authorizer=True, t1=2, t2=3, other=2)
    may_see = {"t1"}
    consumers.caller = CALLER._replace(describes=lambda topic: topic in may_see)
    consumers.join("m1", subscribed_topic_names=None, subscribed_topic_regex="t.*")
    assert consumers.group().regexes["t.*"].topics == ("t1",)
    assert told(consumers.beat("m1", 1)) == [0, 1]
    may_see.add("t2")
    consumers.topics.counts["t3"] = 1
    consumers.world.follow_topics()
    consumers.world.loop.advance(1000)
    assert consumers.group().regexes["t.*"].topics == ("t1", "t2")


def test_a_pattern_is_not_refreshed_in_nobodys_name() -> None:
    """After a load the coordinator waits for a member; with nobody's rights all would fit."""
    consumers = Consumers(has_authorizer=True, t1=2, t2=3)
    consumers.caller = CALLER._replace(describes=lambda topic: topic == "t1")
    consumers.join("m1", subscribed_topic_names=None, subscribed_topic_regex="t.*")
    groups = consumers.world.shard.consumer.groups
    groups.describers.clear()
    consumers.topics.counts["t3"] = 1
    consumers.world.follow_topics()
    consumers.world.loop.advance(1000)
    assert consumers.group().regexes["t.*"].topics == ("t1",)
    consumers.caller = CALLER._replace(describes=lambda topic: topic != "t2")
    consumers.beat("m1", 1)
    consumers.world.loop.advance(1000)
    assert consumers.group().regexes["t.*"].topics == ("t1", "t3")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
def test_what_is_wrong_with_a_request_is_said(fields: dict[str, Any], message: str) -> None:
    consumers = Consumers()
    request = m.ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    answer = consumers.world.coordinator.consumer_heartbeat(request, CALLER)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_a_large_assignment_is_computed_in_slices_and_nobody_waits_for_it() -> None:
    consumers = Consumers(t=3000)
    joined = consumers.join("m1")
    assert told(joined) == [], "not there yet"
    consumers.world.loop.advance(BEGIN_AFTER_MS)
    assert told(consumers.beat("m1", 2)) is None, "computed, not written yet"
    consumers.world.loop.advance(1)
    assert told(consumers.beat("m1", 2)) is None, "encoded, not written yet"
    consumers.world.loop.advance(1)
    assert told(consumers.beat("m1", joined.member_epoch)) == list(range(3000))


def test_records_that_were_encoded_ahead_are_those_that_the_log_has() -> None:
    consumers = Consumers(t=3000)
    for member in ("m1", "m2", "m3"):
        consumers.join(member)
    consumers.world.loop.advance(BEGIN_AFTER_MS + 5)
    replayed = GroupStorage()
    for batch in consumers.world.log.batches[0]:
        shard: Any = replayed
        for _ in batches.replay_steps(shard, "group-coordinator", memoryview(batch), 0):
            pass
    live = consumers.world.shard.storage
    assert replayed.snapshot() == live.snapshot()
    assert {len(x) for x in live.consumer.groups["g"].targets.values()} == {1}


class ManyTopics:
    """Counts how many names are matched at a time."""

    def __init__(self, count: int) -> None:
        self.all = {f"topic-{i}": TopicInfo(i.to_bytes(16, "big"), 1) for i in range(1, count)}
        self.looks = 0

    def find(self, name: str) -> TopicInfo | None:
        return self.all.get(name)

    def name_of(self, topic_id: bytes) -> str | None:
        return f"topic-{int.from_bytes(topic_id, 'big')}"

    def names(self) -> list[str]:
        self.looks += 1
        return list(self.all)

    def version(self) -> int:
        return 1

    def has_all_of(self, now_ms: int) -> bool:
        return True


def test_a_large_pattern_looks_at_few_names_at_a_time() -> None:
    """A thousand names of 249 characters and `(.?){1000}` kept the loop for half a minute."""
    topics = ManyTopics(101)
    for pattern, slices in (("topic-.*", 1), ("(.?){1000}", 17), ("((.?){80}){80}", 100)):
        matching = patterns.Matching({pattern: None}, topics, 1, {})
        steps = 1
        while matching.step():
            steps += 1
        assert steps == slices, pattern
        assert len(matching.found[pattern]) == 100


def test_a_pattern_goes_through_many_topics_in_slices_and_once_for_all_groups() -> None:
    topics = ManyTopics(2501)
    world = GroupWorld(topics=topics)
    shape = m.ConsumerGroupHeartbeatRequest
    for group in ("g", "h"):
        request = shape(
            group_id=group, member_id="m", rebalance_timeout_ms=1000, topic_partitions=[],
            subscribed_topic_names=[], subscribed_topic_regex="topic-.*",
        )  # fmt: skip
        assert world.now(world.coordinator.consumer_heartbeat(request, CALLER)).error_code == 0
    world.loop.advance(10)
    shard = world.shard
    for group in ("g", "h"):
        assert len(shard.storage.consumer.groups[group].regexes["topic-.*"].topics) == 2500
    assert topics.looks == 1, "the second group takes over what the first has found"
    groups, moment = shard.consumer.groups, Moment(world.loop.now_ms, 1)
    groups.topics_changed()
    turns = 0
    while patterns.resolve(groups, "g", moment).records or "g" in groups.matching:
        turns += 1
    assert turns == 2, "slices of a thousand names, the last one with the result"


def test_a_group_with_more_patterns_than_are_kept() -> None:
    world = GroupWorld(topics=ManyTopics(30))
    shape = m.ConsumerGroupHeartbeatRequest
    for i in range(PATTERNS_KEPT_MAX + 3):
        request = shape(
            group_id="g", member_id=f"m{i}", rebalance_timeout_ms=1000, topic_partitions=[],
            subscribed_topic_names=[], subscribed_topic_regex=f"topic-{i}",
        )  # fmt: skip
        world.now(world.coordinator.consumer_heartbeat(request, CALLER))
    world.loop.advance(10)
    found = world.shard.storage.consumer.groups["g"].regexes
    assert len(found) == PATTERNS_KEPT_MAX + 3
    assert found["topic-29"].topics == ("topic-29",)


def test_an_empty_group_changes_its_kind() -> None:
    consumers = Consumers()
    consumers.join("m1")
    joined = consumers.world.now(consumers.world.join())
    assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    consumers.beat("m1", -1)
    assert consumers.world.now(consumers.world.join()).error_code == ErrorCode.NONE
    assert consumers.world.shard.storage.kind("g") == "classic"


class RandomConsumers(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.consumers = Consumers(t=5)
        self.epochs: dict[str, int] = {}
        self.owned: dict[str, dict[bytes, list[int]]] = {}
        self.size_max = progress.INLINE_SIZE_MAX

    @initialize(size_max=st.sampled_from([0, progress.INLINE_SIZE_MAX]))
    def start(self, size_max: int) -> None:
        """With 0 every assignment is one of a large group: a job."""
        progress.INLINE_SIZE_MAX = size_max

    def teardown(self) -> None:
        try:
            self.it_gets_quiet()
        finally:
            progress.INLINE_SIZE_MAX = self.size_max

    def heartbeat(self, member: str) -> None:
        owned = [
            m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=indexes)
            for topic, indexes in self.owned[member].items()
        ]
        epoch = self.epochs[member]
        self.take(member, self.consumers.beat(member, epoch, topic_partitions=owned))

    def take(self, member: str, answer: Any) -> None:
        if answer.error_code != ErrorCode.NONE:
            self.epochs.pop(member, None)
            self.owned.pop(member, None)
            return
        self.epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[member] = {
                x.topic_id: list(x.partitions) for x in answer.assignment.topic_partitions
            }

    @rule(member=st.sampled_from("abcd"))
    def join(self, member: str) -> None:
        self.owned[member] = {}
        self.take(member, self.consumers.join(member))

    @rule(member=st.sampled_from("abcd"))
    def beat(self, member: str) -> None:
        if member in self.epochs:
            self.heartbeat(member)

    @rule(member=st.sampled_from("abcd"))
    def leave(self, member: str) -> None:
        if member in self.epochs:
            self.consumers.beat(member, -1)
            del self.epochs[member], self.owned[member]

    @rule(member=st.sampled_from("abcd"))
    def fall_silent(self, member: str) -> None:
        self.epochs.pop(member, None)
        self.owned.pop(member, None)

    @rule(ms=st.sampled_from([100, 1000, 10_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.consumers.world.loop.advance(ms)

    @rule(more=st.integers(1, 3))
    def topic_grows(self, more: int) -> None:
        if self.consumers.topics.counts["t"] < 20:
            self.consumers.topics.counts["t"] += more
            self.consumers.world.follow_topics()

    @rule()
    def reload(self) -> None:
        before = self.consumers.world.shard.storage.snapshot()
        self.consumers.world.reload()
        assert self.consumers.world.shard.storage.snapshot() == before

    @rule(ms=st.sampled_from([100, 1000, 46_000]))
    def the_log_refuses_for_a_while(self, ms: int) -> None:
        """Timers pass meanwhile; a heartbeat that is refused is sent again later."""
        log = self.consumers.world.log
        log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        self.consumers.world.loop.advance(ms)
        log.refuse = None

    @rule()
    def it_gets_quiet(self) -> None:
        for _ in range(12):
            self.consumers.world.loop.advance(1000)
            for member in list(self.epochs):
                self.heartbeat(member)
        self.consumers.world.loop.advance(CONSUMER_SESSION_MS - 12_000)
        for member in list(self.epochs):
            self.heartbeat(member)
        for _ in range(12):
            self.consumers.world.loop.advance(1000)
            for member in list(self.epochs):
                self.heartbeat(member)
        group = self.consumers.world.shard.storage.consumer.groups.get("g")
        assert sorted(self.epochs) == ([] if group is None else sorted(group.members))
        if group is None or not self.epochs:
            return
        assert group.target_epoch == group.epoch
        sizes = [sum(map(len, self.owned[member].values())) for member in self.epochs]
        assert sum(sizes) == self.consumers.topics.counts["t"]
        assert max(sizes) - min(sizes) <= 1

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        group = self.consumers.world.shard.storage.consumer.groups.get("g")
        owners: dict[tuple[bytes, int], str] = {}
        for member, topics in self.owned.items():
            if group is None or member not in group.members:
                continue  # it was fenced and will hear of it
            for topic, indexes in topics.items():
                for index in indexes:
                    assert (topic, index) not in owners
                    owners[topic, index] = member


TestRandomConsumers = RandomConsumers.TestCase
TestRandomConsumers.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
