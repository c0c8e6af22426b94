"""Record batches: built, with any field forced, and parsed strictly."""

from __future__ import annotations

import dataclasses
import gzip
import io
import struct
import time

import crc32c

from tests.wire.codec import svarint

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def read_varint(buf, pos):
    shift = result = 0
    while True:
        b = buf[pos]
        pos += 1
        result |= (b & 0x7F) << shift
        if not b & 0x80:
            return (result >> 1) ^ -(result & 1), pos
        shift += 7


def _blob(b):
    if b is None:
        return svarint(-1)
    return svarint(len(b)) + b


def encode_record(key, value, headers=(), offset_delta=0, ts_delta=0, attributes=0):
    key, value = (text.encode() if isinstance(text, str) else text for text in (key, value))
    body = (
        struct.pack(">b", attributes)
        + svarint(ts_delta)
        + svarint(offset_delta)
        + _blob(key)
        + _blob(value)
    )
    body += svarint(len(headers))
    for hk, hv in headers:
        raw = hk.encode() if isinstance(hk, str) else hk
        body += svarint(len(raw)) + raw + _blob(hv)
    return svarint(len(body)) + body


def xerial_compress(data):
    from cramjam import snappy

    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for i in range(0, len(data), 32768):
        block = bytes(snappy.compress_raw(data[i : i + 32768]))
        out += struct.pack(">i", len(block)) + block
    return out


def xerial_decompress(data):
    from cramjam import snappy

    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(snappy.decompress_raw(data))
    out, pos = b"", 16
    while pos < len(data):
        (n,) = struct.unpack_from(">i", data, pos)
        out += bytes(snappy.decompress_raw(data[pos + 4 : pos + 4 + n]))
        pos += 4 + n
    return out


def compress(codec, data):
    if codec == 0:
        return data
    if codec == 1:
        return gzip.compress(data)
    if codec == 2:
        return xerial_compress(data)
    if codec == 3:
        import lz4.frame

        return lz4.frame.compress(
            data, block_linked=False, content_checksum=False, store_size=False
        )
    if codec == 4:
        import zstandard

        return zstandard.ZstdCompressor(write_content_size=False).compress(data)
    raise ValueError(codec)


def decompress(codec, data):
    if codec == 0:
        return data
    if codec == 1:
        return gzip.decompress(data)
    if codec == 2:
        return xerial_decompress(data)
    if codec == 3:
        import lz4.frame

        return lz4.frame.decompress(data)
    if codec == 4:
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(
            io.BytesIO(data), read_across_frames=True
        ) as r:
            return r.read()
    raise ValueError(codec)


def now_ms():
    return int(time.time() * 1000)


def batch(
    records,
    *,
    codec=0,
    attributes=None,
    transactional=False,
    control=False,
    log_append=False,
    base_offset=0,
    leader_epoch=-1,
    magic=2,
    base_timestamp=None,
    max_timestamp=None,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    count=None,
    last_offset_delta=None,
    length=None,
    crc=None,
    payload=None,
):
    """A v2 record batch. `records`: values, or (key, value[, headers[, timestamp]]) tuples, or
    encoded record bytes via `payload` (already compressed). Every header field can be forced."""
    codec = CODECS[codec] if isinstance(codec, str) else codec
    norm = []
    for r in records:
        if not isinstance(r, tuple):
            r = (None, r)
        r = r + (None, None, (), None)[len(r) :]
        norm.append(r)
    stamps = [r[3] for r in norm if r[3] is not None]
    if base_timestamp is None:
        base_timestamp = stamps[0] if stamps else now_ms()
    if payload is None:
        raw = b""
        for i, (k, v, h, ts) in enumerate(norm):
            delta = 0 if ts is None else ts - base_timestamp
            raw += encode_record(k, v, h or (), i, delta)
        payload = compress(codec, raw)
    if max_timestamp is None:
        max_timestamp = max(stamps + [base_timestamp])
    if attributes is None:
        attributes = codec | log_append << 3 | transactional << 4 | control << 5
    if count is None:
        count = len(norm)
    if last_offset_delta is None:
        last_offset_delta = count - 1
    tail = (
        struct.pack(
            ">hiqqqhii",
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + payload
    )
    if crc is None:
        crc = crc32c.crc32c(tail)
    if length is None:
        length = 4 + 1 + 4 + len(tail)
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc) + tail


