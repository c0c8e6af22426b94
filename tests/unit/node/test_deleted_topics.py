"""A deleted topic leaves nothing in memory: no log, no replica, no image of it."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path

from kwire.config.broker_config import BrokerConfig
from kwire.kraft.images.topics import TopicImage
from kwire.log.partition.partition_log import PartitionLog
from kwire.network.loop import new_event_loop
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.replica.partition import Partition
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
    config = BrokerConfig.load(
        overrides={
            "log.dirs": str(tmp_path / "data"),
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.segment.delete.delay.ms": "1",
        }
    )
    loop = new_event_loop()
    node = Node(config, loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(30)
        host, port = node.ready_address()
        with WireClient(f"{host}:{port}") as client:
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
    finally:
        asyncio.run_coroutine_threadsafe(node.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()
