"""What is built is read again: every codec, both lives of the kernel, any records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.build import encode_record, record_size
from tests.support.kernels import interpreted, record_packages

INT64 = st.integers(-(2**63), 2**63 - 1)
CONTENT = st.none() | st.binary(max_size=80)
HEADERS = st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=3)
TIMESTAMPS = st.integers(-1, 2**45)
FIELDS = st.tuples(TIMESTAMPS, CONTENT, CONTENT, HEADERS)
packages = pytest.mark.parametrize("records", record_packages())


def records_of(records: Any, fields: list[Any], gaps: list[int]) -> list[Any]:
    found = []
    offset = 100
    for (timestamp, key, value, headers), gap in zip(fields, gaps, strict=False):
        found.append(records.Record(offset, timestamp, key, value, headers))
        offset += 1 + gap
    return found


@packages
@given(
    fields=st.lists(FIELDS, min_size=1, max_size=8),
    gaps=st.lists(st.integers(0, 200), min_size=8, max_size=8),
    codec=st.integers(0, 4),
    horizon=st.none() | st.integers(0, 2**45),
)
@settings(max_examples=150, deadline=None)
def test_what_is_built_is_read(
    records: Any, fields: list[Any], gaps: list[int], codec: int, horizon: int | None
) -> None:
    wanted = records_of(records, fields, gaps)
    data = records.build_batch(
        wanted, base_offset=100, codec=records.Codec(codec), delete_horizon_ms=horizon
    )
    header = records.parse_header(data)
    assert records.check_crc(data, 0, header)
    assert records.read_batch(data) == wanted
    assert header.last_offset == wanted[-1].offset
    assert header.max_timestamp == max(record.timestamp for record in wanted)
    info = records.validate_batch(data, 0, header)
    first = next(record for record in wanted if record.timestamp == header.max_timestamp)
    if header.max_timestamp > -1:
        position = wanted.index(first)
        assert info.offset_of_max_timestamp == 100 + position


@packages
@given(timestamps=st.lists(INT64, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_timestamps_wrap_like_kafka_s(records: Any, timestamps: list[int]) -> None:
    """A delta beyond int64 is written modulo 2**64, and so the sum is right again."""

    def wrapped(value: int) -> int:
        return (value + 2**63) % 2**64 - 2**63

    body = b"".join(
        records.build.encode_record(wrapped(timestamp - timestamps[0]), index, None, None, [])
        for index, timestamp in enumerate(timestamps)
    )
    walk = records.kernel.RecordWalk(body, 0, len(body), len(timestamps), 0, timestamps[0])
    status, rows = walk.read(10)
    assert status == records.kernel.DONE
    assert [row[1] for row in rows] == timestamps


@given(
    fields=st.lists(FIELDS, min_size=1, max_size=5),
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 3),
)
@settings(max_examples=400, deadline=None)
def test_damaged_records_are_the_same_to_both_lives(
    fields: list[Any], flips: list[tuple[int, int]], cut: int
) -> None:
    """Never a crash, and never one verdict compiled and another one not."""
    plain = interpreted()
    payload = bytearray(plain.build_batch(records_of(plain, fields, [0] * 9))[61:])
    for position, value in flips:
        payload[position % len(payload)] = value
    del payload[len(payload) - cut :]
    outcomes = []
    for package in [parameter.values[0] for parameter in record_packages()]:
        kernel = package.kernel
        walk = kernel.RecordWalk(payload, 0, len(payload), len(fields), 7, 1000)
        read = walk.read(100)
        walk = kernel.RecordWalk(payload, 0, len(payload), len(fields), 7, 1000)
        status = kernel.RUNNING
        while status == kernel.RUNNING:  # a record a step
            status = walk.validate(1)
        outcomes.append(
            (read, status, walk.index, walk.max_timestamp, walk.max_timestamp_index, walk.position)
        )
    assert outcomes[0] == outcomes[-1]


@given(data=st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_noise_is_refused_or_read_but_nothing_else(data: bytes) -> None:
    codes = []
    for package in [parameter.values[0] for parameter in record_packages()]:
        code = ErrorCode.NONE
        try:
            package.read_records(data)
        except KafkaError as error:
            code = ErrorCode(error.code)
        codes.append(code)
    assert codes[0] == codes[-1] != ErrorCode.UNKNOWN_SERVER_ERROR


@packages
def test_empty_batches_keep_their_offsets(records: Any) -> None:
    data = records.empty_batch(
        base_offset=5,
        last_offset=9,
        leader_epoch=2,
        attributes=0x10,
        base_timestamp=-1,
        timestamp=44,
        producer_id=3,
        producer_epoch=1,
        base_sequence=0,
    )
    header = records.parse_header(data)
    assert (header.last_offset, header.record_count, header.max_timestamp) == (9, 0, 44)
    assert header.last_sequence == 4
    assert records.read_batch(data) == []
    with pytest.raises(ValueError, match="at least one record"):
        records.build_batch([])


@packages
def test_a_timestamp_is_found_inside_a_batch(records: Any) -> None:
    times = [50, 40, 60, 60, 55]
    wanted = [records.Record(10 + i, time, b"k", b"v") for i, time in enumerate(times)]
    for codec in records.Codec:
        data = records.build_batch(wanted, base_offset=10, codec=codec)
        header = records.parse_header(data)

        def find(target: int, offset_min: int = 0, data: Any = data, header: Any = header) -> Any:
            return records.find_timestamp(data, 0, header, target, offset_min)

        assert find(0) == (50, 10)
        assert find(51) == (60, 12)
        assert find(51, 13) == (60, 13)
        assert find(51, 14) == (55, 14)
        assert find(61) is None


@packages
@given(
    name=st.text(max_size=5),
    times=st.sampled_from([0, 1, 12, 13, 63, 64, 3000]),
    fields=FIELDS,
    offset_delta=st.integers(0, 2**31 - 1),
    timestamp_delta=INT64,
)
@settings(max_examples=150, deadline=None)
def test_sizes_of_records_are_told_in_bytes(
    records: Any, name: str, times: int, fields: Any, offset_delta: int, timestamp_delta: int
) -> None:
    """Also of header names, whose characters have up to four."""
    timestamp, key, value, headers = fields
    headers = [*headers, (name * times, b"x" * times), (b"\xff" * times, None)]
    record = records.Record(0, timestamp, key, value, headers)
    encoded = encode_record(timestamp_delta, offset_delta, key, value, headers)
    exact = record_size(record, timestamp_delta=timestamp_delta, offset_delta=offset_delta)
    assert len(encoded) == exact <= record_size(record)
