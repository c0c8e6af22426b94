"""What fencing, shutdown and return of brokers do to a partition: KIP-966 and before."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.protocol import messages as m
from tests.support.controllers import ControllerBench, directory

OLD = {"metadata.version": 33}
"""The newest metadata.version without eligible leader replicas."""


def _bench(features: dict[str, int] | None = None, **configs: str) -> ControllerBench:
    bench = ControllerBench(features=features)
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]}, configs=configs)
    return bench


def test_without_elr_the_last_replica_in_sync_stays() -> None:
    bench = _bench(OLD)
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (-1, (3,), ())
    bench.heartbeat(2)
    assert bench.partition("t").leader == -1, "2 was not in sync"
    bench.heartbeat(3)
    assert bench.partition("t").leader == 3


def test_with_elr_those_below_the_min_isr_stay_eligible() -> None:
    bench = _bench(min_insync_replicas="2")
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr) == (-1, ())
    assert partition.elr == (2, 3)
    bench.heartbeat(1)
    assert bench.partition("t").leader == -1, "1 left while enough others were in sync"
    bench.heartbeat(2)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (2, (2,), (3,))
    assert partition.leader_recovery_state == 0, "a clean election"


def test_an_unclean_stop_ends_eligibility() -> None:
    """KIP-966: what was in the page cache may be gone."""
    bench = _bench(min_insync_replicas="2")
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    bench.now_ms += 9_001
    bench.expire()
    bench.register(2, life=2)
    assert bench.partition("t").elr == (3,)
    bench.register(3, life=2, previous_broker_epoch=bench.epochs[3])
    assert bench.partition("t").elr == (3,), "3 was stopped cleanly"


def test_the_last_known_leader_returns_when_nobody_is_eligible() -> None:
    bench = _bench(min_insync_replicas="1")
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    assert bench.partition("t").last_known_elr == (3,)
    bench.now_ms += 9_001
    bench.expire()
    bench.register(3, life=2)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), ())
    assert partition.last_known_elr == (3,)
    bench.heartbeat(1)
    assert bench.partition("t").leader == -1
    bench.heartbeat(3)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr) == (3, (3,))
    assert partition.leader_recovery_state == 1, "this election may have lost records"


def test_a_leader_that_recovers_may_not_grow_the_isr_before_it_says_so() -> None:
    """KIP-704."""
    bench = _bench(OLD, unclean_leader_election_enable="true")
    bench.alter_isr("t", 0, [1])
    bench.heartbeat(1, want_fence=True)
    partition = bench.partition("t")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    assert bench.alter_isr("t", 0, [2, 3], leader_recovery_state=1).error_code == 42
    assert bench.alter_isr("t", 0, [2], leader_recovery_state=0).error_code == 0
    assert bench.alter_isr("t", 0, [2, 3]).error_code == 0
    assert bench.alter_isr("t", 0, [2], leader_recovery_state=1).error_code == 42


def test_an_isr_with_another_life_of_a_broker_is_refused() -> None:
    """KIP-903: the epoch says which incarnation has caught up."""
    bench = _bench()
    bench.alter_isr("t", 0, [1, 2])
    old = bench.epochs[3]
    bench.heartbeat(3, want_shut_down=True)
    bench.start(3, life=2, previous_broker_epoch=old)
    new = bench.epochs[3]
    bench.epochs[3] = old
    assert bench.alter_isr("t", 0, [1, 2, 3]).error_code == 107
    bench.epochs[3] = new
    assert bench.alter_isr("t", 0, [1, 2, 3]).error_code == 0


@pytest.mark.parametrize(("level", "bumps"), [(11, 1), (12, 0), (33, 0)])
def test_only_old_brokers_need_a_new_epoch_for_a_smaller_isr(level: int, bumps: int) -> None:
    """KAFKA-15021."""
    bench = _bench({"metadata.version": level})
    before = bench.partition("t")
    bench.alter_isr("t", 0, [1, 2])
    after = bench.partition("t")
    assert after.leader_epoch - before.leader_epoch == bumps
    assert after.partition_epoch - before.partition_epoch == 1


def test_controlled_shutdown_moves_leaders_before_the_broker_goes() -> None:
    bench = _bench()
    answer = bench.heartbeat(1, want_shut_down=True)
    assert not answer.should_shut_down
    assert bench.image.brokers[1].in_controlled_shutdown
    assert not bench.image.brokers[1].fenced
    partition = bench.partition("t")
    assert (partition.leader, partition.isr) == (2, (2, 3))
    assert bench.alter_isr("t", 0, [2, 3, 1]).error_code == 107, "it may not come back in sync"
    for broker_id in (2, 3):
        bench.heartbeat(broker_id)
    assert bench.heartbeat(1, want_shut_down=True).should_shut_down
    assert bench.image.brokers[1].fenced


def test_a_failed_directory_takes_only_its_partitions() -> None:
    bench = ControllerBench()
    bench.start(1, log_dirs=[directory(1, 0), directory(1, 1)])
    bench.start(2)
    bench.create("t", {0: [1, 2], 1: [1, 2]})
    shape = m.AssignReplicasToDirsRequest
    topic_id = bench.image.topics.by_name["t"].topic_id
    for index in (0, 1):
        part = shape.PartitionData(partition_index=index)
        topic = shape.TopicData(topic_id=topic_id, partitions=[part])
        wanted = shape.DirectoryData(id=directory(1, index), topics=[topic])
        bench.call(shape(broker_id=1, broker_epoch=bench.epochs[1], directories=[wanted]))
    bench.heartbeat(1, offline_log_dirs=[directory(1, 0)])
    assert bench.partition("t", 0).leader == 2
    assert bench.partition("t", 1).leader == 1
    assert bench.image.brokers[1].directories == (directory(1, 1),)


def test_min_isr_changes_clear_what_eligibility_was_counted_with() -> None:
    bench = _bench(min_insync_replicas="2")
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    assert bench.partition("t").elr
    shape = m.IncrementalAlterConfigsRequest
    config = shape.AlterableConfig(name="min.insync.replicas", config_operation=0, value="1")
    resource = shape.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    bench.call(shape(resources=[resource]))
    partition = bench.partition("t")
    assert (partition.elr, partition.last_known_elr) == ((), ())


def test_a_reassignment_ends_when_all_new_replicas_are_in_sync() -> None:
    bench = _bench(OLD)
    bench.start(4)
    shape = m.AlterPartitionReassignmentsRequest
    part = shape.ReassignablePartition(partition_index=0, replicas=[4, 3])
    bench.call(shape(topics=[shape.ReassignableTopic(name="t", partitions=[part])]))
    partition = bench.partition("t")
    assert partition.replicas == (4, 3, 1, 2)
    assert (partition.adding, partition.removing) == ((4,), (1, 2))
    answer = bench.alter_isr("t", 0, [1, 2, 3, 4])
    assert answer.error_code == 108, "the old leader is not a replica any more"
    partition = bench.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((4, 3), (3, 4), 4)
    assert not partition.is_reassigning


def _reassign(bench: ControllerBench, replicas: list[int]) -> Any:
    shape = m.AlterPartitionReassignmentsRequest
    part = shape.ReassignablePartition(partition_index=0, replicas=replicas)
    return bench.call(shape(topics=[shape.ReassignableTopic(name="t", partitions=[part])]))


def _without_leader() -> ControllerBench:
    """1 led and is fenced; 2 is in sync, but its replica is in a directory that has failed."""
    bench = ControllerBench()
    bench.start(1)
    bench.start(2, log_dirs=[directory(2, 0), directory(2, 1)])
    bench.create("t", {0: [1, 2]})
    shape = m.AssignReplicasToDirsRequest
    part = shape.PartitionData(partition_index=0)
    topic_id = bench.image.topics.by_name["t"].topic_id
    topic = shape.TopicData(topic_id=topic_id, partitions=[part])
    wanted = shape.DirectoryData(id=directory(2, 0), topics=[topic])
    bench.call(shape(broker_id=2, broker_epoch=bench.epochs[2], directories=[wanted]))
    bench.heartbeat(2, offline_log_dirs=[directory(2, 0)])
    assert bench.alter_isr("t", 0, [1, 2]).error_code == 0, "its directory is not asked for"
    bench.heartbeat(1, want_fence=True)
    return bench


def test_the_leader_of_a_partition_that_nobody_in_sync_may_lead_is_remembered() -> None:
    partition = _without_leader().partition("t")
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (2,), (1,))


def test_a_last_known_leader_that_has_lost_the_partition_is_not_elected() -> None:
    bench = _without_leader()
    _reassign(bench, [2])
    partition = bench.partition("t")
    assert (partition.replicas, partition.isr, partition.last_known_elr) == ((2,), (2,), (1,))
    bench.now_ms += 9_001
    bench.expire()
    bench.register(2, life=2)
    assert bench.partition("t").isr == ()
    bench.heartbeat(1)
    assert bench.image.brokers[1].fenced is False
    assert bench.partition("t").leader == -1
