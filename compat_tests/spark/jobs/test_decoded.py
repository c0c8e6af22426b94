"""Columns of decoded values: kwire's own registry, Confluent's serializers, what does not fit."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("confluent_kafka.schema_registry")

from kwire.testing.cluster import Broker, free_ports
from tests.support import kafka_client as client
from tests.support import spark as support
from tests.support.kafka_client import Sent
from tests.support.registry_client import RegistryClient
from tests.support.spark import Outcome

Run = Callable[..., Outcome]
ADDRESS = {"type": "record", "name": "Address", "namespace": "org.places", "fields": []}
PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  string name = 1;
  int64 amount = 2;
  bytes raw = 3;
  repeated Line lines = 4;
  map<int32, string> notes = 5;
  google.protobuf.Timestamp at = 6;
  uint64 big = 7;
  double ratio = 8;
  Kind kind = 9;
  optional int32 maybe = 10;
  message Line { string what = 1; float price = 2; }
  enum Kind { NONE = 0; SOME = 1; }
}
message Other { string name = 1; bool flag = 2; }
"""


@pytest.fixture(scope="module")
def node() -> Iterator[tuple[str, RegistryClient]]:
    """A broker that is a registry too: bootstrap, registry."""
    (port,) = free_ports(1)
    with Broker(options={"http.listeners": f"http://127.0.0.1:{port}"}) as broker:
        yield broker.bootstrap, RegistryClient(f"127.0.0.1:{port}")


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    found = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": found}


def registered(registry: RegistryClient, subject: str, schema: str, **fields: Any) -> int:
    answer = registry.register(subject, schema, **fields)
    assert answer.status == 200, answer.body
    assert isinstance(answer.body, dict)
    number = answer.body["id"]
    assert isinstance(number, int)
    return number


def framed(schema_id: int, body: bytes) -> bytes:
    return struct.pack(">bi", 0, schema_id) + body


def written(schema: Any, value: Any, schema_id: int) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return framed(schema_id, out.getvalue())


def rows_of(frame: Any, *columns: str) -> list[Any]:
    return [
        row.asDict(recursive=True) for row in frame.orderBy("offset").select(*columns).collect()
    ]


def reasons_of(spark: Any, lake: str, topic: str) -> list[tuple[int, str]]:
    dead = support.dead_letters(spark, lake, topic).orderBy("partition", "offset").collect()
    return [(row.offset, row.reason) for row in dead]


