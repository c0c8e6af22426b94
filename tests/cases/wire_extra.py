"""Helpers of the produce/fetch/metadata/admin checks: plain sockets, kio's schemas, record batches.

`Conn.call("fetch", 12, field=value, ...)` takes nested dicts/lists with plain values (milliseconds for
times, integers for error codes, uuid.UUID or None for ids) and gives back nested `Obj`s of the same kind.
Fields left out take the schema's default, or an empty value where the schema has none.
"""

from __future__ import annotations

import dataclasses
import datetime
import gzip
import io
import os
import random
import socket
import string
import struct
import time
from types import UnionType
from typing import Union, get_args, get_origin

import crc32c
from kio.index import load_payload_module
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

API_KEYS = {name: key for key, name in api_key_map.items()}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

# error codes used by the checks
NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
NOT_ENOUGH_REPLICAS = 19
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
UNSUPPORTED_VERSION = 35
TOPIC_EXISTS = 36
INVALID_PARTITIONS = 37
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
SECURITY_DISABLED = 54
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_COMPRESSION = 76
INVALID_RECORD = 87
UNKNOWN_TOPIC_ID = 100
INCONSISTENT_TOPIC_ID = 103
FETCH_SESSION_TOPIC_ID_ERROR = 106


class Closed(Exception):
    """The broker closed the connection (FIN or RST)."""


class Obj:
    """Attribute bag for decoded structures."""

    def __init__(self, **kw):
        self.__dict__.update(kw)

    def __repr__(self):
        return "Obj(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"

    def __contains__(self, name):
        return name in self.__dict__


# ---------------------------------------------------------------- schema values <-> plain values
def _strip_optional(tp):
    if get_origin(tp) in (UnionType, Union):
        args = [a for a in get_args(tp) if a is not type(None)]
        return args[0], True
    return tp, False


def _plain_to_kio(kind, value):
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "datetime_i64":
        return None if value == -1 else EPOCH + datetime.timedelta(milliseconds=value)
    if kind == "error_code":
        return ErrorCode(value)
    return value


_EMPTY = {"string": "", "bytes": b"", "records": None, "bool": False, "uuid": None, "float64": 0.0}


def build(cls, values):
    """Nested dicts -> kio entity of class `cls`."""
    kw = {}
    names = {f.name for f in dataclasses.fields(cls)}
    unknown = set(values) - names
    if unknown:
        raise TypeError(
            f"{cls.__module__}.{cls.__name__} has no field {sorted(unknown)}; it has {sorted(names)}"
        )
    for f in dataclasses.fields(cls):
        tp, nullable = _strip_optional(f.type)
        is_array = get_origin(tp) is tuple
        if f.name not in values:
            if f.default is not dataclasses.MISSING or f.default_factory is not dataclasses.MISSING:
                continue
            if is_array:
                kw[f.name] = ()
            elif nullable:
                kw[f.name] = None
            elif dataclasses.is_dataclass(tp):
                kw[f.name] = build(tp, {})
            else:
                kind = f.metadata["kafka_type"]
                kw[f.name] = _plain_to_kio(kind, _EMPTY.get(kind, 0))
            continue
        value = values[f.name]
        if value is None:
            kw[f.name] = None
        elif is_array:
            inner, _ = _strip_optional(get_args(tp)[0])
            if dataclasses.is_dataclass(inner):
                kw[f.name] = tuple(build(inner, v) for v in value)
            else:
                kind = f.metadata["kafka_type"]
                kw[f.name] = tuple(_plain_to_kio(kind, v) for v in value)
        elif dataclasses.is_dataclass(tp):
            kw[f.name] = build(tp, value)
        else:
            kw[f.name] = _plain_to_kio(f.metadata["kafka_type"], value)
    return cls(**kw)


