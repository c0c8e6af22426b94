"""Ready-made Produce frames for `blast`: one record each, as many small clients send them."""

from __future__ import annotations

import pathlib

from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request
from kwire.protocol.records import Record, build_batch

PRODUCE_KEY = 0
PRODUCE_VERSION = 9
TIMESTAMP_MS = 1_700_000_000_000


def value(size_bytes: int) -> bytes:
    """Text that compresses like an order message, cut to size."""
    line = b'{"order":1,"customer":"cust-07919","amount":9.99,"sku":"sku-warehouse-1"}'
    return (line * (size_bytes // len(line) + 1))[:size_bytes]


def one_record_frame(
    topic: str, acks: int, size_bytes: int, partition: int = 0, producer_id: int = -1
) -> bytes:
    """A Produce request with one record for a partition of `topic`; with a `producer_id` the first
    of that idempotent producer."""
    epoch, sequence = (-1, -1) if producer_id < 0 else (0, 0)
    batch = build_batch(
        [Record(0, TIMESTAMP_MS, None, value(size_bytes), [])],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    data = m.ProduceRequest.PartitionProduceData(index=partition, records=batch)
    topic_data = m.ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
    request = m.ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[topic_data])
    return b"".join(encode_request(PRODUCE_KEY, PRODUCE_VERSION, 1, "x", request))


def one_record_request(
    path: pathlib.Path, topic: str, acks: int, size_bytes: int, partition: int = 0
) -> pathlib.Path:
    """Write such a frame to a file."""
    path.write_bytes(one_record_frame(topic, acks, size_bytes, partition))
    return path