def test_avro_becomes_columns_that_grow(
    node: tuple[str, RegistryClient], run: Run, lake: str, spark: Any
) -> None:
    """Fields that are added appear; a type that changed, and what lies, is a dead letter."""
    at, registry = node
    topic = client.create(at)
    key = record("Key", ("id", "int"))
    key_id = registered(registry, f"{topic}-key", json.dumps(key))
    first = record(
        "User",
        ("name", "string"),
        ("age", "int"),
        ("money", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
        ("born", {"type": "int", "logicalType": "date"}),
        ("nothing", "null"),
        ("tags", {"type": "array", "items": record("Tag", ("t", "string"))}),
    )
    first_id = registered(registry, f"{topic}-value", json.dumps(first))
    user = {"name": "Ada", "age": 36, "money": decimal.Decimal("12.34"), "nothing": None}
    user |= {"born": datetime.date(2020, 1, 2), "tags": [{"t": "x"}]}
    good = written(first, user, first_id)
    keys = [written(key, {"id": n}, key_id) for n in range(9)]
    far = written(first, user | {"name": "far"}, first_id)
    values = [good, None, far[:-1], far + b"!", framed(9_999, b"\x02"), b"plain", good]
    client.send(at, topic, [Sent(0, keys[n], value) for n, value in enumerate(values)])
    client.send(at, topic, [Sent(0, b"no key", good)])
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    arguments += ("--decode", "avro", "--decode-key", "avro", "--registry", registry.url)
    done = run(*arguments)
    assert done.status == 0, done.stderr
    table = support.table(spark, lake, topic)
    assert table.schema["valueDecoded"].dataType.simpleString() == (
        "struct<name:string,age:int,money:decimal(9,2),born:date,tags:array<struct<t:string>>>"
    )
    rows = rows_of(table, "keyDecoded", "keySchemaId", "valueDecoded", "valueSchemaId")
    assert [(row["keyDecoded"], row["keySchemaId"]) for row in rows] == [
        ({"id": n}, key_id) for n in (0, 1, 6)
    ]
    expected = {name: value for name, value in user.items() if name != "nothing"}
    assert [row["valueDecoded"] for row in rows] == [expected, None, expected]
    assert [row["valueSchemaId"] for row in rows] == [first_id, None, first_id]
    reasons = dict(reasons_of(spark, lake, topic))
    assert list(reasons) == [2, 3, 4, 5, 7]
    assert reasons[2] == f"no Avro of schema {first_id}: the value ends too early"
    assert "1 bytes behind" in reasons[3]
    assert reasons[4] == "schema 9999 is not known"
    assert reasons[5].startswith("no schema id")
    assert reasons[7].startswith("key: no schema id")

    # A newer schema has more, in the middle of what is there; it names a type of another subject.
    place = {**ADDRESS, "fields": [{"name": "city", "type": "string"}]}
    registered(registry, "place", json.dumps(place))
    tag = record("Tag", ("t", "string"), ("weight", ["null", "double"]))
    second = record(
        "User",
        ("name", "string"),
        ("age", "int"),
        ("tags", {"type": "array", "items": tag}),
        ("home", ["null", "org.places.Address"]),
        ("work", ["null", "org.places.Address"]),
    )
    links = [{"name": "org.places.Address", "subject": "place", "version": 1}]
    second_id = registered(registry, "later", json.dumps(second), references=links)
    third = record("User", ("name", "string"), ("age", "string"))
    third_id = registered(registry, "changed", json.dumps(third))
    loop = record("Loop", ("next", ["null", "Loop"]))
    loop_id = registered(registry, "loop", json.dumps(loop))
    whole = {**second, "fields": [*second["fields"][:3], {"name": "home", "type": ["null", place]}]}
    whole["fields"].append({"name": "work", "type": ["null", "org.places.Address"]})
    new = {"name": "Bob", "age": 1, "tags": [{"t": "y", "weight": 0.5}], "home": {"city": "Rome"}}
    values = [
        written(whole, {**new, "work": None}, second_id),
        written(third, {"name": "Eve", "age": "old"}, third_id),
        framed(loop_id, b"\x00"),
        good,
        # Names of 2^59 bytes and lists of 2^59 items are said in nine bytes.
        framed(first_id, b"\xfe" * 8 + b"\x0f"),
    ]
    client.send(at, topic, [Sent(0, None, value) for value in values])
    done = run(*arguments)
    assert done.status == 0, done.stderr
    assert done.summary is not None
    assert (done.summary["records"], done.summary["dead_letters"]) == (5, 3)
    table = support.table(spark, lake, topic)
    assert table.schema["valueDecoded"].dataType.simpleString() == (
        "struct<name:string,age:int,money:decimal(9,2),born:date,"
        "tags:array<struct<t:string,weight:double>>,home:struct<city:string>,work:struct<city:string>>"
    )
    decoded = [row["valueDecoded"] for row in rows_of(table, "valueDecoded")]
    more = {"home": None, "work": None, "tags": [{"t": "x", "weight": None}]}
    assert decoded[0] == decoded[4] == {**expected, **more}
    assert decoded[3] == {**new, "money": None, "born": None, "work": None}
    told = dict(reasons_of(spark, lake, topic))
    assert told[9] == f"schema {third_id}: value.age is string, the table has integer"
    assert told[10].startswith(f"schema {loop_id}: Spark does not take it")
    assert told[12].startswith(f"no Avro of schema {first_id}")
    # Whoever reads the archive has the values as JSON, and every record is there.
    asked = "get_json_object(valueJson, '$.home.city') = valueDecoded.home.city"
    asked = run("query", "--lake", lake, f"SELECT offset FROM `{topic}` WHERE {asked}")
    assert asked.summary is not None, asked.stderr
    assert (asked.status, asked.summary["rows"]) == (0, 1), asked.stderr
    audited = run("audit", "-b", at, "--left", f"topic:{topic}", "--right", f"archive:{lake}")
    assert audited.status == 0, audited.summary
    # One line, before any work: another decoder, another form.
    before = support.commits(lake)
    for options, words in (
        (("--decode", "json"), "--decode json: .* has decoded its values as avro"),
        (("--decode", "protobuf"), "--decode protobuf: .* has decoded its values as avro"),
        (("--decode", "avro", "--decode-key", "json"), "--decode-key json: .* keys as avro"),
        (("--decode", "avro", "--flatten"), "--flatten: .* was archived without it"),
    ):
        refused = run(*arguments[:7], *options, "--registry", registry.url)
        assert (refused.status, refused.stderr.count("\n")) == (2, 1), refused.stderr
        assert re.search(words, refused.stderr), refused.stderr
    assert support.commits(lake) == before


def test_json_and_protobuf_become_columns(
    node: tuple[str, RegistryClient], run: Run, lake: str, spark: Any
) -> None:
    at, registry = node
    topic = client.create(at)
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "n": {"type": ["null", "integer"]},
            "x": {"type": "number"},
            "any": {},
            "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}},
        },
        "$defs": {"item": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }
    number = registered(registry, f"{topic}-value", json.dumps(schema), schemaType="JSON")
    texts = [
        '{"name":"Ada","n":9223372036854775807,"x":1,"any":{"b":[1]},"list":[{"a":1},{}]}',
        '{"n":null,"more":{"yes":true},"unknown":1}',
        '{"n":9223372036854775808}',
        '{"n":"1"}',
        '{"n":1},"_corrupt":null,"value":{"n":2}',
        '{"list":{}}',
        "[]",
        "{'n':1}",
    ]
    values = [framed(number, text.encode()) for text in texts]
    client.send(at, topic, [Sent(0, None, value) for value in values])
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    arguments += ("--decode", "json", "--flatten", "--registry", registry.url)
    done = run(*arguments)
    assert done.status == 0, done.stderr
    table = support.table(spark, lake, topic)
    names = [name for name in table.columns if name.startswith("value_")]
    assert names == [f"value_{name}" for name in ("name", "n", "x", "any", "list", "more")]
    one, two = rows_of(table, *names)
    assert list(one.values()) == [
        "Ada",
        (1 << 63) - 1,
        1.0,
        '{"b":[1]}',
        [{"a": 1}, {"a": None}],
        None,
    ]
    assert list(two.values()) == [None, None, None, None, None, {"yes": True}]
    reasons = dict(reasons_of(spark, lake, topic))
    assert list(reasons) == [2, 3, 4, 5, 6, 7]
    assert reasons[2].startswith(f"not of schema {number}: n: expected a whole number")
    assert reasons[3] == f'not of schema {number}: n: expected a whole number, found "1"'
    assert reasons[5] == f"not of schema {number}: list: expected a list, found {{}}"
    assert reasons[4].startswith("no JSON")

    from google.protobuf import message_factory

    from kwire.schemas.formats import parse
    from kwire.schemas.formats.protobuf import ProtobufSchema

    parsed = parse("PROTOBUF", PROTO, {})
    assert isinstance(parsed, ProtobufSchema)
    kinds = list(parsed.descriptor.message_types_by_name.values())
    order, other = (message_factory.GetMessageClass(kind) for kind in kinds)
    topic = client.create(at)
    number = registered(registry, f"{topic}-value", PROTO, schemaType="PROTOBUF")
    message = order(name="Ada", amount=-5, raw=b"\xff\x00", big=(1 << 64) - 1, ratio=float("inf"))
    message.lines.add(what="pen", price=1.1)
    message.notes[7] = "seven"
    message.at.FromJsonString("2026-01-02T03:04:05.123456Z")
    message.kind = 1
    body, second = message.SerializeToString(), other(name="O", flag=True).SerializeToString()
    values = [
        framed(number, b"\0" + body),
        framed(number, b"\x02\x02" + second),
        framed(number, b"\x02\x08" + second),
        framed(number, b"\0\x0a"),
        framed(number, b"\0"),
    ]
    client.send(at, topic, [Sent(0, None, value) for value in values])
    arguments = ("archive", "-b", at, "--topics", topic, "--lake", lake, "--once")
    done = run(*arguments, "--decode", "protobuf", "--registry", registry.url)
    assert done.status == 0, done.stderr
    table = support.table(spark, lake, topic)
    first, flagged, empty = (row["valueDecoded"] for row in rows_of(table, "valueDecoded"))
    assert first == {
        "name": "Ada",
        "amount": -5,
        "raw": bytearray(b"\xff\x00"),
        "big": (1 << 64) - 1,
        "ratio": float("inf"),
        "kind": "SOME",
        "maybe": None,
        "flag": None,
        "lines": [{"what": "pen", "price": pytest.approx(1.1)}],
        "notes": {"7": "seven"},
        "at": datetime.datetime(2026, 1, 2, 3, 4, 5, 123456),
    }
    assert (flagged["name"], flagged["flag"], flagged["amount"]) == ("O", True, None)
    assert (empty["name"], empty["amount"], empty["at"], empty["lines"]) == ("", 0, None, [])
    reasons = dict(reasons_of(spark, lake, topic))
    assert list(reasons) == [2, 3]
    assert "no message [4]" in reasons[2]
    assert "no message shop.Order" in reasons[3]
