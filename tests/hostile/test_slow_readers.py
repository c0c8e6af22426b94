"""Clients that ask for much and never read: what they asked for does not wait in memory, other
clients are served, and who reads at last gets everything.
"""

from __future__ import annotations

import random
import socket
import sys
import time
from pathlib import Path

import pytest

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.records import read_records
from kwire.testing.cluster import Broker
from tests.support.wire import WireClient, batch_of, produce_request, produce_values

READERS = 40
ASKED_BYTES = 16 << 20
GROWTH_KB_MAX = 40 * 1024
WATCHED_S = 2.0
VALUES = [random.Random(1).randbytes(1000) for _ in range(900)]


def _fetch_request() -> m.FetchRequest:  # type: ignore[valid-type]
    shape = m.FetchRequest
    partition = shape.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=2 * ASKED_BYTES
    )
    return shape(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=2 * ASKED_BYTES,
        topics=[shape.FetchTopic(topic="large", partitions=[partition])],
    )


@pytest.mark.skipif(sys.platform != "linux", reason="large replies are handed over as mapped files")
def test_replies_that_nobody_reads_do_not_fill_the_memory() -> None:
    with Broker() as broker, WireClient(broker.bootstrap) as client:
        client.create_topic("large")
        batch = batch_of(VALUES)
        for _ in range(ASKED_BYTES // len(batch)):
            answer = client.call(produce_request("large", {0: batch}), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
        before_kb = _own_memory_kb(broker)
        wire = b"".join(map(bytes, frame.encode_request(1, 12, 1, "slow", _fetch_request())))
        readers = [socket.create_connection((broker.host, broker.port)) for _ in range(READERS)]
        for reader in readers:
            reader.sendall(wire * 4)
        end_s = time.monotonic() + WATCHED_S
        while time.monotonic() < end_s:
            produce_values(client, "large", 0, [b"meanwhile"])
            assert _own_memory_kb(broker) - before_kb < GROWTH_KB_MAX
        for reader in readers[1:]:
            reader.close()
        assert _values(readers[0])[: len(VALUES)] == VALUES
        readers[0].close()
        assert "Traceback" not in broker.log_text()


def _own_memory_kb(broker: Broker) -> int:
    """Without what is mapped of files, which is the page cache's."""
    status = Path(f"/proc/{broker.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0])


def _values(reader: socket.socket) -> list[bytes | None]:
    with reader.makefile("rb") as stream:
        size = int.from_bytes(stream.read(4), "big")
        _, response = frame.decode_response(1, 12, stream.read(size))
    records = bytes(response.responses[0].partitions[0].records)
    assert len(records) > ASKED_BYTES // 2
    return [record.value for record in read_records(records)]
