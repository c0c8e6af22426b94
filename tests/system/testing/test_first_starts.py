"""Brokers of tests begin with what a first start leaves: they are new all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from kwire.testing import Broker
from kwire.testing.first_starts import KEPT_MAX, FirstStarts


@pytest.fixture
def starts() -> Iterator[FirstStarts]:
    starts = FirstStarts()
    yield starts
    starts.close()


def cluster_id(broker: Broker) -> str:
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    return str(client.describe_cluster().result(30).cluster_id)


def test_each_begins_without_anything_and_is_a_cluster_of_its_own(starts: FirstStarts) -> None:
    brokers = []
    for number in range(5):
        broker = starts.broker()
        assert broker.is_running == (number > 0), "from the second on there is a state to begin at"
        brokers.append(broker.__enter__())
        assert broker.topics() == []
        broker.topic("orders").send_all([f"of {number}", "more"])
        assert broker.group("g").lags("orders") == {("orders", 0): 2}
    for number, broker in enumerate(brokers):
        broker.topic("orders").assert_records(f"of {number}", "more")
    assert len({cluster_id(broker) for broker in brokers}) == 5
    assert len({broker.bootstrap for broker in brokers}) == 5
    brokers[3].restart()
    brokers[3].topic("orders").assert_records("of 3", "more")
    assert len({cluster_id(broker) for broker in brokers}) == 5
    brokers[4].reset()
    assert brokers[4].topics() == []
    for broker in brokers:
        broker.close()


def test_options_are_those_that_were_asked_for(starts: FirstStarts) -> None:
    for _ in range(3):
        for partitions in (2, 3):
            with starts.broker(config={"num.partitions": partitions}) as broker:
                broker.topic("orders").send("makes it")
                assert set(broker.topic("orders").end_offsets()) == set(range(partitions))


def test_processes_and_too_many_options_start_by_themselves(starts: FirstStarts) -> None:
    for _ in range(3):
        assert not starts.broker(process=True).is_running
    for number in range(KEPT_MAX + 2):
        broker = starts.broker(config={"num.partitions": 1 + number})
        assert not broker.is_running
        broker.close()
    again = starts.broker(config={"num.partitions": KEPT_MAX + 2})
    assert not again.is_running, "no more than so many states are kept"
    again.close()
