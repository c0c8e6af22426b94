"""The codecs of record batches in the forms that Kafka writes and reads.

| codec  | written                                                                        |
|--------|--------------------------------------------------------------------------------|
| gzip   | one member                                                                     |
| snappy | xerial framing: `82 53 4e 41 50 50 59 00`, int32 1, int32 1, then blocks of at |
|        | most 32 KB of text, each with its compressed size as int32 in front            |
| lz4    | one frame, FLG 0x60, BD 0x40: independent 64 KB blocks, no content checksum    |
| zstd   | one frame without content size and checksum                                    |

Read is more: several gzip members or zstd frames, bare snappy blocks, lz4 frames of any block
size whose blocks are independent, and the header checksum of magic-0 lz4 (computed over the
frame's magic number as well). Decompression never yields, or reserves memory for, more than
`size_max` bytes, and takes time in proportion to the bytes it reads and yields. The libraries are
imported when a codec is used first.

`decompress_steps` does on the spot what takes a few milliseconds at most, and asks for another
thread for the rest: the libraries let go of the interpreter lock.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, Generic, Protocol, TypeVar

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import Buffer, Codec

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024
FIRST_PIECE_BYTES = 512
PIECE_BYTES = 32 * 1024
ON_THE_SPOT_BYTES = 1024 * 1024  # of text
ON_THE_SPOT_CHUNKS = 16
# What is not cut into chunks of text by its codec is taken by its size: three bytes of snappy give
# 64 of text at most.
ON_THE_SPOT_SOURCE_BYTES = {Codec.SNAPPY: ON_THE_SPOT_BYTES // 22, Codec.ZSTD: 64 * 1024}

GZIP_LEVEL_DEFAULT = -1
LZ4_LEVEL_DEFAULT = 9
ZSTD_LEVEL_DEFAULT = 3

# topic config -> lowest, highest, default; gzip takes -1 besides
LEVELS = {Codec.GZIP: (1, 9, -1), Codec.LZ4: (1, 17, 9), Codec.ZSTD: (-131072, 22, 3)}

CODEC_NAMES = {
    "none": Codec.NONE,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 * 1024
_LZ4_EMPTY_BLOCK = b"\x00\x00\x00\x80"
_LZ4_MAGIC = b"\x04\x22\x4d\x18"


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the codec's form; `level` is the codec's own scale, None its default."""
    return _COMPRESS[codec](data, level)


def decompress(
    codec: Codec,
    data: Buffer,
    size_max: int = MAX_DECOMPRESSED_BYTES,
    *,
    legacy_lz4: bool = False,
) -> Buffer:
    """The text of `data`. For Codec.NONE `data` itself.

    `legacy_lz4` ignores the lz4 header checksum, as Kafka does for magic 0. Raises
    KafkaError(INVALID_RECORD) for what is not the codec's form (Kafka answers a produce of it with
    UNKNOWN_SERVER_ERROR; sending it again cannot help, so it is no CORRUPT_MESSAGE), and
    KafkaError(RECORD_LIST_TOO_LARGE) when the text would have more than `size_max` bytes.
    """
    if codec == Codec.NONE:
        return data
    if codec == Codec.LZ4 and legacy_lz4:
        data = _with_lz4_header_checksum(data)
    return _Text(codec, data, size_max).whole()


T = TypeVar("T")


class Work(Protocol):
    """What another thread may do: it touches only what it was made with."""

    def perform(self) -> None: ...


class Job(Generic[T]):
    """Work whose `result` is there once it was performed."""

    __slots__ = ("_function", "result")

    result: T

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function

    def perform(self) -> None:
        self.result = self._function()


def decompress_steps(codec: Codec, data: Buffer, size_max: int) -> Generator[Work, None, Buffer]:
    """`decompress` in steps: yields what takes long, to be performed before it goes on."""
    if codec == Codec.NONE:
        return data
    text = _Text(codec, data, size_max)
    if len(data) <= ON_THE_SPOT_SOURCE_BYTES.get(codec, len(data)):
        for _ in range(ON_THE_SPOT_CHUNKS):
            if not text.more():
                return text.whole()
            if text.size_bytes >= ON_THE_SPOT_BYTES:
                break
    job = Job(text.whole)
    yield job
    return job.result


class _Text:
    """What a codec gives, chunk by chunk, counted before the next one is made."""

    def __init__(self, codec: Codec, data: Buffer, size_max: int) -> None:
        self._codec = codec
        self._chunks = _DECOMPRESS[codec](data, size_max)
        self._size_max = size_max
        self._first: bytes = b""
        self._text: bytearray | None = None
        self.size_bytes = 0

    def more(self) -> bool:
        """Make the next chunk; False without one."""
        chunk = next(self._chunks, None)
        if chunk is None:
            return False
        self.size_bytes += len(chunk)
        if self.size_bytes > self._size_max:
            self._text = None
            raise _too_large(self._codec, self._size_max)
        if not self._first:
            self._first = chunk
        elif chunk:
            if self._text is None:
                self._text = bytearray(self._first)
            self._text += chunk
        return True

    def whole(self) -> Buffer:
        """The rest as well, in one piece."""
        while self.more():
            pass
        return self._first if self._text is None else self._text


