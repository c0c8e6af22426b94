"""The code for records, which is not that for other fields: every length class, both ways.

A compact length has 1, 2, 3 or more bytes; the hot path treats each on its own, and leaves it
for partitions with tags, aborted transactions or no records.
"""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest

from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.records import envelope_kernel


@pytest.fixture(params=[True, False], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the compiled kernel for plain partitions, where there is one, and without."""
    monkeypatch.setattr(envelope_kernel, "COMPILED", request.param and envelope_kernel.COMPILED)
    monkeypatch.setattr(m.ProduceRequest, "_decoders", {})


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
    """With its records as a broker has them: a list of one buffer."""
    data = None if size is None else [memoryview(records(size))]
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
        partition(20).copy(records=records(20)),
        partition(20).copy(records=[records(7), records(300)]),
    ]


@pytest.mark.parametrize("pair", list(itertools.product(range(11), repeat=2)))
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


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 100])
@pytest.mark.parametrize("tagged", [set(), {0}, {1}, {0, 1}, {30, 31, 32}, set(range(100))])
def test_partitions_with_and_without_tags_in_any_number(count: int, tagged: set[int]) -> None:
    """The tag section of one partition is read with the fields of the next."""
    request = produce([300] * count, 9)
    for index in tagged & set(range(count)):
        tags = [(7, b"seven"), (9, b"")]
        request.topic_data[0].partition_data[index].unknown_tags = tags
    request.topic_data.append(m.ProduceRequest.TopicProduceData(name="next", partition_data=[]))
    data = request.encode(9)
    assert m.ProduceRequest.decode_from(data, 0, 9) == (request, len(data))


def test_a_request_cut_anywhere_is_malformed() -> None:
    request = produce([3, None, 200], 9)
    request.topic_data[0].partition_data[1].unknown_tags = [(1, b"x")]
    data = request.encode(9)
    for end in range(len(data)):
        with pytest.raises(MalformedError):
            m.ProduceRequest.decode(data[:end], 9)


def test_a_count_of_partitions_that_lies_allocates_little() -> None:
    data = produce([3], 9).encode(9)
    at = data.index(b"\x02\0\0\0\0", 8)
    lying = data[:at] + b"\xff\xff\x2f" + data[at + 1 :] + bytes(6_000_000)
    lying = (
        lying[: at + 3 + 4 + 1] + b"\xff" * 6_000_000
    )  # the first partition's records: no length
    decode = m.ProduceRequest.decoder(9)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError):
            decode(memoryview(lying), 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("version", [8, 9, 13])
@pytest.mark.parametrize("text", [None, "", "t", "t" * 126, "t" * 127, "t" * 32767])
def test_a_transactional_id_of_every_length(text: str | None, version: int) -> None:
    """It is usually null, and read on that guess together with the fields behind it."""
    request = produce([3], version).copy(transactional_id=text, acks=-1, timeout_ms=77)
    data = request.encode(version)
    assert m.ProduceRequest.decode_from(data, 0, version) == (request, len(data))


@pytest.mark.parametrize("spelled", ["8000", "808000", "80808000", "8080808000"])
def test_a_null_transactional_id_spelled_at_length(spelled: str) -> None:
    request = produce([3], 9)
    data = request.encode(9)
    assert data[0] == 0
    longer = bytes.fromhex(spelled) + data[1:]
    assert m.ProduceRequest.decode_from(longer, 0, 9) == (request, len(longer))
