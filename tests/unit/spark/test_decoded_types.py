"""Types of decoded columns: what schemas become, how a table's columns grow, what is refused."""

from __future__ import annotations

import argparse
import io
import json
import re
from typing import Any

import pytest

from kwire.spark import json_values
from kwire.spark.avro_envelope import END, envelope
from kwire.spark.column_types import (
    VOID,
    Array,
    Field,
    Map,
    MisfitError,
    Struct,
    Type,
    evolved,
    from_json,
    merged,
    to_json,
    usable,
)
from kwire.spark.decoding import check_decoding
from kwire.spark.usage import UsageError


def struct(**fields: Type) -> Struct:
    return Struct(tuple(Field(name, type_) for name, type_ in fields.items()))


def test_a_tables_type_grows_and_never_changes() -> None:
    have = struct(a="long", b=Array(struct(c="string")), m=Map("string", "double"))
    assert merged(have, struct(a="integer"), "value") == have
    assert merged(have, struct(A="long"), "value") == have
    new = struct(z="boolean", b=Array(struct(d="date", c="string")), m=Map("string", "float"))
    assert merged(have, new, "value") == struct(
        a="long",
        b=Array(struct(c="string", d="date")),
        m=Map("string", "double"),
        z="boolean",
    )
    for changed, reason in (
        (struct(a="string"), "value.a is string, the table has long"),
        (struct(b=Array("long")), r"value.b\[\] is long, the table has a struct"),
        (struct(b="long"), "value.b is long, the table has a list"),
        (struct(m=Map("string", "string")), r"value.m\[\] is string, the table has double"),
        ("long", "value is long, the table has a struct"),
    ):
        with pytest.raises(MisfitError, match=reason):
            merged(have, changed, "value")
    with pytest.raises(MisfitError):
        merged("integer", "long", "value")
    assert merged("decimal(20,2)", "decimal(9,1)", "") == "decimal(20,2)"
    with pytest.raises(MisfitError):
        merged("decimal(9,2)", "decimal(9,1)", "")


def test_what_has_no_values_has_no_column() -> None:
    type_ = struct(a="long", n=VOID, e=Struct(()), f=Array(VOID), t="timestamp_ntz")
    assert usable(type_, "value") == struct(a="long", t="timestamp")
    assert usable(struct(e=Struct(())), "value") == VOID
    deep: Type = "long"
    for _ in range(100):
        deep = Array(deep)
    many = Struct(tuple(Field(f"f{n}", "long") for n in range(6_000)))
    for bad, reason in (
        (struct(a="long", A="long"), "upper and lower case only"),
        (Struct((Field("first name", "long"),)), "value.first name: a column cannot have that"),
        (struct(a="interval day to second"), "value.a is interval"),
        (deep, "nested deeper than 60"),
        (many, "more than 5,000 fields"),
    ):
        with pytest.raises(MisfitError, match=reason):
            usable(bad, "value")


def test_a_tables_schema_takes_what_a_frame_has_more() -> None:
    table = to_json(struct(offset="long", valueDecoded=struct(a="long")))
    table["fields"][0]["metadata"] = {"kept": 1}
    assert evolved(table, to_json(struct(offset="long", valueDecoded=struct(a="long")))) is None
    frame = to_json(struct(valueDecoded=struct(a="long", b="date"), key_x="long"))
    grown = evolved(table, frame)
    assert grown is not None
    assert from_json(grown) == struct(
        offset="long", valueDecoded=struct(a="long", b="date"), key_x="long"
    )
    assert grown["fields"][0]["metadata"] == {"kept": 1}
    with pytest.raises(MisfitError, match="offset is string, the table has long"):
        evolved(table, to_json(struct(offset="string")))


def test_types_of_a_json_schema() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "i": {"type": "integer"},
            "n": {"type": ["null", "number", "integer"]},
            "o": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/a~1b"}]},
            "two": {"type": ["string", "integer"]},
            "self": {"$ref": "#"},
            "away": {"$ref": "other.json"},
            "lost": {"$ref": "#/nowhere"},
            "m": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "tuple": {"type": "array", "prefixItems": [{"type": "string"}]},
            "all": {"allOf": [{"$ref": "#/definitions/a~1b"}, {"properties": {"y": {}}}]},
        },
        "definitions": {"a/b": {"properties": {"x": {"type": "string"}}}},
    }
    other = {"type": "array", "items": {"type": "integer"}}
    found = json_values.type_of(json.dumps(schema), {"other.json": json.dumps(other)})
    assert found == Struct(
        (
            *struct(i="long", n="double", o=struct(x="string"), two="string").fields,
            Field("self", "string"),
            *struct(away=Array("long"), lost="string", m=Map("string", "boolean")).fields,
            *struct(tuple="string", all=struct(x="string", y="string")).fields,
        )
    )
    for text in ("7", "{", "[" * 100_000):
        with pytest.raises(MisfitError):
            json_values.type_of(text, {})


def test_json_values_fit_their_type() -> None:
    type_ = struct(i="long", d="double", b="boolean", s="string", a=Array("long"))
    for text in (
        '{"i": 9223372036854775807, "d": 1, "b": true, "s": {"x": 1}, "a": [null]}',
        '{"unknown": 1}',
        "null",
    ):
        json_values.check(json_values.parse(text), type_)
    for text, reason in (
        ('{"i": 9223372036854775808}', "i: expected a whole number, found"),
        ('{"i": ' + "1" * 10_000 + "}", "i: expected a whole number"),
        ('{"i": 1.0}', "i: expected a whole number, found 1.0"),
        ('{"i": true}', "i: expected a whole number, found true"),
        ('{"d": "1"}', 'd: expected a number, found "1"'),
        ('{"b": 1}', "b: expected true or false, found 1"),
        ('{"a": {}}', "a: expected a list, found {}"),
        ('{"a": ["\\ud800"]}', r"a\[\]: expected a whole number, found"),
        ("[]", r"the value: expected an object, found \[\]"),
    ):
        with pytest.raises(MisfitError, match=reason) as caught:
            json_values.check(json_values.parse(text), type_)
        str(caught.value).encode()


