"""What a shard still has of deleted topics when it is loaded goes, and of others nothing.

Apache Kafka 4.4 keeps it until its retention is over; by a topic's id it tells none of it either.
"""

from __future__ import annotations

from kwire.coordinator.group.missed_deletions import ASK_AGAIN_MS, SETTLED_MS, SLICE_SIZE
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.protocol.errors import ErrorCode
from tests.support.groups import GroupWorld
from tests.unit.coordinator.group.test_consumer_groups import FakeTopics
from tests.unit.coordinator.group.test_refused_timers import refused
from tests.unit.coordinator.group.test_share_groups import Sharers


class Topics(FakeTopics):
    """Metadata in which a name may get another id. `complete_ms` is when it was known to be
    complete last, None for always."""

    def __init__(self, **counts: int) -> None:
        super().__init__(**counts)
        self.again: set[str] = set()
        self.complete_ms: int | None = None

    def id_of(self, name: str) -> bytes:
        return name.encode().ljust(16, b"2" if name in self.again else b"1")

    def name_of(self, topic_id: bytes) -> str | None:
        return next((name for name in self.counts if self.id_of(name) == topic_id), None)

    def delete(self, name: str) -> bytes:
        """Its id."""
        del self.counts[name]
        return self.id_of(name)

    def has_all_of(self, now_ms: int) -> bool:
        return self.complete_ms is None or self.complete_ms >= now_ms


def world_of(**counts: int) -> tuple[GroupWorld, Topics]:
    topics = Topics(**counts)
    return GroupWorld(topics=topics), topics


def elsewhere(world: GroupWorld, topics: Topics) -> GroupWorld:
    """Another broker, which has not seen a topic go, leads what was written here."""
    return GroupWorld(topics=topics, log=world.log)


def test_offsets_of_a_deleted_topic_go_where_a_load_has_lost_the_walk_over_them() -> None:
    """They stayed: the disk failed between the deletion and the tombstones."""
    world, topics = world_of(t=1, u=1)
    world.commit(5, topic_id=topics.id_of("t"))
    world.commit(6, topic="u", topic_id=topics.id_of("u"))
    world.commit_in_transaction(7, 9, partition=1, topic_id=topics.id_of("t"))
    world.loop.run()
    world.log.refuse_appends = ErrorCode.KAFKA_STORAGE_ERROR
    world.follow_topics(t=topics.delete("t"))
    world.loop.run()
    world.log.refuse_appends = None
    assert (world.shard.storage.offsets.by_group["g"].keys()) == {"u"}
    assert not world.shard.storage.open_transactions
    assert (world.offset(), world.offset(topic="u")) == (-1, 6)


def test_what_nobody_saw_go_goes_once_the_metadata_is_settled() -> None:
    """A broker that had crashed, or led no more, between the deletion and the tombstones."""
    world, topics = world_of(t=1, u=1, v=1)
    for name in topics.counts:
        world.commit(5, topic=name, topic_id=topics.id_of(name))
    world.commit(6, group="other")
    world.loop.run()
    for name in ("t", "v"):
        topics.delete(name)
    topics.again.add("v")
    topics.counts["v"] = 1
    other = elsewhere(world, topics)
    other.commit(7, group="new", topic="v", topic_id=topics.id_of("v"))
    other.loop.advance(SETTLED_MS - 1)
    assert other.shard.storage.offsets.by_group["g"].keys() == {"t", "u", "v"}
    other.loop.advance(2)
    assert other.shard.storage.offsets.by_group["g"].keys() == {"u"}
    assert other.offset("other") == -1, "a commit without an id goes by the name"
    assert other.offset("new", "v") == 7, "it is of the topic that was made anew"


def test_offsets_of_a_topic_that_the_metadata_is_yet_to_tell_of_stay() -> None:
    """The coordinator before knew it: this broker is behind. They went when it had heard something
    of others, however far behind that was."""
    world, topics = world_of(t=1, u=1)
    world.commit(5, topic_id=topics.id_of("t"))
    world.commit(6, topic="u", topic_id=topics.id_of("u"))
    world.loop.run()
    behind = Topics()
    other = elsewhere(world, behind)
    behind.complete_ms = other.loop.now_ms + SETTLED_MS - 1
    behind.counts["v"] = 1
    other.loop.advance(3 * SETTLED_MS)
    assert (other.offset(), other.offset(topic="u")) == (5, 6)
    behind.counts["t"] = 1
    behind.complete_ms += 1
    other.loop.advance(ASK_AGAIN_MS)
    assert (other.offset(), other.offset(topic="u")) == (5, -1)


def test_what_the_log_refuses_is_tried_again_and_many_offsets_take_several_turns() -> None:
    world, topics = world_of(t=1)
    groups = [f"g{number}" for number in range(SLICE_SIZE)]
    for group in groups:
        world.commit(5, group=group, topic_id=topics.id_of("t"))
    world.loop.run()
    topics.delete("t")
    other = elsewhere(world, topics)
    with refused(other):
        other.loop.advance(SETTLED_MS)
    assert len(other.shard.storage.offsets.by_group) == len(groups)
    other.loop.advance(RETRY_MS)
    assert not other.shard.storage.offsets.by_group


def test_a_topic_made_anew_has_no_offsets_of_the_one_before_by_its_id() -> None:
    """As of Apache Kafka 4.4: until the tombstones were there, the old ones were told."""
    world, topics = world_of(t=1)
    world.commit(5, topic_id=topics.id_of("t"))
    world.commit(6, partition=1)
    topics.again.add("t")
    found = world.now(world.fetch({"t": [0, 1]}, topic_id=topics.id_of("t")))
    told = [each.committed_offset for each in found.topics[0].partitions]
    assert told == [-1, 6], "of a commit without an id nobody knows"
    assert world.offset() == 5


def test_a_share_group_forgets_a_topic_that_nobody_saw_go() -> None:
    sharers = Sharers(t=2, u=1)
    epoch = sharers.join("m1", "t", "u").member_epoch
    for _ in range(3):
        epoch = sharers.beat("m1", epoch).member_epoch
    assert len(sharers.group().initialized()) == 2
    other = GroupWorld(topics=sharers.topics, log=sharers.world.log, persister=sharers.persister)
    del sharers.topics.counts["t"]
    sharers.topics.counts["v"] = sharers.topics.counts["w"] = 1  # more was heard
    other.loop.advance(SETTLED_MS)
    group = other.shard.storage.share.groups["g"]
    assert list(group.initialized()) == [sharers.topics.id_of("u")]
