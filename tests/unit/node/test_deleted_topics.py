"""A deleted topic leaves nothing in memory: no log, no replica, no image of it."""

from __future__ import annotations

import gc
import time
from pathlib import Path

from kwire.kraft.images.topics import TopicImage
from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol import messages as m
from kwire.replica.partition import Partition
from kwire.testing.cluster import NodeInThread
from tests.support.wire import WireClient, fetch_values, produce_values

PARTITIONS = 10


def _left() -> list[str]:
    """What Python still knows of the topic `doomed`."""
    gc.collect()
    found = []
    for one in gc.get_objects():
        if isinstance(one, PartitionLog) and one.topic == "doomed":
            found.append(f"{one!r} at {one.directory}")
        elif isinstance(one, Partition) and one.topic == "doomed":
            found.append(f"partition {one.index}")
        elif isinstance(one, TopicImage) and one.name == "doomed":
            found.append("image")
    return found


def test_a_deleted_topic_leaves_nothing_in_memory(tmp_path: Path) -> None:
    settings = {"log.segment.delete.delay.ms": 1}
    with (
        NodeInThread(tmp_path / "data", settings=settings) as thread,
        WireClient(thread.bootstrap) as client,
    ):
        client.create_topic("doomed", partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            produce_values(client, "doomed", partition, [b"x"])
            assert fetch_values(client, "doomed", partition) == [b"x"]
        assert _left()
        request = m.DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=30_000)
        assert client.call(request, 5).responses[0].error_code == 0
        limit = time.monotonic() + 30
        while (left := _left()) or list((tmp_path / "data").glob("doomed*")):
            assert time.monotonic() < limit, left
            client.create_topic(f"other-{len(left)}-{time.monotonic_ns()}")  # turns of the loop
