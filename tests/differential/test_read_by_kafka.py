"""A whole data directory of ours in Kafka's hands: its dump tool on every file, then Kafka itself
on a copy, after a stop in order and after a kill in the middle of the work.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kwire.testing.cluster import Broker
from tests.support.kafka import ROOT, kafka_libs
from tests.support.wire import WireClient

READ = ROOT / "compat_tests" / "peers" / "read_by_kafka.sh"
LIMIT_S = 300
PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def _produce(broker: Broker, topic: str, count: int, codec: str, **options: Any) -> Producer:
    """Records 0 .. count-1 over all partitions, acknowledged unless in a transaction."""
    settings = {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 5}
    producer = Producer({**settings, **options}, logger=None)
    if "transactional.id" in options:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number in range(count):
        value = b"%d " % number * (number % 400)
        producer.produce(topic, value, b"key-%d" % (number % 50), number % PARTITIONS)
    assert producer.flush(60) == 0
    return producer


def _work(broker: Broker) -> list[Any]:
    """Topics of every kind, transactions that end in every way, a group; returns what is open."""
    with WireClient(broker.bootstrap) as client:
        small = {"segment.bytes": "1048576", "index.interval.bytes": "500"}
        client.create_topic("plain", PARTITIONS, small)
        client.create_topic("compacted", PARTITIONS, {"cleanup.policy": "compact", **small})
        client.create_topic("stamped", PARTITIONS, {"message.timestamp.type": "LogAppendTime"})
        client.create_topic("gone", PARTITIONS)
    for codec in CODECS:
        _produce(broker, "plain", 600, codec, **{"enable.idempotence": True})
    for topic in ("compacted", "stamped", "gone"):
        _produce(broker, topic, 4000, "none")
    _produce(broker, "plain", 300, "lz4", **{"transactional.id": "done"}).commit_transaction(60)
    _produce(broker, "plain", 300, "none", **{"transactional.id": "undone"}).abort_transaction(60)
    opened = _produce(broker, "plain", 300, "none", **{"transactional.id": "open"})
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "readers", "enable.auto.commit": False}
    )
    positions = [TopicPartition("plain", index, 100 + index) for index in range(PARTITIONS)]
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()
    return [opened]


def _read(directory: pathlib.Path, *options: str) -> dict[str, Any]:
    done = subprocess.run(
        [READ, "--libs", kafka_libs(), *options, directory],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    facts: dict[str, Any] = json.loads(done.stdout)
    assert not facts.get("faults")
    return facts


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_kafka_finds_no_fault_with_our_directory(tmp_path: pathlib.Path, ending: str) -> None:
    kafka_libs()
    directory = tmp_path / "data"
    with Broker(data_dir=directory) as broker:
        opened = _work(broker)
        if ending == "killed":
            broker.kill()
        else:
            assert broker.stop() == 0
        facts = _read(directory, *(["--killed"] if ending == "killed" else []))
        del opened
    text = json.dumps(facts)
    for word in ("plain", "compacted", "stamped", "gone", "readers", "undone", "done", "open"):
        assert f'"{word}"' in text, word
