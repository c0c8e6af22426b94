"""A Produce whose batch cannot be written says KAFKA_STORAGE_ERROR and nothing else, by either
road: offsets that were given, and taken back, were told beside it. Measured on Apache Kafka 4.4
with a file that may not grow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.testing import Broker
from tests.support.wire import WireClient

SMALL, LARGE = 10, 200_000
"""A large batch is written within its request, a small one at the end of the turn."""
VERSION = 9


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(faults=True) as broker:
        yield broker


def produce(client: WireClient, topic: str, acks: int, size_bytes: int) -> tuple[int, ...]:
    """Error, base offset, append time and log start offset."""
    records = bytes(build_batch([Record(0, 1_700_000_000_000, None, bytes(size_bytes), [])]))
    asked = m.ProduceRequest
    data = asked.PartitionProduceData(index=0, records=records)
    parts = [asked.TopicProduceData(name=topic, partition_data=[data])]
    answer = client.call(asked(acks=acks, timeout_ms=20_000, topic_data=parts), VERSION)
    (result,) = answer.responses[0].partition_responses
    return result.error_code, result.base_offset, result.log_append_time_ms, result.log_start_offset


@pytest.mark.parametrize("size_bytes", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("before", [1, 20], ids=["general", "plain"])
def test_it_tells_no_offsets(broker: Broker, before: int, acks: int, size_bytes: int) -> None:
    """What a client has often sent before is answered by the plain road."""
    topic = f"t{before}{acks}{size_bytes}"
    broker.topic(topic).create(partitions=1)
    with WireClient(broker.bootstrap) as client:
        for offset in range(before):
            assert produce(client, topic, acks, size_bytes) == (0, offset, -1, 0)
        with broker.faults.add("disk-full"):
            refused = produce(client, topic, acks, size_bytes)
    assert refused == (ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, -1)
