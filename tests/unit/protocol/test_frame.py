"""Request headers that are wrong, frames and their pieces."""

from __future__ import annotations

import struct

import pytest

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import EncodeError, MalformedError


def head(key: int, version: int, client_length: int, rest: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 7, client_length) + rest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 9,
        head(3, 1, 32767, b"abc"),
        head(3, 9, -1),
        head(3, 9, 0),
        head(3, 9, -1, b"\xff\xff\xff\xff\x07"),
        head(3, 9, -1, b"\xff\xff\xff\xff\x0f"),
        head(3, 9, -1, b"\x01\x05\xff\xff\xff\xff\x07ab"),
        head(3, 9, -1, b"\x01\x05\xff\xff\xff\xff\x0fab"),
        head(3, 9, -1, b"\xff" * 10),
        head(3, 9, -1, b"\x02\x00\x00"),
        head(3, 9, -1, b"\x01\x80"),
    ],
)
def test_headers_that_cannot_be_read(data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(data)):
        with pytest.raises(MalformedError):
            frame.parse_request_header(buffer)


def test_unknown_keys_and_versions_are_for_the_dispatcher_to_refuse() -> None:
    for key, version in [(999, 0), (-1, 0), (3, 99), (3, -1), (4, 0)]:
        header = frame.parse_request_header(head(key, version, -1, b"\0"))
        assert (header.api_key, header.api_version, header.correlation_id) == (key, version, 7)


def test_api_versions_of_the_future_has_header_2() -> None:
    header = frame.parse_request_header(head(18, 99, 1, b"a\0body"))
    assert (header.client_id, header.body_offset) == ("a", 12)


def test_tags_of_a_header_are_skipped() -> None:
    header = frame.parse_request_header(head(3, 9, 1, b"a\x02\x00\x01x\xcf\x0f\x00body"))
    assert header.body_offset == 18
    assert "client_id='a'" in repr(header)


def test_any_negative_client_id_length_is_null_and_bad_utf8_is_replaced() -> None:
    assert frame.parse_request_header(head(3, 1, -2)).client_id is None
    assert frame.parse_request_header(head(3, 1, 3, b"a\xff\xc3")).client_id == "a\ufffd\ufffd"


def test_large_first_pieces_are_not_copied_behind_a_header() -> None:
    topics = [m.MetadataRequest.MetadataRequestTopic(name="x" * 200) for _ in range(100)]
    parts = frame.encode_request(3, 1, 5, None, m.MetadataRequest(topics=topics))
    assert len(parts) == 2
    assert int.from_bytes(parts[0][:4], "big") == len(b"".join(parts)) - 4
    assert len(frame.encode_request(3, 1, 5, "c", m.MetadataRequest(topics=[]))) == 1


def test_a_client_id_that_is_too_long() -> None:
    with pytest.raises(EncodeError):
        frame.encode_request(3, 1, 5, "x" * 40000, m.MetadataRequest())


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\xff\xff"])
def test_responses_that_cannot_be_read(data: bytes) -> None:
    with pytest.raises(MalformedError):
        frame.decode_response(3, 9, data)


def test_a_fetch_response_keeps_its_records_as_they_are() -> None:
    cls = m.FetchResponse
    records = memoryview(b"r" * 5000)
    partition = cls.PartitionData(records=[records])
    response = cls(responses=[cls.FetchableTopicResponse(partitions=[partition])])
    parts = frame.encode_response(1, 16, 99, response)
    assert any(part is records for part in parts)
    data = b"".join(parts)
    assert len(data) == 4 + int.from_bytes(data[:4], "big")
    assert frame.decode_response(1, 16, memoryview(data)[4:]) == (99, response)
