"""No text is more than a refusal: parse raises InvalidSchema and nothing else, and it ends."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.schemas.formats import SCHEMA_TYPES, InvalidSchema, Parsed, incompatibilities, parse
from kwire.schemas.formats.json_text import Json

WORDS = (
    *("type", "name", "fields", "items", "values", "symbols", "size", "default", "aliases", "R"),
    *("record", "enum", "fixed", "array", "map", "int", "string", "null", "object", "namespace"),
    *("properties", "required", "$ref", "#", "#/definitions/a", "definitions", "allOf", "anyOf"),
    *("oneOf", "not", "enum", "const", "pattern", "(a+)+$", "patternProperties", "$id", "http://["),
    *("additionalProperties", "dependencies", "multipleOf", "maximum", "logicalType", "decimal"),
    *("$schema", "http://json-schema.org/draft-04/schema#", "if", "prefixItems", "\ud800", "\x00"),
)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=12,
)
PROTO_WORDS = (
    *("syntax", "=", '"proto3"', '"proto2"', ";", "message", "M", "{", "}", "int32", "a", "1", "2"),
    *(
        "oneof",
        "map",
        "<",
        ">",
        ",",
        "string",
        "reserved",
        "to",
        "max",
        "enum",
        "optional",
        "[",
        "]",
    ),
    *(
        "import",
        '"google/protobuf/any.proto"',
        "package",
        "option",
        "default",
        "-",
        "service",
        "rpc",
    ),
    *("(", ")", "returns", "extend", "extensions", "group", "G", '"\\777\\xff"', "1e9", "/*", "//"),
    *("0x", "99999999999999999999", ".", "edition", '"2023"', "required", "repeated", "json_name"),
)


def parsed(schema_type: str, text: str) -> Parsed | None:
    try:
        found = parse(schema_type, text, {})
    except InvalidSchema as refused:
        told = str(refused)
        found = None
    if found is None:
        assert len(told.encode().splitlines()) <= 1
        return None
    found.canonical.encode()
    assert parse(schema_type, found.canonical, {}).canonical == found.canonical
    return found


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(("AVRO", "JSON")), JSON, JSON)
def test_json_of_any_shape(schema_type: str, one: Json, other: Json) -> None:
    found = [parsed(schema_type, json.dumps(value)) for value in (one, other)]
    if found[0] and found[1]:
        assert isinstance(incompatibilities(found[0], found[1]), list)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PROTO_WORDS), max_size=40))
def test_words_of_protobuf_in_any_order(words: list[str]) -> None:
    parsed("PROTOBUF", " ".join(words))
    parsed("PROTOBUF", f'syntax = "proto3"; message M {{ {" ".join(words)} }}')


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SCHEMA_TYPES), st.text() | st.binary().map(lambda raw: raw.decode("latin-1"))
)
def test_any_text(schema_type: str, text: str) -> None:
    parsed(schema_type, text)


def allof(levels: int) -> Json:
    """Each definition applies the next one twice: 2 ** levels ways lead to the last."""
    twice: list[Json] = [
        {"allOf": [{"$ref": f"#/definitions/{at + 1}"}] * 2} for at in range(levels)
    ]
    names = {str(at): value for at, value in enumerate([*twice, {"type": "string"}])}
    return {"$ref": "#/definitions/0", "definitions": names}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 200_000, "deeper than"),
        ('{"not":' * 2_000 + "{}" + "}" * 2_000, "deeper than"),
        (json.dumps({"enum": list(range(30_000))}), "more than 20000 values"),
        ('{"$ref":"http://example.com/schema"}', "Nothing is found"),
        ('{"$ref":"#/definitions/missing"}', "Nothing is found"),
        ('{"type":"nothing"}', "type"),
        ('{"type":"string","maxLength":-1}', "maxLength"),
        ("1", "object or a boolean"),
        ('"' + "a" * 1_100_000 + '"', "more than 1048576 bytes"),
    ],
)
def test_json_schemas_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        parse("JSON", text, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no message"),
        ("message M { optional M m = 1 }", "Line 1: ';' is expected"),
        ("message M {" * 100, "nest deeper"),
        ('syntax = "proto3";\nmessage M {\n  Missing m = 1;\n}', "Missing"),
        ('syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }', "duplicate field number"),
        ('syntax = "proto3"; message M { reserved 1; int32 a = 1; }', "is reserved"),
        ('syntax = "proto3"; message M { int32 a = 19000; }', "is reserved"),
        ('syntax = "proto3"; message M { int32 a = 0; }', "not in 1 to 536870911"),
        ('syntax = "proto3"; import "other.proto"; message M {}', "other.proto"),
        ('syntax = "proto4"; message M {}', "proto4"),
        ("/* " + "* " * 100_000, "unexpected"),
        (
            'syntax = "proto3"; message M { string a = 1 [json_name = "' + "\\" * 50_001,
            "unexpected",
        ),
    ],
)
def test_protobuf_schemas_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidSchema, match=why):
        parse("PROTOBUF", text, {})


def test_a_chain_of_doubling_definitions_is_compared_in_steps() -> None:
    one, other = (parse("JSON", json.dumps(allof(levels)), {}) for levels in (40, 41))
    assert incompatibilities(one, other) == []


def test_definitions_that_lead_in_a_circle_end() -> None:
    text = '{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/a"}}}'
    one, other = parse("JSON", text, {}), parse("JSON", "{}", {})
    with pytest.raises(InvalidSchema, match="one to the next"):
        incompatibilities(one, other)


def test_too_many_alternatives_are_an_answer() -> None:
    def sums(count: int) -> Json:
        return {"allOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}] * count}

    one, other = (parse("JSON", json.dumps(sums(count)), {}) for count in (40, 41))
    with pytest.raises(InvalidSchema, match="too large to compare"):
        incompatibilities(one, other)


def test_two_schemas_under_one_name_are_refused() -> None:
    one, other = parse("JSON", '{"type":"string"}', {}), parse("JSON", "{}", {})
    middle = parse("JSON", '{"$ref":"a"}', {"a": one})
    with pytest.raises(InvalidSchema, match="Two schemas are referenced as a"):
        parse("JSON", '{"items":{"$ref":"a"}}', {"b": middle, "a": other})


def test_an_unknown_type_names_those_there_are() -> None:
    with pytest.raises(InvalidSchema, match="use one of AVRO, JSON, PROTOBUF"):
        parse("XML", "", {})


def nested_records(depth: int, last: str) -> str:
    """Each record has two fields of the next one's type: 2^depth ways lead to the last."""
    inner: Json = {"type": "record", "name": f"R{depth}", "fields": [{"name": "x", "type": last}]}
    for at in reversed(range(depth)):
        fields: Json = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{at + 1}"}]
        inner = {"type": "record", "name": f"R{at}", "fields": fields}
    return json.dumps(inner)


