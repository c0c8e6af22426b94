"""Share groups: members, their partitions, and the state that is initialized for these first.

What Apache Kafka answers is in `tests/golden/coordinator`; here is what depends on the persister,
on time and on reloads, and a random model: members join, beat, leave, fall silent, topics grow, the
shard is reloaded at any time, the persister fails. When it is quiet, every partition has a member
and every member has one.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kwire.coordinator.group.caller import Caller
from kwire.coordinator.group.group_configs import default_group_config
from kwire.coordinator.group.share.settings import ShareGroupSettings
from kwire.coordinator.group.share_requests import NamedPartition
from kwire.coordinator.group.storage import GroupStorage
from kwire.coordinator.group.topics import TopicInfo
from kwire.pending import Pending
from kwire.protocol import coordinator_records
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import iterate_headers, read_batch
from tests.support.groups import GroupWorld
from tests.support.persister import MemoryPersister

CALLER = Caller(1, "client", "/127.0.0.1")
BEAT_MS = 5000
SESSION_MS = default_group_config("g", "share.session.timeout.ms")


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


class Sharers:
    """Members that talk to one share group."""

    def __init__(self, *, lagging: bool = False, size_max: int = 200, **counts: int) -> None:
        self.topics = FakeTopics(**(counts or {"t": 3}))
        self.persister = MemoryPersister()
        self.world = GroupWorld(
            topics=self.topics,
            lagging=lagging,
            persister=self.persister,
            share_settings=ShareGroupSettings(max_size=size_max),
            latest_offsets=lambda keys: Pending.completed(dict.fromkeys(keys, 100)),
        )
        self.share = self.world.coordinator.share

    def beat(self, member: str, epoch: int, *names: str, group: str = "g") -> Any:
        request = m.ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=list(names) or None,
        )
        return self.world.now(self.share.heartbeat(request, CALLER))

    def join(self, member: str, *names: str, group: str = "g") -> Any:
        return self.beat(member, 0, *(names or ("t",)), group=group)

    def settle(self, member: str, group: str = "g") -> list[int]:
        """Beat until nothing changes; what the member has at last."""
        owned: list[int] = []
        epoch = 0
        for _ in range(4):
            answer = self.beat(member, epoch, *(() if epoch else ("t",)), group=group)
            assert answer.error_code == 0, answer.error_message
            epoch = answer.member_epoch
            owned = told(answer) if answer.assignment is not None else owned
            self.world.loop.advance(BEAT_MS)
        return owned

    def group(self, group: str = "g") -> Any:
        return self.world.shard.storage.share.groups[group]

    def alter(self, offset: int, *partitions: int, topic: str = "t", group: str = "g") -> Any:
        shape = m.AlterShareGroupOffsetsRequest
        asked = [
            shape.AlterShareGroupOffsetsRequestPartition(partition_index=x, start_offset=offset)
            for x in partitions
        ]
        topics = [shape.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=asked)]
        return self.share.alter_offsets(shape(group_id=group, topics=topics))

    def delete(self, *names: str, group: str = "g") -> Any:
        shape = m.DeleteShareGroupOffsetsRequest
        topics = [shape.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in names]
        return self.share.delete_offsets(shape(group_id=group, topics=topics))


def told(response: Any) -> list[int]:
    return [p for topic in response.assignment.topic_partitions for p in topic.partitions]


def test_partitions_are_assigned_once_their_state_is_initialized() -> None:
    sharers = Sharers()
    sharers.persister.holding = True
    joined = sharers.join("m1")
    assert (joined.error_code, told(joined)) == (0, [])
    asked = sharers.persister.calls
    assert [(name, [(x.partition, x.start_offset) for x in of]) for name, _, of in asked] == [
        ("initialize", [(0, -1), (1, -1), (2, -1)])
    ]
    sharers.world.loop.advance(BEAT_MS)
    assert sharers.beat("m1", joined.member_epoch).assignment is None
    assert len(asked) == 1, "asked again while the first answer is on its way"
    sharers.persister.release()
    sharers.world.loop.advance(BEAT_MS)
    assert told(sharers.beat("m1", joined.member_epoch)) == [0, 1, 2]


def test_what_the_persister_refuses_is_asked_for_again() -> None:
    sharers = Sharers()
    key = ("g", sharers.topics.id_of("t"), 1)
    sharers.persister.errors[key] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    sharers.join("m1")
    sharers.world.loop.run()
    assert sharers.group().initialized() == {}
    assert sharers.group().state_partitions.initializing == {}
    assert sharers.settle("m1") == [0, 1, 2]


def test_a_heartbeat_whose_sender_is_gone_initializes_all_the_same() -> None:
    sharers = Sharers(lagging=True)
    request = m.ShareGroupHeartbeatRequest(
        group_id="g", member_id="m1", subscribed_topic_names=["t"]
    )
    answer = sharers.share.heartbeat(request, CALLER)
    sharers.world.loop.run()
    assert isinstance(answer, Pending)
    answer.cancel()
    sharers.world.log.commit_all()
    sharers.world.loop.run()
    assert [name for name, *_ in sharers.persister.calls] == ["initialize"]


def test_a_new_coordinator_asks_again_for_what_was_on_its_way() -> None:
    sharers = Sharers()
    sharers.persister.holding = True
    sharers.join("m1")
    sharers.world.reload()
    sharers.persister.holding = False
    assert sharers.settle("m1") == [0, 1, 2]
    starts = [x.start_offset for _, _, of in sharers.persister.calls for x in of]
    assert starts == [-1] * 6


def test_partitions_that_a_topic_grows_by_begin_at_offset_0() -> None:
    sharers = Sharers()
    sharers.settle("m1")
    sharers.topics.counts["t"] = 5
    sharers.world.follow_topics()
    assert sharers.settle("m1") == [0, 1, 2, 3, 4]
    last = sharers.persister.calls[-1][2]
    assert [(x.partition, x.start_offset) for x in last] == [(3, 0), (4, 0)]


def test_more_members_than_partitions_share_them() -> None:
    sharers = Sharers(t=2)
    members = [f"m{i}" for i in range(5)]
    for member in members:
        sharers.join(member)
    for _ in range(4):
        owned = {member: sharers.settle(member) for member in members}
    assert all(owned.values())
    assert sorted(p for partitions in owned.values() for p in partitions) == [0, 0, 0, 1, 1, 1]


def test_a_large_assignment_is_computed_between_heartbeats() -> None:
    sharers = Sharers(t=500)
    joined = sharers.join("m1")
    sharers.world.loop.advance(BEAT_MS)
    beat = sharers.beat("m1", joined.member_epoch)
    assert beat.assignment is None, "the assignment is on its way"
    sharers.world.loop.advance(BEAT_MS)
    assert told(sharers.beat("m1", beat.member_epoch)) == list(range(500))


def test_a_full_group_takes_nobody_more() -> None:
    sharers = Sharers(size_max=1)
    sharers.join("m1")
    assert sharers.join("m2").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert sharers.join("m1").error_code == 0


def test_a_silent_member_goes_after_its_session_and_others_get_its_partitions() -> None:
    sharers = Sharers(t=1)
    sharers.settle("m1")
    epoch = sharers.join("m2").member_epoch
    sharers.world.loop.advance(SESSION_MS - 1)
    assert sharers.beat("m2", epoch).error_code == 0
    sharers.world.loop.advance(SESSION_MS - 1)
    assert list(sharers.group().members) == ["m2"]
    assert sharers.settle("m2") == [0]
    gone = sharers.beat("m1", 1)
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_after_a_reload_members_have_a_full_session() -> None:
    sharers = Sharers()
    epoch = sharers.join("m1").member_epoch
    sharers.world.loop.advance(SESSION_MS - 1)
    sharers.world.reload()
    sharers.world.loop.advance(SESSION_MS - 1)
    assert sharers.beat("m1", epoch).error_code == 0


def test_offsets_are_altered_only_while_nobody_is_there() -> None:
    sharers = Sharers()
    epoch = sharers.join("m1").member_epoch
    assert sharers.world.now(sharers.alter(7, 0)).error_code == ErrorCode.NON_EMPTY_GROUP
    sharers.beat("m1", -1)
    answer = sharers.world.now(sharers.alter(7, 0, 9))
    assert [x.error_code for x in answer.responses[0].partitions] == [
        0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]  # fmt: skip
    state = sharers.persister.states["g", sharers.topics.id_of("t"), 0]
    assert (state.start_offset, state.state_epoch > epoch) == (7, True)


def test_altering_waits_for_the_persister_and_tells_its_error() -> None:
    sharers = Sharers()
    sharers.persister.holding = True
    topic_id = sharers.topics.id_of("t")
    sharers.persister.errors["g", topic_id, 0] = [ErrorCode.FENCED_STATE_EPOCH]
    answer = sharers.alter(7, 0, 1)
    sharers.world.loop.run()
    assert isinstance(answer, Pending)
    assert not answer.done
    sharers.persister.release()
    found = sharers.world.now(answer).responses[0].partitions
    assert [x.error_code for x in found] == [ErrorCode.FENCED_STATE_EPOCH, 0]


def test_deleted_offsets_are_forgotten_and_initialized_anew() -> None:
    sharers = Sharers()
    sharers.settle("m1")
    sharers.beat("m1", -1)
    answer = sharers.world.now(sharers.delete("t", "none"))
    assert {x.topic_name: x.error_code for x in answer.responses} == {
        "t": 0, "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }  # fmt: skip
    assert sharers.persister.states == {}
    assert sharers.group().state_partitions.deleting == {}
    assert sharers.settle("m1") == [0, 1, 2]


def test_what_could_not_be_deleted_is_deleted_by_the_next_request() -> None:
    sharers = Sharers()
    sharers.settle("m1")
    sharers.beat("m1", -1)
    topic_id = sharers.topics.id_of("t")
    sharers.persister.errors["g", topic_id, 2] = [ErrorCode.NOT_COORDINATOR]
    answer = sharers.world.now(sharers.delete("t"))
    assert [x.error_code for x in answer.responses] == [ErrorCode.NOT_COORDINATOR]
    assert sharers.group().state_partitions.deleting == {topic_id: "t"}
    assert sharers.world.now(sharers.delete("t")).responses[0].error_code == 0
    assert sharers.persister.states == {}


def test_a_group_is_deleted_with_its_state_or_stays() -> None:
    sharers = Sharers()
    delete = sharers.world.coordinator.delete_groups
    sharers.settle("m1")
    assert sharers.world.now(delete(["g"]))[0].error_code == ErrorCode.NON_EMPTY_GROUP
    sharers.beat("m1", -1)
    topic_id = sharers.topics.id_of("t")
    sharers.persister.errors["g", topic_id, 0] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    refused = sharers.world.now(delete(["g"]))[0]
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "g" in sharers.world.shard.storage.share.groups
    assert sharers.world.now(delete(["g"]))[0].error_code == 0
    assert sharers.persister.states == {}
    assert sharers.world.shard.storage.share.groups == {}


def test_an_empty_group_never_goes_by_itself() -> None:
    sharers = Sharers()
    sharers.settle("m1")
    sharers.beat("m1", -1)
    sharers.world.loop.advance(30 * 24 * 3_600_000)
    assert "g" in sharers.world.shard.storage.share.groups


def test_a_deleted_topic_is_forgotten() -> None:
    sharers = Sharers(t=2, u=1)
    sharers.join("m1", "t", "u")
    sharers.world.loop.run()
    topic_id = sharers.topics.id_of("t")
    del sharers.topics.counts["t"]
    sharers.world.follow_topics(t=topic_id)
    sharers.world.loop.run()
    assert list(sharers.group().initialized()) == [sharers.topics.id_of("u")]


def test_names_belong_to_one_kind_of_group() -> None:
    sharers = Sharers()
    sharers.join("m1")
    refused = sharers.world.now(sharers.world.join("c1"))
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    consumer = m.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="c2", rebalance_timeout_ms=1000, subscribed_topic_names=["t"],
        topic_partitions=[],
    )  # fmt: skip
    answer = sharers.world.now(sharers.world.coordinator.consumer_heartbeat(consumer, CALLER))
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group g is not a consumer group."
    )  # fmt: skip
    sharers.world.now(sharers.world.commit(5, group="classic"))
    answer = sharers.join("m1", group="classic")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a share group."
    )  # fmt: skip


def test_the_lag_counts_what_is_not_delivered_for_good() -> None:
    sharers = Sharers()
    sharers.settle("m1")
    topic_id = sharers.topics.id_of("t")
    state = sharers.persister.states["g", topic_id, 1]
    state.start_offset, state.delivery_complete_count = 40, 15
    asked = [NamedPartition("t", topic_id, x) for x in (0, 1)]
    found = sharers.world.now(sharers.share.described_offsets("g", asked))
    assert [(x.start_offset, x.lag) for x in found] == [(-1, -1), (40, 45)]


class ShareGroupModel(RuleBasedStateMachine):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.sharers = Sharers(t=3)
        self.epochs: dict[str, int] = {}

    @rule(member=st.sampled_from("abcdefg"))
    def join(self, member: str) -> None:
        answer = self.sharers.join(member)
        assert answer.error_code == 0
        self.epochs[member] = answer.member_epoch

    @rule(member=st.sampled_from("abcdefg"))
    def beat(self, member: str) -> None:
        if member in self.epochs:
            answer = self.sharers.beat(member, self.epochs[member])
            if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                del self.epochs[member]
                return
            assert answer.error_code == 0
            self.epochs[member] = answer.member_epoch

    @rule(member=st.sampled_from("abcdefg"))
    def leave(self, member: str) -> None:
        if self.epochs.pop(member, None) is not None:
            self.sharers.beat(member, -1)

    @rule()
    def grow(self) -> None:
        if self.sharers.topics.counts["t"] < 9:
            self.sharers.topics.counts["t"] += 1
            self.sharers.world.follow_topics()

    @rule()
    def reload(self) -> None:
        self.sharers.world.reload()

    @rule(partition=st.integers(0, 8))
    def fail(self, partition: int) -> None:
        key = ("g", self.sharers.topics.id_of("t"), partition)
        self.sharers.persister.errors[key] = [ErrorCode.COORDINATOR_NOT_AVAILABLE]

    @rule(ms=st.sampled_from([100, 5000, 44_000]))
    def wait(self, ms: int) -> None:
        self.sharers.world.loop.advance(ms)

    @invariant()
    def the_log_says_what_the_shard_has(self) -> None:
        self.sharers.world.loop.run()
        storage = GroupStorage()
        for batch in self.sharers.world.decided():
            for position, header in iterate_headers(batch):
                assert not header.is_control
                for record in read_batch(batch, position):
                    assert record.key is not None
                    key = coordinator_records.decode_key("group-coordinator", record.key)
                    value = record.value
                    if value is not None:
                        value = coordinator_records.decode_value(
                            "group-coordinator", key.API_KEY, value
                        )
                    storage.replay(key, value, 0, -1, -1)
        assert storage.share.snapshot() == self.sharers.world.shard.storage.share.snapshot()

    def teardown(self) -> None:
        """Everybody goes on until it is quiet."""
        self.sharers.persister.errors.clear()
        for member in list(self.epochs):
            self.join(member)
        for _ in range(8):
            for member in list(self.epochs):
                self.beat(member)
            self.sharers.world.loop.advance(BEAT_MS)
        if not self.epochs:
            return
        group = self.sharers.group()
        owned = {x: group.where(x).assigned for x in group.members}
        partitions = [p for of in owned.values() for indexes in of.values() for p in indexes]
        assert set(partitions) == set(range(self.sharers.topics.counts["t"]))
        assert all(any(indexes for indexes in of.values()) for of in owned.values())


TestShareGroupModel = ShareGroupModel.TestCase
TestShareGroupModel.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
