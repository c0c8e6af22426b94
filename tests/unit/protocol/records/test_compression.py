"""Codecs: the forms that Kafka writes and reads, and bounds on what they may become."""

from __future__ import annotations

import gzip
import os
import random
import struct
import tracemalloc
import zlib
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import compression
from kwire.protocol.records.compression import LEVELS, Codec, compress, decompress

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b"some text that compresses, " * 9000
XERIAL = bytes.fromhex("82534e4150505900") + struct.pack(">ii", 1, 1)
codecs = pytest.mark.parametrize("codec", CODECS)


def code_of(codec: Codec, data: bytes, size_max: int = 10**7) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        decompress(codec, data, size_max)
    return ErrorCode(raised.value.code)


@codecs
@given(data=st.binary(max_size=300))
def test_text_comes_back(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data + b"!")) == data + b"!"


@codecs
def test_large_text_comes_back_at_every_level(codec: Codec) -> None:
    low, high, default = LEVELS.get(codec, (0, 0, 0))
    noise = random.Random(1).randbytes(70_000)
    for level in (None, low, high, default):
        packed = compress(codec, TEXT + noise, level if codec in LEVELS else None)
        assert decompress(codec, memoryview(packed)) == TEXT + noise


def test_the_forms_are_kafka_s() -> None:
    framed = compress(Codec.SNAPPY, TEXT)
    assert framed.startswith(XERIAL)
    block = struct.unpack_from(">i", framed, 16)[0]
    assert len(snappy.decompress(framed[20 : 20 + block])) == 32 * 1024
    assert compress(Codec.LZ4, TEXT)[:6] == bytes.fromhex("04224d186040")
    packed = compress(Codec.ZSTD, TEXT)
    assert zstandard.get_frame_parameters(packed).content_size == zstandard.CONTENTSIZE_UNKNOWN
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT


def test_more_is_read_than_written() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"
    assert decompress(Codec.GZIP, gzip.compress(b"one") + b"trailing") == b"one"
    reserved = bytearray(gzip.compress(b"one"))
    reserved[3] |= 0xE0
    assert decompress(Codec.GZIP, reserved) == b"one"
    flagged = compress(Codec.LZ4, b"one")[:-1] + b"\x80"
    assert decompress(Codec.LZ4, flagged) == b"one"
    assert decompress(Codec.SNAPPY, snappy.compress(b"bare block")) == b"bare block"
    twice = compress(Codec.SNAPPY, b"one") + compress(Codec.SNAPPY, b"two")
    assert decompress(Codec.SNAPPY, twice) == b"onetwo"
    with_size = zstandard.ZstdCompressor(write_content_size=True, write_checksum=True)
    frames = with_size.compress(b"one") + compress(Codec.ZSTD, b"two")
    assert decompress(Codec.ZSTD, frames) == b"onetwo"
    for size in (lz4.frame.BLOCKSIZE_MAX256KB, lz4.frame.BLOCKSIZE_MAX4MB):
        frame = lz4.frame.compress(TEXT, block_size=size, block_linked=False, content_checksum=True)
        assert decompress(Codec.LZ4, frame) == TEXT


def test_lz4_blocks_that_depend_on_each_other_are_refused_as_kafka_refuses_them() -> None:
    frame = lz4.frame.compress(TEXT, block_linked=True)
    assert code_of(Codec.LZ4, frame) == ErrorCode.INVALID_RECORD


def test_the_header_checksum_of_magic_0_lz4_is_ignored_only_there() -> None:
    frame = bytearray(compress(Codec.LZ4, TEXT))
    frame[6] ^= 0x55
    assert decompress(Codec.LZ4, frame, legacy_lz4=True) == TEXT
    assert code_of(Codec.LZ4, bytes(frame)) == ErrorCode.INVALID_RECORD
    sized = bytearray(lz4.frame.compress(b"abc", block_linked=False, store_size=True))
    sized[14] ^= 0x55
    assert decompress(Codec.LZ4, sized, legacy_lz4=True) == b"abc"


@codecs
def test_every_cut_is_noticed(codec: Codec) -> None:
    packed = compress(codec, random.Random(2).randbytes(300) + b"x" * 300)
    for size in range(len(packed)):
        if codec == Codec.SNAPPY and 0 <= size - len(XERIAL) < 4:
            # Without a whole length of a block behind it a header is an empty text, as in Kafka.
            assert decompress(codec, packed[:size]) == b""
            continue
        assert code_of(codec, packed[:size]) == ErrorCode.INVALID_RECORD, size


@codecs
@given(data=st.binary(max_size=60))
def test_noise_is_refused(codec: Codec, data: bytes) -> None:
    code, text = ErrorCode.NONE, b""
    try:
        text = decompress(codec, data, 10**6)
    except KafkaError as error:
        code = ErrorCode(error.code)
    assert len(text) <= 10**6
    assert code in (ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.RECORD_LIST_TOO_LARGE)


@codecs
def test_bombs_are_refused_before_they_take_memory(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * 1024 * 1024))
    tracemalloc.start()
    try:
        assert code_of(codec, bomb, 4 * 1024 * 1024) == ErrorCode.RECORD_LIST_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_lengths_that_lie_are_refused_before_they_take_memory() -> None:
    huge = b"\xff\xff\xff\xff\x0f" + b"abc"  # a snappy block that claims 4 GB
    declared = zstandard.ZstdCompressor().compress(bytes(50_000_000))
    tracemalloc.start()
    try:
        assert code_of(Codec.SNAPPY, huge) == ErrorCode.INVALID_RECORD
        block = XERIAL + struct.pack(">i", 2**31 - 1) + b"abc"
        assert code_of(Codec.SNAPPY, block) == ErrorCode.INVALID_RECORD
        assert code_of(Codec.SNAPPY, XERIAL + struct.pack(">i", -5)) == ErrorCode.INVALID_RECORD
        assert code_of(Codec.ZSTD, declared, 10**6) == ErrorCode.RECORD_LIST_TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_no_codec_hands_the_bytes_through() -> None:
    data = os.urandom(10)
    assert decompress(Codec.NONE, data) is data
    assert compress(Codec.NONE, data) == data


def test_many_empty_gzip_members_take_time_in_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member's decompressor got all that was left, and copied it: a megabyte of empty members
    meant 25 GB of copies."""
    left_bytes = 0
    make = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._member = make(wbits)

        def __getattr__(self, name: str) -> Any:
            nonlocal left_bytes
            value = getattr(self._member, name)
            if name in ("unused_data", "unconsumed_tail"):
                left_bytes += len(value)
            return value

    monkeypatch.setattr(compression.zlib, "decompressobj", Counting)
    members = gzip.compress(b"") * 5000 + gzip.compress(b"the end")
    assert bytes(compression.decompress(Codec.GZIP, members)) == b"the end"
    assert left_bytes < 50 * len(members)
