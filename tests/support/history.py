"""What a producer was told and what a reader finds: nothing acknowledged lost, order, no copies.

with Writer(bootstrap, topic, partitions=3) as writer:
    ... break things ...
    writer.wait_acknowledged(100)
check(bootstrap, topic, writer)
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from kwire.testing.cluster import wait_for

QUICK = {
    "log_level": 0,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "topic.metadata.refresh.interval.ms": 1000,
}


class Writer:
    """Writes numbered records with acks=all, idempotent, until told to end."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        partitions: int = 1,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True}
        self._producer = Producer(
            {**settings, **QUICK, "linger.ms": 2, "delivery.timeout.ms": 60_000, **(config or {})}
        )
        self._topic = topic
        self._partitions = partitions
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0
        self.acknowledged: dict[int, dict[int, int]] = {p: {} for p in range(partitions)}
        self.unplaced: dict[int, set[int]] = {p: set() for p in range(partitions)}
        self.failed: list[str] = []

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _run(self) -> None:
        number = 0
        while not self._end.is_set():
            for partition in range(self._partitions):
                try:
                    self._producer.produce(
                        self._topic, b"%d" % number, partition=partition, on_delivery=self._told
                    )
                except BufferError:
                    self._producer.poll(0.1)
                    continue
                self.sent += 1
            number += 1
            self._producer.poll(0.001)
        self._producer.flush(60)

    def _told(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        elif message.offset() is None:
            # The broker knew the batch and not where it is (DUPLICATE_SEQUENCE_NUMBER).
            self.unplaced[message.partition()].add(int(message.value()))
        else:
            self.acknowledged[message.partition()][message.offset()] = int(message.value())

    @property
    def count(self) -> int:
        return sum(map(len, self.acknowledged.values()))

    def wait_acknowledged(self, more: int = 200) -> None:
        """Until so many more records were acknowledged in every partition."""
        before = {p: len(found) for p, found in self.acknowledged.items()}
        wait_for(
            lambda: all(len(self.acknowledged[p]) >= n + more for p, n in before.items()),
            "acknowledged records in every partition",
        )

    def end(self) -> None:
        """Send no more; wait for every answer."""
        self._end.set()
        self._thread.join(90)
        assert not self._thread.is_alive(), "the producer does not end"


def read_all(bootstrap: str, topic: str, partitions: int = 1) -> dict[int, list[tuple[int, int]]]:
    """Partition -> (offset, number) of every record below the high watermark."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, **QUICK}
    )
    found: dict[int, list[tuple[int, int]]] = {p: [] for p in range(partitions)}
    ends = {}
    for partition in found:
        _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), 30)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in found])

    def complete() -> bool:
        for message in consumer.consume(10_000, 0.2):
            if message.error() is None:
                found[message.partition()].append((message.offset(), int(message.value())))
        return all(not end or (found[p] and found[p][-1][0] >= end - 1) for p, end in ends.items())

    wait_for(complete, f"everything of {topic}")
    consumer.close()
    return found


def check(bootstrap: str, topic: str, writer: Writer) -> None:
    """Everything acknowledged is where it was acknowledged; numbers ascend by one from zero."""
    found = read_all(bootstrap, topic, len(writer.acknowledged))
    for partition, records in found.items():
        there = dict(records)
        acknowledged = writer.acknowledged[partition]
        lost = {o: n for o, n in acknowledged.items() if there.get(o) != n}
        assert not lost, f"{topic}-{partition}: acknowledged and not there: {sorted(lost)[:10]}"
        numbers = [number for _, number in records]
        assert writer.unplaced[partition] <= set(numbers), f"{topic}-{partition}: lost"
        assert numbers == sorted(set(numbers)), f"{topic}-{partition}: out of order, or copies"
        if not writer.failed:
            assert numbers == list(range(len(numbers))), f"{topic}-{partition}: a hole"


class TransactionalWriter:
    """Transactions of three records each over three partitions; every fourth aborts.

    `outcomes`: number -> True (committed), False (aborted), None (nobody knows).
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._make: Any = lambda: Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": "chaos",
                "transaction.timeout.ms": 20_000,
                **QUICK,
            }
        )
        self._topic = topic
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.outcomes: dict[int, bool | None] = {}
        self.error: BaseException | None = None

    def __enter__(self) -> TransactionalWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), "the transactional producer does not end"

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.error = error

    def _write(self) -> None:
        from confluent_kafka import KafkaException

        producer = None
        number = 0
        while not self._end.is_set():
            number += 1
            self.outcomes[number] = False
            try:
                if producer is None:
                    producer = self._make()
                    producer.init_transactions(60)
                producer.begin_transaction()
                for partition in range(3):
                    producer.produce(self._topic, b"%d" % number, partition=partition)
                if number % 4 == 0:
                    producer.abort_transaction(60)
                else:
                    self.outcomes[number] = None
                    producer.commit_transaction(60)
                    self.outcomes[number] = True
            except KafkaException:
                producer = None  # a new one ends what this one has begun


def seen_transactions(bootstrap: str, topic: str) -> dict[int, list[int]]:
    """Number -> partitions in which a read_committed consumer sees it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "seen",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUICK,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    seen: dict[int, list[int]] = {}
    ended: set[int] = set()

    def complete() -> bool:
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                seen.setdefault(int(message.value()), []).append(message.partition())
            else:
                ended.add(message.partition())
        return len(ended) == 3

    wait_for(complete, "the end of every partition")
    consumer.close()
    return seen


def check_transactions(bootstrap: str, topic: str, writer: TransactionalWriter) -> None:
    """A transaction is seen in every partition or in none, as its producer was told."""
    assert writer.error is None, writer.error
    seen = seen_transactions(bootstrap, topic)
    assert any(writer.outcomes.values()), "nothing was committed"
    for number, outcome in writer.outcomes.items():
        partitions = sorted(seen.get(number, []))
        by_outcome: dict[bool | None, list[list[int]]] = {
            True: [[0, 1, 2]],
            False: [[]],
            None: [[], [0, 1, 2]],
        }
        expected = by_outcome[outcome]
        assert partitions in expected, f"transaction {number} ({outcome}) is seen in {partitions}"
