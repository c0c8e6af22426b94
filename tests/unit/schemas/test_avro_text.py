"""The text of an Avro schema is the one that Avro for Java prints, so clients find theirs again."""

from __future__ import annotations

import json

import pytest

from kwire.schemas.formats import InvalidSchema, parse
from kwire.schemas.formats.json_text import Json

RECORD: Json = {
    "namespace": "shop",
    "aliases": ["Purchase", "old.Order"],
    "owner": "team",
    "fields": [
        {
            "type": ["null", {"size": 4, "name": "Hash", "type": "fixed"}],
            "name": "f",
            "default": None,
        },
        {"name": "g", "type": "shop.Hash", "doc": "again", "order": "ascending"},
        {"order": "ignore", "name": "h", "type": {"logicalType": "date", "type": "int"}},
        {"name": "next", "type": ["null", "Order"]},
        {"name": "d", "type": "double", "default": 1e10},
        {"name": "s", "type": {"type": "string"}},
    ],
    "doc": "an order: é",
    "name": "Order",
    "type": "record",
}
PRINTED = (
    '{"type":"record","name":"Order","namespace":"shop","doc":"an order: é","fields":['
    '{"name":"f","type":["null",{"type":"fixed","name":"Hash","size":4}],"default":null},'
    '{"name":"g","type":"Hash","doc":"again"},'
    '{"name":"h","type":{"type":"int","logicalType":"date"},"order":"ignore"},'
    '{"name":"next","type":["null","Order"]},'
    '{"name":"d","type":"double","default":1.0E10},'
    '{"name":"s","type":"string"}],'
    '"owner":"team","aliases":["Purchase","old.Order"]}'
)


def test_attributes_stand_in_the_order_of_avro() -> None:
    parsed = parse("AVRO", json.dumps(RECORD), {})
    assert parsed.canonical == PRINTED
    assert parsed.record_name == "shop.Order"
    assert parse("AVRO", PRINTED, {}).canonical == PRINTED


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("string", '"string"'),
        ('{"type": "string"}', '"string"'),
        ('{"type":"long","logicalType":"x"}', '{"type":"long","logicalType":"x"}'),
        ('{"type":"array","x":1,"items":{"type":"int"}}', '{"type":"array","items":"int","x":1}'),
        ('{"type":"map","values":"int"}', '{"type":"map","values":"int"}'),
        ('["null", {"type":"int"}]', '["null","int"]'),
        (
            '{"type":"enum","name":"a.E","default":"A","doc":"d","symbols":["A"]}',
            '{"type":"enum","name":"E","namespace":"a","doc":"d","symbols":["A"],"default":"A"}',
        ),
    ],
)
def test_small_schemas(text: str, printed: str) -> None:
    assert parse("AVRO", text, {}).canonical == printed


def test_normalized_texts_do_not_depend_on_the_order_of_other_attributes() -> None:
    one = parse("AVRO", '{"type":"int","b":1,"a":2}', {})
    other = parse("AVRO", '{"a":2,"type":"int","b":1}', {})
    assert one.canonical != other.canonical
    assert one.normalized == other.normalized


def test_what_references_define_is_known_by_its_name() -> None:
    inner = parse("AVRO", '{"type":"fixed","name":"x.Hash","size":4}', {})
    middle = parse(
        "AVRO",
        '{"type":"record","name":"x.M","fields":[{"name":"h","type":"x.Hash"}]}',
        {"x.Hash": inner},
    )
    outer = parse(
        "AVRO",
        '{"type":"record","name":"O","fields":[{"name":"m","type":"x.M"},{"name":"h","type":"x.Hash"}]}',
        {"x.M": middle, "x.Hash": inner},
    )
    assert outer.canonical == (
        '{"type":"record","name":"O","fields":[{"name":"m","type":"x.M"},'
        '{"name":"h","type":"x.Hash"}]}'
    )
    assert parse("AVRO", '"x.M"', {"x.M": middle}).record_name == "x.M"
    with pytest.raises(InvalidSchema, match="Undefined name: Hash"):
        parse("AVRO", middle.canonical, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Undefined name"),
        ("{", "no JSON"),
        ("[" * 100_000, "deeper than 100"),
        ('{"type":"record","name":"R"}', "must be an array"),
        ('{"type":"record","name":"1R","fields":[]}', "not a valid Avro name"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
            "Invalid default for field a",
        ),
        ('["int",["null"]]', "cannot contain other unions"),
        ('"\\ud800"', "surrogate"),
        ('{"type":"int","x":NaN}', "NaN"),
        ('{"type":"int","x":1e999}', "too large"),
        ('"' + "a" * 2_000_000 + '"', "more than 1048576 bytes"),
        ('{"type":"enum","name":"E","symbols":[1]}', "symbol"),
        ('{"type":"enum","name":"E","symbols":["A","A"]}', "Duplicate symbol"),
        ('{"type":"fixed","name":"F","size":2147483648}', "over 2147483647"),
    ],
)
def test_what_is_no_schema_is_refused_in_a_line(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why) as refused:
        parse("AVRO", text, {})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1100
