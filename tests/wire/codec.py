"""kio's message shapes as bytes and back, strictly and in plain integers.

Error codes, times (ms) and durations (ms) are ints, UUIDs are uuid.UUID, arrays are lists, structs are `Obj`
(attribute access). Nothing here hides what is on the wire: a reply that has too few or too many bytes raises.

Field names are kio's (snake case; durations have no `_ms` suffix, but `session_timeout_ms` is accepted for
`session_timeout`). A field that this version lacks but another version of the same API has is left out silently, so a
loop over versions can pass one set of fields; a name that no version has raises. Fields not given get their default or
zero.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import MISSING, is_dataclass
from dataclasses import fields as dc_fields
from functools import lru_cache
from types import NoneType, UnionType
from typing import get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map

from tests.support.frames import WireError

API = {name: key for key, name in api_key_map.items()}
ZERO_UUID = uuid.UUID(int=0)
DEFAULT_CLIENT = "checks"


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
    """Zig-zag."""
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
    api, version: int, corr: int, client_id=DEFAULT_CLIENT, body=None, header_tags=None, **kw
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
    if cls.__header_schema__.__version__ >= 1 and r.uvarint():
        raise WireError(f"{api} v{version}: tags in the header of a reply")
    obj = _dec_struct(cls, r)
    if r.left:
        raise WireError(f"{api} v{version}: {r.left} bytes left over after the reply")
    return corr, obj
