"""Faults that Kafka's controller once had."""

from __future__ import annotations

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.support.controllers import ControllerBench, directory

INELIGIBLE = ErrorCode.INELIGIBLE_REPLICA


def fail_over(bench: ControllerBench) -> None:
    """Another controller takes over: what is not in the log is not known."""
    bench.controller.deactivate()
    bench.now_ms += 100
    bench.append(bench.controller.activate(bench.now_ms, len(bench.log), 2))


def test_kafka_13841_fenced_brokers_that_a_new_controller_never_heard_of_get_replicas() -> None:
    """Known from the log alone, they were not tracked, and topics could not be placed on them."""
    bench = ControllerBench()
    bench.start(1)
    for broker_id in (2, 3):
        bench.register(broker_id)
    fail_over(bench)
    assert bench.create("t", partitions=2, factor=3).error_code == 0
    for index in (0, 1):
        partition = bench.partition("t", index)
        assert sorted(partition.replicas) == [1, 2, 3]
        assert (partition.leader, partition.isr) == (1, (1,))


def test_kafka_18138_a_broker_that_fails_with_the_controller_is_fenced() -> None:
    """The new controller waited for its first heartbeat before it counted its session."""
    bench = ControllerBench()
    bench.start(1, 2)
    bench.create("t", {0: [1, 2]})
    fail_over(bench)
    bench.now_ms += 8_000
    bench.heartbeat(2)
    bench.expire(bench.now_ms + 1_001)
    assert bench.image.brokers[1].fenced
    assert bench.partition("t").leader == 2


def test_kafka_19522_a_last_known_leader_that_is_fenced_is_not_elected() -> None:
    """Any change of the partition elected it while it was away."""
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]}, configs={"min_insync_replicas": "1"})
    for broker_id in (1, 2, 3):
        bench.heartbeat(broker_id, want_fence=True)
    bench.now_ms += 9_001
    bench.expire()
    bench.register(3, life=2)
    before = bench.partition("t")
    assert (before.leader, before.elr, before.last_known_elr) == (-1, (), (3,))
    shape = m.AlterPartitionReassignmentsRequest
    wanted = shape.ReassignablePartition(partition_index=0, replicas=[3, 2, 1])
    bench.call(shape(topics=[shape.ReassignableTopic(name="t", partitions=[wanted])]))
    elect = m.ElectLeadersRequest
    for kind in (0, 1):
        topic = elect.TopicPartitions(topic="t", partitions=[0])
        bench.call(elect(election_type=kind, topic_partitions=[topic]))
        assert bench.partition("t").leader == -1
    bench.heartbeat(3)
    assert bench.partition("t").leader == 3


def test_kafka_18106_an_unclean_restart_is_a_new_epoch_of_what_the_broker_led() -> None:
    """Registered anew before its session was over, the broker stayed leader and in sync, at the
    epoch of its former life, with a log whose end may be gone."""
    bench = ControllerBench()
    bench.start(1, 2)
    bench.create("t", {0: [1, 2]}, configs={"min_insync_replicas": "2"})
    bench.create("alone", {0: [1]})
    led = bench.partition("t")
    bench.call(bench.registration(1, life=2), same_process=True)
    after = bench.partition("t")
    assert (after.leader, after.isr) == (2, (2,))
    assert after.leader_epoch == led.leader_epoch + 1
    assert 1 not in after.elr
    alone = bench.partition("alone")
    assert (alone.leader, alone.isr) == (-1, ())
    assert alone.last_known_elr == (1,)


def test_kafka_13959_a_broker_that_has_read_of_its_registration_is_unfenced() -> None:
    """It had to be at the end of the log, where it never was while others wrote to it."""
    bench = ControllerBench()
    bench.start(1)
    registered_at = len(bench.log)
    bench.register(2)
    for number in range(20):
        bench.create(f"t{number}", {0: [1]})
    assert bench.heartbeat(2, current_metadata_offset=registered_at - 1).is_fenced
    assert not bench.heartbeat(2, current_metadata_offset=registered_at).is_fenced


