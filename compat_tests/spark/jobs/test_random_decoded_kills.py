"""Decoded columns and newest records under kill -9 at random moments (`make stress`)."""

from __future__ import annotations

import json
import pathlib
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.effort import seeds
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome
from tests.support.spark_kills import run_with_random_kills

Run = Callable[..., Outcome]
# Four batches, each with a newer schema: one costs Spark some fifty stages.
RECORDS, PARTITIONS, KEYS = 4_000, 2, 150


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as running:
        yield running


def value_of(at: int) -> bytes | None:
    """Every schema has a field more than the one before; some records have none, or are damaged."""
    if at % 11 == 0:
        return None
    schema_id = 1 + at * 4 // RECORDS
    body = b"\x02" * (schema_id + (at % 13 == 0))
    return struct.pack(">bi", 0, schema_id) + body


@pytest.mark.parametrize("seed", seeds(1))
def test_decoded_and_newest_records_killed_at_random(
    broker: Broker, run: Run, spark: Any, jars: str, lake: str, tmp_path: pathlib.Path, seed: int
) -> None:
    at = broker.bootstrap
    topic = client.create(at, partitions=PARTITIONS)
    sent = [
        Sent(n % PARTITIONS, b"k%d" % ((n // PARTITIONS) % KEYS), value_of(n), (), 0)
        for n in range(RECORDS)
    ]
    client.send(at, topic, sent)
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for schema_id in range(1, 5):
        fields = [{"name": f"f{n}", "type": "long"} for n in range(schema_id)]
        schema = {"type": "record", "name": "r", "fields": fields}
        (schemas / f"{schema_id}.avsc").write_text(json.dumps(schema))
    log = tmp_path / "log"
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--jars", jars, "--once")
    arguments += ("--decode", "avro", "--schemas", str(schemas), "--latest-by-key")
    arguments += ("--batch-records", "1000")
    run_with_random_kills(
        seed,
        lambda: support.start_process("archive", *arguments, log=log),
        lambda: sum(1 for _ in pathlib.Path(lake).rglob("*")),
        [broker],
        log,
    )
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary
    table = support.table(spark, lake, topic)
    kind = table.schema["valueDecoded"].dataType.simpleString()
    assert kind == "struct<f0:bigint,f1:bigint,f2:bigint,f3:bigint>"
    good = [r for n, r in enumerate(sent) if r.value is not None and n % 13]
    assert table.where("valueDecoded.f0 = 1").count() == len(good)
    assert support.dead_letters(spark, lake, topic).count() == sum(
        r.value is not None and n % 13 == 0 for n, r in enumerate(sent)
    )
    newest: dict[tuple[int, bytes | None], tuple[int, bytes | None]] = {}
    for n, record in enumerate(sent):
        newest[record.partition, record.key] = (n // PARTITIONS, record.value)
    wanted = {place: found for place, found in newest.items() if found[1] is not None}
    rows = support.table(spark, lake, topic, "latest").collect()
    found = {(row.partition, bytes(row.key)): (row.offset, bytes(row["value"])) for row in rows}
    assert len(rows) == len(found)
    assert found == wanted