def _undecodable(codec: Codec, reason: object) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"Records cannot be decompressed as {codec.name.lower()}: {reason}",
    )


def _too_large(codec: Codec, size_max: int) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Records compressed as {codec.name.lower()} have more than {size_max} bytes",
    )


def _compress_none(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    compressor = zlib.compressobj(GZIP_LEVEL_DEFAULT if level is None else level, zlib.DEFLATED, 31)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Buffer, size_max: int) -> Iterator[bytes]:
    """Members one after another. What follows a member and is none is ignored, as in Java.

    Read in pieces, the first ones small: a member's decompressor copies what it leaves of the one
    it got.
    """
    size = len(data)
    if not size:
        raise _undecodable(Codec.GZIP, "no bytes")
    position = 0
    try:
        while position < size:
            member = zlib.decompressobj(31)
            piece_bytes = FIRST_PIECE_BYTES
            head = bytes(data[position : position + piece_bytes])
            if len(head) > 3 and head[3] & 0xE0:  # reserved flags, which Java does not look at
                head = head[:3] + bytes([head[3] & 0x1F]) + head[4:]
            piece = head
            position += len(piece)
            while not member.eof:
                yield member.decompress(piece, CHUNK_BYTES)
                piece = member.unconsumed_tail
                if not piece and not member.eof:
                    piece_bytes = min(4 * piece_bytes, PIECE_BYTES)
                    piece = bytes(data[position : position + piece_bytes])
                    position += len(piece)
                    if not piece:
                        chunk = member.decompress(b"", CHUNK_BYTES)
                        if not chunk:
                            raise _undecodable(Codec.GZIP, "it ends early")
                        yield chunk
            position -= len(member.unused_data)
            if bytes(data[position : position + 2]) != b"\x1f\x8b":
                return
    except zlib.error as error:
        raise _undecodable(Codec.GZIP, error) from None


def _snappy() -> Any:
    import snappy

    return snappy


def _compress_snappy(data: Buffer, level: int | None) -> bytes:
    compress_block = _snappy().compress
    parts = [_XERIAL_HEADER]
    with memoryview(data) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = compress_block(bytes(view[start : start + _XERIAL_BLOCK_BYTES]))
            parts.append(len(block).to_bytes(4, "big"))
            parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, size_max: int) -> Iterator[bytes]:
    raw = bytes(data)
    if not raw.startswith(_XERIAL_MAGIC):
        yield _snappy_block(raw, size_max)
        return
    position = len(_XERIAL_HEADER)
    if len(raw) < position:
        raise _undecodable(Codec.SNAPPY, "it ends in the header")
    size = 0
    while position < len(raw):
        if raw.startswith(_XERIAL_MAGIC, position):  # streams one after another
            position += len(_XERIAL_HEADER)
            continue
        if len(raw) - position < 4:
            return  # no whole length: the end, as Kafka reads it
        block_size = int.from_bytes(raw[position : position + 4], "big", signed=True)
        position += 4
        if block_size < 0 or block_size > len(raw) - position:
            raise _undecodable(Codec.SNAPPY, f"a block of {block_size} bytes at {position}")
        chunk = _snappy_block(raw[position : position + block_size], size_max - size)
        size += len(chunk)
        yield chunk
        position += block_size


