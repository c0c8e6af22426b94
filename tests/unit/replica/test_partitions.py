"""Partitions and their manager over real logs: roles, acknowledgements, waiters, metadata."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from kwire.log.partition.deferred_checks import CheckLaterError, Checks
from kwire.log.types import Isolation
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Codec, Record, build_batch
from kwire.replica import manager, waiting
from kwire.replica.partition import Partition
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.replica.state import FollowerFetched
from tests.support.replica_world import NOW_MS, TOPIC_ID, Waiter, World
from tests.support.replicas import Position


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def code_of(action: Callable[[], Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        action()
    return ErrorCode(caught.value.code)


def test_a_new_replica_has_a_log_and_leads_at_its_epoch(world: World, tmp_path: Path) -> None:
    world.create([1], partitions=2)
    assert world.leaderships == [("t", 0, 3), ("t", 1, 3)]
    assert world.partition().log.leader_epochs.entries == [(3, 0)]
    assert (tmp_path / "t-1" / "partition.metadata").exists()
    assert world.replicas.partition_by_id(TOPIC_ID, 1) is world.partition(1)


def test_a_change_of_many_partitions_is_followed_in_slices(world: World) -> None:
    world.create([1], partitions=25)
    assert world.slices == 3, "10 new logs a slice"
    assert world.leaderships == [("t", index, 3) for index in range(25)]
    change = m.PartitionChangeRecord
    world.apply(*[change(partition_id=i, topic_id=TOPIC_ID, isr=[1]) for i in range(25)])
    assert world.slices == 1
    world.apply(m.RemoveTopicRecord(topic_id=TOPIC_ID))
    assert (world.slices, list(world.replicas)) == (1, [])


def test_partitions_of_others_are_not_hosted(world: World, tmp_path: Path) -> None:
    world.create([2, 3], leader=2)
    assert world.replicas.partition("t", 0) is None
    assert not (tmp_path / "t-0").exists()


def test_alone_an_append_is_committed_when_it_is_written(world: World) -> None:
    world.create([1])
    info = world.append()
    told = world.committed(info.last_offset + 1)
    waiter = Waiter()
    world.partition().data_listeners[waiter] = 0
    assert (told, waiter.events) == ([], []), "nobody sees an offset before it is written"
    world.scheduler.turn()
    assert told == [ErrorCode.NONE]
    assert waiter.events == [info.size_bytes]
    assert world.partition().log.high_watermark == 1
    assert world.partition().wait_for_commit(1, told.append) is None


def test_acknowledgements_come_in_the_order_of_offsets(world: World) -> None:
    world.create([1, 2])
    for _ in range(3):
        world.append()
    told: list[int] = []
    for offset in (3, 1, 2):
        world.partition().wait_for_commit(offset, lambda code, at=offset: told.append(at))  # type: ignore[misc]
    world.scheduler.turn()
    assert told == [], "the follower has nothing yet"
    partition = world.partition()
    for effect in partition.state.step(FollowerFetched(2, 1, 2, 0), 1):
        partition.advance_high_watermark(effect.offset)  # type: ignore[union-attr]
    assert told == [1, 2]


def test_a_cancelled_waiter_is_not_told(world: World) -> None:
    world.create([1])
    world.append()
    told: list[ErrorCode] = []
    waiter = world.partition().wait_for_commit(1, told.append)
    assert waiter is not None
    waiter.cancel()
    world.scheduler.turn()
    assert told == []


def test_nobody_waits_for_commits_of_a_partition_that_is_not_led_here(world: World) -> None:
    """Nobody would be told: a leadership that ends has told all who waited."""
    world.create([1, 2])
    world.append()
    world.scheduler.turn()
    partition, told = world.partition(), list[ErrorCode]()
    world.change(leader=2)
    refused = code_of(lambda: partition.wait_for_commit(1, told.append))
    assert (refused, told) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])


def test_too_few_in_sync_replicas_refuse_acks_all_only(world: World) -> None:
    world.configs["t"] = LogConfig(min_insync_replicas=2)
    world.create([1, 2])
    world.change(isr=[1])
    assert code_of(world.append) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert world.append(acks=1).base_offset == 0
    assert world.append(acks=0).base_offset == 1
    assert not world.partition().enough_replicas()


def test_min_insync_replicas_never_exceeds_the_replicas(world: World) -> None:
    world.configs["t"] = LogConfig(min_insync_replicas=3)
    world.create([1])
    assert world.append().base_offset == 0


def test_only_the_leader_at_the_epoch_asked_for_appends(world: World) -> None:
    world.create([1, 2])
    assert code_of(lambda: world.append(leader_epoch=2)) == ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(lambda: world.append(leader_epoch=4)) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert world.append(leader_epoch=3).base_offset == 0
    world.change(leader=2)
    assert code_of(world.append) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: world.append(leader_epoch=3)) == ErrorCode.FENCED_LEADER_EPOCH


def test_losing_the_leadership_tells_everybody_who_waits(world: World) -> None:
    told, waiter = world.waited_for()
    world.change(leader=2)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert waiter.events == ["changed"]
    assert world.leaderships == [("t", 0, 3), ("t", 0, None)]
    world.change(leader=1)
    assert world.leaderships[-1] == ("t", 0, 5)
    assert world.partition().log.leader_epochs.entries == [(3, 0), (5, 1)]


def test_an_isr_change_within_the_epoch_is_no_new_leadership(world: World) -> None:
    world.create([1, 2])
    world.append()
    world.scheduler.turn()
    told = world.committed(1)
    world.change(isr=[1])
    assert told == [ErrorCode.NONE], "the one that lagged holds nothing back any more"
    assert world.leaderships == [("t", 0, 3)]


def test_a_deleted_topic_takes_its_logs_and_waiters_with_it(world: World, tmp_path: Path) -> None:
    world.create([1, 2])
    world.append()
    world.scheduler.turn()
    told = world.committed(1)
    world.apply(m.RemoveTopicRecord(topic_id=TOPIC_ID))
    assert told == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert world.leaderships[-1] == ("t", 0, None)
    assert world.replicas.partition("t", 0) is None
    assert world.replicas.partition_by_id(TOPIC_ID, 0) is None
    assert not (tmp_path / "t-0").exists()


def test_a_topic_created_anew_in_one_delta_is_another_topic(world: World) -> None:
    world.create([1])
    world.append()
    world.scheduler.turn()
    other = bytes(reversed(range(16)))
    world.apply(
        m.RemoveTopicRecord(topic_id=TOPIC_ID),
        m.TopicRecord(name="t", topic_id=other),
        m.PartitionRecord(partition_id=0, topic_id=other, replicas=[1], isr=[1], leader=1,
                          directories=[bytes(15) + b"\x65"]),
    )  # fmt: skip
    assert world.partition().topic_id == other
    assert world.partition().log.log_end_offset == 0
    assert world.replicas.partition_by_id(TOPIC_ID, 0) is None


def test_changed_configs_reach_the_logs(world: World) -> None:
    world.create([1])
    world.configs["t"] = LogConfig(max_message_bytes=10)
    world.apply(m.ConfigRecord(resource_type=2, resource_name="t", name="x", value="y"))
    assert code_of(world.append) == ErrorCode.MESSAGE_TOO_LARGE
    world.configs["t"] = LogConfig()
    world.apply(m.ConfigRecord(resource_type=4, resource_name="", name="x", value="y"))
    assert world.append().base_offset == 0


def test_a_replica_that_leaves_the_assignment_is_deleted(world: World, tmp_path: Path) -> None:
    world.create([1, 2])
    world.change(replicas=[2], isr=[2], leader=2)
    assert world.replicas.partition("t", 0) is None
    assert not (tmp_path / "t-0").exists()


def test_kafka_8571_a_leader_that_leaves_the_assignment_tells_who_waits(world: World) -> None:
    """Producers and consumers that waited at it were told nothing until their time was over."""
    told, waiter = world.waited_for()
    world.change(replicas=[2], isr=[2], leader=2)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert set(waiter.events) == {"changed"}


def test_reads_see_no_more_than_their_isolation(world: World) -> None:
    world.create([1, 2])
    world.append()
    world.scheduler.turn()
    partition = world.partition()
    request = Position(0)
    seen = {}
    for isolation in Isolation:
        found = partition.read(request, ReadLimits(1, 1 << 20, 0, isolation), 1 << 20)
        assert isinstance(found, ReadResult)
        seen[isolation] = found.size_bytes > 0
    assert seen == {
        Isolation.LOG_END: True,
        Isolation.HIGH_WATERMARK: False,
        Isolation.COMMITTED: False,
    }


def test_a_follower_that_takes_over_while_its_append_is_written_counts_it(world: World) -> None:
    """Else the high watermark would stay below it until somebody appends again."""
    world.create([1, 2], leader=2)
    partition = world.partition()
    batch = build_batch([Record(0, NOW_MS, None, b"value", [])], leader_epoch=3)
    info = partition.append_as_follower(bytes(batch))
    assert not info.written.done
    world.change(leader=1)
    assert info.written.done
    assert partition.log.leader_epochs.entries == [(3, 0), (4, 1)]
    assert partition.state.leader_epoch_start_offset == 1
    partition.step(FollowerFetched(2, -1, 1, 0))
    assert partition.state.high_watermark == 1


def test_whom_the_metadata_lets_into_an_isr(world: World) -> None:
    """A broker that lives, in its newest life (KIP-903); what is asked of the newest metadata."""
    world.create([1, 2])
    is_eligible = world.partition().state.is_eligible
    assert not is_eligible(2, -1), "nobody knows it"
    world.apply(m.RegisterBrokerRecord(broker_id=2, broker_epoch=50, fenced=False))
    assert is_eligible(2, 50)
    assert is_eligible(2, -1), "who does not say is believed"
    assert not is_eligible(2, 49)
    assert not is_eligible(2, 51)
    assert not is_eligible(2, -2)
    world.apply(m.BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=50, fenced=1))
    assert not is_eligible(2, 50)


def test_followers_that_lag_are_looked_for_in_slices(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "WALK_COST", 2 * manager.STEP_COST)
    world.apply(m.RegisterBrokerRecord(broker_id=2, broker_epoch=50, fenced=False))
    world.create([1, 2], partitions=5)
    world.append()
    world.scheduler.turn()
    world.now_ms = 30_001
    slices = [len(world.wanted_isrs) for _ in world.replicas.tick()]
    assert slices == [2, 4]
    assert len(world.wanted_isrs) == 5


def test_who_is_alone_in_an_isr_is_not_looked_at(world: World) -> None:
    world.create([1], partitions=3)
    stepped: list[Partition] = []
    for partition in world.replicas:
        partition.on_effects = lambda partition, *_: stepped.append(partition)
    world.now_ms = 30_001
    assert list(world.replicas.tick()) == []
    assert stepped == []


def test_partitions_without_followers_are_passed_over_in_slices(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """100,000 of them in one turn kept everybody waiting."""
    monkeypatch.setattr(manager, "WALK_COST", 10)
    world.create([1], partitions=25)
    assert len(list(world.replicas.tick())) == 2


def test_newest_configs_are_handed_to_logs_in_slices(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "WALK_COST", 2 * manager.STEP_COST)
    world.create([1], partitions=5)
    world.configs["t"] = LogConfig(retention_bytes=7)
    told = [
        [partition.log.config.retention_bytes for partition in world.replicas].count(7)
        for _ in world.replicas.configure({"t"})
    ]
    assert told == [2, 4]
    assert {partition.log.config.retention_bytes for partition in world.replicas} == {7}
    monkeypatch.setattr(manager, "WALK_COST", 4)
    assert len(list(world.replicas.configure({"other"}))) == 1


def test_a_replica_that_has_caught_up_is_asked_into_the_isr_and_out_of_it(world: World) -> None:
    world.apply(m.RegisterBrokerRecord(broker_id=2, broker_epoch=50, fenced=False))
    world.create([1, 2])
    world.append()
    world.scheduler.turn()
    world.now_ms = 30_000
    list(world.replicas.tick())
    assert world.wanted_isrs == []
    world.now_ms = 30_001
    list(world.replicas.tick())
    assert [wanted.isr for wanted in world.wanted_isrs] == [(1,)]
    world.change(isr=[1])
    world.partition().follower_fetched(2, 49, 1, 0)
    assert len(world.wanted_isrs) == 1, "an earlier life of it"
    world.partition().follower_fetched(2, 50, 1, 0)
    assert [wanted.isr for wanted in world.wanted_isrs] == [(1,), (1, 2)]


def test_consumers_are_told_of_what_a_move_of_the_mark_shows(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of all of it in the end, however many appends there are above the mark."""
    monkeypatch.setattr(waiting, "UNSEEN_MAX", 3)
    world.create([1, 2])
    sizes = []
    for _ in range(5):
        sizes.append(world.append().size_bytes)
        world.scheduler.turn()
    waiter = Waiter()
    world.partition().data_listeners[waiter] = 0
    world.partition().step(FollowerFetched(2, -1, 1, 0))
    assert waiter.events == sizes[:1]
    world.partition().step(FollowerFetched(2, -1, 5, 0))
    assert waiter.events == [sizes[0], sum(sizes[1:])]


