"""Segments given up and topics deleted in many partitions at once, beside a producer at work.

KWIRE_SCALE=40 (`make stress`) makes it 2,000 partitions with retention and 1,000 that are deleted.
"""

from __future__ import annotations

import os
import pathlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kwire.testing.cluster import Broker, wait_for

confluent_kafka = pytest.importorskip("confluent_kafka")

SCALE = int(os.environ.get("KWIRE_SCALE", "1"))
RETAINED, DELETED = 50 * SCALE, 25 * SCALE
LIMIT_S = 60 + 20 * SCALE
# LEADER_NOT_AVAILABLE, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, and
# librdkafka's own "No leaders found": a busy machine may fence the broker for a moment.
RETRIED = {5, 6, 74, 75, -156}
OPTIONS = {
    "log.retention.check.interval.ms": 300,
    "log.initial.task.delay.ms": 300,
    "log.segment.delete.delay.ms": 300,
    "log.cleaner.enable": "false",
}
HOUR_MS = 3_600_000


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data", options=OPTIONS) as running:
        yield running


def create(broker: Broker, topic: str, partitions: int, **config: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    new = NewTopic(topic, partitions, 1, config=config)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_topics([new]).values():
        done.result(LIMIT_S)


def delete(broker: Broker, topic: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.delete_topics([topic]).values():
        done.result(LIMIT_S)


def fill(broker: Broker, topic: str, partitions: int, **message: Any) -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 20}, logger=None
    )
    for partition in range(partitions):
        producer.produce(topic, b"x" * 200, partition=partition, **message)
    assert producer.flush(LIMIT_S) == 0


@contextmanager
def produced_to(broker: Broker, topic: str) -> Iterator[list[int]]:
    """A producer at work meanwhile; at the end everything that it sent must be there."""
    create(broker, topic, 1)
    acknowledged: list[int] = []
    failures: list[Any] = []
    is_over = threading.Event()

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(error)
        else:
            acknowledged.append(message.offset())

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "linger.ms": 0}, logger=None
    )

    def work() -> None:
        while not is_over.is_set():
            producer.produce(topic, b"y" * 100, on_delivery=delivered)
            producer.poll(0.005)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield acknowledged
    finally:
        is_over.set()
        thread.join()
    assert producer.flush(LIMIT_S) == 0
    assert failures == []
    assert acknowledged == list(range(len(acknowledged)))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    there = confluent_kafka.TopicPartition(topic, 0)
    assert consumer.get_watermark_offsets(there, timeout=30) == (0, len(acknowledged))
    consumer.close()


def low_watermarks(broker: Broker, topic: str, partitions: int) -> list[int]:
    from confluent_kafka.admin import AdminClient, OffsetSpec

    asked = {
        confluent_kafka.TopicPartition(topic, index): OffsetSpec.earliest()
        for index in range(partitions)
    }
    limit = time.monotonic() + LIMIT_S
    while True:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        answers = admin.list_offsets(asked).values()
        try:
            return [int(done.result(LIMIT_S).offset) for done in answers]
        except confluent_kafka.KafkaException as error:
            # librdkafka does not ask again where a broker that was fenced for a while leads anew.
            if error.args[0].code() not in RETRIED or time.monotonic() > limit:
                raise


def test_old_segments_go_from_many_partitions(broker: Broker) -> None:
    data = broker.data_dir
    assert data is not None
    create(broker, "old", RETAINED, **{"retention.ms": str(HOUR_MS)})
    create(broker, "kept", 1, **{"retention.ms": "-1"})
    old_ms = int(time.time() * 1000) - 2 * HOUR_MS
    with produced_to(broker, "live"):
        fill(broker, "kept", 1, timestamp=old_ms)
        fill(broker, "old", RETAINED, timestamp=old_ms)
        wait_for(
            lambda: set(low_watermarks(broker, "old", RETAINED)) == {1},
            "all were given up",
            LIMIT_S,
        )
    wait_for(lambda: not list(data.glob("old-*/*.deleted")), "no files are left", LIMIT_S)
    for folder in data.glob("old-*"):
        assert [p.name for p in folder.glob("*.log")] == [f"{1:020d}.log"]
    assert low_watermarks(broker, "kept", 1) == [0]
    # What is given up stays so over a kill.
    broker.kill()
    broker.start()
    assert set(low_watermarks(broker, "old", RETAINED)) == {1}


def test_a_large_topic_is_deleted_and_made_again_at_once(broker: Broker) -> None:
    data = broker.data_dir
    assert data is not None
    with produced_to(broker, "live"):
        create(broker, "doomed", DELETED)
        for _ in range(2):
            fill(broker, "doomed", DELETED)
            delete(broker, "doomed")
            create(broker, "doomed", DELETED)
            assert set(low_watermarks(broker, "doomed", DELETED)) == {0}
            consumer = confluent_kafka.Consumer(
                {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
            )
            for index in range(0, DELETED, max(DELETED // 25, 1)):
                there = confluent_kafka.TopicPartition("doomed", index)
                assert consumer.get_watermark_offsets(there, timeout=30) == (0, 0)
            consumer.close()
    wait_for(lambda: not list(data.glob("*-delete")), "no directories are left", LIMIT_S)
    assert len(list(data.glob("doomed-*"))) == DELETED
    delete(broker, "doomed")
    wait_for(lambda: not list(data.glob("doomed-*")), "no directories are left", LIMIT_S)
    broker.kill()
    broker.start()
    assert not list(data.glob("doomed-*"))
