"""The recorded conversation about limits with a live Apache Kafka, replication quotas at random
beside its own, and its tool that throttles a move."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

from kwire.testing.cluster import Cluster, wait_for
from tests.golden.quota import test_limit_answers as answers
from tests.golden.quota import test_replication_answers as replication
from tests.support.effort import seeds
from tests.support.kafka import kafka_libs, running_kafka
from tests.support.limit_dialogue import PROPERTIES, dialogue
from tests.support.wire import produce_values
from tests.system.cluster import test_moves as moves

SCRIPTS = 500
VALUE_BYTES = 100_000


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