def test_who_waits_for_records_to_be_deleted_hears_of_a_followers_start(world: World) -> None:
    world.apply(m.RegisterBrokerRecord(broker_id=2, broker_epoch=50, fenced=False))
    world.create([1, 2])
    for _ in range(3):
        world.append()
    world.scheduler.turn()
    partition = world.partition()
    partition.follower_fetched(2, 50, 3, 0)
    partition.log.delete_records_before(2)
    told: list[int] = []
    partition.on_low_watermark[lambda changed: told.append(changed.low_watermark)] = None
    partition.follower_fetched(2, 50, 3, 0)
    assert told == []
    partition.follower_fetched(2, 50, 3, 1)
    partition.follower_fetched(2, 50, 3, 2)
    assert told == [1, 2]


def test_a_leaders_older_start_takes_no_followers_start_back(world: World) -> None:
    """What was deleted stays deleted; the next leader may not have heard of it."""
    world.create([1, 2])
    for _ in range(3):
        world.append()
    world.scheduler.turn()
    partition = world.partition()
    partition.step(FollowerFetched(2, -1, 3, 0))
    partition.log.delete_records_before(2)
    world.change(leader=2)
    partition.leader_answered(3, 1)
    assert partition.log.log_start_offset == 2
    partition.leader_answered(3, 3)
    assert partition.log.log_start_offset == 3


def test_a_batch_that_is_checked_beside_the_loop_counts_as_one_request(world: World) -> None:
    world.create([1])
    world.configs["t"] = LogConfig(compression_type="gzip")
    list(world.replicas.configure({"t"}))
    partition = world.partition()
    batch = build_batch([Record(0, NOW_MS, None, bytes(3_000_000), [])], codec=Codec.GZIP)
    append = partial(partition.append, batch, acks=1, wall_ms=NOW_MS, may_wait=True)
    with pytest.raises(CheckLaterError) as later:
        append()
    checked = Checks(world.scheduler).run(later.value)
    while not checked.done:
        world.scheduler.turn()
    append(checked=checked.result())
    world.scheduler.turn()
    traffic = partition.traffic
    assert (traffic.produce_requests, traffic.messages_in) == (1, 1)
    assert traffic.bytes_in > 0
