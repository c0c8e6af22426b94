"""What a timer or a job decides and the log refuses is decided again: nobody asks for it again, and
members wait for it.

Refused here as by a partition that has lost replicas in sync for a moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kwire.coordinator.group.assignment_jobs import (
    BEGIN_AFTER_MS,
    INLINE_SIZE_MAX,
    RETRY_MS_MAX,
    SLICE_RECORDS,
)
from kwire.coordinator.group.shard import GroupShard
from kwire.coordinator.partition import ShardState
from kwire.coordinator.repeated_writes import RETRY_MS
from kwire.coordinator.runtime import Operation
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.groups import GroupWorld
from tests.unit.coordinator.group.test_consumer_groups import CONSUMER_SESSION_MS, Consumers, told
from tests.unit.coordinator.group.test_share_groups import BEAT_MS, SESSION_MS, Sharers


@contextmanager
def refused(world: GroupWorld) -> Iterator[None]:
    world.log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
    yield
    world.log.refuse = None


def test_a_large_group_is_assigned_to_when_its_assignment_was_refused() -> None:
    """It stayed Assigning until its next epoch: the job waited for nothing."""
    consumers = Consumers(t=INLINE_SIZE_MAX)
    epoch = consumers.join("m0").member_epoch
    with refused(consumers.world):
        consumers.world.loop.advance(BEGIN_AFTER_MS + 50)
        assert told(consumers.beat("m0", epoch)) is None
        consumers.world.loop.advance(3 * RETRY_MS)
    consumers.world.loop.advance(RETRY_MS + 50)
    assert consumers.group().target_epoch == consumers.group().epoch
    assert told(consumers.beat("m0", epoch)) == list(range(INLINE_SIZE_MAX))


def test_an_assignment_of_which_a_part_was_written_is_made_anew() -> None:
    consumers = Consumers(t=INLINE_SIZE_MAX)
    log = consumers.world.log
    members = [f"m{number}" for number in range(SLICE_RECORDS)]
    epochs = {member: consumers.join(member).member_epoch for member in members}
    log.bytes_max = 2000
    append, left = log.append, [3]

    def some(*given: object, **named: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            log.refuse = ErrorCode.NOT_ENOUGH_REPLICAS
        return append(*given, **named)  # type: ignore[arg-type]

    log.append = some  # type: ignore[method-assign,assignment]
    consumers.world.loop.advance(BEGIN_AFTER_MS + 50)
    del log.append
    log.refuse = None
    group = consumers.group()
    assert group.target_epoch < group.epoch
    assert 0 < len(group.targets) < len(members)
    consumers.world.loop.advance(RETRY_MS + 50)
    assert group.target_epoch == group.epoch
    found = [x for member in members for x in told(consumers.beat(member, epochs[member])) or []]
    assert sorted(found) == list(range(INLINE_SIZE_MAX))


def test_a_large_share_group_is_assigned_to_when_its_assignment_was_refused() -> None:
    sharers = Sharers(t=500)
    epoch = sharers.join("m1").member_epoch
    sharers.world.loop.advance(BEAT_MS)
    epoch = sharers.beat("m1", epoch).member_epoch
    with refused(sharers.world):
        sharers.world.loop.advance(BEGIN_AFTER_MS + 50)
    assert sharers.group().target_epoch < sharers.group().epoch
    sharers.world.loop.advance(RETRY_MS + 50)
    assert told(sharers.beat("m1", epoch)) == list(range(500))


def test_a_static_member_that_comes_back_meanwhile_is_assigned_to() -> None:
    """The targets were those of its predecessor's id, at the newest epoch: it got nothing."""
    consumers = Consumers(t=INLINE_SIZE_MAX)
    consumers.join("s1", instance_id="i")
    consumers.world.loop.advance(BEGIN_AFTER_MS)
    consumers.beat("s1", -2, instance_id="i")
    back = consumers.join("s2", instance_id="i")
    assert told(back) == []
    consumers.world.loop.advance(BEGIN_AFTER_MS + 50)
    assert list(consumers.group().targets) == ["s2"]
    answer = consumers.beat("s2", back.member_epoch, instance_id="i")
    assert told(answer) == list(range(INLINE_SIZE_MAX))


def test_a_silent_member_is_fenced_when_that_was_refused_at_first() -> None:
    """It stayed for ever, and so did what it had: its session was over and was looked at once."""
    consumers = Consumers()
    consumers.join("m1")
    consumers.world.loop.advance(CONSUMER_SESSION_MS - 10)
    with refused(consumers.world):
        consumers.world.loop.advance(2 * RETRY_MS)
    assert list(consumers.group().members) == ["m1"]
    consumers.world.loop.advance(RETRY_MS)
    assert consumers.group().members == {}


def test_a_member_that_is_heard_again_meanwhile_is_not_fenced() -> None:
    consumers = Consumers()
    epoch = consumers.join("m1").member_epoch
    consumers.world.loop.advance(CONSUMER_SESSION_MS - 10)
    with refused(consumers.world):
        consumers.world.loop.advance(RETRY_MS)
        assert consumers.beat("m1", epoch).error_code == ErrorCode.NONE
    consumers.world.loop.advance(CONSUMER_SESSION_MS - 10)
    assert list(consumers.group().members) == ["m1"]


def test_who_does_not_give_up_in_time_is_fenced_when_that_was_refused_at_first() -> None:
    consumers = Consumers()
    consumers.join("m1", rebalance_timeout_ms=5_000)
    consumers.join("m2")
    consumers.world.loop.advance(1000)
    owned = consumers.owning(0, 1, 2, 3, 4, 5)
    consumers.beat("m1", 2, topic_partitions=owned)
    with refused(consumers.world):
        consumers.world.loop.advance(5_000)
    assert sorted(consumers.group().members) == ["m1", "m2"]
    consumers.world.loop.advance(RETRY_MS)
    assert list(consumers.group().members) == ["m2"]


