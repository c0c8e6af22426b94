"""The decoders against bytes from anybody: MalformedError or a message, and little memory.

Source: the fuzzing of Kafka's own deserialisers in the large; own work in the small.
"""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kwire.protocol import frame, messages, metadata_records
from kwire.protocol.api_keys import API_KEYS
from kwire.protocol.budget import REQUEST_ELEMENTS_MAX
from kwire.protocol.errors import MalformedError, UnsupportedRecordError
from tests.support.vectors import by_message, rows

CODECS = sorted({(row["message"], row["version"]) for row in rows("wire")})
REQUESTS = [codec for codec in CODECS if codec[0].endswith("Request")]
FULL = [row for row in rows("wire") if row["case"] in ("full", "random-0", "random-1")]
GROWTH_BYTES_MAX = 300_000
HUGE = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x10\x00\x00",
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\x3f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
]
relaxed = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=400)


def decode(name: str, version: int, data: bytes) -> Any:
    """The message, or None for what is refused as it should be."""
    cls = messages.by_name(name)
    try:
        message, end = cls.decode_from(data, 0, version)
    except MalformedError:
        return None
    assert 0 <= end <= len(data)
    return message


@relaxed
@given(st.sampled_from(CODECS), st.binary(max_size=300))
@example(("MetadataRequest", 1), b"\x7f\xff\xff\xff")
@example(("MetadataRequest", 9), b"\xff\xff\xff\xff\x07")
@example(("ProduceRequest", 9), b"\x00" * 7 + b"\x02\x01\x02\0\0\0\0\xff\xff\xff\xff\x0f")
def test_random_bytes(codec: tuple[str, int], data: bytes) -> None:
    decode(*codec, data)


@relaxed
@given(st.sampled_from(CODECS), st.lists(st.sampled_from([*HUGE, b"\0", b"\1", b"\2", b"\x7f"])))
def test_bytes_that_count_much(codec: tuple[str, int], pieces: list[bytes]) -> None:
    decode(*codec, b"".join(pieces))


@relaxed
@given(st.sampled_from(FULL), st.data())
def test_what_was_valid_once(row: dict[str, Any], data: st.DataObject) -> None:
    original = bytes.fromhex(row["hex"])
    at = data.draw(st.integers(0, len(original)))
    kind = data.draw(st.sampled_from(["cut", "huge", "insert", "flip"]))
    if kind == "cut":
        damaged = original[:at]
    elif kind == "huge":
        piece = data.draw(st.sampled_from(HUGE))
        damaged = original[:at] + piece + original[at + len(piece) :]
    elif kind == "insert":
        damaged = original[:at] + data.draw(st.binary(min_size=1, max_size=6)) + original[at:]
    else:
        damaged = original[:at] + bytes(byte ^ 0x80 for byte in original[at : at + 1])
        damaged += original[at + 1 :]
    decode(row["message"], row["version"], damaged)


@pytest.mark.parametrize("name", sorted(by_message("wire")))
def test_every_truncation_is_refused(name: str) -> None:
    for row in by_message("wire")[name]:
        if row["case"] != "full":
            continue
        data = bytes.fromhex(row["hex"])
        step = max(1, len(data) // 200)
        for end in range(0, len(data), step):
            assert decode(name, row["version"], data[:end]) is None, (row["version"], end)


@relaxed
@given(st.binary(max_size=60))
def test_request_headers(data: bytes) -> None:
    try:
        header = frame.parse_request_header(data)
    except MalformedError:
        return
    assert 10 <= header.body_offset <= len(data)


@relaxed
@given(st.binary(max_size=80))
def test_metadata_records(data: bytes) -> None:
    try:
        metadata_records.decode_record(data)
    except (MalformedError, UnsupportedRecordError):
        pass


def grown_bytes(name: str, version: int, data: bytes) -> int:
    """The most memory that was allocated at once while decoding."""
    decode(name, version, data)
    tracemalloc.start()
    try:
        decode(name, version, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", REQUESTS, ids=lambda codec: f"{codec[0]}-{codec[1]}")
def test_claims_cost_no_memory(codec: tuple[str, int]) -> None:
    """At every byte of a valid request a length or count that claims what is not there."""
    name, version = codec
    full = next(
        bytes.fromhex(row["hex"])
        for row in by_message("wire")[name]
        if row["version"] == version and row["case"] == "full"
    )
    decode(name, version, full)
    tracemalloc.start()
    try:
        for at in range(0, len(full), max(1, len(full) // 60)):
            for piece in HUGE[:6]:
                decode(name, version, full[:at] + piece + full[at:])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < GROWTH_BYTES_MAX, peak


def test_a_claim_as_large_as_a_large_frame_costs_no_memory() -> None:
    """The count fits the bytes that follow, but the first element does not: nothing is prepared."""
    padding = b"\xff" * 2_000_000
    assert grown_bytes("MetadataRequest", 1, struct.pack(">i", 900_000) + padding) < 50_000
    count = struct.pack(">i", 200_000)
    produce = struct.pack(">hhi", -1, 1, 1000) + count + b"\x7f\xff" + padding
    assert grown_bytes("ProduceRequest", 7, produce) < 400_000


def test_elements_of_a_request_are_limited_all_arrays_together() -> None:
    """Frames may be 100 MB, and an element of two bytes becomes an object of a hundred."""
    many = REQUEST_ELEMENTS_MAX + 1
    assert decode("DescribeGroupsRequest", 0, struct.pack(">i", many) + b"\0\0" * many) is None
    fits = struct.pack(">i", 1000) + b"\0\0" * 1000
    assert len(decode("DescribeGroupsRequest", 0, fits).groups) == 1000
    topic = b"\0\0" + struct.pack(">i", 300_000) + bytes(4 * 300_000)
    topics = struct.pack(">i", 4) + topic * 4
    body = struct.pack(">h", 0) + topics
    assert decode("OffsetFetchRequest", 1, body) is None
    fewer = struct.pack(">h", 0) + struct.pack(">i", 3) + topic * 3
    assert len(decode("OffsetFetchRequest", 1, fewer).topics) == 3


def test_tags_in_great_number_are_kept_and_more_are_refused() -> None:
    def varint(value: int) -> bytes:
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    body = b"\x01\0\0"
    tags = varint(5000) + b"".join(varint(100 + tag) + b"\x01x" for tag in range(5000))
    assert len(decode("MetadataRequest", 12, body + tags).unknown_tags) == 5000
    tags = varint(REQUEST_ELEMENTS_MAX + 1) + b"\x05\0" * (REQUEST_ELEMENTS_MAX + 1)
    assert decode("MetadataRequest", 12, body + tags) is None


def test_every_request_was_covered() -> None:
    assert {name for name, _ in REQUESTS} == {f"{info.name}Request" for info in API_KEYS.values()}
