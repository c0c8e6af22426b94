"""Fetches of so much data that the broker hands its files to the kernel instead of reading them."""

from __future__ import annotations

import socket
import struct
from typing import Any

from kwire.protocol import messages as m
from kwire.protocol.frame import decode_response, encode_request
from kwire.protocol.records import read_records
from kwire.testing.cluster import Broker
from tests.support import kafka_client

FETCH, VERSION = 1, 12
COUNT, VALUE_BYTES = 4000, 1500


def _fetch(topic: str, correlation_id: int, offset: int, *, wait_ms: int = 100) -> bytes:
    partition = m.FetchRequest.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20
    )
    request = m.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[m.FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )
    return b"".join(encode_request(FETCH, VERSION, correlation_id, "test", request))


def _answer(connection: socket.socket) -> tuple[int, Any]:
    (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    correlation_id, response = decode_response(
        FETCH, VERSION, connection.recv(size, socket.MSG_WAITALL)
    )
    return correlation_id, response.responses[0].partitions[0]


def _value(number: int) -> bytes:
    return (b"%d " % number) * (VALUE_BYTES // 8)


def test_large_fetches_in_order_behind_one_that_waits(tmp_path: Any) -> None:
    with Broker(data_dir=tmp_path) as broker:
        topic = kafka_client.create(broker.bootstrap)
        sent = [kafka_client.Sent(0, None, _value(n)) for n in range(COUNT)]
        kafka_client.send(broker.bootstrap, topic, sent, **{"linger.ms": 20})
        host, port = broker.bootstrap.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as connection:
            offset = 0
            while offset < COUNT:
                connection.sendall(_fetch(topic, offset, offset))
                correlation_id, answer = _answer(connection)
                assert correlation_id == offset
                records = read_records(answer.records)
                assert records[0].offset <= offset
                for record in records[offset - records[0].offset :]:
                    assert (record.offset, record.value) == (offset, _value(offset))
                    offset += 1
            # One that waits at the end of the log, and many that do not read what they get.
            connection.sendall(_fetch(topic, 1, COUNT, wait_ms=200))
            connection.sendall(b"".join(_fetch(topic, n, 0) for n in range(2, 40)))
            waited = _answer(connection)
            assert waited[0] == 1
            assert not waited[1].records
            first = None
            for number in range(2, 40):
                correlation_id, answer = _answer(connection)
                assert correlation_id == number
                first = bytes(answer.records) if first is None else first
                assert len(first) > 500_000
                assert answer.records == first
