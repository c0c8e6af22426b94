"""Jobs that are killed with kill -9, their broker too: nothing twice, nothing missing."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.effort import effort
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome
from tests.support.spark_kills import (
    BASE_MS,
    RECORDS,
    WAIT_S,
    ends_of,
    fill,
    kill,
    wait_until,
)

Run = Callable[..., Outcome]


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as running:
        yield running


def test_archive_survives_kills_of_driver_and_broker(
    broker: Broker, run: Run, jars: str, lake: str, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    log = tmp_path / "log"
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--jars", jars, "--once")
    small = ("--batch-records", "2500")

    def committed() -> int:
        return support.commits(lake)

    def attempts() -> int:
        return len(list(pathlib.Path(lake).rglob("partition=*/*.parquet")))

    # Before a commit: files of an attempt are there, nothing says that they count.
    process = support.start_process("archive", *arguments, *small, log=log)
    wait_until(lambda: attempts() > 0, process, log)
    kill(process)
    # Some commits later, whatever it does then.
    process = support.start_process("archive", *arguments, *small, log=log)
    before = committed()
    wait_until(lambda: committed() > before + 2, process, log)
    kill(process)
    # The broker dies under a running job and comes back.
    process = support.start_process("archive", *arguments, *small, log=log)
    before = committed()
    wait_until(lambda: committed() > before + 1, process, log)
    broker.kill()
    broker.start()
    assert process.wait(WAIT_S) == 0, log.read_text()[-2000:]
    assert process.stdout is not None
    process.stdout.close()
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary
    assert audited.summary is not None
    assert audited.summary["right"]["records"] == RECORDS


def test_archive_of_many_small_partitions_survives_a_kill(
    broker: Broker, run: Run, spark: Any, jars: str, lake: str, tmp_path: pathlib.Path
) -> None:
    """Forty partitions (a hundred under `make stress`) of fifteen records, which share two tasks:
    killed behind the first files, in some partitions of a task; all of it comes in order."""
    at, partitions = broker.bootstrap, 40 if effort() == 1 else 100
    topic = client.create(at, partitions=partitions)
    values = [(i % partitions, b"%d" % i) for i in range(15 * partitions)]
    client.send(at, topic, (Sent(n, b"k", value, (), BASE_MS) for n, value in values))
    log = tmp_path / "log"
    arguments = ("-b", at, "--topics", topic, "--lake", lake, "--once")

    def attempts() -> int:
        return len(list(pathlib.Path(lake).rglob("partition=*/*.parquet")))

    process = support.start_process("archive", *arguments, "--jars", jars, log=log)
    wait_until(lambda: attempts() > 0, process, log)
    kill(process)
    done = run("archive", *arguments)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["offsets"] == {f"{topic}-{n}": 15 for n in range(partitions)}
    rows = support.table(spark, lake, topic).select("partition", "offset", "value").collect()
    assert sorted((row.partition, row.offset, bytes(row.value)) for row in rows) == sorted(
        (n, i // partitions, value) for i, (n, value) in enumerate(values)
    )


def test_replay_survives_kills_of_driver_and_broker(
    broker: Broker, run: Run, jars: str, lake: str, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    assert run("archive", "-b", at, "--topics", topic, "--lake", lake, "--once").status == 0
    target = client.create(at, partitions=2)
    log = tmp_path / "log"
    arguments = ("-b", at, "--lake", lake, "--to-topic", target, "--jars", jars)

    def arrived() -> int:
        return ends_of(at, target)

    process = support.start_process("replay", *arguments, "--rate", "4000", log=log)
    wait_until(lambda: arrived() > 1000, process, log)
    kill(process)
    first = arrived()
    process = support.start_process("replay", *arguments, "--rate", "4000", log=log)
    wait_until(lambda: arrived() > first + 2000, process, log)
    broker.kill()
    broker.start()
    assert process.wait(WAIT_S) == 0, log.read_text()[-2000:]
    assert process.stdout is not None
    summary = support.summary_of(process.stdout.read())
    process.stdout.close()
    assert summary is not None
    assert summary["already_there"] + summary["sent"] == RECORDS
    assert summary["already_there"] >= first > 0
    source, copy = client.consume(at, topic), client.consume(at, target)
    for number, records in source.items():
        assert [r.content for r in copy[number]] == [r.content for r in records]


def test_mirror_survives_kills_of_driver_and_target(
    broker: Broker, run: Run, jars: str, tmp_path: pathlib.Path
) -> None:
    at = broker.bootstrap
    topic = fill(at)
    log = tmp_path / "log"
    with Broker(data_dir=tmp_path / "west") as west:
        arguments = (
            *("-b", at, "--to", west.bootstrap, "--alias", "east", "--to-alias", "west"),
            *("--pattern", topic, "--state", str(tmp_path / "mirror"), "--jars", jars),
        )

        def arrived() -> int:
            return ends_of(west.bootstrap, topic)

        small = ("--batch-records", "6000", "--once")
        process = support.start_process("mirror", *arguments, *small, log=log)
        wait_until(lambda: arrived() > 0, process, log)
        kill(process)
        first = arrived()
        process = support.start_process("mirror", *arguments, *small, log=log)
        wait_until(lambda: arrived() > first, process, log)
        west.kill()
        west.start()
        assert process.wait(WAIT_S) == 0, log.read_text()[-3000:]
        assert process.stdout is not None
        process.stdout.close()
        source, copy = client.consume(at, topic), client.consume(west.bootstrap, topic)
        for number, records in source.items():
            assert [r.content for r in copy[number]] == [r.content for r in records]
        audited = run(
            *("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"mirror:{topic}"),
            *("--right-bootstrap", west.bootstrap),
        )
        assert audited.status == 0, audited.summary
