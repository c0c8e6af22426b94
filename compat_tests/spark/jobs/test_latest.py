"""The newest record of each key against a compacted topic whose cleaner has run."""

from __future__ import annotations

import itertools
import pathlib
import random
import struct
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome
from tests.support.spark_kills import WAIT_S, wait_until

Run = Callable[..., Outcome]
PARTITIONS, KEYS = 3, 40
HEADER = struct.pack(">bi", 0, 7)


@pytest.fixture(scope="module")
def cleaning() -> Iterator[Broker]:
    """A broker whose cleaner looks often."""
    with Broker(options={"log.cleaner.backoff.ms": 20}) as broker:
        yield broker


def records(rng: random.Random, count: int) -> list[Sent]:
    """Keys of several lives, in one partition and in several; tombstones, keys without bytes,
    records without keys, values that do not decode."""
    now_ms = int(time.time() * 1000)
    found = []
    for at in range(count):
        key = rng.choice([None, b"", *(b"key-%d" % n for n in range(KEYS))])
        values = [None, HEADER + b"\x02" * 8, HEADER + b"\x03", b"plain", HEADER + b"\x06"]
        value = rng.choice([*values, HEADER + bytes([rng.randrange(128)])])
        headers = (("n", b"%d" % at),)
        found.append(Sent(rng.randrange(PARTITIONS), key, value, headers, now_ms + at))
    return found


def compact(bootstrap: str, topic: str) -> None:
    """Make a topic one that is compacted, and put a record behind what is to be cleaned."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    wanted = {
        "cleanup.policy": "compact",
        "segment.ms": "1",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": "0",
    }
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in wanted.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)


def content(key: Any, offset: int, value: Any, headers: Any) -> tuple[Any, ...]:
    return (bytes(key), offset, bytes(value), tuple((n, bytes(v)) for n, v in headers))


def test_the_newest_records_are_what_compaction_leaves(
    cleaning: Broker, run: Run, lake: str, spark: Any, tmp_path: pathlib.Path
) -> None:
    at = cleaning.bootstrap
    topic = client.create(at, partitions=PARTITIONS)
    (tmp_path / "7.avsc").write_text('"long"')
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    decoded = ("--decode", "avro", "--schemas", str(tmp_path))
    rng = random.Random(19)
    client.send(at, topic, records(rng, 300))
    # What was archived before there was such a table, and before values were decoded, counts too.
    assert run(*arguments).status == 0
    client.send(at, topic, records(rng, 300))
    done = run(*arguments, *decoded, "--latest-by-key", "--batch-records", "200")
    assert done.status == 0, done.stderr
    client.send(at, topic, records(rng, 100))
    done = run(*arguments, *decoded, "--latest-by-key")
    assert done.status == 0, done.stderr
    ends = {number: len(found) for number, found in client.consume(at, topic).items()}

    compact(at, topic)
    end = b"the end"

    def below() -> dict[int, list[client.Got]]:
        """What compaction has left, below the records that only make it do so."""
        return {
            number: [one for one in found if one.offset < ends[number]]
            for number, found in client.consume(at, topic).items()
        }

    def values(found: list[client.Got]) -> list[tuple[Any, ...]]:
        """Without tombstones: a cleaned one may stay until a later pass."""
        return [
            content(one.key, one.offset, one.value, one.headers)
            for one in found
            if one.value is not None
        ]

    later_ms = itertools.count(int(time.time() * 1000) + 10_000, 1_000)

    def cleaned() -> bool:
        for _ in range(2):
            at_ms = next(later_ms)
            client.send(at, topic, [Sent(n, end, b"x", (), at_ms) for n in range(PARTITIONS)])
        found = below()
        if any(one.key is None for group in found.values() for one in group):
            return False
        return all(
            len({one[0] for one in left}) == len(left) for left in map(values, found.values())
        )

    wait_until(cleaned, None, tmp_path / "none")
    rows = support.table(spark, lake, topic, "latest").collect()
    kept: dict[int, list[tuple[Any, ...]]] = {number: [] for number in ends}
    for row in sorted(rows, key=lambda row: (row.partition, row.offset)):
        kept[row.partition].append(content(row.key, row.offset, row["value"], row.headers))
    assert kept == {number: values(found) for number, found in below().items()}
    assert len(rows) > KEYS
    asked = run("query", "--lake", lake, f"SELECT key FROM `latest:{topic}`")
    assert asked.summary is not None, asked.stderr
    assert asked.summary["rows"] == len(rows)
    # With its columns, where the value has any.
    for row in rows:
        body = bytes(row["value"]).removeprefix(HEADER)
        first_archived = row.valueSchemaId is None
        if not first_archived and len(body) == 1:
            assert row.valueDecoded == (body[0] >> 1) ^ -(body[0] & 1)
    assert any(row.valueDecoded is not None for row in rows)
    assert any(bytes(row["value"]) == b"plain" for row in rows)

    # Retention takes nothing of it, whatever goes of the archive; a table of others is refused.
    kept_back = run(
        *("archive", "--lake", lake, "--maintain-only", "--retention-mb", "0"),
        *("--compact", "--keep-replaced", "0"),
    )
    assert kept_back.status == 0, kept_back.stderr
    assert kept_back.summary is not None
    assert kept_back.summary["expired_files"] > 0
    assert support.table(spark, lake, topic).count() == 0
    assert support.table(spark, lake, topic, "latest").count() == len(rows)
    again = run(*arguments, *decoded, "--latest-by-key", "--allow-gaps")
    assert again.status == 0, again.stderr
    table = support.table(spark, lake, topic, "latest")
    assert table.where("key = cast('the end' as binary)").count() == PARTITIONS
    assert table.count() == len(rows) + PARTITIONS
