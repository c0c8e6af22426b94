"""Mirrors in both directions: offsets of groups, loops, new partitions, transactions."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator

import pytest

from kwire.spark.cluster import Cluster
from tests.support import kafka_client as client
from tests.support.broker import BrokerProcess
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def west() -> Iterator[BrokerProcess]:
    with BrokerProcess() as running:
        yield running


def send_transactions(bootstrap: str, topic: str) -> None:
    """Ten committed records, five aborted ones, five committed: offsets with gaps."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"tx-{topic}"})
    producer.init_transactions(30)
    for count, commit in ((10, True), (5, False), (5, True)):
        producer.begin_transaction()
        for i in range(count):
            producer.produce(topic, b"%d" % i, b"key", partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


def test_there_and_back(
    broker: BrokerProcess, west: BrokerProcess, run: Run, tmp_path: pathlib.Path
) -> None:
    east_at, west_at = broker.bootstrap, west.bootstrap
    topic = client.create(east_at, partitions=1, cleanup_policy="delete")
    send_transactions(east_at, topic)
    east, other = Cluster(east_at), Cluster(west_at)
    # Offsets of the source: 0-9, marker 10, aborted 11-15, marker 16, 17-21, marker 22.
    assert east.set_group_offsets("readers", {(topic, 0): 19}) is None
    assert east.set_group_offsets("beginners", {(topic, 0): 0}) is None
    assert east.set_group_offsets("done", {(topic, 0): 23}) is None
    lag = tmp_path / "lag.json"
    there = (
        *("-b", east_at, "--to", west_at, "--alias", "east", "--to-alias", "west"),
        *("--pattern", topic, "--groups", ".*", "--state", str(tmp_path / "there"), "--once"),
        *("--lag-report", str(lag)),
    )
    back = (
        *("-b", west_at, "--to", east_at, "--alias", "west", "--to-alias", "east"),
        *("--pattern", topic, "--groups", ".*", "--state", str(tmp_path / "back"), "--once"),
    )
    done = run("mirror", *there)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert done.summary["lag"] == 0
    assert json.loads(lag.read_text())["partitions"][f"{topic}-0"]["lag"] == 0
    copy = client.consume(west_at, topic)[0]
    assert [r.value for r in copy] == [b"%d" % i for i in range(10)] + [b"%d" % i for i in range(5)]
    assert copy[12].own_headers == (("kwire-mirror-path", b"east"), ("kwire-mirror-offset", b"19"))
    assert other.group_offsets("readers") == {(topic, 0): 12}
    assert other.group_offsets("beginners") == {(topic, 0): 0}
    assert other.group_offsets("done") == {(topic, 0): 15}

    # The west takes over: new records there, a group goes on there.
    client.send(west_at, topic, [Sent(0, b"key", b"west %d" % i) for i in range(3)])
    assert other.set_group_offsets("readers", {(topic, 0): 17}) is None
    done = run("mirror", *back)
    assert done.status == 0, done.stderr
    records = client.consume(east_at, topic, "read_committed")[0]
    assert [r.value for r in records][-3:] == [b"west 0", b"west 1", b"west 2"]
    assert len(records) == 18
    # 17 in the west is behind "west 1", which lies behind all that the east had.
    assert east.group_offsets("readers") == {(topic, 0): records[-1].offset}

    # And the first mirror again: nothing goes round in circles.
    done = run("mirror", *there)
    assert done.status == 0, done.stderr
    assert len(client.consume(west_at, topic)[0]) == 18

    # A partition that is added later follows, in a topic made anew from its state.
    east.add_partitions(topic, 2)
    client.send(east_at, topic, [Sent(1, b"k", b"new partition")])
    done = run("mirror", *there)
    assert done.status == 0, done.stderr
    assert [r.value for r in client.consume(west_at, topic)[1]] == [b"new partition"]


def test_a_mirror_that_lost_its_state_sends_nothing_twice(
    broker: BrokerProcess, west: BrokerProcess, run: Run, tmp_path: pathlib.Path
) -> None:
    topic = client.create(broker.bootstrap)
    client.send(broker.bootstrap, topic, [Sent(0, None, b"%d" % i) for i in range(50)])
    for name in ("one", "two"):
        done = run(
            *("mirror", "-b", broker.bootstrap, "--to", west.bootstrap, "--alias", "e"),
            *("--to-alias", "w", "--pattern", topic, "--prefix", "copy."),
            *("--state", str(tmp_path / name), "--once"),
        )
        assert done.status == 0, done.stderr
        copy = client.consume(west.bootstrap, f"copy.{topic}")[0]
        assert [r.value for r in copy] == [b"%d" % i for i in range(50)]
