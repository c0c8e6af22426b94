"""A Spark stream that reads with `isolation.level=read_committed` while transactions are written:
committed ones whole and once, nothing of an aborted one, and what is open holds the others back."""

from __future__ import annotations

import pathlib
import time
from typing import Any

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client

WAIT_S = 120


def producer(bootstrap: str, name: str) -> Any:
    from confluent_kafka import Producer

    made = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0}
    )
    made.init_transactions(WAIT_S)
    return made


def write(made: Any, topic: str, values: list[str], commit: bool) -> None:
    made.begin_transaction()
    for i, value in enumerate(values):
        made.produce(topic, value=value.encode(), partition=i % 2)
    made.flush(WAIT_S)  # also what will be aborted is in the log
    if commit:
        made.commit_transaction(WAIT_S)
    else:
        made.abort_transaction(WAIT_S)


def test_a_stream_reads_what_is_committed(
    broker: Broker, spark: Any, tmp_path: pathlib.Path
) -> None:
    topic = client.create(broker.bootstrap, partitions=2)
    seen: list[str] = []

    def take(frame: Any, _: int) -> None:
        seen.extend(row.v for row in frame.selectExpr("cast(value as string) v").collect())

    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("kafka.isolation.level", "read_committed")
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path / "check"))
        .trigger(processingTime="0 seconds")
        .start()
    )
    expected: list[str] = []

    def wait_for_all() -> None:
        deadline = time.monotonic() + WAIT_S
        while len(seen) < len(expected):
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline, (len(seen), query.lastProgress)
            time.sleep(0.1)

    try:
        first, second = producer(broker.bootstrap, "spark-1"), producer(broker.bootstrap, "spark-2")
        for i in range(20):
            commit = i % 3 != 1
            values = [f"{i}-{k}" for k in range(30)]
            write(first, topic, values, commit)
            expected += values if commit else []
            if i % 5 == 0:
                wait_for_all()
        wait_for_all()
        second.begin_transaction()
        for index in range(2):
            second.produce(topic, value=b"open", partition=index)
        second.flush(WAIT_S)
        behind = [f"behind-{k}" for k in range(10)]
        write(first, topic, behind, commit=True)
        write(first, topic, ["never"] * 10, commit=False)
        ends = [client.consume(broker.bootstrap, topic, "read_uncommitted")[0]]
        assert any(record.value == b"never" for record in ends[0]), "aborted, and in the log"
        query.processAllAvailable()  # up to the last stable offset
        assert sorted(seen) == sorted(expected), "held back by the open transaction"
        second.commit_transaction(WAIT_S)
        expected += [*behind, "open", "open"]
        wait_for_all()
    finally:
        query.stop()
    assert sorted(seen) == sorted(expected)


def test_a_batch_reads_over_transactions_that_were_aborted(broker: Broker, spark: Any) -> None:
    topic = client.create(broker.bootstrap, partitions=2)
    made = producer(broker.bootstrap, "spark-3")
    expected: list[str] = []
    for i in range(12):
        values = [f"{i}-{k}" for k in range(50)]
        write(made, topic, values, commit=i % 2 == 0)
        expected += values if i % 2 == 0 else []
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("kafka.isolation.level", "read_committed")
        .load()
        .selectExpr("cast(value as string) v")
    )
    assert sorted(row.v for row in frame.collect()) == sorted(expected)
