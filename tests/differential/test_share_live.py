"""Share groups beside a live Apache Kafka: the recorded conversation asked anew, random walks of
three members with transactions, changed configs and locks that run out, and `ShareConsumer`."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kwire.testing.cluster import Broker
from tests.golden.broker.test_share_answers import recorded
from tests.support.effort import seeds
from tests.support.kafka import running_kafka
from tests.support.share.deleted import deleted
from tests.support.share.dialogue import PROPERTIES, dialogue, walks
from tests.support.share.walk import Walk
from tests.system.test_share_consumer import (  # noqa: F401  (collected here)
    queue,
    test_a_record_is_released_rejected_or_accepted,
    test_a_record_that_was_given_back_cannot_be_renewed_or_accepted,
    test_members_share_the_records_and_none_comes_twice,
    test_what_a_member_holds_is_free_when_it_goes,
    test_what_a_poll_gave_is_accepted_by_the_next,
)

WALKS = 3
SEVERAL = ((1, 2), (2, 3))
"""(seed, partitions). Few: on a busy machine some walks of several partitions part in which of
them a fetch gives records of; why is not known (ADR 35)."""


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
    said = recorded()
    assert list(dialogue(broker.bootstrap)) == said["dialogue"]
    assert list(walks(broker.bootstrap)) == said["walks"]


def test_kafka_still_does_with_a_deleted_group_what_is_recorded(broker: Running) -> None:
    assert list(deleted(broker.bootstrap, is_apart=False)) == recorded()["deleted"]


@pytest.mark.parametrize("seed", seeds(WALKS))
def test_a_random_walk_is_that_of_kafka(broker: Running, kwire: Running, seed: int) -> None:
    _compare(broker, kwire, seed, 1)


@pytest.mark.parametrize(("seed", "partitions"), SEVERAL)
def test_a_walk_of_several_partitions_is_that_of_kafka(
    broker: Running, kwire: Running, seed: int, partitions: int
) -> None:
    """Which partitions a fetch looks at first, and how they share its limits."""
    _compare(broker, kwire, seed, partitions)


def _compare(broker: Running, kwire: Running, seed: int, partitions: int) -> None:
    name = f"live-{partitions}"
    theirs = Walk(broker.bootstrap, seed, name, partitions=partitions)
    ours = Walk(kwire.bootstrap, seed, name, partitions=partitions)
    done: list[object] = []
    for kafkas, our in itertools.zip_longest(theirs.steps(), ours.steps()):
        done.append(kafkas)
        assert our == kafkas, f"seed {seed}, after {done[-4:]}"
    theirs.close()
    ours.close()
