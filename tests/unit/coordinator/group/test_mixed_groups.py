"""Members of both protocols in one group, at random: joins, heartbeats, syncs, silence, time-outs,
topics that grow, reloads, a high watermark that lags.

Whatever the group is at the moment, nobody owns what another member owns, a shard from the log is
the live one, and when it gets quiet everything is assigned evenly. The classic members are eager:
they give up everything before they join.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.coordinator import batches
from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.consumer.settings import ConsumerGroupSettings
from kwire.coordinator.group.consumer_protocol import encode_assignment, parse_assignment
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import TopicInfo
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld

CONSUMERS, CLASSICS = ("a", "b"), ("x", "y")
CALLER = Caller(1, "client", "/127.0.0.1")
SESSION_MS = 10_000
Owned = frozenset[int]


class Metadata:
    """One topic, which may grow."""

    ID = b"t".ljust(16, b"\0")

    def __init__(self) -> None:
        self.count = 5

    def find(self, name: str) -> TopicInfo | None:
        return TopicInfo(self.ID, self.count) if name == "t" else None

    def name_of(self, topic_id: bytes) -> str | None:
        return "t" if topic_id == self.ID else None

    def names(self) -> list[str]:
        return ["t"]

    def version(self) -> int:
        return self.count

    def has_all_of(self, now_ms: int) -> bool:
        return True


def subscription() -> bytes:
    message = m.by_name("ConsumerProtocolSubscription")
    return b"\x00\x01" + bytes(message(topics=["t"]).encode(1))


class MixedGroup(RuleBasedStateMachine):
    """What a member knows comes from the answers it got."""

    @initialize(lagging=st.booleans())
    def start(self, lagging: bool) -> None:
        self.topics = Metadata()
        self.world = GroupWorld(
            lagging=lagging, topics=self.topics, consumer_settings=ConsumerGroupSettings()
        )
        self.epochs: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.owned: dict[str, Owned] = {}
        # Classic members: who has to join, and whose answer is awaited.
        self.has_to_join: dict[str, bool] = {}
        # Consumer members whose last answer was lost.
        self.tells_all: dict[str, bool] = {}
        self.waiting: dict[str, int] = {}
        self.asked = 0

    # --- consumer members ---

    def beat(self, name: str, epoch: int, **fields: Any) -> None:
        request = m.ConsumerGroupHeartbeatRequest(group_id="g", member_id=name, **fields)
        request.member_epoch = epoch
        self.await_answer(
            name, self.world.coordinator.consumer_heartbeat(request, CALLER), self.told
        )

    def told(self, name: str, response: Any) -> None:
        if response.error_code != ErrorCode.NONE:
            if response.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT):
                self.tells_all[name] = True
            else:
                self.gone(name)
            return
        self.epochs[name] = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.owned[name] = frozenset(p for topic in topics for p in topic.partitions)

    def gone(self, name: str) -> None:
        self.epochs.pop(name, None)
        self.owned.pop(name, None)
        self.ids.pop(name, None)

    def await_answer(self, name: str, answer: Any, learn: Any) -> None:
        """A member has one request on its way at a time."""
        self.asked += 1
        number = self.waiting[name] = self.asked

        def settle(response: Any) -> None:
            if self.waiting.get(name) == number:
                del self.waiting[name]
                learn(name, response)

        if isinstance(answer, Pending):
            answer.add_done_callback(lambda done: settle(done.result()))
        else:
            settle(answer)

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_joins(self, name: str) -> None:
        if name in self.waiting:
            return
        self.owned[name] = frozenset()
        self.beat(
            name, 0, rebalance_timeout_ms=20_000, subscribed_topic_names=["t"], topic_partitions=[]
        )

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_beats(self, name: str) -> None:
        if name in self.waiting or name not in self.epochs:
            return
        topic = m.ConsumerGroupHeartbeatRequest.TopicPartitions(
            topic_id=Metadata.ID, partitions=sorted(self.owned[name])
        )
        fields: dict[str, Any] = {}
        if self.tells_all.pop(name, False):  # as real clients after a lost answer
            fields = {"rebalance_timeout_ms": 20_000, "subscribed_topic_names": ["t"]}
        self.beat(name, self.epochs[name], topic_partitions=[topic], **fields)

    @rule(name=st.sampled_from(CONSUMERS))
    def consumer_leaves(self, name: str) -> None:
        if name in self.epochs and name not in self.waiting:
            self.owned[name] = frozenset()
            self.beat(name, -1)
            self.gone(name)
            self.waiting.pop(name, None)

    # --- classic members ---

    @rule(name=st.sampled_from(CLASSICS))
    def classic_joins(self, name: str) -> None:
        if name in self.waiting:
            return
        self.owned[name] = frozenset()
        self.epochs.pop(name, None)
        answer = self.world.join(
            self.ids.get(name, ""),
            protocols=(("range", subscription()),),
            session_ms=SESSION_MS,
            rebalance_ms=SESSION_MS,
            version=5,
        )
        self.await_answer(name, answer, self.joined)

    def joined(self, name: str, response: Any) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.ids[name] = response.member_id
        elif response.error_code == ErrorCode.NONE:
            self.ids[name] = response.member_id
            self.epochs[name] = response.generation_id
            self.has_to_join[name] = False
            self.sync(name, [x.member_id for x in response.members])
        elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.gone(name)

    def sync(self, name: str, members: list[str]) -> None:
        """The leader, who was told of the members, deals out the partitions."""
        plan = {
            member_id: encode_assignment({"t": tuple(range(i, self.topics.count, len(members)))}, 1)
            for i, member_id in enumerate(members)
        }
        answer = self.world.sync(self.ids[name], self.epochs[name], plan)
        self.await_answer(name, answer, self.synced)

    def synced(self, name: str, response: Any) -> None:
        if response.error_code == ErrorCode.NONE:
            assigned = parse_assignment(bytes(response.assignment)).partitions
            self.owned[name] = frozenset(assigned.get("t", ()))
            return
        self.has_to_join[name] = True
        if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.gone(name)

    @rule(name=st.sampled_from(CLASSICS))
    def classic_beats(self, name: str) -> None:
        if name in self.waiting or name not in self.epochs:
            return
        answer = self.world.heartbeat(self.ids[name], self.epochs[name])
        self.await_answer(name, answer, self.beaten)

    def beaten(self, name: str, response: Any) -> None:
        if response.error_code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.has_to_join[name] = True
        elif response.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.gone(name)

    @rule(name=st.sampled_from(CLASSICS))
    def classic_leaves(self, name: str) -> None:
        if name in self.ids and name not in self.waiting:
            self.world.leave((self.ids[name], None))
            self.gone(name)

    # --- the world ---

    @rule(ms=st.sampled_from([10, 1000, 5000, 11_000, 46_000]))
    def time_passes(self, ms: int) -> None:
        self.world.loop.advance(ms)

    @rule()
    def everything_is_committed(self) -> None:
        self.world.log.commit_all()

    @rule()
    def topic_grows(self) -> None:
        if self.topics.count < 12:
            self.topics.count += 1
            self.world.follow_topics()

    @rule()
    def reload(self) -> None:
        before = self.world.shard.storage.snapshot()
        self.world.reload()
        assert self.world.shard.storage.snapshot() == before

    @rule()
    def it_gets_quiet(self) -> None:
        for _ in range(24):
            self.world.log.commit_all()
            self.world.loop.advance(1100)
            for name in CONSUMERS:
                self.consumer_beats(name)
            for name in CLASSICS:
                if name in self.ids and (self.has_to_join.get(name) or name not in self.epochs):
                    self.classic_joins(name)
                else:
                    self.classic_beats(name)
            self.world.log.commit_all()
        members = self.members()
        mine = {self.ids.get(name, name): self.owned[name] for name in self.epochs}
        if members is None or sorted(members) != sorted(mine) or self.waiting:
            return
        sizes = [len(owned) for owned in mine.values()]
        # A classic leader hears of a topic that has grown from its own metadata only.
        if mine and self.world.shard.storage.kind("g") == "consumer":
            assert sum(sizes) == self.topics.count, mine
        if sizes:
            assert max(sizes) - min(sizes) <= 1, mine

    def members(self) -> list[str] | None:
        shard = self.world.shard
        if "g" in shard.storage.consumer.groups:
            return list(shard.storage.consumer.groups["g"].members)
        group = shard.classic.groups.view("g")
        return None if group is None else list(group.members)

    # --- invariants ---

    @invariant()
    def nobody_owns_what_another_one_owns(self) -> None:
        members = dict.fromkeys(self.members() or [])
        owners: dict[int, str] = {}
        for name, owned in self.owned.items():
            if self.ids.get(name, name) in members:
                for partition in owned:
                    assert partition not in owners, (name, owners[partition])
                    owners[partition] = name

    @invariant()
    def a_shard_from_the_log_is_the_live_one(self) -> None:
        replayed = GroupStorage()
        for batch in self.world.log.batches.get(0, []):
            shard: Any = replayed
            for _ in batches.replay_steps(shard, "group-coordinator", memoryview(batch), 0):
                pass
        assert replayed.snapshot() == self.world.shard.storage.snapshot()

    @invariant()
    def records_give_no_partition_to_two(self) -> None:
        group = self.world.shard.storage.consumer.groups.get("g")
        held: dict[int, str] = {}
        for member_id, where in ({} if group is None else group.current).items():
            for partitions in (where.assigned, where.pending_revocation):
                for index in partitions.get(Metadata.ID, ()):
                    assert index not in held, (member_id, held)
                    held[index] = member_id


MixedGroup.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestMixedGroup = MixedGroup.TestCase
