"""A small synchronous Kafka client for checks: sockets, frames, messages, batches.

The message shapes come from kio's schema package; encoding and decoding are done here, strictly and in plain
integers: error codes, times (ms) and durations (ms) are ints, UUIDs are uuid.UUID, arrays are lists, structs are `Obj`
(attribute access).  Nothing here hides what is on the wire: a reply that has too few or too many bytes raises.

    c = Conn("127.0.0.1:9092")
    r = c.send("metadata", 9, topics=[{"name": "t"}], allow_auto_topic_creation=False)
    r.topics[0].error_code

Field names are kio's (snake case; durations have no `_ms` suffix, but `session_timeout_ms` is accepted for
`session_timeout`).  A field that this version lacks but another version of the same API has is left out silently, so a
loop over versions can pass one set of fields; a name that no version has raises.  Fields not given get their default or
zero.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import os
import socket
import ssl as _ssl
import struct
import time
import uuid
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dc_fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import get_args, get_origin

import crc32c as _crc32c
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

API = {name: key for key, name in api_key_map.items()}
ZERO_UUID = uuid.UUID(int=0)

# Error codes used by the checks.
NONE, OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION = 0, 1, 2, 3
OFFSET_METADATA_TOO_LARGE, LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = (
    12,
    14,
    15,
    16,
)
ILLEGAL_GENERATION, INCONSISTENT_GROUP_PROTOCOL, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID = (
    22,
    23,
    24,
    25,
)
INVALID_SESSION_TIMEOUT, REBALANCE_IN_PROGRESS = 26, 27
TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 29, 30, 31
UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE, UNSUPPORTED_VERSION = 33, 34, 35
INVALID_REQUEST, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE = (
    42,
    45,
    47,
    48,
)
INVALID_PRODUCER_ID_MAPPING, INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS = 49, 50, 51
TRANSACTIONAL_ID_AUTHORIZATION_FAILED, SECURITY_DISABLED, SASL_AUTHENTICATION_FAILED = 53, 54, 58
NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID = 68, 69, 79, 82
GROUP_SUBSCRIBED_TO_TOPIC, INVALID_RECORD, UNSTABLE_OFFSET_COMMIT, PRODUCER_FENCED = 86, 87, 88, 90


class WireError(AssertionError):
    """The peer sent something that cannot be a correct reply."""


class Closed(WireError):
    """The peer closed or reset the connection where a reply was due."""


class Obj:
    """A decoded struct: attribute access, `==`, readable repr, `.get(name, default)`."""

    def __init__(self, d):
        self.__dict__.update(d)

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def __contains__(self, name):
        return name in self.__dict__

    def __eq__(self, other):
        return isinstance(other, Obj) and self.__dict__ == other.__dict__

    def __repr__(self):
        return "{" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + "}"


# ---------------------------------------------------------------------------------------------- primitive encodings


def uvarint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def svarint(n: int) -> bytes:
    return uvarint((n << 1) ^ (n >> 63) if n >= 0 else ((-n) << 1) - 1)


class Reader:
    def __init__(self, data: bytes, pos: int = 0):
        self.d, self.p = data, pos

    def take(self, n: int) -> bytes:
        if n < 0 or self.p + n > len(self.d):
            raise WireError(f"reply too short: {n} bytes wanted at {self.p} of {len(self.d)}")
        self.p += n
        return self.d[self.p - n : self.p]

    def unpack(self, fmt: str):
        return struct.unpack(">" + fmt, self.take(struct.calcsize(">" + fmt)))[0]

    def uvarint(self) -> int:
        r = shift = 0
        while True:
            b = self.take(1)[0]
            r |= (b & 0x7F) << shift
            if not b & 0x80:
                return r
            shift += 7
            if shift > 63:
                raise WireError("varint too long")

    def svarint(self) -> int:
        v = self.uvarint()
        return (v >> 1) ^ -(v & 1)

    @property
    def left(self) -> int:
        return len(self.d) - self.p


_INT = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
}


# ------------------------------------------------------------------------------------------------- schema -> plan


class _F:
    __slots__ = ("array", "client_id", "default", "ktype", "name", "nullable", "struct", "tag")


@lru_cache(None)
def _plan(cls):
    out = []
    for f in dc_fields(cls):
        p = _F()
        p.name, p.tag, p.ktype = f.name, f.metadata.get("tag"), f.metadata.get("kafka_type")
        t, p.nullable = f.type, False
        if get_origin(t) is UnionType:
            p.nullable = True
            t = next(a for a in get_args(t) if a is not NoneType)
        p.array = get_origin(t) is tuple
        if p.array:
            t = get_args(t)[0]
            if get_origin(t) is UnionType:
                t = next(a for a in get_args(t) if a is not NoneType)
        p.struct = t if is_dataclass(t) else None
        p.client_id = cls.__name__ == "RequestHeader" and f.name == "client_id"
        p.default = f.default if f.default is not MISSING else MISSING
        out.append(p)
    return out


@lru_cache(None)
def _names_anywhere(api: str, cls_name: str, is_request: bool):
    """Every field name that any version of this API has in a struct of this name."""
    names = set()
    key = API[api]
    for v in schema_name_map[api]:
        stack, seen = [(load_request_schema if is_request else load_response_schema)(key, v)], set()
        while stack:
            c = stack.pop()
            if c in seen:
                continue
            seen.add(c)
            if c.__name__ == cls_name:
                names.update(p.name for p in _plan(c))
            stack.extend(p.struct for p in _plan(c) if p.struct)
    return names


def _zero(p: _F):
    if p.array:
        return None if p.nullable and p.default is None else []
    if p.struct:
        return None if p.nullable else {}
    if p.ktype in _INT:
        d = p.default
        return (
            int(d)
            if isinstance(d, int)
            else int(d.total_seconds() * 1000)
            if hasattr(d, "total_seconds")
            else (-1 if d is None else 0)
        )
    if p.ktype == "bool":
        return bool(p.default) if p.default is not MISSING else False
    if p.ktype == "uuid":
        return ZERO_UUID
    if p.nullable and (p.default is None or p.default is MISSING):
        return None
    if isinstance(p.default, (str, bytes)):
        return p.default
    return "" if p.ktype == "string" else b""


def _enc_scalar(p: _F, v, flex: bool) -> bytes:
    k = p.ktype
    if k in _INT:
        return struct.pack(">" + _INT[k], v)
    if k == "bool":
        return b"\x01" if v else b"\x00"
    if k == "uuid":
        return (
            v if isinstance(v, uuid.UUID) else ZERO_UUID if v is None else uuid.UUID(str(v))
        ).bytes
    if isinstance(v, str):
        v = v.encode()
    if flex and not p.client_id:
        return b"\x00" if v is None else uvarint(len(v) + 1) + v
    fmt = ">h" if k == "string" else ">i"
    return struct.pack(fmt, -1) if v is None else struct.pack(fmt, len(v)) + v


def _enc_value(api, p: _F, v, flex: bool) -> bytes:
    if p.array:
        if v is None:
            return b"\x00" if flex else b"\xff\xff\xff\xff"
        head = uvarint(len(v) + 1) if flex else struct.pack(">i", len(v))
        return head + b"".join(
            _enc_struct(api, p.struct, x) if p.struct else _enc_scalar(p, x, flex) for x in v
        )
    if p.struct:
        if p.nullable:
            return b"\xff" if v is None else b"\x01" + _enc_struct(api, p.struct, v)
        return _enc_struct(api, p.struct, v)
    return _enc_scalar(p, v, flex)


def _enc_struct(api, cls, values) -> bytes:
    if isinstance(values, Obj):
        values = values.__dict__
    if not isinstance(values, dict):
        raise TypeError(f"{cls.__name__}: dict expected, got {values!r}")
    plan, flex = _plan(cls), cls.__flexible__
    known = {p.name for p in plan}
    given = {}
    for k, v in values.items():
        if k not in known and k.endswith("_ms"):
            k = k[:-3]
        if k in known:
            given[k] = v
        elif api is not None and k not in _names_anywhere(api, cls.__name__, True) and k != "_tags":
            raise TypeError(
                f"{cls.__name__} v{cls.__version__} has no field {k!r}; it has {sorted(known)}"
            )
    out, tags = [], dict(values.get("_tags", {}))
    for p in plan:
        if p.tag is None:
            out.append(
                _enc_value(
                    api,
                    p,
                    given.get(p.name, _zero(p)) if p.name not in given else given[p.name],
                    flex,
                )
            )
        elif p.name in given:
            tags[int(p.tag)] = _enc_value(api, p, given[p.name], flex)
    if flex:
        out.append(uvarint(len(tags)))
        for t in sorted(tags):
            out.append(uvarint(t) + uvarint(len(tags[t])) + tags[t])
    return b"".join(out)


def _dec_scalar(p: _F, r: Reader, flex: bool):
    k = p.ktype
    if k in _INT:
        return r.unpack(_INT[k])
    if k == "bool":
        b = r.take(1)[0]
        if b > 1:
            raise WireError(f"{p.name}: boolean byte {b}")
        return b == 1
    if k == "uuid":
        return uuid.UUID(bytes=r.take(16))
    if flex and not p.client_id:
        n = r.uvarint() - 1
    else:
        n = r.unpack("h" if k == "string" else "i")
    if n == -1:
        if not p.nullable and not (p.array and not p.struct) and k != "records":
            raise WireError(f"{p.name}: null in a field that may not be null")
        return None
    raw = r.take(n)
    return raw.decode() if k == "string" else raw


def _dec_value(p: _F, r: Reader, flex: bool):
    if p.array:
        n = r.uvarint() - 1 if flex else r.unpack("i")
        if n == -1:
            if not p.nullable:
                raise WireError(f"{p.name}: null array in a field that may not be null")
            return None
        if n < 0 or n > r.left:
            raise WireError(f"{p.name}: array length {n}")
        return [_dec_struct(p.struct, r) if p.struct else _dec_scalar(p, r, flex) for _ in range(n)]
    if p.struct:
        if p.nullable and r.unpack("b") < 0:
            return None
        return _dec_struct(p.struct, r)
    return _dec_scalar(p, r, flex)


def _dec_struct(cls, r: Reader) -> Obj:
    plan, flex = _plan(cls), cls.__flexible__
    d = {}
    for p in plan:
        d[p.name] = (
            _dec_value(p, r, flex)
            if p.tag is None
            else (None if p.struct and p.nullable else _zero(p))
        )
    if flex:
        by_tag = {int(p.tag): p for p in plan if p.tag is not None}
        unknown = {}
        for _ in range(r.uvarint()):
            t, size = r.uvarint(), r.uvarint()
            sub = Reader(r.take(size))
            if t in by_tag:
                d[by_tag[t].name] = _dec_value(by_tag[t], sub, flex)
                if sub.left:
                    raise WireError(f"tag {t}: {sub.left} bytes too many")
            else:
                unknown[t] = sub.d
        if unknown:
            d["_tags"] = unknown
    return Obj(d)


def key_of(api) -> int:
    return api if isinstance(api, int) else API[api]


def encode_body(api, version: int, body=None, **kw) -> bytes:
    """Only the request body."""
    cls = load_request_schema(key_of(api), version)
    return _enc_struct(api_key_map[key_of(api)], cls, {**(body or {}), **kw})


def encode_request(
    api, version: int, corr: int, client_id, body=None, header_tags=None, **kw
) -> bytes:
    """Header and body, without the length prefix."""
    cls = load_request_schema(key_of(api), version)
    head = struct.pack(">hhi", key_of(api), version, corr)
    cid = None if client_id is None else client_id.encode()
    head += struct.pack(">h", -1) if cid is None else struct.pack(">h", len(cid)) + cid
    if cls.__header_schema__.__version__ >= 2:
        tags = header_tags or {}
        head += uvarint(len(tags)) + b"".join(
            uvarint(t) + uvarint(len(v)) + v for t, v in sorted(tags.items())
        )
    return head + encode_body(api, version, body, **kw)


def decode_response(api, version: int, frame: bytes):
    """(correlation id, Obj); every byte of the frame must be used."""
    cls = load_response_schema(key_of(api), version)
    r = Reader(frame)
    corr = r.unpack("i")
    if cls.__header_schema__.__version__ >= 1:
        for _ in range(r.uvarint()):
            r.uvarint()
            r.take(r.uvarint())
    obj = _dec_struct(cls, r)
    if r.left:
        raise WireError(f"{api} v{version}: {r.left} bytes left over after the reply")
    return corr, obj


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


# ------------------------------------------------------------------------------------------------------ connection


def parse_hostport(s: str):
    host, port = s.rsplit(":", 1)
    return host.strip("[]"), int(port)


_DEFAULT_CLIENT = "checks"


class Conn:
    """One TCP (or TLS) connection.  `send` asks and waits; `post` only asks; `recv` reads the next reply in order."""

    def __init__(
        self,
        bootstrap: str,
        client_id: str | None = _DEFAULT_CLIENT,
        timeout: float = 15.0,
        tls: _ssl.SSLContext | bool | None = None,
        sasl=None,
    ):
        self.bootstrap, self.client_id, self.timeout = bootstrap, client_id, timeout
        host, port = parse_hostport(bootstrap)
        self.sock = socket.create_connection((host, port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            if tls is True:
                tls = _ssl.create_default_context()
                tls.check_hostname, tls.verify_mode = False, _ssl.CERT_NONE
            self.sock = tls.wrap_socket(self.sock, server_hostname=host)
        self.corr = 0
        self.pending: list[tuple[int, object, int]] = []
        self.buf = b""
        if sasl:
            self.sasl(*sasl)

    # -- raw level
    def send_raw(self, data: bytes):
        self.sock.sendall(data)

    def send_frame(self, payload: bytes):
        self.sock.sendall(frame(payload))

    def recv_exact(self, n: int, timeout: float | None = None) -> bytes:
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while len(self.buf) < n:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(
                    f"no answer within {self.timeout if timeout is None else timeout} s"
                )
            self.sock.settimeout(left)
            try:
                chunk = self.sock.recv(1 << 20)
            except TimeoutError:
                raise TimeoutError(
                    f"no answer within {self.timeout if timeout is None else timeout} s"
                ) from None
            except (ConnectionError, _ssl.SSLError, OSError) as e:
                raise Closed(f"connection lost: {e!r}") from None
            if not chunk:
                raise Closed("connection closed by the peer")
            self.buf += chunk
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def recv_frame(self, timeout: float | None = None) -> bytes:
        """The payload of the next frame (no length prefix). Raises Closed / TimeoutError."""
        n = struct.unpack(">i", self.recv_exact(4, timeout))[0]
        if n < 0 or n > 200 << 20:
            raise WireError(f"frame length {n}")
        return self.recv_exact(n, timeout)

    def closed_within(self, seconds: float) -> bool:
        """True when the peer closes (or resets) within that time without sending another byte."""
        try:
            self.recv_exact(1, seconds)
        except Closed:
            return True
        except TimeoutError:
            return False
        return False

    # -- message level
    def post(
        self, api, version: int, body=None, client_id=..., header_tags=None, expect_reply=True, **kw
    ) -> int:
        """Send without waiting. Returns the correlation id. Use expect_reply=False for acks=0 and the like."""
        self.corr += 1
        corr = self.corr
        self.send_frame(
            encode_request(
                api,
                version,
                corr,
                self.client_id if client_id is ... else client_id,
                body,
                header_tags,
                **kw,
            )
        )
        if expect_reply:
            self.pending.append((corr, api, version))
        return corr

    def recv(self, timeout: float | None = None) -> Obj:
        """The reply to the oldest request still open on this connection."""
        corr, api, version = self.pending[0]
        payload = self.recv_frame(timeout)
        self.pending.pop(0)
        got, obj = decode_response(api, version, payload)
        if got != corr:
            raise WireError(f"{api} v{version}: correlation id {got}, expected {corr}")
        return obj

    def send(self, api, version: int, body=None, timeout: float | None = None, **kw) -> Obj:
        assert not self.pending, "send() with replies outstanding; use post()/recv()"
        self.post(api, version, body, **kw)
        return self.recv(timeout)

    def no_reply_within(self, seconds: float) -> bool:
        """True when nothing at all arrives in that time (the connection stays open)."""
        if self.buf:
            return False
        try:
            b = self.recv_exact(1, seconds)
        except TimeoutError:
            return True
        except Closed:
            return False
        self.buf = b + self.buf
        return False

    def versions(self) -> dict[int, tuple[int, int]]:
        r = self.send("api_versions", 0)
        assert r.error_code == 0
        return {k.api_key: (k.min_version, k.max_version) for k in r.api_keys}

    # -- SASL
    def sasl(self, mechanism: str, user: str, password: str):
        """Log in with SaslHandshake v1 + SaslAuthenticate v2; raises WireError when refused."""
        r = self.send("sasl_handshake", 1, mechanism=mechanism)
        if r.error_code:
            raise WireError(f"SaslHandshake: error {r.error_code}, mechanisms {r.mechanisms}")
        if mechanism == "PLAIN":
            r = self.send("sasl_authenticate", 2, auth_bytes=f"\0{user}\0{password}".encode())
            if r.error_code:
                raise WireError(f"SaslAuthenticate: error {r.error_code} {r.error_message}")
            return r
        s = Scram(mechanism, user, password)
        r = self.send("sasl_authenticate", 2, auth_bytes=s.first())
        if r.error_code:
            raise WireError(f"SaslAuthenticate 1: error {r.error_code} {r.error_message}")
        r = self.send("sasl_authenticate", 2, auth_bytes=s.final(r.auth_bytes))
        if r.error_code:
            raise WireError(f"SaslAuthenticate 2: error {r.error_code} {r.error_message}")
        s.verify(r.auth_bytes)
        return r

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *a):
        self.close()


class Scram:
    """Client side of SCRAM-SHA-256/512. `nonce_in_final` can be changed to try odd clients."""

    def __init__(self, mechanism: str, user: str, password: str):
        self.h = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[mechanism]
        self.user, self.password = user, password
        self.nonce = base64.b64encode(os.urandom(18)).decode()

    def first(self) -> bytes:
        name = self.user.replace("=", "=3D").replace(",", "=2C")
        self.first_bare = f"n={name},r={self.nonce}"
        return ("n,," + self.first_bare).encode()

    def final(self, server_first: bytes, nonce=None, spoil_proof=False) -> bytes:
        self.server_first = server_first.decode()
        self.parts = dict(p.split("=", 1) for p in self.server_first.split(","))
        assert self.parts["r"].startswith(self.nonce) and len(self.parts["r"]) > len(self.nonce), (
            self.parts
        )
        salt, self.iterations = base64.b64decode(self.parts["s"]), int(self.parts["i"])
        salted = hashlib.pbkdf2_hmac(self.h, self.password.encode(), salt, self.iterations)
        ckey = hmac.digest(salted, b"Client Key", self.h)
        without = (
            "c="
            + base64.b64encode(b"n,,").decode()
            + ",r="
            + (self.parts["r"] if nonce is None else nonce)
        )
        auth = ",".join([self.first_bare, self.server_first, without]).encode()
        sig = hmac.digest(hashlib.new(self.h, ckey).digest(), auth, self.h)
        proof = bytes(a ^ b for a, b in zip(ckey, sig))
        if spoil_proof:
            proof = bytes([proof[0] ^ 1]) + proof[1:]
        self.server_sig = hmac.digest(hmac.digest(salted, b"Server Key", self.h), auth, self.h)
        return (without + ",p=" + base64.b64encode(proof).decode()).encode()

    def verify(self, server_final: bytes):
        want = "v=" + base64.b64encode(self.server_sig).decode()
        if server_final.decode() != want:
            raise WireError(f"server signature {server_final!r}, expected {want!r}")


# ---------------------------------------------------------------------------------------------------- record batches

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def _compress(codec: int, data: bytes) -> bytes:
    if codec == 0:
        return data
    if codec == 1:
        return gzip.compress(data)
    if codec == 2:
        import cramjam

        block = bytes(cramjam.snappy.compress_raw(data))
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    if codec == 3:
        import lz4.frame

        return lz4.frame.compress(data)
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def _decompress(codec: int, data: bytes) -> bytes:
    if codec == 0:
        return data
    if codec == 1:
        return gzip.decompress(data)
    if codec == 2:
        import cramjam

        if data[:8] != b"\x82SNAPPY\x00":
            return bytes(cramjam.snappy.decompress_raw(data))
        out, p = b"", 16
        while p < len(data):
            n = struct.unpack(">i", data[p : p + 4])[0]
            out += bytes(cramjam.snappy.decompress_raw(data[p + 4 : p + 4 + n]))
            p += 4 + n
        return out
    if codec == 3:
        import lz4.frame

        return lz4.frame.decompress(data)
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def now_ms() -> int:
    return int(time.time() * 1000)


def record(offset_delta: int, ts_delta: int, key, value, headers=()) -> bytes:
    def vb(b):
        if isinstance(b, str):
            b = b.encode()
        return svarint(-1) if b is None else svarint(len(b)) + b

    body = (
        b"\x00"
        + svarint(ts_delta)
        + svarint(offset_delta)
        + vb(key)
        + vb(value)
        + svarint(len(headers))
    )
    for k, v in headers:
        k = k.encode() if isinstance(k, str) else k
        body += svarint(len(k)) + k + vb(v)
    return svarint(len(body)) + body


def batch(
    records,
    *,
    base_offset=0,
    leader_epoch=-1,
    codec=0,
    ts=None,
    producer_id=-1,
    epoch=-1,
    seq=-1,
    transactional=False,
    control=False,
    log_append=False,
    attributes=None,
    max_timestamp=None,
    last_offset_delta=None,
    count=None,
    offset_deltas=None,
    magic=2,
    crc=None,
    raw_records=None,
) -> bytes:
    """One v2 record batch.

    records: bytes/str values, or (key, value), (key, value, ts) or (key, value, ts, headers) tuples.
    Everything in the header can be overridden to make bad batches.  The CRC is computed unless given.
    """
    ts = now_ms() if ts is None else ts
    rows = []
    for r in records:
        if not isinstance(r, tuple):
            r = (None, r)
        k, v, t, h = (r + (None,) * 4)[:4]
        rows.append((k, v, ts if t is None else t, h or ()))
    base_ts = rows[0][2] if rows else ts
    max_ts = max([t for _, _, t, _ in rows], default=ts) if max_timestamp is None else max_timestamp
    payload = (
        b"".join(
            record(i if offset_deltas is None else offset_deltas[i], t - base_ts, k, v, h)
            for i, (k, v, t, h) in enumerate(rows)
        )
        if raw_records is None
        else raw_records
    )
    if isinstance(codec, str):
        codec = CODECS[codec]
    attrs = codec | (8 if log_append else 0) | (16 if transactional else 0) | (32 if control else 0)
    attrs = attrs if attributes is None else attributes
    body = struct.pack(
        ">hiqqqhii",
        attrs,
        len(rows) - 1 if last_offset_delta is None else last_offset_delta,
        base_ts,
        max_ts,
        producer_id,
        epoch,
        seq,
        len(rows) if count is None else count,
    )
    body += _compress(codec, payload)
    crc = _crc32c.crc32c(body) if crc is None else crc
    return struct.pack(">qiibI", base_offset, len(body) + 9, leader_epoch, magic, crc) + body


def parse_batches(data: bytes | None, partial_ok: bool = True) -> list[Obj]:
    """Split fetched bytes into batches; checks magic and CRC, decodes the records.

    A cut-off batch at the end is dropped (partial_ok) as clients do.
    """
    out, p = [], 0
    data = data or b""
    while p < len(data):
        if p + 12 > len(data) or p + 12 + struct.unpack_from(">i", data, p + 8)[0] > len(data):
            if partial_ok:
                break
            raise WireError("cut-off batch at the end")
        base, length, lepoch, magic, crc = struct.unpack_from(">qiibI", data, p)
        if magic != 2:
            raise WireError(f"magic {magic}")
        body = data[p + 21 : p + 12 + length]
        if _crc32c.crc32c(body) != crc:
            raise WireError(f"batch at offset {base}: wrong CRC")
        attrs, last, bts, mts, pid, ep, seq, n = struct.unpack_from(">hiqqqhii", body)
        b = Obj(
            {
                "base_offset": base,
                "last_offset": base + last,
                "length": length + 12,
                "leader_epoch": lepoch,
                "attributes": attrs,
                "codec": attrs & 7,
                "log_append": bool(attrs & 8),
                "transactional": bool(attrs & 16),
                "control": bool(attrs & 32),
                "base_timestamp": bts,
                "max_timestamp": mts,
                "producer_id": pid,
                "epoch": ep,
                "seq": seq,
                "count": n,
                "records": [],
                "raw": data[p : p + 12 + length],
            }
        )
        r = Reader(_decompress(attrs & 7, body[40:]))
        for _ in range(n):
            size = r.svarint()
            end = r.p + size
            r.take(1)
            td, od = r.svarint(), r.svarint()
            kl = r.svarint()
            k = None if kl < 0 else r.take(kl)
            vl = r.svarint()
            v = None if vl < 0 else r.take(vl)
            hs = []
            for _ in range(r.svarint()):
                hk = r.take(r.svarint())
                hl = r.svarint()
                hs.append((hk.decode(), None if hl < 0 else r.take(hl)))
            if r.p != end:
                raise WireError("record length does not match")
            b.records.append(
                Obj(
                    {
                        "offset": base + od,
                        "ts": mts if b.log_append else bts + td,
                        "key": k,
                        "value": v,
                        "headers": hs,
                    }
                )
            )
        out.append(b)
        p += 12 + length
    return out


# --------------------------------------------------------------------------------------------------- common actions


def retry(fn, ok, seconds: float = 15.0, pause: float = 0.1):
    """Call fn until ok(result); returns the last result (also when time ran out)."""
    end = time.monotonic() + seconds
    while True:
        r = fn()
        if ok(r) or time.monotonic() > end:
            return r
        time.sleep(pause)


def create_topic(
    c: Conn, name: str, partitions: int = 1, configs: dict | None = None, rf: int = 1
) -> str:
    """CreateTopics v5, then wait until every partition has a leader that answers ListOffsets."""
    r = c.send(
        "create_topics",
        5,
        timeout_ms=10000,
        validate_only=False,
        topics=[
            {
                "name": name,
                "num_partitions": partitions,
                "replication_factor": rf,
                "assignments": [],
                "configs": [{"name": k, "value": str(v)} for k, v in (configs or {}).items()],
            }
        ],
    )
    assert r.topics[0].error_code == 0, r
    wait_topic(c, name, partitions)
    return name


def wait_topic(c: Conn, name: str, partitions: int = 1, seconds: float = 15.0):
    def probe():
        return [list_offset(c, name, p, -1).error_code for p in range(partitions)]

    codes = retry(probe, lambda x: not any(x), seconds)
    assert not any(codes), f"{name}: not ready, error codes {codes}"


def delete_topic(c: Conn, name: str) -> int:
    return c.send("delete_topics", 5, topic_names=[name], timeout_ms=10000).responses[0].error_code


def list_offset(
    c: Conn,
    topic: str,
    partition: int = 0,
    timestamp: int = -1,
    version: int = 7,
    isolation: int = 0,
) -> Obj:
    """ListOffsets for one partition -> Obj(error_code, timestamp, offset, leader_epoch)."""
    r = c.send(
        "list_offsets",
        version,
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": partition,
                        "current_leader_epoch": -1,
                        "timestamp": timestamp,
                    }
                ],
            }
        ],
    )
    return r.topics[0].partitions[0]


def latest(c: Conn, topic: str, partition: int = 0, isolation: int = 0) -> int:
    p = list_offset(c, topic, partition, -1, isolation=isolation)
    assert p.error_code == 0, p
    return p.offset


def earliest(c: Conn, topic: str, partition: int = 0) -> int:
    p = list_offset(c, topic, partition, -2)
    assert p.error_code == 0, p
    return p.offset


def produce(
    c: Conn,
    topic: str,
    partition: int,
    records: bytes,
    acks: int = -1,
    version: int = 9,
    transactional_id=None,
    timeout_ms: int = 10000,
    retry_not_ready: bool = False,
) -> Obj:
    """Produce bytes to one partition -> Obj(error_code, base_offset, log_append_time, ...). By name: version <= 12."""

    def once():
        r = c.send(
            "produce",
            version,
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[
                {"name": topic, "partition_data": [{"index": partition, "records": records}]}
            ],
        )
        return r.responses[0].partition_responses[0]

    return retry(once, lambda x: x.error_code not in (3, 6), 10) if retry_not_ready else once()


def fetch(
    c: Conn,
    topic: str,
    partition: int = 0,
    offset: int = 0,
    version: int = 11,
    isolation: int = 0,
    max_wait_ms: int = 500,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 10 << 20,
) -> Obj:
    """Sessionless fetch of one partition by name (version <= 12) -> partition Obj; `.batches` holds parsed batches."""
    r = c.send(
        "fetch",
        version,
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        rack_id="",
        forgotten_topics_data=[],
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {
                        "partition": partition,
                        "current_leader_epoch": -1,
                        "fetch_offset": offset,
                        "last_fetched_epoch": -1,
                        "log_start_offset": -1,
                        "partition_max_bytes": partition_max_bytes,
                    }
                ],
            }
        ],
    )
    assert r.get("error_code", 0) == 0, r
    p = r.responses[0].partitions[0]
    p.batches = parse_batches(p.records)
    return p


def fetch_all(
    c: Conn, topic: str, partition: int = 0, offset: int = 0, isolation: int = 0
) -> list[Obj]:
    """All batches from offset to the end."""
    out = []
    while True:
        p = fetch(c, topic, partition, offset, isolation=isolation, max_wait_ms=0, min_bytes=0)
        assert p.error_code == 0, p
        if not p.batches:
            return out
        out += p.batches
        offset = p.batches[-1].last_offset + 1


def values(batches, committed_only_aborted=None) -> list[bytes]:
    """Values of all data records in batches (control batches skipped)."""
    return [r.value for b in batches if not b.control for r in b.records]


def read_committed(p_batches, aborted) -> list[Obj]:
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


def find_coordinator(c: Conn, key: str, key_type: int = 0, seconds: float = 20.0) -> Obj:
    """FindCoordinator v3, waiting out 15 (not available) -> Obj(error_code, node_id, host, port)."""
    r = retry(
        lambda: c.send("find_coordinator", 3, key=key, key_type=key_type),
        lambda x: x.error_code != COORDINATOR_NOT_AVAILABLE,
        seconds,
        0.2,
    )
    assert r.error_code == 0, r
    return r


_LOADING = (LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


def group_ready(c: Conn, group: str, seconds: float = 30.0):
    """Wait until the coordinator for this group serves (does not create the group)."""
    find_coordinator(c, group, 0, seconds)
    r = retry(
        lambda: c.send("offset_fetch", 5, group_id=group, topics=[]),
        lambda x: x.error_code not in _LOADING,
        seconds,
        0.2,
    )
    assert r.error_code == 0, r


def txn_ready(c: Conn, tid: str, seconds: float = 30.0):
    """Wait until the coordinator for this transactional id serves (does not create it)."""
    find_coordinator(c, tid, 1, seconds)
    r = retry(
        lambda: c.send("describe_transactions", 0, transactional_ids=[tid]),
        lambda x: x.transaction_states[0].error_code not in _LOADING,
        seconds,
        0.2,
    )
    assert r.transaction_states[0].error_code not in _LOADING, r


def init_producer(
    c: Conn,
    tid=None,
    timeout_ms: int = 60000,
    version: int = 4,
    producer_id: int = -1,
    epoch: int = -1,
    seconds: float = 20.0,
) -> Obj:
    """InitProducerId, waiting out 14/15/16/51 -> Obj(error_code, producer_id, producer_epoch)."""
    return retry(
        lambda: c.send(
            "init_producer_id",
            version,
            transactional_id=tid,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        ),
        lambda x: x.error_code not in _LOADING + (CONCURRENT_TRANSACTIONS,),
        seconds,
        0.1,
    )


def wait_up(bootstrap: str, seconds: float = 60.0):
    """Wait until the broker at this address answers ApiVersions and Metadata."""
    end, err = time.monotonic() + seconds, None
    while time.monotonic() < end:
        try:
            with Conn(bootstrap, timeout=3) as c:
                if (
                    c.send("api_versions", 0).error_code == 0
                    and c.send("metadata", 1, topics=[]).brokers
                ):
                    return
        except (OSError, WireError) as e:
            err = e
        time.sleep(0.3)
    raise AssertionError(f"broker {bootstrap} not up within {seconds} s: {err!r}")