def sized_batch(total, **kw):
    """An uncompressed one-record batch of exactly `total` bytes."""
    n = max(0, total - 80)
    for _ in range(50):
        b = batch([b"x" * n], **kw)
        if len(b) == total:
            return b
        n += total - len(b)
    raise ValueError(total)


def message_v0(value, key=None, magic=0, attributes=0):
    """An old-format message set of one message (magic 0 or 1)."""
    import zlib

    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", now_ms())
    body += struct.pack(">i", -1) if key is None else struct.pack(">i", len(key)) + key
    body += struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    msg = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(msg)) + msg


@dataclasses.dataclass
class Rec:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list


class Batch:
    """A stored v2 batch, parsed strictly."""

    def __init__(self, raw):
        self.raw = raw
        (self.base_offset, self.length, self.leader_epoch, self.magic, self.crc) = (
            struct.unpack_from(">qiibI", raw)
        )
        assert self.magic == 2, f"magic {self.magic}"
        (
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = struct.unpack_from(">hiqqqhii", raw, 21)
        self.crc_ok = crc32c.crc32c(raw[21:]) == self.crc
        self.codec = self.attributes & 7
        self.log_append = bool(self.attributes & 8)
        self.transactional = bool(self.attributes & 16)
        self.control = bool(self.attributes & 32)
        self.last_offset = self.base_offset + self.last_offset_delta
        self._records = None

    @property
    def payload(self):
        return decompress(self.codec, self.raw[61:])

    @property
    def records(self):
        if self._records is None:
            buf, pos, out = self.payload, 0, []
            for _ in range(self.count):
                n, pos = read_varint(buf, pos)
                end = pos + n
                pos += 1
                td, pos = read_varint(buf, pos)
                od, pos = read_varint(buf, pos)
                kv = []
                for _ in range(2):
                    n, pos = read_varint(buf, pos)
                    kv.append(None if n < 0 else bytes(buf[pos : pos + n]))
                    pos += max(n, 0)
                hn, pos = read_varint(buf, pos)
                headers = []
                for _ in range(hn):
                    n, pos = read_varint(buf, pos)
                    hk = bytes(buf[pos : pos + n]).decode()
                    pos += n
                    n, pos = read_varint(buf, pos)
                    hv = None if n < 0 else bytes(buf[pos : pos + n])
                    pos += max(n, 0)
                    headers.append((hk, hv))
                assert pos == end, "record length does not match its content"
                ts = self.max_timestamp if self.log_append else self.base_timestamp + td
                out.append(Rec(self.base_offset + od, ts, kv[0], kv[1], headers))
            assert pos == len(buf), "bytes after the last record"
            self._records = out
        return self._records


def parse(data):
    """(complete batches, trailing partial bytes) of a fetched byte string; complete ones must have a valid CRC."""
    out, pos = [], 0
    data = data or b""
    while len(data) - pos >= 12:
        (n,) = struct.unpack_from(">i", data, pos + 8)
        assert n >= 49, f"batch length {n} at {pos}"
        if pos + 12 + n > len(data):
            break
        b = Batch(bytes(data[pos : pos + 12 + n]))
        assert b.crc_ok, f"bad CRC in the batch at offset {b.base_offset}"
        out.append(b)
        pos += 12 + n
    return out, bytes(data[pos:])


def parse_batches(data) -> list[Batch]:
    """The complete batches of fetched bytes; a cut-off one at the end is dropped, as clients do.

    Their records are read at once: what cannot be read fails whoever fetches it.
    """
    batches = parse(data)[0]
    for one in batches:
        assert len(one.records) == one.count
    return batches


def values(batches) -> list[bytes]:
    """Values of all data records in batches (control batches skipped)."""
    return [r.value for b in batches if not b.control for r in b.records]


def read_committed(p_batches, aborted) -> list[Rec]:
    """What a read_committed client would deliver from these batches and the aborted list."""
    pend = sorted(aborted or [], key=lambda a: a.first_offset)
    bad, out = set(), []
    for b in p_batches:
        while pend and pend[0].first_offset <= b.last_offset:
            bad.add(pend.pop(0).producer_id)
        if b.control:
            if struct.unpack(">hh", b.records[0].key[:4])[1] == 0:
                bad.discard(b.producer_id)
            continue
        if b.transactional and b.producer_id in bad:
            continue
        out += b.records
    return out