def test_an_envelope_reads_what_its_schema_wrote() -> None:
    """Names of other schemas are put where they are used first, whatever namespace is around."""
    fastavro = pytest.importorskip("fastavro")
    point = {"type": "record", "name": "Point", "namespace": "geo", "fields": []}
    point["fields"] = [{"name": "x", "type": "int", "default": "wrong"}, {"name": "up", "type": []}]
    point["fields"][1]["type"] = ["null", "Point"]
    bare = {"type": "enum", "name": "Bare", "symbols": ["A", "B"]}
    visit = {
        "type": "record",
        "name": "org.Visit",
        "fields": [
            {"name": "at", "type": "geo.Point"},
            {"name": "then", "type": {"type": "array", "items": "geo.Point"}},
            {"name": "b", "type": "Bare"},
            {"name": "own", "type": {"type": "fixed", "name": "Own", "size": 2}},
            {"name": "again", "type": {"type": "map", "values": "Own"}},
        ],
    }
    text = envelope(json.dumps(visit), [json.dumps(point), json.dumps(bare)])
    # 3 and no more; one item that holds itself; B; two bytes; a map of them.
    body = b"\x06\x00" + b"\x02\x08\x02\x0a\x00\x00" + b"\x02" + b"ab" + b"\x02\x02kcd\x00"
    parsed = fastavro.parse_schema(json.loads(text))
    found = fastavro.schemaless_reader(io.BytesIO(body + END), parsed)
    assert found == {
        "value": {
            "at": {"x": 3, "up": None},
            "then": [{"x": 4, "up": {"x": 5, "up": None}}],
            "b": "B",
            "own": b"ab",
            "again": {"k": b"cd"},
        },
        "end": False,
    }
    for bad in ('"Nowhere"', "7", "{", '{"type": "record", "fields": 7}', '["int", "a.b"]'):
        with pytest.raises(MisfitError):
            envelope(bad)


def options(**given: Any) -> argparse.Namespace:
    none = dict.fromkeys(("decode", "decode_key", "registry", "schemas"))
    return argparse.Namespace(**{**none, "flatten": False, **given})


def test_decoders_that_clash_are_one_line(tmp_path: Any) -> None:
    url, folder = "http://localhost:1", str(tmp_path)
    check_decoding(options())
    check_decoding(options(decode="json"))
    check_decoding(options(decode="protobuf", decode_key="avro", registry=url, flatten=True))
    for given, reason in (
        ({"decode": "avro"}, "--decode avro needs --registry or --schemas"),
        ({"decode": "json", "decode_key": "json"}, "--decode-key json needs"),
        ({"decode": "avro", "registry": url, "schemas": folder}, "give one of them"),
        ({"registry": url}, "are for --decode"),
        ({"decode": "json", "flatten": True}, "--flatten needs"),
        ({"decode": "avro", "registry": "localhost:80"}, "expected http"),
        ({"decode": "avro", "registry": "http://"}, "with a host"),
        ({"decode": "avro", "registry": "http://h:port"}, "with a host"),
        ({"decode": "avro", "schemas": f"{folder}/none"}, "no such folder"),
    ):
        with pytest.raises(UsageError, match=reason):
            check_decoding(options(**given))


@pytest.mark.parametrize(
    ("form", "name", "good", "bad"),
    [
        ("avro", "avsc", '"int"', ["", "{", '{"type": "record"}', '"Nowhere"', "7", "\ufeff1"]),
        ("json", "json", "{}", ["", "{", "7", "[]"]),
        ("protobuf", "proto", "message M {}", ["message {", 'import "b.proto"; message M {}']),
    ],
)
def test_a_file_that_is_no_schema_is_named_before_any_work(
    tmp_path: Any, form: str, name: str, good: str, bad: list[str]
) -> None:
    """All of its values were dead letters."""
    given = options(decode=form, schemas=str(tmp_path))
    (tmp_path / f"1.{name}").write_text(good)
    broken = tmp_path / f"20.{name}"
    for text in [*bad, "\udcff"]:
        broken.write_text(text, errors="surrogateescape")
        with pytest.raises(UsageError, match=re.escape(f"--schemas {broken}: ")) as found:
            check_decoding(given)
        assert "\n" not in str(found.value)
        # As a key's, too; not for another format, for which there is none.
        keys = options(decode_key=form, schemas=str(tmp_path))
        with pytest.raises(UsageError, match=re.escape(str(broken))):
            check_decoding(keys)
    broken.unlink()
    broken.mkdir()
    with pytest.raises(UsageError, match=re.escape(f"--schemas {broken}: ")):
        check_decoding(given)
    broken.rmdir()
    # Files that no id asks for.
    for other in ("20.txt", f"020.{name}", f"a.{name}", f"\u00b2.{name}", f"-1.{name}"):
        (tmp_path / other).write_text("{")
    check_decoding(given)
    (tmp_path / f"1.{name}").unlink()
    with pytest.raises(UsageError, match=f"no schema there is called ID.{name}"):
        check_decoding(given)
