"""The code for records, which is not that for other fields: every length class, both ways.

A compact length has 1, 2, 3 or more bytes; the hot path treats each on its own, and leaves it
for partitions with tags, aborted transactions or no records.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kwire.protocol import messages as m

SIZES = [0, 1, 2, 125, 126, 127, 128, 129, 16381, 16382, 16383, 16384, 16385, 2097150, 2097151]
SIZES += [2097152]
ZEROS = bytes(max(SIZES))


def records(size: int) -> bytes:
    """Bytes whose first and last differ from what is around them."""
    if size < 2:
        return b"\xee" * size
    return b"\xee" + ZEROS[: size - 2] + b"\xdd"


def produce(sizes: list[int | None], version: int) -> Any:
    cls = m.ProduceRequest
    partitions = [
        cls.PartitionProduceData(index=index, records=None if size is None else records(size))
        for index, size in enumerate(sizes)
    ]
    return cls(acks=1, topic_data=[cls.TopicProduceData(partition_data=partitions)])


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("size", SIZES)
def test_produce_records_of_every_length_class(size: int, version: int) -> None:
    request = produce([size, None, size, 3], version)
    data = request.encode(version)
    assert m.ProduceRequest.decode_from(data, 0, version) == (request, len(data))
    alone = produce([size], version)
    data = alone.encode(version)
    assert m.ProduceRequest.decode_from(data, 0, version) == (alone, len(data))


def partition(size: int | None, **changes: Any) -> Any:
    data = None if size is None else records(size)
    cls = m.FetchResponse.PartitionData
    return cls(partition_index=5, error_code=-1, high_watermark=2**40, records=data, **changes)


def fetch(partitions: list[Any]) -> Any:
    cls = m.FetchResponse
    return cls(responses=[cls.FetchableTopicResponse(partitions=partitions)])


EMPTY = fetch([]).encode(16)
HEAD, TAIL = EMPTY[:-3], EMPTY[-2:]
"""What stands before the count of partitions, and the two tag sections behind the last."""


def element(one: Any) -> bytes:
    """The bytes of one partition, cut out of a response that has no other."""
    data = fetch([one]).encode(16)
    assert data.startswith(HEAD + b"\x02")
    assert data.endswith(TAIL)
    return data[len(HEAD) + 1 : -len(TAIL)]


@pytest.mark.parametrize("version", [4, 11, 12, 13, 18])
@pytest.mark.parametrize("size", SIZES)
def test_fetch_records_of_every_length_class(size: int, version: int) -> None:
    response = fetch([partition(size), partition(None), partition(size), partition(7)])
    data = response.encode(version)
    assert m.FetchResponse.decode_from(data, 0, version) == (response, len(data))


def kinds() -> list[Any]:
    aborted = m.FetchResponse.AbortedTransaction(producer_id=1, first_offset=2)
    leader = m.FetchResponse.LeaderIdAndEpoch(leader_id=1, leader_epoch=2)
    return [
        partition(20),
        partition(300),
        partition(20000),
        partition(None),
        partition(0),
        partition(20, aborted_transactions=None),
        partition(20, aborted_transactions=[aborted]),
        partition(20, current_leader=leader),
        partition(None, current_leader=leader),
    ]


@pytest.mark.parametrize("pair", list(itertools.product(range(9), repeat=2)))
def test_fetch_partitions_of_every_kind_after_each_other(pair: tuple[int, int]) -> None:
    chosen = [kinds()[index] for index in pair]
    response = fetch([*chosen, *chosen])
    data = response.encode(16)
    assert m.FetchResponse.decode_from(data, 0, 16) == (response, len(data))
    elements = [element(one) for one in chosen]
    assert data == HEAD + b"\x05" + b"".join([*elements, *elements]) + TAIL


def test_records_in_pieces_are_sent_as_they_are() -> None:
    first, second = bytearray(b"a" * 300), memoryview(b"b" * 20000)
    response = fetch([partition(1).copy(records=[first, second]), partition(1)])
    for version in (11, 16):
        parts = response.encode_parts(version)
        assert any(part is first for part in parts)
        assert any(part is second for part in parts)
        whole = fetch([partition(1).copy(records=bytes(first) + bytes(second)), partition(1)])
        assert b"".join(parts) == whole.encode(version)


@pytest.mark.parametrize("version", [11, 16])
@pytest.mark.parametrize("empty", [[], [b""], b"", [b"", b""]])
def test_records_that_are_empty_are_not_null(empty: Any, version: int) -> None:
    data = fetch([partition(5).copy(records=empty), partition(5)]).encode(version)
    decoded = m.FetchResponse.decode(data, version)
    assert bytes(decoded.responses[0].partitions[0].records) == b""
    assert bytes(decoded.responses[0].partitions[1].records) == records(5)


def test_decoded_records_are_views_of_the_buffer() -> None:
    buffer = bytearray(produce([300], 9).encode(9))
    decoded = m.ProduceRequest.decode(memoryview(buffer), 9)
    view = decoded.topic_data[0].partition_data[0].records
    assert isinstance(view, memoryview)
    assert view.obj is buffer
    view[0] = 7
    assert 7 in buffer


@pytest.mark.parametrize("spelled", ["00", "8000", "808000", "80808000", "8080808000"])
def test_null_records_spelled_at_length_are_null(spelled: str) -> None:
    """Kafka reads a varint of any length up to five bytes; a zero of two is null, too.

    Found by comparing with Kafka's reader: the table of lengths took it for an empty view.
    """
    request = produce([None, 5], 9)
    data = request.encode(9)
    at = data.index(b"\0\0\0\0\0\0\0\0\0\x01") + 4
    longer = data[:at] + bytes.fromhex(spelled) + data[at + 1 :]
    assert m.ProduceRequest.decode_from(longer, 0, 9) == (request, len(longer))
