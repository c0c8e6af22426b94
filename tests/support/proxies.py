"""`kwire proxy` as a process, and clients whose results can be compared."""

from __future__ import annotations

import asyncio
import importlib
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

LIMIT_S = 60.0
VALUES = [b"one", b"two", b"three", b"four"]


class ProxyProcess:
    """In front of `target`; `out` and `errors` are what it has said, once it has ended."""

    def __init__(self, target: str, *options: str, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "kwire", "proxy", listen, target, *options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert line.startswith("kwire proxy ready on "), line
        self.address = line.split()[-1]
        self.port = int(self.address.rpartition(":")[2])
        self.out = self.errors = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It stands still inside of the block; clients that connect are held by the system."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> int:
        """End it; its exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        out, errors = self._process.communicate(timeout=LIMIT_S)
        self.out += out
        self.errors += errors
        return self._process.returncode


def kwire(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "kwire", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def with_kafka_python(bootstrap: str, topic: str, group: str) -> list[object]:
    """Written and read in a group by kafka-python; also which addresses it knows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own files
        kafka = importlib.import_module("kafka")

    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id="kafka-python")
    offsets = [producer.send(topic, value).get(LIMIT_S).offset for value in VALUES]
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        client_id="kafka-python",
        consumer_timeout_ms=int(LIMIT_S * 1000),
    )
    found = [next(consumer).value for _ in VALUES]
    consumer.commit()
    places = consumer.assignment()
    committed = [consumer.committed(place) for place in places]
    consumer.close()
    return [offsets, found, committed]


def with_confluent(bootstrap: str, topic: str, group: str) -> list[object]:
    """A transaction, committed and one aborted, and what a group then reads, by librdkafka."""
    import confluent_kafka

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"{topic}-tx",
            "client.id": "confluent",
        }
    )
    producer.init_transactions(LIMIT_S)
    for is_kept in (False, True):
        producer.begin_transaction()
        for value in VALUES:
            producer.produce(topic, value if is_kept else b"aborted")
        if is_kept:
            producer.commit_transaction(LIMIT_S)
        else:
            producer.flush(LIMIT_S)
            producer.abort_transaction(LIMIT_S)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "client.id": "confluent",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    found: list[tuple[int | None, bytes | None]] = []
    while len(found) < len(VALUES):
        message = consumer.poll(LIMIT_S)
        assert message is not None
        assert message.error() is None, message.error()
        found.append((message.offset(), message.value()))
    committed = consumer.commit(asynchronous=False)
    consumer.close()
    return [found, [place.offset for place in committed or ()]]


def with_aiokafka(bootstrap: str, topic: str, group: str) -> list[object]:
    """A transaction and a group by aiokafka."""
    aiokafka = importlib.import_module("aiokafka")

    async def run() -> list[object]:
        producer: Any = aiokafka.AIOKafkaProducer(
            bootstrap_servers=bootstrap, transactional_id=f"{topic}-tx", client_id="aiokafka"
        )
        await producer.start()
        async with producer.transaction():
            for value in VALUES:
                await producer.send_and_wait(topic, value)
        await producer.stop()
        consumer: Any = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            client_id="aiokafka",
        )
        await consumer.start()
        found = [(await consumer.getone()).value for _ in VALUES]
        await consumer.commit()
        committed = [await consumer.committed(place) for place in consumer.assignment()]
        await consumer.stop()
        return [found, committed]

    return asyncio.run(asyncio.wait_for(run(), LIMIT_S))


CLIENTS = (with_kafka_python, with_confluent, with_aiokafka)
