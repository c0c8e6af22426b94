"""A real disk that is full for a while, real descriptors that are used up: then all goes on.

No restart, nothing acknowledged lost, transactions end; `kwire info` says what is refused, as long
as it lasts. Source: KAFKA_STORAGE_ERROR until a restart, found by filling a small volume.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker, wait_for
from tests.support.wire import WireClient, fetch_values

confluent_kafka = pytest.importorskip("confluent_kafka")

LIMIT_S = 60
VALUE = b"v" * 9000


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "kwire-test", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("a tmpfs of its own takes root: mount is refused here")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def info(broker: Broker, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", "info", "-b", broker.bootstrap, *options],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


class Client:
    """Sends one record at a time, and says what became of each."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.acknowledged: list[bytes] = []

    def producer(self, **options: Any) -> Any:
        return confluent_kafka.Producer(
            {
                "bootstrap.servers": self.broker.bootstrap,
                "message.timeout.ms": 1500,
                "linger.ms": 0,
                "log_level": 0,
                **options,
            }
        )

    def send(self, topic: str, value: bytes, producer: Any = None) -> bool:
        told: list[Any] = []
        producer = producer or self.producer()
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: told.append(error))
        producer.flush(LIMIT_S)
        is_acknowledged = len(told) == 1 and told[0] is None
        if is_acknowledged and topic == "busy":
            self.acknowledged.append(value)
        return is_acknowledged


def fill(path: Path) -> None:
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_a_volume_that_others_filled_for_a_while(volume: Path) -> None:
    with Broker(data_dir=volume / "data") as broker:
        with WireClient(broker.bootstrap) as wire:
            for topic in ("busy", "quiet"):
                wire.create_topic(topic)
        client = Client(broker)
        assert client.send("busy", b"first")
        transactional = client.producer(**{"transactional.id": "t", "message.timeout.ms": 60_000})
        transactional.init_transactions(LIMIT_S)
        transactional.begin_transaction()
        assert client.send("quiet", b"in a transaction", transactional)
        assert info(broker, "--quiet").returncode == 0
        fill(volume / "filler")
        wait_for(lambda: not client.send("busy", VALUE), "the disk is full")
        assert info(broker, "--quiet").returncode == 1
        told = info(broker)
        assert told.returncode == 1
        assert "reason      busy-0: No space left on device" in told.stdout
        with WireClient(broker.bootstrap) as wire:
            assert len(fetch_values(wire, "busy", 0)) >= len(client.acknowledged), "it is read"
        os.unlink(volume / "filler")
        wait_for(lambda: client.send("busy", b"there is room"), "busy can be written again")
        transactional.commit_transaction(LIMIT_S)
        transactional.begin_transaction()
        assert client.send("quiet", b"the next one", transactional)
        transactional.commit_transaction(LIMIT_S)
        with WireClient(broker.bootstrap) as wire:
            wire.create_topic("new")
        wait_for(lambda: client.send("new", b"new"), "a new topic can be written")
        wait_for(lambda: info(broker, "--quiet").returncode == 0, "nothing is refused any more")
        with WireClient(broker.bootstrap) as wire:
            kept = fetch_values(wire, "busy", 0)
        assert [value for value in kept if value in client.acknowledged] == client.acknowledged
        assert broker.stop() == 0
        broker.start()
        with WireClient(broker.bootstrap) as wire:
            assert fetch_values(wire, "busy", 0) == kept
        told_of = broker.log_text()
        assert "takes no appends until that is over" in told_of
        assert "takes appends again" in told_of
        assert "Traceback" not in told_of


class LimitedBroker(Broker):
    """A broker that may have 256 files open."""

    def command(self) -> list[str]:
        return ["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *super().command()]


def test_connections_give_way_to_files(tmp_path: Path) -> None:
    """400 connections at a limit of 256: every partition is written meanwhile, and afterwards."""
    with LimitedBroker(data_dir=tmp_path) as broker:
        with WireClient(broker.bootstrap) as wire:
            wire.create_topic("t", 40)
        producer = Client(broker).producer()
        producer.list_topics(timeout=LIMIT_S)

        def written() -> int:
            told: list[Any] = []
            for partition in range(40):
                producer.produce(
                    "t", b"v", partition=partition, on_delivery=lambda e, _: told.append(e)
                )
            producer.flush(LIMIT_S)
            return sum(error is None for error in told)

        assert written() == 40
        host, port = broker.bootstrap.rsplit(":", 1)
        held = [socket.create_connection((host, int(port)), LIMIT_S) for _ in range(400)]

        def closed() -> int:
            count = 0
            for one in held:
                one.setblocking(False)
                try:
                    count += one.recv(1) == b""
                except BlockingIOError:
                    pass
                except OSError:
                    count += 1
            return count

        wait_for(lambda: closed() > 150, "what is too many is closed")
        assert len(os.listdir(f"/proc/{broker.pid}/fd")) <= 256 - 56
        told = [line for line in broker.log_text().splitlines() if "are refused" in line]
        assert 1 <= len(told) <= 2, "a line a minute says so, not one a connection"
        assert "may have 256 open files" in told[0]
        assert "ulimit -n" in told[0]
        assert written() == 40
        wait_for(
            lambda: info(broker, "--quiet").returncode == 0,
            "a client takes the place of connections that were never used",
        )
        for one in held:
            one.close()
        assert written() == 40
        assert "Traceback" not in broker.log_text()


def test_more_partitions_are_written_to_than_files_may_be_open(tmp_path: Path) -> None:
    """600 at a limit of 256, each twice, in one order and in another; and read, before a kill and
    after it."""
    partitions = 600

    def write(producer: Any, value: bytes, step: int) -> None:
        told: list[Any] = []
        for at in range(partitions):
            producer.produce(
                "t",
                value,
                partition=at * step % partitions,
                on_delivery=lambda error, _: told.append(error),
            )
        assert producer.flush(LIMIT_S) == 0
        assert told == [None] * partitions

    def read(broker: Broker) -> list[list[bytes]]:
        with WireClient(broker.bootstrap) as wire:
            return [fetch_values(wire, "t", at) for at in range(partitions)]

    def read_at_once(broker: Broker, records: int) -> None:
        """By a consumer of all partitions."""
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g", "log_level": 0}
        )
        consumer.assign([confluent_kafka.TopicPartition("t", at, 0) for at in range(partitions)])
        deadline, found = time.monotonic() + LIMIT_S, set()
        while len(found) < records and time.monotonic() < deadline:
            for message in consumer.consume(records, timeout=1):
                assert message.error() is None
                found.add((message.partition(), message.offset()))
        consumer.close()
        assert len(found) == records

    with LimitedBroker(data_dir=tmp_path) as broker:
        with WireClient(broker.bootstrap) as wire:
            wire.create_topic("t", partitions)
        producer = Client(broker).producer(**{"message.timeout.ms": LIMIT_S * 1000})
        write(producer, b"one", 1)
        write(producer, b"two", 7)
        assert read(broker) == [[b"one", b"two"]] * partitions
        read_at_once(broker, 2 * partitions)
        broker.kill()
        broker.start()
        assert read(broker) == [[b"one", b"two"]] * partitions
        write(producer, b"three", 11)
        assert read(broker) == [[b"one", b"two", b"three"]] * partitions
        write(producer, b"4" * 20_000, 13)  # such are written at once, if they can
        read_at_once(broker, 4 * partitions)
        assert "descriptors" not in broker.log_text()
        assert "takes appends again" not in broker.log_text()
        assert info(broker, "--quiet").returncode == 0
        assert "Traceback" not in broker.log_text()
