"""Limits beside a live Apache Kafka, on a machine that does nothing else: how many partitions a
client gets in half a minute, and how fast a throttled move goes, within 10 %."""

from __future__ import annotations

import itertools
import pathlib
import time

from kwire.testing.cluster import Broker, Cluster, wait_for
from tests.support.kafka import running_kafka
from tests.support.limit_dialogue import PROPERTIES, create, set_quota
from tests.support.wire import WireClient, produce_values
from tests.system.cluster import test_moves as moves

PARTITIONS_A_SECOND, SECONDS = 4.0, 30
MOVED_BYTES, VALUE_BYTES, BYTES_A_SECOND = 20_000_000, 100_000, 1_000_000


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
    """Of a real log between real brokers, which are held back when Kafka's would be
    (`test_limits_live.py`)."""
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