def test_records_that_double_at_each_level_are_compared_once() -> None:
    """The Avro library keeps every reason of both fields: 2^28 of them."""
    one, other = (parse("AVRO", nested_records(28, last), {}) for last in ("int", "string"))
    assert "TYPE_MISMATCH" in " ".join(incompatibilities(one, other))
    assert not incompatibilities(one, parse("AVRO", nested_records(28, "int"), {}))


def test_anchors_are_looked_for_once() -> None:
    """Each look-up of an anchor crawled the whole schema, and every meta-schema."""
    schema: Json = {
        "$id": "http://example.com/s",
        "definitions": {"a": {"$id": "#here", "type": "string"}},
        "properties": {f"p{at}": {"$ref": "#here"} for at in range(3000)},
    }
    assert parse("JSON", json.dumps(schema), {}).schema_type == "JSON"


def test_patterns_times_names_are_bounded() -> None:
    names = [f"a{at}" for at in range(200)]
    reader = parse(
        "JSON", json.dumps({"patternProperties": {f"^{n}(x+)+$": {} for n in names}}), {}
    )
    writer = parse("JSON", json.dumps({"properties": {n: {"type": "string"} for n in names}}), {})
    with pytest.raises(InvalidSchema, match="too large to compare"):
        incompatibilities(reader, writer)


def test_patterns_that_repeat_much_are_more_than_a_step() -> None:
    """Each takes milliseconds to be made ready: 8 KB of them took 4 s."""
    names = {f"^[a-z]{{1,900}}{at}$": {} for at in range(200)}
    reader = parse("JSON", json.dumps({"patternProperties": names}), {})
    writer = parse("JSON", json.dumps({"properties": {"a": {"type": "string"}}}), {})
    with pytest.raises(InvalidSchema, match="too large to compare"):
        incompatibilities(reader, writer)