def test_a_pattern_is_resolved_when_that_was_refused_at_first() -> None:
    """Its member waited for the next refresh, ten minutes by default."""
    consumers = Consumers(t1=2)
    consumers.join("m1", subscribed_topic_names=None, subscribed_topic_regex="t.*")
    consumers.topics.counts["t2"] = 3
    with refused(consumers.world):
        consumers.world.follow_topics()
        consumers.world.loop.advance(10)
    consumers.world.loop.advance(RETRY_MS)
    assert consumers.group().regexes["t.*"].topics == ("t1", "t2")


def test_a_silent_member_of_a_share_group_goes_when_that_was_refused_at_first() -> None:
    sharers = Sharers(t=1)
    sharers.join("m1")
    sharers.world.loop.advance(SESSION_MS - 10)
    with refused(sharers.world):
        sharers.world.loop.advance(2 * RETRY_MS)
    assert list(sharers.group().members) == ["m1"]
    sharers.world.loop.advance(RETRY_MS)
    assert sharers.group().members == {}


def test_offsets_of_a_deleted_topic_go_when_that_was_refused_at_first() -> None:
    """They stayed: a topic is deleted once."""
    world = GroupWorld()
    world.commit(5, topic_id=b"t" * 16)
    with refused(world):
        world.follow_topics(t=b"t" * 16)
        world.loop.advance(3 * RETRY_MS)
    assert world.offset() == 5
    world.loop.advance(RETRY_MS)
    assert world.offset() == -1


def test_offsets_of_a_topic_that_is_deleted_during_a_load_go_after_it() -> None:
    world = GroupWorld()
    world.commit(5, topic_id=b"t" * 16)
    runtime = world.coordinator.runtime
    runtime.unload(0)
    world.log.read_later = []
    runtime.load(0, world.epoch + 1)
    world.follow_topics(t=b"t" * 16)
    held, world.log.read_later = world.log.read_later, None
    for pending, found in held:
        pending.complete(found)
    world.loop.run()
    assert world.offset() == -1


def test_a_share_group_forgets_a_deleted_topic_when_that_was_refused_at_first() -> None:
    """It was to be assigned for ever: each heartbeat gave the group a new epoch."""
    sharers = Sharers(t=2, u=1)
    epoch = sharers.join("m1", "t", "u").member_epoch
    for _ in range(3):
        epoch = sharers.beat("m1", epoch).member_epoch
    topic_id = sharers.topics.id_of("t")
    del sharers.topics.counts["t"]
    with refused(sharers.world):
        sharers.world.follow_topics(t=topic_id)
        sharers.world.loop.run()
    sharers.world.loop.advance(RETRY_MS)
    assert list(sharers.group().initialized()) == [sharers.topics.id_of("u")]
    epochs = []
    for _ in range(6):
        sharers.world.loop.advance(BEAT_MS)
        epoch = sharers.beat("m1", epoch).member_epoch
        epochs.append(sharers.group().epoch)
    assert epochs[2:] == [epochs[2]] * 4


def test_a_broker_that_leads_no_more_does_not_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sharers = Sharers(t=2)
    sharers.join("m1")
    runtime, written = sharers.world.coordinator.runtime, list[int]()
    write = runtime.write

    def counted(partition: int, operation: Operation[GroupShard, None]) -> Pending[None]:
        written.append(partition)
        return write(partition, operation)

    with refused(sharers.world):
        monkeypatch.setattr(runtime, "write", counted)
        sharers.share.topics_deleted([sharers.topics.id_of("t")])
        sharers.world.loop.advance(3 * RETRY_MS)
    assert len(written) == 4
    runtime.close()
    sharers.world.loop.advance(10 * RETRY_MS)
    assert len(written) == 5, "the one that was on its way"


def test_offsets_of_a_topic_deleted_while_its_shard_fails_to_load_go_too() -> None:
    """A shard that had failed, and was to be loaded again, was taken for one led elsewhere."""
    world = GroupWorld()
    world.commit(5, topic_id=b"t" * 16)
    world.log.refuse_reads = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    world.reload()
    assert world.coordinator.runtime.state(0) is ShardState.FAILED
    world.follow_topics(t=b"t" * 16)
    world.loop.advance(3 * RETRY_MS)
    world.log.refuse_reads = None
    world.loop.advance(20 * RETRY_MS)
    assert world.coordinator.runtime.state(0) is ShardState.ACTIVE
    assert world.offset() == -1


def test_an_assignment_that_is_too_large_is_tried_less_and_less_often_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It was computed every 500 ms for as long as the group was there."""
    consumers = Consumers(t=INLINE_SIZE_MAX)
    consumers.join("m0")
    log = consumers.world.log
    log.bytes_max = 200
    jobs = consumers.world.shard.consumer.groups.assigning
    begun: list[int] = []
    begin_anew = jobs._begin_anew

    def counted(group_id: str, job: Any, at_ms: int) -> None:
        begun.append(at_ms - consumers.world.loop.now_ms)
        begin_anew(group_id, job, at_ms)

    jobs._begin_anew = counted  # type: ignore[method-assign]
    consumers.world.loop.advance(20_000)
    assert begun == [RETRY_MS << count for count in range(6)]
    assert begun[-1] < RETRY_MS_MAX
    assert len([x for x in caplog.records if "is not stored" in x.getMessage()]) == 1
    log.bytes_max = 1 << 20
    consumers.world.loop.advance(begun[-1])
    assert consumers.group().target_epoch == consumers.group().epoch
