"""A few calls of confluent-kafka for tests of jobs: topics, records in, records out."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

TIMEOUT_S = 60.0


class Sent(NamedTuple):
    """A record to send; timestamp in ms, 0: now."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = 0


class Got(NamedTuple):
    """A record as consumed; `kwire-` headers are apart."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    own_headers: tuple[tuple[str, bytes | None], ...]

    @property
    def content(self) -> tuple[Any, ...]:
        return self.timestamp, self.key, self.value, self.headers


def create(bootstrap: str, topic: str | None = None, partitions: int = 1, **config: Any) -> str:
    """Create a topic (by default with a name of its own); its name."""
    from confluent_kafka.admin import AdminClient, NewTopic

    name = topic or f"t-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    values = {"retention.ms": "-1"}
    values |= {key.replace("_", "."): str(value) for key, value in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=values)])[name].result(TIMEOUT_S)
    return name


def send(bootstrap: str, topic: str, records: Iterable[Sent], **config: Any) -> None:
    """Produce records in order."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, **config})
    for record in records:
        while True:
            try:
                producer.produce(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                )
                break
            except BufferError:
                producer.poll(1)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0


def consume(
    bootstrap: str, topic: str, isolation: str = "read_uncommitted"
) -> dict[int, list[Got]]:
    """Everything that is in a topic, by partition."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "log_level": 0,
        }
    )
    try:
        numbers = sorted(consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
        found: dict[int, list[Got]] = {}
        for number in numbers:
            found[number] = []
            consumer.assign([TopicPartition(topic, number, 0)])
            while True:
                message = consumer.poll(TIMEOUT_S)
                assert message is not None, f"nothing came from {topic}-{number}"
                if message.error():
                    break  # the end of the partition
                found[number].append(_got(message))
        return found
    finally:
        consumer.close()


def consume_as(bootstrap: str, group: str, topic: str, count: int | None = None) -> list[bytes]:
    """What a member of a group gets from where it has committed, up to the end of the topic or
    `count` values; commits behind the last of them."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[bytes] = []
    next_offsets: dict[int, int] = {}
    ended: set[int] = set()
    try:
        partitions = len(consumer.list_topics(topic, TIMEOUT_S).topics[topic].partitions)
        consumer.subscribe([topic])
        while len(ended) < partitions and (count is None or len(found) < count):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, f"nothing came from {topic}"
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
                continue
            found.append(message.value())
            next_offsets[message.partition()] = message.offset() + 1
        if next_offsets:
            places = [TopicPartition(topic, n, offset) for n, offset in next_offsets.items()]
            consumer.commit(offsets=places, asynchronous=False)
        return found
    finally:
        consumer.close()


def _got(message: Any) -> Got:
    headers = tuple(message.headers() or ())
    return Got(
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(pair for pair in headers if not pair[0].startswith("kwire-")),
        tuple(pair for pair in headers if pair[0].startswith("kwire-")),
    )