def _snappy_block(block: bytes, size_max: int) -> bytes:
    """One bare snappy block, whose text length (unsigned varint in front) is checked first."""
    length = shift = 0
    for byte in block[:5]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise _undecodable(Codec.SNAPPY, "no length")
    # A snappy element of 3 bytes copies 64 bytes at most: a length beyond that is a lie.
    if length > size_max or length > len(block) * 22 + 64:
        if length > len(block) * 22 + 64:
            raise _undecodable(Codec.SNAPPY, f"{len(block)} bytes cannot hold {length}")
        raise _too_large(Codec.SNAPPY, size_max)
    try:
        text: bytes = _snappy().decompress(block)
    except Exception as error:  # the library raises errors of its own and of its backend
        raise _undecodable(Codec.SNAPPY, error) from None
    return text


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    # Level 9 is Kafka's default and means its fast compressor, every other one the high one.
    level = 0 if level in (None, LZ4_LEVEL_DEFAULT) else max(3, min(level or 0, 16))
    frame: bytes = lz4.frame.compress(
        data,
        compression_level=level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return frame


def _decompress_lz4(data: Buffer, size_max: int) -> Iterator[bytes]:
    import lz4.frame

    if len(data) < 7 or bytes(data[:4]) != _LZ4_MAGIC:
        raise _undecodable(Codec.LZ4, "no frame")
    if not data[4] & 0x20:
        raise _undecodable(Codec.LZ4, "blocks that depend on each other")
    decompressor = lz4.frame.LZ4FrameDecompressor()
    rest: Buffer = data
    try:
        while not decompressor.eof:
            chunk = decompressor.decompress(rest, CHUNK_BYTES)
            rest = b""
            if chunk:
                yield chunk
            elif decompressor.needs_input and not decompressor.eof:
                if bytes(data[-4:]) == _LZ4_EMPTY_BLOCK:
                    return  # to Kafka that is an end mark too
                raise _undecodable(Codec.LZ4, "it ends early")
    except (RuntimeError, EOFError) as error:
        raise _undecodable(Codec.LZ4, error) from None


def _with_lz4_header_checksum(data: Buffer) -> bytes:
    """The frame with the header checksum that a strict reader expects."""
    raw = bytearray(data)
    if len(raw) >= 7 and raw[:4] == _LZ4_MAGIC:
        descriptor_end = 6 + (8 if raw[4] & 0x08 else 0) + (4 if raw[4] & 0x01 else 0)
        if len(raw) > descriptor_end:
            raw[descriptor_end] = (_xxh32_short(bytes(raw[4:descriptor_end])) >> 8) & 0xFF
    return bytes(raw)


def _xxh32_short(data: bytes) -> int:
    """XXH32, seed 0, of fewer than 16 bytes."""
    prime1, prime2, prime3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
    prime4, prime5, mask = 0x27D4EB2F, 0x165667B1, 0xFFFFFFFF
    digest = (prime5 + len(data)) & mask
    position = 0
    while position + 4 <= len(data):
        word = int.from_bytes(data[position : position + 4], "little")
        digest = (digest + word * prime3) & mask
        digest = (((digest << 17) | (digest >> 15)) & mask) * prime4 & mask
        position += 4
    for byte in data[position:]:
        digest = (digest + byte * prime5) & mask
        digest = (((digest << 11) | (digest >> 21)) & mask) * prime1 & mask
    digest = (digest ^ (digest >> 15)) * prime2 & mask
    digest = (digest ^ (digest >> 13)) * prime3 & mask
    return digest ^ (digest >> 16)


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    compressor = zstandard.ZstdCompressor(
        level=ZSTD_LEVEL_DEFAULT if level is None else level,
        write_content_size=False,
        write_checksum=False,
    )
    return compressor.compress(data)


def _decompress_zstd(data: Buffer, size_max: int) -> Iterator[bytes]:
    import zstandard

    if not len(data):
        raise _undecodable(Codec.ZSTD, "no bytes")
    try:
        if zstandard.frame_content_size(data) > size_max:
            raise _too_large(Codec.ZSTD, size_max)
        _check_zstd_frames(zstandard, data)
        reader = zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        while chunk := reader.read(CHUNK_BYTES):
            yield chunk
    except zstandard.ZstdError as error:
        raise _undecodable(Codec.ZSTD, error) from None


def _check_zstd_frames(zstandard: Any, data: Buffer) -> None:
    """Raise unless `data` is whole frames: a stream reader takes a frame cut short for its end.

    A frame is its header, blocks (3 bytes, little-endian: bit 0 last, bits 1-2 type, then the
    size; a block of type 1 has one byte) and 4 bytes of checksum if bit 2 of its byte 4 says so.
    """
    position = 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic & 0xFFFFFFF0 == 0x184D2A50:  # to be skipped
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != 0xFD2FB528 or position + 5 > len(data):
            raise _undecodable(Codec.ZSTD, "no frame")
        has_checksum = data[position + 4] & 0x04
        position += zstandard.frame_header_size(data[position : position + 18])
        last = False
        while not last:
            if position + 3 > len(data):
                raise _undecodable(Codec.ZSTD, "it ends early")
            block = int.from_bytes(data[position : position + 3], "little")
            last = block & 1 == 1
            position += 3 + (1 if block & 6 == 2 else block >> 3)
        position += 4 if has_checksum else 0
    if position != len(data):
        raise _undecodable(Codec.ZSTD, "it ends early")


_COMPRESS = {
    Codec.NONE: _compress_none,
    Codec.GZIP: _compress_gzip,
    Codec.SNAPPY: _compress_snappy,
    Codec.LZ4: _compress_lz4,
    Codec.ZSTD: _compress_zstd,
}
_DECOMPRESS = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
