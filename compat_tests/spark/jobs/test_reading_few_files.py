"""What a condition reads of a lake's table: Spark's own counters of its scan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
BASE_MS = 1_760_000_000_000
STEP_MS = 10  # Delta takes the greatest time of a file for a millisecond later
PARTITIONS = 10
BATCHES = 5
OF_EACH = 40  # records of a partition in a batch


class Scan(NamedTuple):
    """Files that were opened, rows that came out of them, and what the condition left."""

    files: int
    rows: int
    found: int


def scanned(frame: Any) -> Scan:
    """Run a query without a shuffle."""
    found = len(frame.collect())
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    metrics = leaves.apply(0).metrics()
    return Scan(
        int(metrics.apply("numFiles").value()), int(metrics.apply("numOutputRows").value()), found
    )


def key_of(partition: int, order: int) -> bytes:
    """As good as random: no file has a range of keys that says something."""
    return hashlib.sha256(b"%d/%d" % (partition, order)).hexdigest()[:12].encode()


def test_conditions_read_few_files_of_fifty(
    broker: Broker, run: Run, lake: str, spark: Any
) -> None:
    """Time and offset choose files by the log's statistics. Of keys the log keeps none: their
    partition chooses files, and of the others Parquet's own dictionaries keep all rows away."""
    at = broker.bootstrap
    topic = client.create(at, partitions=PARTITIONS)
    orders = [(n, number) for number in range(BATCHES * OF_EACH) for n in range(PARTITIONS)]
    client.send(
        at,
        topic,
        (
            Sent(n, key_of(n, number // 4), b"%d" % number, (), BASE_MS + STEP_MS * number)
            for n, number in orders
        ),
    )
    few = ("--batch-records", str(PARTITIONS * OF_EACH))
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once", *few).status == 0
    table = support.table(spark, lake, topic)
    files, records = PARTITIONS * BATCHES, PARTITIONS * BATCHES * OF_EACH
    assert scanned(table) == Scan(files, records, records)
    # Records of one batch's time: its files.
    begin = f"timestamp_millis({BASE_MS + 2 * OF_EACH * STEP_MS})"
    end = f"timestamp_millis({BASE_MS + 3 * OF_EACH * STEP_MS})"
    one = f"timestamp >= {begin} AND timestamp < {end}"
    batch = PARTITIONS * OF_EACH
    assert scanned(table.where(one)) == Scan(PARTITIONS, batch, batch)
    # A record by its place: its file.
    assert scanned(table.where("partition = 3 AND offset = 90")) == Scan(1, OF_EACH, 1)
    # A key: each file is opened, and of one of them rows come out.
    key = f"key = X'{key_of(3, 22).hex()}'"
    assert scanned(table.where(key)) == Scan(files, OF_EACH, 4)
    # With the partition that it is in, or with a time, no others are opened.
    assert scanned(table.where(f"{key} AND partition = 3")) == Scan(BATCHES, OF_EACH, 4)
    assert scanned(table.where(f"{key} AND partition = 3 AND {one}")) == Scan(1, OF_EACH, 4)
