"""Limits beside a live Apache Kafka: the recorded conversation, replication quotas at random, and
how many partitions a client gets in half a minute."""

from __future__ import annotations

import itertools
import pathlib
import time

import pytest

from kwire.testing.cluster import Broker
from tests.golden.quota import test_limit_answers as answers
from tests.golden.quota import test_replication_answers as replication
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.limit_dialogue import PROPERTIES, create, dialogue, set_quota
from tests.support.wire import WireClient

PARTITIONS_A_SECOND, SECONDS = 4.0, 30
SCRIPTS = 500


def test_kafka_still_says_what_was_recorded(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        assert dialogue(bootstrap) == answers.recorded()


@pytest.mark.parametrize("seed", seeds(1))
def test_a_replication_quota_is_exceeded_when_kafkas_is(seed: int) -> None:
    lines = replication.drawn(seed, SCRIPTS)
    said = replication.answers_of_kafka(lines, kafka_libs())
    wrong = [
        (line, ours, kafkas)
        for line, ours, kafkas in zip(lines, replication.our_answers(lines), said, strict=True)
        if ours != kafkas
    ]
    assert wrong == [], f"{len(wrong)} answers differ, seed {seed}"


def test_a_client_gets_as_many_partitions_as_from_kafka(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path, PROPERTIES) as bootstrap:
        kafkas = partitions_made(bootstrap)
    with Broker(options=PROPERTIES) as broker:
        ours = partitions_made(broker.bootstrap)
    print(f"partitions in {SECONDS} s: {ours}, from Apache Kafka {kafkas}")
    assert 0.9 <= ours / kafkas <= 1.1


def partitions_made(bootstrap: str) -> int:
    """By a client that asks all the time, once the bucket is empty."""
    names = (f"t{number}" for number in itertools.count())

    def is_served() -> bool:
        (topic,), _ = create(bootstrap, 7, **{next(names): 2})
        return bool(topic[1] == 0)

    with WireClient(bootstrap) as admin:
        set_quota(admin, "client-id", "test", "controller_mutation_rate", PARTITIONS_A_SECOND)
        while is_served():
            pass
        end_s = time.monotonic() + SECONDS
        made = 0
        while time.monotonic() < end_s:
            made += 2 * is_served()
    return made
