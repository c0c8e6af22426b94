"""Mirrors in both directions: offsets of groups, loops, new partitions, transactions."""

from __future__ import annotations

import json
import pathlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire.spark.cluster import Cluster
from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.spark import Outcome
from tests.support.spark_kills import WAIT_S, ends_of, wait_until

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def west() -> Iterator[Broker]:
    with Broker() as running:
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


def test_there_and_back(broker: Broker, west: Broker, run: Run, tmp_path: pathlib.Path) -> None:
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
    broker: Broker, west: Broker, run: Run, tmp_path: pathlib.Path
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


def test_the_runbook_of_a_failover(run: Run, jars: str, tmp_path: pathlib.Path) -> None:
    """docs/MIRROR.md step by step: the east is lost, the west is promoted, the east comes back,
    everything moves back there. The group gets every record that exists once."""
    topic, group = "orders", "readers"
    log, lag = tmp_path / "log", tmp_path / "lag.json"
    east = Broker(data_dir=tmp_path / "east")
    with east, Broker() as west:

        def values(name: str, count: int) -> list[bytes]:
            return [b"%s %d" % (name.encode(), i) for i in range(count)]

        def send(to: Broker, name: str, count: int) -> None:
            found = enumerate(values(name, count))
            client.send(to.bootstrap, topic, [Sent(i % 2, b"k%d" % i, value) for i, value in found])

        def mirror(source: Broker, target: Broker, *names: str) -> tuple[str, ...]:
            return (
                *("-b", source.bootstrap, "--to", target.bootstrap),
                *("--alias", names[0], "--to-alias", names[1], "--pattern", "orders.*"),
                *("--groups", ".*", "--state", str(tmp_path / f"mirror-{names[0]}")),
            )

        client.create(east.bootstrap, topic, partitions=2)
        send(east, "early", 100)
        got = client.consume_as(east.bootstrap, group, topic, count=60)
        there = mirror(east, west, "east", "west")
        process = support.start_process(
            *("mirror", *there, "--jars", jars, "--group-interval", "0.5"),
            *("--lag-report", str(lag), "--retry-seconds", "600"),
            log=log,
        )
        target = Cluster(west.bootstrap)
        committed = Cluster(east.bootstrap).group_offsets(group)
        wait_until(lambda: target.group_offsets(group) == committed, process, log)
        assert json.loads(lag.read_text())["lag"] == 0
        # The east is lost with records that the mirror has not seen.
        process.send_signal(signal.SIGSTOP)
        send(east, "late", 10)
        east.kill()
        process.send_signal(signal.SIGCONT)
        # 1. Stop the mirror, 2. nobody writes to the east any more.
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0, log.read_text()[-2000:]
        assert process.stdout is not None
        process.stdout.close()
        # 3. Promote: the group goes on behind what it has read.
        got += client.consume_as(west.bootstrap, group, topic)
        assert sorted(got) == sorted(values("early", 100))
        send(west, "west", 50)
        got += client.consume_as(west.bootstrap, group, topic, count=20)

        # Failing back. 1. The other mirror; the east's own records do not come back to it.
        east.start()
        back = mirror(west, east, "west", "east")
        assert run("mirror", *back, "--once").status == 0
        # 2. What had never reached the west does now; the group, still there, reads it.
        assert run("mirror", *there, "--once").status == 0
        got += client.consume_as(west.bootstrap, group, topic)
        everything = [*values("early", 100), *values("late", 10), *values("west", 50)]
        assert sorted(got) == sorted(everything)
        # 3. The planned move: producers stop, a last run, everything starts at the east.
        assert run("mirror", *back, "--once").status == 0
        assert client.consume_as(east.bootstrap, group, topic) == []
        send(east, "again", 10)
        assert sorted(client.consume_as(east.bootstrap, group, topic)) == values("again", 10)
        for broker in (east, west):
            records = client.consume(broker.bootstrap, topic)
            found = sorted(record.value or b"" for part in records.values() for record in part)
            again = values("again", 10) if broker is east else []
            assert found == sorted(everything + again)


def test_three_clusters_in_a_ring(
    broker: Broker, west: Broker, run: Run, tmp_path: pathlib.Path
) -> None:
    """Each mirrors to the next one: every record is once in each, whatever its way."""
    topic = client.create(broker.bootstrap, partitions=2)
    with Broker() as third:
        names = ("a", "b", "c")
        clusters = dict(zip(names, (broker, west, third), strict=True))
        ring = list(zip(names, (*names[1:], names[0]), strict=True))

        def write(round_number: int) -> None:
            for name, cluster in clusters.items():
                values = [b"%s %d %d" % (name.encode(), round_number, i) for i in range(10)]
                records = [Sent(i % 2, b"k", value) for i, value in enumerate(values)]
                client.send(cluster.bootstrap, topic, records)

        def turn(start: int) -> int:
            """Each mirror once; how many records were sent."""
            sent = 0
            for source, target in ring[start:] + ring[:start]:
                done = run(
                    *("mirror", "-b", clusters[source].bootstrap),
                    *("--to", clusters[target].bootstrap, "--alias", source),
                    *("--to-alias", target, "--pattern", topic, "--groups", topic, "--once"),
                    *("--state", str(tmp_path / source)),
                )
                assert done.status == 0, done.stderr
                assert done.summary is not None
                sent += done.summary["records"]
            return sent

        turn(0)  # makes the topics
        for number in range(2):
            write(number)
            turn(number)
        while turn(0):
            pass
        everything = sorted(
            b"%s %d %d" % (name.encode(), number, i)
            for name in names
            for number in range(2)
            for i in range(10)
        )
        for cluster in clusters.values():
            copy = client.consume(cluster.bootstrap, topic)
            assert sorted(r.value or b"" for part in copy.values() for r in part) == everything
        # A group that has read all of it goes on behind it in the next cluster, and in the last.
        ends = [ends_of(cluster.bootstrap, topic) for cluster in clusters.values()]
        assert ends == [60] * 3
        assert len(client.consume_as(broker.bootstrap, topic, topic)) == 60
        turn(0)
        for cluster in (west, third):
            assert client.consume_as(cluster.bootstrap, topic, topic) == []


BOTH_WRITTEN = [
    ("t", 0, "t", 0, 0, 9, 100, 10, 0),
    ("t", 0, "t", 0, 10, 19, 120, 10, 0),
    # What came last from the target itself lies before all that was mirrored.
    ("t", 0, "t", 0, 20, 24, 50, 5, 0),
]


@pytest.mark.parametrize(
    ("runs", "committed", "position"),
    [
        (2, 0, 100),  # nothing consumed: the first that is there
        (2, 5, 105),
        (2, 10, 110),  # behind the last consumed, not where the next one lies
        (2, 12, 122),
        (2, 20, 130),
        (2, 99, 130),
        (3, 20, 50),  # what is not consumed yet is not passed over
        (3, 22, 52),
        (3, 25, 130),  # all is consumed: behind everything
    ],
)
def test_positions_where_both_clusters_were_written_to(
    spark: Any, runs: int, committed: int, position: int
) -> None:
    from kwire.spark.mirror_offsets import positions
    from kwire.spark.sending import RUN_SCHEMA

    groups = spark.createDataFrame(
        [("g", "t", 0, committed)],
        "group string, sourceTopic string, sourcePartition int, committed bigint",
    )
    frame = spark.createDataFrame(BOTH_WRITTEN[:runs], RUN_SCHEMA)
    assert [row.position for row in positions(groups, frame).collect()] == [position]
