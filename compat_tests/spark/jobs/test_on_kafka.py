"""The jobs where Apache Kafka 4.4 is the source or the target: it is all the same to them."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import test_mirror as mirror
import test_pipeline as pipeline

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.kafka import running_kafka


class Peer(NamedTuple):
    """What the tests of a kwire broker use of it, of Apache Kafka."""

    bootstrap: str


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    with running_kafka(tmp_path_factory.mktemp("kafka") / "node") as bootstrap:
        yield Peer(bootstrap)


def test_mirrors_between_kafka_and_kwire(
    kafka: Any, broker: Broker, run: pipeline.Run, tmp_path: pathlib.Path
) -> None:
    """The first one: all groups are translated, and there are only its own yet."""
    mirror.test_there_and_back(kafka, broker, run, tmp_path)


def test_records_of_all_shapes(
    kafka: Any, run: pipeline.Run, lake: str, tmp_path: pathlib.Path
) -> None:
    pipeline.test_random_records_survive(kafka, run, lake, 41, tmp_path)


def test_transactions(kafka: Any, run: pipeline.Run, lake: str, spark: Any) -> None:
    pipeline.test_transactions_and_batches_that_hold_only_markers(kafka, run, lake, spark)


def test_profile(kafka: Any, run: pipeline.Run, tmp_path: pathlib.Path) -> None:
    pipeline.test_profile(kafka, run, tmp_path)


def test_from_kafka_by_way_of_a_lake_to_kwire(
    kafka: Any, broker: Broker, run: pipeline.Run, lake: str
) -> None:
    topic = client.create(kafka.bootstrap, partitions=3)
    client.send(kafka.bootstrap, topic, pipeline.random_records(42, 500, 3))
    assert (
        run("archive", "-b", kafka.bootstrap, "--topics", topic, "--lake", lake, "--once").status
        == 0
    )
    done = run("replay", "-b", broker.bootstrap, "--lake", lake, "--create")
    assert done.status == 0, done.stderr
    left, right = (client.consume(at, topic) for at in (kafka.bootstrap, broker.bootstrap))
    assert pipeline.same_content(left, right)
