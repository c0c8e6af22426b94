"""Share groups beside a live Apache Kafka: the recorded conversation asked anew, random walks of
three members with transactions, changed configs and locks that run out, and `ShareConsumer`."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kwire.protocol.errors import ErrorCode
from kwire.testing.cluster import Broker
from tests.golden.broker.test_share_answers import recorded
from tests.support.effort import seeds
from tests.support.kafka import running_kafka
from tests.support.share.deleted import deleted
from tests.support.share.dialogue import PROPERTIES, dialogue, walk_of
from tests.support.share.dialogue import WALKS as RECORDED_WALKS
from tests.support.share.turns import turns
from tests.support.share.walk import Said, Walk
from tests.system.test_share_consumer import (  # noqa: F401  (collected here)
    queue,
    test_a_record_is_released_rejected_or_accepted,
    test_a_record_that_was_given_back_cannot_be_renewed_or_accepted,
    test_members_share_the_records_and_none_comes_twice,
    test_what_a_member_holds_is_free_when_it_goes,
    test_what_a_poll_gave_is_accepted_by_the_next,
)

WALKS = 100
ATTEMPTS = 5
"""Of a walk: what Apache Kafka releases while it answers a fetch is free for that fetch and the
next one or not, as its threads go, so that its own answers differ between two runs of a walk. Ours
have to be those of one of them, from the first step to the last."""
BATCH_NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."


class Running(NamedTuple):
    """As far as the tests look at a broker."""

    bootstrap: str


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: pathlib.Path = tmp_path_factory.mktemp("kafka")
    with running_kafka(directory, PROPERTIES) as bootstrap:
        yield Running(bootstrap)


@pytest.fixture(scope="module")
def kwire() -> Iterator[Running]:
    with Broker(options=PROPERTIES) as started:
        yield Running(started.bootstrap)


def test_kafka_still_answers_what_is_recorded(broker: Running) -> None:
    assert list(dialogue(broker.bootstrap)) == recorded()["dialogue"]


@pytest.mark.parametrize("number", range(len(RECORDED_WALKS)))
def test_a_recorded_walk_is_still_kafkas(broker: Running, number: int) -> None:
    for attempt in range(ATTEMPTS):
        said = walk_of(broker.bootstrap, RECORDED_WALKS[number], f"walk-{attempt}")
        if said == recorded()["walks"][number]:
            return
    assert said == recorded()["walks"][number]


def test_kafka_still_does_with_a_deleted_group_what_is_recorded(broker: Running) -> None:
    assert list(deleted(broker.bootstrap, is_apart=False)) == recorded()["deleted"]


@pytest.mark.parametrize("seed", seeds(WALKS))
def test_a_random_walk_is_one_of_kafkas(broker: Running, kwire: Running, seed: int) -> None:
    """Of one, two or three partitions: which of them a fetch looks at first, and how they share its
    limits, too."""
    partitions = 1 + seed % 3
    walk = Walk(kwire.bootstrap, seed, "ours", partitions=partitions, with_empty=True)
    try:
        ours = list(walk.steps())
    finally:
        walk.close()
    for attempt in range(ATTEMPTS):
        differs = _first_difference(broker.bootstrap, seed, partitions, f"live-{attempt}", ours)
        if differs is None:
            return
    raise AssertionError(f"seed {seed}: (step, Kafka's, ours) {differs}")


def test_kafka_takes_many_partitions_of_a_session_in_turn_as_we_do(broker: Running) -> None:
    came, expected = turns(broker.bootstrap, "turns")
    assert came == expected


def _fails_inside(kafkas: object, our: object) -> bool:
    """Kafka has a NullPointerException where what is acknowledged lies in front of all that is in
    flight, or nothing is (ADR 35)."""
    refused = [0, ErrorCode.INVALID_RECORD_STATE, BATCH_NOT_FOUND]
    is_theirs = kafkas == ["nonsense", [ErrorCode.UNKNOWN_SERVER_ERROR, None, []]]
    return is_theirs and our == ["nonsense", [0, None, [refused]]]


def _first_difference(
    bootstrap: str, seed: int, partitions: int, name: str, ours: list[Said]
) -> tuple[int, Said, Said | None] | None:
    """(step, Kafka's answer, ours) where the same walk at Apache Kafka says something else."""
    walk = Walk(bootstrap, seed, name, partitions=partitions, with_empty=True)
    try:
        for step, (kafkas, our) in enumerate(itertools.zip_longest(walk.steps(), ours)):
            if _fails_inside(kafkas, our):
                return None  # its session is another one from here
            if our != kafkas:
                return step, kafkas, our
    finally:
        walk.close()
    return None