def plain(value):
    """kio entity -> nested Obj with plain values."""
    if dataclasses.is_dataclass(value):
        out = {}
        for f in dataclasses.fields(value):
            v = getattr(value, f.name)
            if v is None and f.metadata.get("kafka_type") == "datetime_i64":
                v = -1
            out[f.name] = plain(v)
        return Obj(**out)
    if isinstance(value, tuple):
        return [plain(v) for v in value]
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round((value - EPOCH).total_seconds() * 1000)
    if isinstance(value, ErrorCode):
        return int(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return value


def _classes(api, version):
    key = API_KEYS[api]
    out = []
    for kind in (EntityType.request, EntityType.response):
        mod = load_payload_module(key, version, kind)
        name = "".join(p.capitalize() for p in api.split("_"))
        suffix = "Request" if kind is EntityType.request else "Response"
        found = [
            c
            for n, c in vars(mod).items()
            if isinstance(c, type)
            and dataclasses.is_dataclass(c)
            and getattr(c, "__type__", None) is kind
            and c.__module__ == mod.__name__
        ]
        assert found, (api, version, name + suffix)
        out.append(found[0])
    return out


_cls_cache: dict = {}


def classes(api, version):
    if (api, version) not in _cls_cache:
        _cls_cache[api, version] = _classes(api, version)
    return _cls_cache[api, version]


def encode_request(api, version, corr, client_id="heldout", header_tags=b"\0", body=None, **fields):
    """Request frame without its length prefix. `body` overrides the encoded fields with raw bytes."""
    req, _ = classes(api, version)
    out = io.BytesIO()
    out.write(struct.pack(">hhi", API_KEYS[api], version, corr))
    if client_id is None:
        out.write(struct.pack(">h", -1))
    else:
        raw = client_id.encode()
        out.write(struct.pack(">h", len(raw)) + raw)
    if req.__flexible__:
        out.write(header_tags)
    if body is not None:
        out.write(body)
    else:
        entity_writer(req)(out, build(req, fields))
    return out.getvalue()


def decode_response(api, version, payload):
    """(correlation id, Obj); fails unless every byte of the frame is used."""
    _, resp = classes(api, version)
    (corr,) = struct.unpack_from(">i", payload)
    pos = 4
    if resp.__flexible__ and api != "api_versions":
        assert payload[4] == 0, "response header v1 must carry an (empty) tag section"
        pos = 5
    entity, size = _read_entity(resp, payload, pos)
    assert size == len(payload), (
        f"{api} v{version}: {len(payload) - size} bytes left over in the response"
    )
    return corr, plain(entity)


def _read_entity(cls, payload, pos):
    entity, size = entity_reader(cls)(payload, pos)
    return entity, pos + size


# ---------------------------------------------------------------- connections
class Conn:
    def __init__(self, address, timeout=30.0):
        host, port = address.rsplit(":", 1) if isinstance(address, str) else address
        self.address = (host.strip("[]"), int(port))
        self.sock = socket.create_connection(self.address, timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.timeout = timeout
        self.corr = random.randrange(1, 1 << 20)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.sock.close()

    def send_bytes(self, data):
        try:
            self.sock.settimeout(self.timeout)
            self.sock.sendall(data)
        except (ConnectionError, BrokenPipeError) as e:
            raise Closed(str(e)) from e

    def send_frame(self, payload):
        self.send_bytes(struct.pack(">i", len(payload)) + payload)

    def next_corr(self):
        self.corr += 1
        return self.corr

    def send(self, api, version, **fields):
        corr = self.next_corr()
        self.send_frame(encode_request(api, version, corr, **fields))
        return corr

    def _exact(self, n):
        out = bytearray()
        while len(out) < n:
            try:
                part = self.sock.recv(min(n - len(out), 1 << 20))
            except ConnectionError as e:
                raise Closed(str(e)) from e
            if not part:
                raise Closed(f"end of stream with {n - len(out)} of {n} bytes missing")
            out += part
        return bytes(out)

    def recv_frame(self, timeout=None):
        self.sock.settimeout(timeout or self.timeout)
        (size,) = struct.unpack(">i", self._exact(4))
        assert 0 <= size < 1 << 30, f"implausible response length {size}"
        return self._exact(size)

    def recv(self, api, version, timeout=None):
        return decode_response(api, version, self.recv_frame(timeout))

    def call(self, api, version, wait=None, **fields):
        """One request and its answer; `wait` limits the seconds to wait for it."""
        corr = self.send(api, version, **fields)
        got, obj = self.recv(api, version, wait)
        assert got == corr, f"correlation id {got}, wanted {corr}"
        return obj

    def expect_close(self, timeout=5.0):
        """The broker must close now, without another byte. Gives the seconds it took."""
        t0 = time.monotonic()
        self.sock.settimeout(timeout)
        try:
            data = self.sock.recv(4096)
        except ConnectionError:
            return time.monotonic() - t0
        except TimeoutError:
            raise AssertionError(f"connection still open after {timeout} s") from None
        assert data == b"", f"unexpected bytes instead of a close: {data[:64]!r}"
        return time.monotonic() - t0

    def expect_silence(self, seconds):
        """Nothing may arrive and the connection must stay open for that long."""
        self.sock.settimeout(seconds)
        try:
            data = self.sock.recv(1)
        except TimeoutError:
            return
        except ConnectionError:
            data = b""
        raise AssertionError("connection closed" if not data else "unexpected bytes")


def unique(prefix="t"):
    return f"{prefix}-{os.getpid() % 10000}-" + "".join(
        random.choices(string.ascii_lowercase + string.digits, k=8)
    )


# ---------------------------------------------------------------- records
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def varint(n):
    z = (n << 1) ^ (n >> 63)
    z &= (1 << 64) - 1
    return uvarint(z)


def uvarint(z):
    out = bytearray()
    while z > 0x7F:
        out.append(0x80 | (z & 0x7F))
        z >>= 7
    out.append(z)
    return bytes(out)


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
        return varint(-1)
    return varint(len(b)) + b


def encode_record(key, value, headers=(), offset_delta=0, ts_delta=0, attributes=0):
    body = (
        struct.pack(">b", attributes)
        + varint(ts_delta)
        + varint(offset_delta)
        + _blob(key)
        + _blob(value)
    )
    body += varint(len(headers))
    for hk, hv in headers:
        raw = hk.encode() if isinstance(hk, str) else hk
        body += varint(len(raw)) + raw + _blob(hv)
    return varint(len(body)) + body


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
        attributes = codec
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


# ---------------------------------------------------------------- requests in short form
CREATED: list = []  # names made by create_topic, for the clean-up after a test


def drop_created(address):
    names, CREATED[:] = sorted(set(CREATED)), []
    if names:
        try:
            with Conn(address, timeout=15) as conn:
                conn.call("delete_topics", 3, topic_names=names, timeout=10000)
        except Exception:
            pass  # clean-up only; a name may be gone already, or the broker


def create_topic(
    conn, name, partitions=1, replication=1, configs=None, version=5, expect=0, **extra
):
    r = conn.call(
        "create_topics",
        version,
        topics=[
            {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": replication,
                "configs": [{"name": k, "value": v} for k, v in (configs or {}).items()],
            }
        ],
        **{_timeout_field("create_topics", version): 15000},
        **extra,
    )
    t = r.topics[0]
    if expect is not None:
        assert t.error_code == expect, t
        if expect == 0:
            CREATED.append(name)
            wait_ready(conn, name, partitions)
    return t


def wait_ready(conn, name, partitions=1, timeout=15.0):
    """Wait until the leaders of all partitions serve (a fresh leader may still answer 3, 5 or 6 for a moment)."""
    t = wait_topic(conn, name, partitions, timeout)
    end = time.monotonic() + timeout
    for p in t.partitions:
        while True:
            r = list_offset(conn, name, -1, p.partition_index)
            if r.error_code not in (3, 5, 6):
                break
            assert time.monotonic() < end, r
            time.sleep(0.02)
    return t


def _timeout_field(api, version):
    names = [f.name for f in dataclasses.fields(classes(api, version)[0])]
    return next(n for n in names if n in ("timeout", "timeout_ms"))


def delete_topic(conn, name, version=3):
    r = conn.call(
        "delete_topics",
        version,
        topic_names=[name],
        **{_timeout_field("delete_topics", version): 15000},
    )
    assert r.responses[0].error_code == 0, r


def metadata(conn, topics, version=9, auto=False, **extra):
    """topics: None (all), or names."""
    fields = dict(extra)
    if version >= 4:
        fields["allow_auto_topic_creation"] = auto
    fields["topics"] = None if topics is None else [{"name": n} for n in topics]
    return conn.call("metadata", version, **fields)


def wait_topic(conn, name, partitions=None, timeout=15.0):
    """Wait until the topic has leaders for all its partitions; gives its Metadata entry (v12, with id)."""
    end = time.monotonic() + timeout
    while True:
        t = metadata(conn, [name], 12).topics[0]
        if (
            t.error_code == 0
            and t.partitions
            and all(p.error_code == 0 and p.leader_id >= 0 for p in t.partitions)
            and (partitions in (None, -1) or len(t.partitions) == partitions)
        ):
            return t
        assert time.monotonic() < end, t
        time.sleep(0.05)


def wait_gone(conn, name, timeout=15.0):
    end = time.monotonic() + timeout
    while metadata(conn, [name], 12).topics[0].error_code != UNKNOWN_TOPIC_OR_PARTITION:
        assert time.monotonic() < end
        time.sleep(0.05)


def topic_id(conn, name):
    return wait_topic(conn, name).topic_id


def produce_fields(topic, parts, acks=-1, timeout=10000, txn=None):
    """parts: {partition: bytes} of one topic."""
    return {
        "transactional_id": txn,
        "acks": acks,
        "timeout": timeout,
        "topic_data": [
            {
                "name": topic,
                "partition_data": [{"index": i, "records": b} for i, b in parts.items()],
            }
        ],
    }


def produce_parts(conn, topic, parts, version=9, **kw):
    r = conn.call("produce", version, **produce_fields(topic, parts, **kw))
    return {p.index: p for p in r.responses[0].partition_responses}


def produce(conn, topic, records, partition=0, version=9, expect=0, retry=True, **kw):
    """Append one batch (bytes, or a list for `batch`); gives the partition's response."""
    raw = records if isinstance(records, (bytes, bytearray)) else batch(records)
    end = time.monotonic() + 10
    while True:
        p = produce_parts(conn, topic, {partition: bytes(raw)}, version, **kw)[partition]
        if expect == 0 and retry and p.error_code in (3, 5, 6) and time.monotonic() < end:
            time.sleep(0.1)
            continue
        if expect is not None:
            assert p.error_code == expect, p
        return p


def fetch_fields(
    topic,
    parts,
    version,
    *,
    max_wait=500,
    min_bytes=1,
    max_bytes=50_000_000,
    isolation=0,
    partition_max_bytes=10_000_000,
    session_id=0,
    session_epoch=-1,
    forgotten=(),
    tid=None,
    leader_epoch=None,
):
    """parts: {partition: offset} or {partition: (offset, partition_max_bytes)}; topic None: no topics."""
    req, _ = classes("fetch", version)
    names = {f.name for f in dataclasses.fields(req)}
    ft = None
    for f in dataclasses.fields(req):
        if f.name == "topics":
            ft = get_args(_strip_optional(f.type)[0])[0]
    tnames = {f.name for f in dataclasses.fields(ft)}
    pt = next(get_args(f.type)[0] for f in dataclasses.fields(ft) if f.name == "partitions")
    pnames = {f.name for f in dataclasses.fields(pt)}
    plist = []
    for i, off in parts.items():
        off, pmax = off if isinstance(off, tuple) else (off, partition_max_bytes)
        d = {"partition": i, "fetch_offset": off, "partition_max_bytes": pmax}
        if "log_start_offset" in pnames:
            d["log_start_offset"] = -1
        if leader_epoch is not None and "current_leader_epoch" in pnames:
            d["current_leader_epoch"] = leader_epoch
        plist.append(d)
    key = {"topic_id": tid} if "topic_id" in tnames else {"topic": topic}
    out = {
        "max_bytes": max_bytes,
        "min_bytes": min_bytes,
        "isolation_level": isolation,
        "topics": [dict(partitions=plist, **key)] if parts else [],
    }
    out["max_wait" if "max_wait" in names else "max_wait_ms"] = max_wait
    if "replica_id" in names:
        out["replica_id"] = -1
    if "session_id" in names:
        out["session_id"], out["session_epoch"] = session_id, session_epoch
    if forgotten:
        out["forgotten_topics_data"] = [dict(partitions=list(forgotten), **key)]
    return out


def fetch(conn, topic, parts, version=12, **kw):
    """The whole response; see `parts_of`."""
    return conn.call("fetch", version, **fetch_fields(topic, parts, version, **kw))


def parts_of(resp):
    return {p.partition_index: p for t in resp.responses for p in t.partitions}


def fetch_one(conn, topic, offset, partition=0, version=12, **kw):
    return parts_of(fetch(conn, topic, {partition: offset}, version, **kw))[partition]


def read_log(conn, topic, partition=0, offset=0, version=12, isolation=0):
    """All batches from `offset` to the high watermark."""
    out = []
    while True:
        p = fetch_one(
            conn, topic, offset, partition, version, max_wait=0, min_bytes=0, isolation=isolation
        )
        assert p.error_code == 0, p
        got, _ = parse(p.records)
        got = [b for b in got if b.last_offset >= offset]
        if not got:
            assert offset >= (p.last_stable_offset if isolation else p.high_watermark), (
                "empty fetch before the end"
            )
            return out
        out += got
        offset = got[-1].last_offset + 1


def list_offset(conn, topic, timestamp, partition=0, version=7, isolation=0, leader_epoch=None):
    p = {"partition_index": partition, "timestamp": timestamp}
    if leader_epoch is not None:
        p["current_leader_epoch"] = leader_epoch
    fields = {"replica_id": -1, "topics": [{"name": topic, "partitions": [p]}]}
    if version >= 2:
        fields["isolation_level"] = isolation
    return conn.call("list_offsets", version, **fields).topics[0].partitions[0]


def latest(conn, topic, partition=0, isolation=0):
    r = list_offset(conn, topic, -1, partition, isolation=isolation)
    assert r.error_code == 0, r
    return r.offset


def earliest(conn, topic, partition=0):
    r = list_offset(conn, topic, -2, partition)
    assert r.error_code == 0, r
    return r.offset


def delete_records(conn, topic, offset, partition=0, version=2):
    r = conn.call(
        "delete_records",
        version,
        **{_timeout_field("delete_records", version): 15000},
        topics=[{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}],
    )
    return r.topics[0].partitions[0]


def describe_configs(conn, kind, name, keys=None, version=4, synonyms=False, docs=False):
    fields = {
        "resources": [{"resource_type": kind, "resource_name": name, "configuration_keys": keys}]
    }
    if version >= 1:
        fields["include_synonyms"] = synonyms
    if version >= 3:
        fields["include_documentation"] = docs
    return conn.call("describe_configs", version, **fields).results[0]


def config_of(conn, topic, key):
    r = describe_configs(conn, 2, topic, [key])
    assert r.error_code == 0 and len(r.configs) == 1, r
    return r.configs[0]


SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def alter(conn, resources, validate_only=False, version=1):
    """Incremental: resources = [(type, name, [(key, op, value), ...])]; gives the responses in request order."""
    r = conn.call(
        "incremental_alter_configs",
        version,
        validate_only=validate_only,
        resources=[
            {
                "resource_type": t,
                "resource_name": n,
                "configs": [{"name": k, "config_operation": o, "value": v} for k, o, v in cs],
            }
            for t, n, cs in resources
        ],
    )
    by = {(x.resource_type, x.resource_name): x for x in r.responses}
    return [by[t, n] for t, n, _ in resources]


def rss_kb(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1])


def still_serves(address):
    """A fresh connection gets ApiVersions and Metadata answered."""
    with Conn(address, timeout=10) as c:
        assert (
            c.call(
                "api_versions", 3, client_software_name="x", client_software_version="1"
            ).error_code
            == 0
        )
        assert metadata(c, []).brokers
