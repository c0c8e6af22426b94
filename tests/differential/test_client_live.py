"""`kwire.client` against a live Apache Kafka: what `tests/system/test_client.py` asks of kwire."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.kafka import running_kafka
from tests.system.test_client import (  # noqa: F401  (collected here)
    test_a_batch_that_is_refused_does_not_end_the_producer,
    test_a_group_reads_everything_once_over_its_members,
    test_a_topic_that_is_not_there,
    test_acks,
    test_administration,
    test_many_at_once_keep_their_order,
    test_offsets_of_a_group_without_members,
    test_records_come_back_as_they_went,
    test_what_a_broker_does_not_have,
)


class Running(NamedTuple):
    """As far as the tests look at a broker."""

    bootstrap: str


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory: pathlib.Path = tmp_path_factory.mktemp("kafka")
    with running_kafka(directory) as bootstrap:
        yield Running(bootstrap)
