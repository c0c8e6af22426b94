"""Records as text: kcat's format strings, JSON lines, keys and values beside each other.

Tokens of a format string, as kcat has them:

    %s value   %S its bytes, -1 for null   %k key   %K its bytes, -1 for null
    %t topic   %p partition   %o offset    %T timestamp in milliseconds   %h headers, name=value,...
    %% a per cent sign   \\n \\r \\t \\\\   \\xNN \\NNN a byte in hexadecimal or octal digits

The same string reads: `%k`, `%s`, `%h`, `%T` and `%p` are taken from a line, split at what stands
between them; the last one has the rest of the line.

A JSON record is `{"key": ..., "value": ..., "headers": [[name, value], ...], "timestamp": ms,
"partition": n}`, and with `topic` and `offset` when it is read from a topic. Keys and values are
text, null, or `{"base64": "..."}` where they are not UTF-8. What is read may leave out any of
these; any other JSON in their place is kept as compact JSON text.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import json
import re
from collections.abc import Callable, Sequence

from kwire.cli import exact_json
from kwire.cli.output import Json
from kwire.cli.records import Consumed, Header, Outgoing
from kwire.client.errors import ClientError

JSON_FORMAT = "json"
TOKENS = "sSkKtpoTh"
READABLE = "skhTp"
NULL_HEADER = b"NULL"
TIMESTAMP_MAX = (1 << 63) - 1
PARTITION_MAX = (1 << 31) - 1
_JSON_NAMES = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.S)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}

Show = Callable[[Consumed], bytes]
Read = Callable[[bytes], Outgoing]


def parse_format(text: str) -> list[str | bytes]:
    """A format string as tokens (one letter, str) and what stands between them (bytes)."""
    parts: list[str | bytes] = []
    literal = b""
    position = 0
    while position < len(text):
        letter = text[position]
        if letter != "%":
            end = text.find("%", position)
            end = len(text) if end < 0 else end
            literal += unescape(text[position:end].encode(errors="surrogateescape"))
            position = end
            continue
        token = text[position + 1 : position + 2]
        position += 2
        if token == "%":
            literal += b"%"
        elif token and token in TOKENS:
            if literal:
                parts.append(literal)
                literal = b""
            parts.append(token)
        else:
            raise ClientError(f"%{token} is no token of a format: %{', %'.join(TOKENS)}, %%")
    if literal:
        parts.append(literal)
    return parts


def unescape(text: bytes) -> bytes:
    """`\\n`, `\\t`, `\\x41`, `\\101` and the like as the bytes they mean."""

    def byte_of(found: re.Match[bytes]) -> bytes:
        name = found[1]
        if name[:1] == b"x" and len(name) > 1:
            return bytes([int(name[1:], 16)])
        if name[:1] in b"01234567":
            return bytes([int(name, 8) & 0xFF])
        return _ESCAPED.get(name, name)

    return _ESCAPE.sub(byte_of, text)


# -- out


def show_format(text: str, null: bytes = b"") -> Show:
    """Records by a format string; `null` stands for a null key or value."""
    makers = [
        part if isinstance(part, bytes) else _maker(part, null) for part in parse_format(text)
    ]

    def show(consumed: Consumed) -> bytes:
        return b"".join(make if isinstance(make, bytes) else make(consumed) for make in makers)

    return show


def _maker(token: str, null: bytes) -> Show:
    makers: dict[str, Show] = {
        "s": lambda x: _bytes(x.record.value, null),
        "S": lambda x: b"%d" % _size(x.record.value),
        "k": lambda x: _bytes(x.record.key, null),
        "K": lambda x: b"%d" % _size(x.record.key),
        "t": lambda x: x.topic.encode(),
        "p": lambda x: b"%d" % x.partition,
        "o": lambda x: b"%d" % x.record.offset,
        "T": lambda x: b"%d" % x.record.timestamp,
        "h": lambda x: headers_text(x.record.headers, null),
    }
    return makers[token]


def headers_text(headers: Sequence[Header], null: bytes = b"") -> bytes:
    """`name=value,name=value`; a null is NULL where nothing else stands for it (as with kcat)."""
    null = null or NULL_HEADER
    return b",".join(
        (name.encode() if isinstance(name, str) else bytes(name)) + b"=" + _bytes(value, null)
        for name, value in headers
    )


def _bytes(value: bytes | None, null: bytes) -> bytes:
    return null if value is None else bytes(value)


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def show_json(consumed: Consumed) -> bytes:
    """A record as a line of JSON."""
    record = consumed.record
    shown = {
        "topic": consumed.topic,
        "partition": consumed.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [
            [json_value(name.encode() if isinstance(name, str) else name), json_value(value)]
            for name, value in record.headers
        ],
    }
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def json_value(value: bytes | None) -> Json:
    """A key or value as JSON has it."""
    if value is None:
        return None
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


# -- in


def read_json(line: bytes) -> Outgoing:
    """A record of a line of JSON; ClientError for anything else."""
    try:
        found = exact_json.load(line)
    except (ValueError, RecursionError) as error:
        raise ClientError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ClientError('expected an object such as {"key": "k", "value": "v"}')
    unknown = [name for name in found if name not in _JSON_NAMES]
    if unknown:
        raise ClientError(f"{unknown[0]} is none of a record's {', '.join(_JSON_NAMES)}")
    return Outgoing(
        key=_from_json(found.get("key")),
        value=_from_json(found.get("value")),
        headers=tuple(_headers_from_json(found.get("headers"))),
        timestamp=_number("timestamp", found.get("timestamp"), TIMESTAMP_MAX),
        partition=_number("partition", found.get("partition"), PARTITION_MAX),
    )


def _from_json(value: Json) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, dict) and list(value) == ["base64"]:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise ClientError("base64 holds no base64") from None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    # A lone surrogate has no UTF-8; it is kept as the three bytes that stand for it.
    return text.encode("utf-8", "surrogatepass")


def _headers_from_json(value: Json) -> list[Header]:
    entries = list(value.items()) if isinstance(value, dict) else value or []
    if not isinstance(entries, list):
        raise ClientError("headers are a list of [name, value]")
    headers: list[Header] = []
    for entry in entries:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2 or entry[0] is None:
            raise ClientError("headers are a list of [name, value]")
        name = _from_json(entry[0]) or b""
        headers.append((_text_or_bytes(name), _from_json(entry[1])))
    return headers


def _number(name: str, value: Json, largest: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ClientError(f"{name} is a number from 0 to {largest}")
    return value


def read_line(separator: bytes | None, null: bytes | None = None) -> Read:
    """A line is a value, or a key and a value where `separator` is in it; `null` means none."""

    def read(line: bytes) -> Outgoing:
        key: bytes | None = None
        if separator and separator in line:
            key, _, line = line.partition(separator)
        return Outgoing(_unless(null, key), _unless(null, line))

    return read


def read_format(text: str, null: bytes | None = None) -> Read:
    """Lines by a format string; ClientError for one that cannot be read."""
    parts = parse_format(text)
    if parts and isinstance(parts[-1], bytes):
        parts[-1] = parts[-1].removesuffix(b"\n")
        parts = [part for part in parts if part != b""]
    tokens = [part for part in parts if isinstance(part, str)]
    unreadable = [token for token in tokens if token not in READABLE]
    if unreadable:
        raise ClientError(f"%{unreadable[0]} is not read; there are %{', %'.join(READABLE)}")
    if len(dict.fromkeys(tokens)) != len(tokens):
        raise ClientError(f"{text}: a token is there twice")
    for left, right in itertools.pairwise(parts):
        if isinstance(left, str) and isinstance(right, str):
            raise ClientError(f"%{left}%{right}: nothing tells where one ends")

    def read(line: bytes) -> Outgoing:
        fields = _split(line, parts)
        return Outgoing(
            key=_unless(null, fields.get("k")),
            value=_unless(null, fields.get("s")),
            headers=_headers_of(fields.get("h", b""), null),
            timestamp=_digits("%T", fields.get("T"), TIMESTAMP_MAX),
            partition=_digits("%p", fields.get("p"), PARTITION_MAX),
        )

    return read


def _split(line: bytes, parts: Sequence[str | bytes]) -> dict[str, bytes]:
    """What stands in a line for each token; ClientError where the line is another one."""
    fields: dict[str, bytes] = {}
    waiting: str | None = None
    for part in parts:
        if isinstance(part, str):
            waiting = part
            continue
        before, found, line = line.partition(part)
        if not found or (waiting is None and before):
            raise ClientError(f"expected {part.decode(errors='backslashreplace')!r} in it")
        if waiting is not None:
            fields[waiting], waiting = before, None
    if waiting is not None:
        fields[waiting] = line
    elif line:
        raise ClientError("there is more than the format has")
    return fields


def _headers_of(text: bytes, null: bytes | None) -> tuple[Header, ...]:
    headers = [header_of(entry) for entry in text.split(b",")] if text else []
    return tuple((name, _unless(null, value)) for name, value in headers)


def header_of(text: bytes) -> Header:
    """`name=value`; without `=` the value is null."""
    name, equals, value = text.partition(b"=")
    if not name:
        raise ClientError(f"{text.decode(errors='backslashreplace')}: expected NAME=VALUE")
    return _text_or_bytes(name), value if equals else None


def _text_or_bytes(name: bytes) -> str | bytes:
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name


def _digits(name: str, text: bytes | None, largest: int) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or len(text) > 19 or int(text) > largest:
        shown = text[:40].decode(errors="backslashreplace")
        raise ClientError(f"{name} is a number from 0 to {largest}, not {shown!r}")
    return int(text)


def _unless(null: bytes | None, value: bytes | None) -> bytes | None:
    return None if value == null else value
