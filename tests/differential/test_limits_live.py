"""Limits beside a live Apache Kafka: the recorded conversation, replication quotas at random, and
how many partitions a client gets in half a minute."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
import time

import pytest

from kwire.testing.cluster import Broker, Cluster, wait_for
from tests.golden.quota import test_limit_answers as answers
from tests.golden.quota import test_replication_answers as replication
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.limit_dialogue import PROPERTIES, create, dialogue, set_quota
from tests.support.wire import WireClient, produce_values
from tests.system.cluster import test_moves as moves

PARTITIONS_A_SECOND, SECONDS = 4.0, 30
SCRIPTS = 500
MOVED_BYTES, VALUE_BYTES, BYTES_A_SECOND = 20_000_000, 100_000, 1_000_000


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


def test_a_move_goes_at_the_rate_that_is_set(tmp_path: pathlib.Path) -> None:
    """Of a real log between real brokers, which are held back when Kafka's would be (above)."""
    with Cluster(tmp_path, settings={"min.insync.replicas": 1}) as cluster:
        cluster.start()
        moves.create(cluster, "big", {0: [1]})
        with moves.client(cluster) as client:
            for _ in range(MOVED_BYTES // VALUE_BYTES):
                produce_values(client, "big", 0, [b"v" * VALUE_BYTES])
        moves.throttle(cluster, BYTES_A_SECOND)
        replicas = {
            f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")
        }
        moves.configure(cluster, moves.TOPIC, "big", replicas)
        begin_s = time.monotonic()
        assert moves.reassign(cluster, "big", {0: [2]}) == [0]
        wait_for(lambda: not moves.under_way(cluster), "the move is done", 120)
        rate = MOVED_BYTES / (time.monotonic() - begin_s)
    print(f"{rate / 1e6:.2f} MB/s of {BYTES_A_SECOND / 1e6:.2f}")
    assert 0.9 <= rate / BYTES_A_SECOND <= 1.1


def reassign_by_tool(cluster: Cluster, file: pathlib.Path, *arguments: str) -> str:
    """What kafka-reassign-partitions writes."""
    done = subprocess.run(
        [
            *("java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{kafka_libs()}/*"),
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            *("--bootstrap-server", cluster.bootstrap),
            *("--reassignment-json-file", str(file), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_tool_throttles_a_move_and_takes_the_throttle_away(tmp_path: pathlib.Path) -> None:
    kafka_libs()
    with Cluster(tmp_path, settings={"min.insync.replicas": 1}) as cluster:
        cluster.start()
        moves.create(cluster, "big", {0: [1]})
        with moves.client(cluster) as client:
            for _ in range(40):
                produce_values(client, "big", 0, [b"v" * VALUE_BYTES])
        file = tmp_path / "move.json"
        wanted = {"topic": "big", "partition": 0, "replicas": [2]}
        file.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        told = reassign_by_tool(cluster, file, "--execute", "--throttle", "500000")
        assert "The inter-broker throttle limit was set to 500000 B/s" in told
        names = [f"{side}.replication.throttled.replicas" for side in ("leader", "follower")]
        with moves.client(cluster) as client:
            assert [client.config("big", name) for name in names] == ["0:1", "0:2"]
        wait_for(lambda: not moves.under_way(cluster), "the move is done", 120)
        told = reassign_by_tool(cluster, file, "--verify")
        assert "Reassignment of partition big-0 is completed." in told
        assert "Clearing topic-level throttles on topic big" in told
        with moves.client(cluster) as client:
            assert [client.config("big", name) for name in names] == ["", ""]
