"""Messages of Protobuf as JSON and back: nothing is another number, or other bytes, behind it."""

from __future__ import annotations

import json
import struct

import pytest

pytest.importorskip("google.protobuf")

from kwire.cli import protobuf_values
from kwire.client.errors import ClientError
from kwire.schemas.formats import parse
from kwire.schemas.formats.protobuf import ProtobufSchema

TEXT = """
syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message M {
  float f = 1;
  double d = 2;
  int64 l = 3;
  repeated float r = 4;
  map<bool, float> m = 5;
  google.protobuf.FloatValue w = 6;
  google.protobuf.Value v = 7;
  google.protobuf.DoubleValue dw = 8;
  bytes b = 9;
  google.protobuf.BytesValue bw = 10;
  M inner = 11;
  google.protobuf.Any any = 12;
}
"""


@pytest.fixture(scope="module")
def schema() -> ProtobufSchema:
    found = parse("PROTOBUF", TEXT, {})
    assert isinstance(found, ProtobufSchema)
    return found


@pytest.mark.parametrize(
    "text",
    [
        '{"f":123456792}',
        '{"f":3.4028234663852886e+38}',
        '{"f":0.1}',
        '{"f":"NaN"}',
        '{"r":[123456792,2147483648,-0.5]}',
        '{"m":{"true":123456792,"false":1}}',
        '{"w":123456792}',
        '{"v":{"a":[9007199254740992]}}',
        '{"d":1e22,"inner":{"f":123456792}}',
        '{"any":{"@type":"type.googleapis.com/M","f":123456792}}',
        '{"any":{"@type":"type.googleapis.com/google.protobuf.FloatValue","value":123456792}}',
        '{"l":"9007199254740993"}',
        '{"b":"/+8="}',
    ],
)
def test_what_goes_in_comes_out(schema: ProtobufSchema, text: str) -> None:
    """The library shows 123456792 of a float as 123456790."""
    data = protobuf_values.encoded(schema, text.encode())
    shown = protobuf_values.shown(schema, b"\0" + data, 0)
    assert json.loads(shown) == json.loads(text)
    assert protobuf_values.encoded(schema, shown) == data


@pytest.mark.parametrize("value", [123456792.0, 3.4028234663852886e38, 1.1, 1e-45, -(2.0**31)])
def test_what_is_shown_of_a_float_is_taken_for_it(schema: ProtobufSchema, value: float) -> None:
    data = b"\x0d" + struct.pack("<f", value)
    assert protobuf_values.encoded(schema, protobuf_values.shown(schema, b"\0" + data, 0)) == data


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"f":16777217}', "$.f: 16777217 is a number that its type rounds"),
        ('{"f":"16777217"}', "rounds"),
        ('{"d":9007199254740993}', "rounds"),
        ('{"r":[1,16777217]}', "$.r[1]: 16777217"),
        ('{"m":{"true":16777217}}', "$.m.true: 16777217"),
        ('{"w":16777217}', "$.w: 16777217"),
        ('{"dw":9007199254740993}', "$.dw: "),
        ('{"v":{"a":[9007199254740993]}}', "$.v.a[0]: "),
        ('{"inner":{"f":16777217}}', "$.inner.f: "),
        ('{"any":{"@type":"x/M","f":16777217}}', "$.any.f: "),
        ('{"any":{"@type":"x/google.protobuf.FloatValue","value":16777217}}', "$.any.value: "),
        ('{"l":9007199254740993.0}', "write it in digits alone"),
        ('{"f":1e39}', "too large"),
        ('{"b":"!!"}', '$.b: "!!" is no base64'),
        ('{"b":"YQ=="}x', "no JSON"),
        ('{"b":"YQ="}', "no base64"),
        ('{"b":"YWJjZ"}', "no base64"),
        ('{"b":"+_"}', "no base64"),
        ('{"bw":"a b"}', "$.bw: "),
    ],
)
def test_what_would_be_altered_is_refused(schema: ProtobufSchema, text: str, why: str) -> None:
    with pytest.raises(ClientError) as refused:
        protobuf_values.encoded(schema, text.encode())
    assert why in str(refused.value)
