"""Where the batch lies in a usual Produce, and the frame that answers it (ADR 55)."""

from __future__ import annotations

import struct

import pytest

from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request, encode_response
from kwire.protocol.produce_frames import (
    BATCH_BYTES_MAX,
    BODY_BYTES_MAX,
    HEAD_BYTES_MAX,
    ProduceHead,
    head_of,
)
from kwire.protocol.request_frames import SAID_START

TOPIC_ID = b"t" * 16
SIZES = (1, 61, 126, 127, 128, 5000, BATCH_BYTES_MAX)


def request(version: int, records: bytes, **fields: object) -> m.ProduceRequest:
    shape = m.ProduceRequest
    topic = shape.TopicProduceData(
        partition_data=[shape.PartitionProduceData(index=3, records=records)]
    )
    if version >= 13:
        topic.topic_id = TOPIC_ID
    else:
        topic.name = "topic"
    made = shape(acks=1, timeout_ms=1000, topic_data=[topic])
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def body_of(version: int, made: m.ProduceRequest, client_id: str | None = "client") -> memoryview:
    return memoryview(b"".join(encode_request(0, version, 77, client_id, made)))[4:]


def found(version: int, body: memoryview) -> ProduceHead:
    head = head_of(body)
    assert head is not None
    assert head.version == version
    return head


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("size_bytes", SIZES)
def test_the_batch_is_found_in_every_version(version: int, size_bytes: int) -> None:
    records = bytes(range(1, 100)) * (size_bytes // 99 + 1)
    body = body_of(version, request(version, records[:size_bytes]))
    place = found(version, body).batch_place(body)
    assert place is not None
    index, start, end = place
    assert index == 3
    assert body[start:end] == records[:size_bytes]


@pytest.mark.parametrize("version", range(3, 14))
def test_a_head_finds_other_batches_of_other_partitions(version: int) -> None:
    head = found(version, body_of(version, request(version, b"x" * 90)))
    for size_bytes in SIZES:
        made = request(version, b"y" * size_bytes)
        made.topic_data[0].partition_data[0].index = 70_000
        body = body_of(version, made)
        place = head.batch_place(body)
        assert place is not None
        index, start, end = place
        assert (index, end - start) == (70_000, size_bytes)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_what_is_cut_changed_or_longer_behind_the_head_is_not_usual(version: int) -> None:
    whole = body_of(version, request(version, b"x" * 90))
    head = found(version, whole)
    for end in range(head.size_bytes, len(whole)):
        try:
            place = head.batch_place(whole[:end])
        except struct.error:
            continue
        assert place is None, end
    assert head.batch_place(memoryview(bytes(whole) + b"\0")) is None
    if version >= 9:
        for at in (1, 2, 3):
            changed = bytearray(whole)
            changed[-at] = 1
            assert head.batch_place(memoryview(changed)) is None


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("records", [None, b""])
def test_a_request_without_records_has_no_head(version: int, records: bytes | None) -> None:
    made = request(version, b"x")
    made.topic_data[0].partition_data[0].records = records
    body = body_of(version, made)
    assert head_of(body) is None
    head = found(version, body_of(version, request(version, b"x")))
    assert head.batch_place(body) is None


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_what_has_more_than_one_batch_has_no_head(version: int) -> None:
    two = request(version, b"x" * 90)
    two.topic_data[0].partition_data *= 2
    assert head_of(body_of(version, two)) is None
    two = request(version, b"x" * 90)
    two.topic_data *= 2
    assert head_of(body_of(version, two)) is None
    assert head_of(body_of(version, request(version, b"x", transactional_id="t"))) is None
    assert head_of(body_of(version, request(version, b"x" * (BATCH_BYTES_MAX + 1)))) is None


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("size_bytes", [BODY_BYTES_MAX, 20_000, 1 << 20])
def test_a_large_produce_is_not_decoded_in_front_of_the_general_way(
    version: int, size_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = body_of(version, request(version, b"x" * size_bytes))
    decoded: list[int] = []
    monkeypatch.setattr(m.ProduceRequest, "decode_from", lambda *args: decoded.append(1))
    assert head_of(body) is None
    assert decoded == []


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_head_has_a_bounded_number_of_bytes(version: int) -> None:
    made = request(version, b"x" * 90)
    room = HEAD_BYTES_MAX - found(version, body_of(version, made, "")).size_bytes + SAID_START
    assert found(version, body_of(version, made, "c" * room)).size_bytes == (
        SAID_START + HEAD_BYTES_MAX
    )
    assert head_of(body_of(version, made, "c" * (room + 1))) is None


def test_longer_varints_and_tagged_fields_are_not_usual() -> None:
    body = bytes(body_of(9, request(9, b"x" * 90)))
    assert head_of(memoryview(body[:-1] + b"\x80\0")) is None
    assert head_of(memoryview(body[:-1] + b"\x01\x05\x01z")) is None
    assert head_of(memoryview(body[:-1])) is None


@pytest.mark.parametrize("version", range(3, 14))
def test_the_answer_is_the_response_s_frame(version: int) -> None:
    head = found(version, body_of(version, request(version, b"x" * 90)))
    response = head.response(3, 1 << 40, 17)
    expected = b"".join(encode_response(0, version, 77, response))
    assert head.answer(struct.pack(">i", 77), 3, 1 << 40, 17) == expected
    result = response.responses[0].partition_responses[0]
    assert (result.error_code, result.log_append_time_ms) == (0, -1)