@pytest.mark.parametrize("how", ["fenced", "stopping", "unregistered"])
def test_kafka_13916_a_broker_that_is_going_does_not_come_into_the_isr(how: str) -> None:
    """It was taken in and led right after, or was the only one in sync when it had gone."""
    bench = ControllerBench()
    bench.start(1, 2, 3)
    bench.create("t", {0: [1, 2, 3]})
    bench.create("led", {0: [3, 1]})
    assert bench.alter_isr("t", 0, [1, 2]).error_code == 0
    if how == "fenced":
        bench.heartbeat(3, want_fence=True)
    elif how == "stopping":
        assert not bench.heartbeat(3, want_shut_down=True).should_shut_down
        assert bench.image.brokers[3].in_controlled_shutdown
    else:
        bench.call(m.UnregisterBrokerRequest(broker_id=3))
    assert bench.alter_isr("t", 0, [1, 2, 3]).error_code == INELIGIBLE
    assert bench.partition("t").isr == (1, 2)


def test_kafka_16157_a_failed_directory_takes_only_what_is_in_it_now() -> None:
    """A topic was deleted and made anew elsewhere; when the directory of its former replica failed,
    the new one lost its leader, or the failed one kept it."""
    bench = ControllerBench()
    first, second = directory(1), directory(1, 1)
    bench.start(1, log_dirs=[first, second])
    bench.start(2)

    def placed_in(chosen: bytes) -> None:
        bench.create("t", {0: [1, 2]})
        shape = m.AssignReplicasToDirsRequest
        topic_id = bench.image.topics.by_name["t"].topic_id
        data = shape.TopicData(
            topic_id=topic_id, partitions=[shape.PartitionData(partition_index=0)]
        )
        wanted = shape.DirectoryData(id=chosen, topics=[data])
        request = shape(broker_id=1, broker_epoch=bench.epochs[1], directories=[wanted])
        assert bench.call(request).error_code == 0
        assert bench.partition("t").directories[0] == chosen

    placed_in(first)
    shape = m.DeleteTopicsRequest
    bench.call(shape(topics=[shape.DeleteTopicState(name="t")], timeout_ms=1000), 6)
    placed_in(second)
    bench.heartbeat(1, offline_log_dirs=[first])
    assert (bench.partition("t").leader, bench.partition("t").isr) == (1, (1, 2))
    bench.heartbeat(1, offline_log_dirs=[first, second])
    assert (bench.partition("t").leader, bench.partition("t").isr) == (2, (2,))


def reassign(bench: ControllerBench, replicas: list[int] | None) -> ErrorCode:
    shape = m.AlterPartitionReassignmentsRequest
    wanted = shape.ReassignablePartition(partition_index=0, replicas=replicas)
    topic = shape.ReassignableTopic(name="t", partitions=[wanted])
    answer = bench.call(shape(topics=[topic]))
    return ErrorCode(answer.responses[0].partitions[0].error_code)


def test_kafka_14424_a_move_is_not_taken_back_to_replicas_that_are_gone() -> None:
    """Nothing was checked: the partition was left to its former replicas, none of which was in
    sync, and had no leader."""
    bench = ControllerBench()
    bench.start(1, 2, 3, 4)
    bench.create("t", {0: [1, 2]})
    assert reassign(bench, [3, 4]) == ErrorCode.NONE
    assert bench.alter_isr("t", 0, [1, 2, 3]).error_code == 0
    for broker_id in (1, 2):
        bench.heartbeat(broker_id, want_fence=True)
    before = bench.partition("t")
    assert (before.leader, before.isr) == (3, (3,))
    assert reassign(bench, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert bench.partition("t") == before
    bench.heartbeat(1)
    assert bench.alter_isr("t", 0, [3, 1]).error_code == 0
    assert reassign(bench, None) == ErrorCode.NONE
    after = bench.partition("t")
    assert (after.leader, after.isr, after.replicas) == (1, (1,), (1, 2))
    assert after.leader_epoch > before.leader_epoch, "3 must not go on as the leader"


def test_kafka_14808_the_leader_of_a_move_may_be_left_out_of_the_next_one() -> None:
    """A replica that was being added led; another move without it left the partition without a
    leader, though others were in sync."""
    bench = ControllerBench()
    bench.start(1, 2, 3, 4)
    bench.create("t", {0: [1, 2]})
    assert reassign(bench, [3, 4]) == ErrorCode.NONE
    assert bench.alter_isr("t", 0, [1, 2, 3]).error_code == 0
    bench.heartbeat(1, want_fence=True)
    bench.heartbeat(2, want_fence=True)
    assert bench.partition("t").leader == 3
    bench.heartbeat(2)
    assert bench.alter_isr("t", 0, [3, 2]).error_code == 0
    assert reassign(bench, [2, 4]) == ErrorCode.NONE
    partition = bench.partition("t")
    assert partition.leader in partition.isr
    assert set(partition.isr) <= set(partition.replicas)
