"""Jobs under kill -9 at random moments, of the driver and of brokers (`make stress`)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.effort import seeds
from tests.support.spark import Outcome
from tests.support.spark_kills import RECORDS, ends_of, fill, run_with_random_kills

Run = Callable[..., Outcome]


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as running:
        yield running


@pytest.mark.parametrize("seed", seeds(1))
def test_archive_killed_at_random(
    broker: Broker,
    run: Run,
    spark: Any,
    jars: str,
    lake: str,
    tmp_path: pathlib.Path,
    seed: int,
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    log = tmp_path / "log"
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--jars", jars, "--once")
    arguments += ("--batch-records", "1000", "--compact", "--compact-every", "5")
    run_with_random_kills(
        seed,
        lambda: support.start_process("archive", *arguments, log=log),
        lambda: sum(1 for _ in pathlib.Path(lake).rglob("*")),
        [broker],
        log,
    )
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary
    assert audited.summary is not None
    assert audited.summary["right"]["records"] == RECORDS
    # Nothing is left in the table's folder that no commit has named.
    again = run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    assert again.summary is not None
    assert again.summary["records"] == 0
    assert support.table(spark, lake, topic).count() == RECORDS
    kept = run("archive", "--lake", lake, "--maintain-only", "--keep-replaced", "0")
    assert kept.status == 0, kept.stderr
    files = pathlib.Path(lake).rglob("partition=*/*.parquet")
    assert len(list(files)) == len(support.table(spark, lake, topic).inputFiles())


@pytest.mark.parametrize("seed", seeds(1))
def test_replay_killed_at_random(
    broker: Broker, run: Run, jars: str, lake: str, tmp_path: pathlib.Path, seed: int
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    partitioner = "same" if seed % 2 else "murmur2"
    target = client.create(at, partitions=2 if partitioner == "same" else 5)
    log = tmp_path / "log"
    arguments = ("-b", at, "--lake", lake, "--to-topic", target, "--jars", jars)
    arguments += ("--partitioner", partitioner, "--rate", "4000")
    run_with_random_kills(
        seed,
        lambda: support.start_process("replay", *arguments, log=log),
        lambda: ends_of(at, target),
        [broker],
        log,
    )
    source, copy = client.consume(at, topic), client.consume(at, target)
    if partitioner == "same":
        for number, records in source.items():
            assert [r.content for r in copy[number]] == [r.content for r in records]
    wanted = sorted(r.content for records in source.values() for r in records)
    assert sorted(r.content for records in copy.values() for r in records) == wanted
    audited = run("audit", "-b", at, "--left", f"archive:{lake}", "--right", f"replay:{target}")
    assert audited.status == 0, audited.summary


@pytest.mark.parametrize("seed", seeds(1))
def test_mirror_killed_at_random(
    broker: Broker, run: Run, jars: str, tmp_path: pathlib.Path, seed: int
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    log = tmp_path / "log"
    with Broker(data_dir=tmp_path / "west") as west:
        arguments = (
            *("-b", at, "--to", west.bootstrap, "--alias", "east", "--to-alias", "west"),
            *("--pattern", topic, "--state", str(tmp_path / "mirror"), "--jars", jars),
            *("--batch-records", "2000", "--once"),
        )
        run_with_random_kills(
            seed,
            lambda: support.start_process("mirror", *arguments, log=log),
            lambda: ends_of(west.bootstrap, topic),
            [broker, west],
            log,
        )
        source, copy = client.consume(at, topic), client.consume(west.bootstrap, topic)
        for number, records in source.items():
            assert [r.content for r in copy[number]] == [r.content for r in records]
