"""What this node fetches as a follower, moves and reassigns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.kraft.images.topics import TopicsImage
from kwire.metrics.blocks import encoded, single
from kwire.replica.fetchers import Fetchers
from kwire.replica.partition import Partition

FETCHERS = "kafka_server_replicafetchermanager_"
MOVES = "kafka_server_replicaalterlogdirsmanager_"
PARTITIONS_A_TURN = 500


def read_replication(
    fetchers: Fetchers, partitions: Iterable[Partition], topics: TopicsImage, unassigned: int
) -> Iterator[bytes]:
    """See the module; `unassigned` replicas wait for the controller to learn their directory."""
    yield encoded(
        ("clientId",),
        [f"{FETCHERS}{name}" for name in ("maxlag", "failedpartitionscount", "deadthreadcount")],
        [("Replica", fetchers.lag_max(), fetchers.failed(), 0)],
    )
    yield encoded(("clientId",), (f"{MOVES}deadthreadcount",), [("ReplicaAlterLogDirs", 0)])
    reassigning = 0
    for at, partition in enumerate(list(partitions)):
        if at % PARTITIONS_A_TURN == PARTITIONS_A_TURN - 1:
            yield b""
        if partition.is_leader:
            image = topics.partition(partition.topic, partition.index)
            reassigning += image is not None and bool(image.adding or image.removing)
    yield single({"kafka_server_replicamanager_reassigningpartitions": reassigning})
    name = "type=AssignmentsManager,name=QueuedReplicaToDirAssignments"
    yield encoded(
        ("_objectname",),  # Apache Kafka has it twice, and the exporter tells them apart by that
        ("kafka_server_assignmentsmanager_queuedreplicatodirassignments",),
        [
            (f"{domain}:{name}", unassigned)
            for domain in ("kafka.server", "org.apache.kafka.server")
        ],
    )
