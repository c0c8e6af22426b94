"""Avro's binary form: every type, by hand-made bytes; damage is an error, never a crash."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import pytest

from kwire.spark.avro import AvroError, compile_schema, decode
from kwire.spark.decoding import Checked, Checker, Undecodable, check_json, split_header


def long(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def string(text: str) -> bytes:
    return long(len(text.encode())) + text.encode()


RECORD = {
    "type": "record",
    "name": "Click",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "extra", "type": {"type": "map", "values": "double"}},
        {"name": "mac", "type": {"type": "fixed", "name": "Mac", "size": 2}},
        {"name": "parent", "type": ["null", "Click"]},
        {"name": "again", "type": "shop.Kind"},
    ],
}


def click(parent: bytes = long(0)) -> bytes:
    return (
        long(-5)
        + long(1)
        + string("ä")
        + long(1)
        + (long(-2) + long(9) + string("x") + string("y") + long(0))
        + (long(1) + string("k") + struct.pack("<d", 0.5) + long(0))
        + b"\xff\x00"
        + parent
        + long(0)
    )


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        ("null", b"", None),
        ("boolean", b"\1", True),
        ("int", long(-(1 << 31)), -(1 << 31)),
        ("long", long((1 << 63) - 1), (1 << 63) - 1),
        ("float", struct.pack("<f", 1.5), 1.5),
        ("double", struct.pack("<d", float("nan")), "nan"),
        ("bytes", long(2) + b"\x00\xff", "\x00\xff"),
        ("string", string("日本"), "日本"),
        ({"type": "long", "logicalType": "timestamp-millis"}, long(7), 7),
        ({"type": {"type": "array", "items": "int"}}, long(0), []),
    ],
)
def test_types(schema: Any, data: bytes, value: Any) -> None:
    assert decode(compile_schema(json.dumps(schema)), data) == value


def test_a_record_with_everything() -> None:
    reader = compile_schema(json.dumps(RECORD))
    value = decode(reader, click(long(1) + click()))
    assert value["parent"]["parent"] is None
    assert {**value, "parent": None} == {
        "id": -5,
        "user": "ä",
        "kind": "B",
        "tags": ["x", "y"],
        "extra": {"k": 0.5},
        "mac": "ÿ\x00",
        "parent": None,
        "again": "A",
    }


@pytest.mark.parametrize(
    ("schema", "data", "words"),
    [
        ("int", b"\1\1", "behind"),
        ("int", b"\x80", "too early"),
        ("long", b"\xff" * 11, "64 bits"),
        ("boolean", b"\2", "boolean"),
        ("string", long(-1), "bytes"),
        ("string", long(1 << 40), "bytes"),
        ("string", long(1) + b"\xff", "UTF-8"),
        (["null"], long(5), "branch"),
        ({"type": "array", "items": "null"}, long(1 << 40), "items"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, long(1), "symbol"),
    ],
)
def test_bytes_that_are_no_value(schema: Any, data: bytes, words: str) -> None:
    with pytest.raises(AvroError, match=words):
        decode(compile_schema(json.dumps(schema)), data)


@pytest.mark.parametrize("text", ["{", '"what"', "{}", '{"type": "fixed", "name": "f"}', "7"])
def test_schemas_that_are_none(text: str) -> None:
    with pytest.raises(AvroError):
        compile_schema(text)


def test_a_value_nested_without_end_is_refused() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}
    with pytest.raises(AvroError, match="nested"):
        decode(compile_schema(json.dumps(schema)), b"")


def test_damaged_values_are_errors_of_their_own() -> None:
    reader = compile_schema(json.dumps(RECORD))
    data = click(long(1) + click())
    rng = random.Random(1)
    for _ in range(2000):
        changed = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            decode(reader, bytes(changed[: rng.randrange(len(changed) + 1)]))
        except AvroError:
            pass


def test_the_registry_header() -> None:
    assert split_header(b"\0\0\0\1\2abc") == (258, b"abc")
    assert split_header(b"\1\0\0\1\2abc") == (None, b"\1\0\0\1\2abc")
    assert split_header(b"\0\0\0\1") == (None, b"\0\0\0\1")
    assert check_json(b'\0\0\0\0\1"x"') == Checked(1, None, '"x"')
    for value in (b"", b"{", b"NaN", b"\xff", b"[" * 100_000):
        with pytest.raises(Undecodable):
            check_json(value)


def test_schemas_of_a_folder(tmp_path: Any) -> None:
    (tmp_path / "1.avsc").write_text('"string"')
    (tmp_path / "2.avsc").write_text("{")
    schemas = Checker("avro", None, str(tmp_path))
    assert schemas.check(b"\0\0\0\0\1" + string("é")) == Checked(1)
    for value, words in (
        (b"\0\0\0\0\1\xff", "schema 1"),
        (b"\0\0\0\0\2", "schema 2"),
        (b"\0\0\0\0\3", "not known"),
        (b"text", "no schema id"),
    ):
        with pytest.raises(Undecodable, match=words):
            schemas.check(value)


def test_a_folder_of_schemas_that_are_none_is_a_reason_not_a_failure(tmp_path: Any) -> None:
    (tmp_path / "1.avsc").write_bytes(b"\xff\xfe")
    (tmp_path / "2.avsc").mkdir()
    half = {"type": "enum", "name": "e", "symbols": ["\ud800"]}
    (tmp_path / "3.avsc").write_text(json.dumps(half))
    schemas = Checker("avro", None, str(tmp_path))
    for schema_id, reason in ((1, "no JSON"), (2, "not known"), (3, "half a character")):
        with pytest.raises(Undecodable, match=reason):
            schemas.check(struct.pack(">bi", 0, schema_id) + b"\0")


def test_json_numbers_of_any_length_decode() -> None:
    text = "[" + "1" * 10_000 + ", 1." + "0" * 10_000 + "]"
    assert check_json(text.encode()) == Checked(None, None, text)
