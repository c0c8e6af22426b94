"""kill -9 under load: nothing acknowledged is lost, an idempotent producer leaves no duplicates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support.wire import WireClient, fetch_values

confluent_kafka = pytest.importorskip("confluent_kafka")

KILLS = 3
RECORDS_BETWEEN = 3000
PARTITIONS = 3


def test_an_idempotent_producer_over_kills(tmp_path: Path) -> None:
    acknowledged: dict[int, list[tuple[int, bytes]]] = {index: [] for index in range(PARTITIONS)}
    failures: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failures.append(error)
        else:
            acknowledged[message.partition()].append((message.offset(), message.value()))

    options = {"num.partitions": PARTITIONS, "log.segment.bytes": 1 << 20}
    with Broker(data_dir=tmp_path, options=options) as broker:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        number = 0
        for turn in range(KILLS + 1):
            for _ in range(RECORDS_BETWEEN):
                value = b"%08d" % number + b"x" * 300
                producer.produce("t", value, partition=number % PARTITIONS, on_delivery=delivered)
                number += 1
                producer.poll(0)
            deadline = time.monotonic() + 30
            wanted = turn * RECORDS_BETWEEN + RECORDS_BETWEEN // 2
            while sum(map(len, acknowledged.values())) < wanted and time.monotonic() < deadline:
                producer.poll(0.01)
            if turn < KILLS:
                broker.kill()  # in the midst of what is not acknowledged yet
                broker.start()
        assert producer.flush(60) == 0
        assert failures == []
        with WireClient(broker.bootstrap) as client:
            for index, sent in acknowledged.items():
                kept = fetch_values(client, "t", index)
                assert len(kept) == len(sent), "no duplicates, nothing lost"
                assert all(kept[offset] == value for offset, value in sent)
                assert kept == sorted(kept), "in order"


def test_deleted_records_stay_deleted_over_a_kill_at_the_answer(tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    with Broker(data_dir=tmp_path, options={"num.partitions": 3}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(30):
            producer.produce("t", b"%d" % number, partition=number % 3)
        assert producer.flush(60) == 0
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        asked = [TopicPartition("t", index, index + 4) for index in range(3)]
        for done in admin.delete_records(asked).values():
            done.result(30)
        broker.kill()
        broker.start()
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": broker.bootstrap, "group.id": "g"}
        )
        for index in range(3):
            low, high = consumer.get_watermark_offsets(TopicPartition("t", index), timeout=30)
            assert (low, high) == (index + 4, 10)
        consumer.close()
