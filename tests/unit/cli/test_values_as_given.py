"""Records by schemas at the command line: nothing is sent as something else than was given."""

from __future__ import annotations

import pytest

pytest.importorskip("avro")
pytest.importorskip("google.protobuf")

from kwire.cli.schema_values import Schema
from kwire.client.errors import ClientError
from kwire.schemas.formats import parse
from kwire.schemas.validation.prepared import prepared

NUMBERS = """{"type": "record", "name": "N", "fields": [
    {"name": "f", "type": "float", "default": 0}, {"name": "d", "type": "double", "default": 0},
    {"name": "m", "type": ["null", {"type": "map", "values": "string"}]}]}"""
MANY = """
syntax = "proto2";
package p;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/wrappers.proto";
message Many {
  required int32 id = 1;
  optional google.protobuf.Any any = 2;
  optional google.protobuf.Struct struct = 3;
  optional google.protobuf.FieldMask mask = 4;
  optional Inner one = 5;
  repeated Inner all = 6;
  map<string, Inner> by = 7;
  optional google.protobuf.Int32Value wrapped = 8;
  optional double number = 9;
}
message Inner { optional string text = 1; }
"""


@pytest.mark.parametrize(
    ("kind", "schema", "line", "why"),
    [
        ("AVRO", '"string"', r'"\ud800"', r'$: "\ud800" has half of a surrogate pair'),
        ("AVRO", '"string"', '"a" 1', "it is no JSON: Extra data"),
        ("AVRO", '{"type":"map","values":"int"}', r'{"\ud800":1}', "has half of a surrogate"),
        ("AVRO", '"float"', "16777217", "$: a float cannot hold 16777217"),
        ("AVRO", '"float"', "1e39", "is no float"),
        ("AVRO", '"double"', "9007199254740993", "a double cannot hold 9007199254740993"),
        ("AVRO", '"double"', "1e400", "the number 1e400 is too large"),
        ("AVRO", '"double"', "NaN", "NaN is no number of JSON"),
        ("AVRO", NUMBERS, '{"f":1,"f":2}', 'the name "f" is there twice in an object'),
        (
            "AVRO",
            NUMBERS,
            '{"f":1,"d":1,"m":{"map":"x"}}',
            '$.m: "x" is no map ($.m: the name map is taken for that of the union\'s type)',
        ),
        ("PROTOBUF", 'syntax = "proto3"; enum E { A = 0; }', "{}", "the schema has no message"),
        ("PROTOBUF", MANY, "{}", "the field id is missing"),
        ("PROTOBUF", MANY, "[]", "$: [] is no p.Many"),
        ("PROTOBUF", MANY, '""', '$: "" is no p.Many'),
        ("PROTOBUF", MANY, "null", "$: null is no p.Many"),
        ("PROTOBUF", MANY, '{"id":1,"one":[]}', "$.one: [] is no p.Inner"),
        ("PROTOBUF", MANY, '{"id":1,"all":[{},""]}', '$.all[1]: "" is no p.Inner'),
        ("PROTOBUF", MANY, '{"id":1,"by":{"k":[]}}', "$.by.k: [] is no p.Inner"),
        ("PROTOBUF", MANY, '{"id":1,"id":2}', 'the name "id" is there twice'),
        ("PROTOBUF", MANY, '{"id":1,"number":1e400}', "the number 1e400 is too large"),
        ("PROTOBUF", MANY, '{"id":1,"any":{"@type":"type.example/p.Other"}}', "p.Other"),
        ("PROTOBUF", MANY, r'{"id":1,"one":{"text":"\ud800"}}', "not by its schema: "),
    ],
)
def test_no_value_is_altered_on_its_way(kind: str, schema: str, line: str, why: str) -> None:
    """These were sent as something else, or ended as faults of kwire's."""
    parsed = parse(kind, schema, {})
    with pytest.raises(ClientError) as refused:
        Schema(parsed, prepared(parsed)).encoded(line.encode())
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
