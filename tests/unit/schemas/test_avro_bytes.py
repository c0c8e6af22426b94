"""What decodes by an Avro schema: everything its encoder writes, nothing that is cut or longer."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("avro")

import avro.io
import avro.schema

from kwire.schemas.formats import avro_json
from kwire.schemas.formats.json_text import Json
from kwire.schemas.validation.allowance import Allowance, AllowanceSpentError, of_record
from kwire.schemas.validation.avro_bytes import DEPTH_MAX, UndecodableError, check

STEPS = 10**9
ALL = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "i", "type": "int"},
        {"name": "l", "type": "long"},
        {"name": "d", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "b", "type": "boolean"},
        {"name": "s", "type": "string"},
        {"name": "y", "type": "bytes"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "x", "type": {"type": "fixed", "name": "X", "size": 3}},
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "m", "type": {"type": "map", "values": ["null", "string"]}},
        {"name": "r", "type": ["null", "R"]},
    ],
}
SCHEMA = avro.schema.parse(json.dumps(ALL))
# JSON has one NaN: of a NaN's other bits nothing is kept.
FLOATS = st.just(math.nan) | st.floats(allow_nan=False)
FLOATS_OF_32 = st.just(math.nan) | st.floats(width=32, allow_nan=False)
DATA: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.integers(-(2**63), 2**63 - 1),
        "d": FLOATS,
        "f": FLOATS_OF_32,
        "b": st.booleans(),
        "s": st.text(st.characters(exclude_categories=["Cs"])),
        "y": st.binary(),
        "e": st.sampled_from(["A", "B"]),
        "x": st.binary(min_size=3, max_size=3),
        "a": st.lists(st.integers(-5, 5)),
        "m": st.dictionaries(
            st.text("abc", max_size=3), st.none() | st.text("xyz", max_size=3), max_size=3
        ),
    }
)


def encoded(datum: object) -> bytes:
    out = io.BytesIO()
    avro.io.DatumWriter(SCHEMA).write(datum, avro.io.BinaryEncoder(out))
    return out.getvalue()


@settings(max_examples=60, deadline=None)
@given(DATA, st.none() | DATA, st.integers(0, 1000))
def test_what_avro_writes(outer: Any, inner: Any, cut: int) -> None:
    datum = {**outer, "r": None if inner is None else {**inner, "r": None}}
    data = encoded(datum)
    check(SCHEMA, data, 0, Allowance(STEPS))
    check(SCHEMA, b"head!" + data, 5, Allowance(STEPS))
    value = avro_json.decoded(SCHEMA, b"head!" + data, 5)
    assert avro_json.encoded(SCHEMA, value) == data
    with pytest.raises(UndecodableError, match="left over"):
        check(SCHEMA, data + b"\0", 0, Allowance(STEPS))
    with pytest.raises(UndecodableError):
        check(SCHEMA, data[: cut % len(data)], 0, Allowance(STEPS))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_are_an_answer(data: bytes) -> None:
    try:
        check(SCHEMA, data, 0, Allowance(STEPS))
    except UndecodableError:
        return
    avro.io.DatumReader(SCHEMA).read(avro.io.BinaryDecoder(io.BytesIO(data)))


WIDE = json.dumps(
    {
        "type": "record",
        "name": "W",
        "fields": [{"name": f"f{at}", "type": "null"} for at in range(2000)],
    }
)


@pytest.mark.parametrize("items", ['"null"', '{"type":"record","name":"N","fields":[]}'])
def test_a_million_items_of_no_bytes_are_not_looked_at(items: str) -> None:
    """They are counted in three bytes: looking at each would take a second."""
    schema = avro.schema.parse(f'{{"type":"array","items":{items}}}')
    for _ in range(1000):
        check(schema, b"\x80\x89\x7a\0", 0, Allowance(STEPS))


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        ('"null"', b"\0", "left over"),
        ('"boolean"', b"\2", "neither 0 nor 1"),
        ('"int"', b"\xff" * 9 + b"\1", "is no int"),
        ('"long"', b"\xff" * 10 + b"\1", "ten bytes"),
        ('"long"', b"\xff" * 9 + b"\x7f", "64 bits"),
        ('"string"', b"\2\xff", "UTF-8"),
        ('"bytes"', b"\1", "middle"),
        ('["null","int"]', b"\4", "none of the 2 branches"),
        ('{"type":"enum","name":"E","symbols":["A"]}', b"\2", "none of the 1 symbols"),
        ('{"type":"array","items":"null"}', b"\x80\x80\x80\x80\x80\x40\0", "items"),
        (
            '{"type":"record","name":"N","fields":[{"name":"n","type":["N"]}]}',
            bytes(9000),
            "deeper than 10000 levels",
        ),
    ],
)
def test_bounds(schema: str, data: bytes, why: str) -> None:
    with pytest.raises(UndecodableError, match=why):
        check(avro.schema.parse(schema), data, 0, Allowance(STEPS))


def test_records_of_nothing_that_double_at_each_level_are_looked_at_once() -> None:
    """9^9 ways lead to the last of them; each block of an array looks whether items are empty."""
    inner: object = {"type": "record", "name": "R9", "fields": [{"name": "x", "type": "null"}]}
    for at in reversed(range(9)):
        names = [{"name": f"f{n}", "type": f"R{at + 1}"} for n in range(8)]
        fields = [{"name": "a", "type": inner}, *names]
        inner = {"type": "record", "name": f"R{at}", "fields": fields}
    schema = avro.schema.parse(json.dumps({"type": "array", "items": inner}))
    check(schema, b"\x02" * 100 + b"\0", 0, Allowance(1000))


def test_more_values_than_the_allowance_has_are_not_looked_at() -> None:
    schema = avro.schema.parse('{"type":"array","items":"int"}')
    with pytest.raises(AllowanceSpentError):
        check(schema, b"\xc8\x01" + bytes(100) + b"\0", 0, Allowance(50))


def test_a_record_of_many_nulls_is_one() -> None:
    """It has no bytes, and 2,000 values."""
    schema = avro.schema.parse(WIDE)
    check(schema, b"", 0, Allowance(of_record(0)))
    with pytest.raises(AllowanceSpentError):
        check(schema, b"", 0, Allowance(2000))


def test_a_linked_list_is_read_as_deep_as_it_is_written() -> None:
    """Each link is a record and a union."""
    fields = [{"name": "next", "type": ["null", "N"]}]
    schema = avro.schema.parse(json.dumps({"type": "record", "name": "N", "fields": fields}))
    value: Json = {"next": None}
    for _ in range(avro_json.DEPTH_MAX // 2 - 1):
        value = {"next": {"N": value}}
    data = avro_json.encoded(schema, value)
    check(schema, data, 0, Allowance(of_record(len(data))))
    assert avro_json.decoded(schema, data) == value
    too_deep = {"next": {"N": value}}
    with pytest.raises(avro_json.NoDatumError, match="it nests deeper than the 200 levels"):
        avro_json.decoded(schema, b"\x02" + data)
    with pytest.raises(avro_json.NoDatumError, match="it nests deeper than 200 levels"):
        avro_json.encoded(schema, too_deep)


def test_a_linked_list_is_checked_to_its_end() -> None:
    """4,900 links, and the rest of each record behind all of them."""
    links = DEPTH_MAX // 2 - 100
    fields = [{"name": "next", "type": ["null", "N"]}, {"name": "n", "type": "int"}]
    schema = avro.schema.parse(json.dumps({"type": "record", "name": "N", "fields": fields}))
    data = b"\x02" * links + b"\0" + b"\x04" * (links + 1)
    check(schema, data, 0, Allowance(of_record(len(data))))
    with pytest.raises(UndecodableError, match="middle of a value"):
        check(schema, data[:-1], 0, Allowance(of_record(len(data))))
    with pytest.raises(UndecodableError, match="deeper than 10000 levels"):
        check(schema, b"\x02" * DEPTH_MAX, 0, Allowance(of_record(DEPTH_MAX)))
