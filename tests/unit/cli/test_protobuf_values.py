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
import "google/protobuf/duration.proto";
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
  uint32 u = 13;
  E e = 14;
  map<int64, string> ml = 15;
  google.protobuf.Duration t = 16;
  map<string, google.protobuf.Value> mv = 17;
}
enum E {
  A = 0;
  B = 1;
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
        '{"d":1e23}',
        '{"d":5e-324}',
        '{"f":-0.0}',
        '{"f":"-Infinity"}',
        '{"u":4294967295,"e":"B"}',
        '{"ml":{"-9007199254740993":"x"}}',
        '{"mv":{"a":null}}',
        '{"any":{}}',
        '{"t":"1.500s"}',
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
        ('{"f":"1e39"}', '$.f: "1e39" is too large for its type'),
        ('{"d":"1e309"}', "too large"),
        ('{"f":"' + "9" * 5000 + '"}', "too large"),
        ('{"l":' + "9" * 5000 + "}", "has over 4300 digits"),
        ('{"f":16777217.0}', "$.f: 16777217.0 is a number that its type rounds"),
        ('{"f":"16777217.0"}', "rounds"),
        ('{"f":1.6777217e7}', "rounds"),
        ('{"f":1e11}', "rounds"),
        ('{"d":9007199254740993.0}', "rounds"),
        ('{"v":9007199254740993.0}', "rounds"),
        ('{"f":1e-50}', "$.f: 1e-50 is a number that its type takes for zero"),
        ('{"d":"-0.1e-400"}', "zero"),
        ('{"v":1e-400}', "zero"),
        ('{"l":1e-400}', "no whole number"),
        ('{"l":"9.007199254740993e15"}', "write it in digits alone"),
        ('{"l":"1e400"}', "too large"),
        ('{"l":"1_000"}', '$.l: "1_000" is no number as JSON writes it'),
        ('{"u":"1_0"}', "no number"),
        ('{"f":"1_0"}', "no number"),
        ('{"l":"٥"}', "no number"),
        ('{"f":"infinity"}', "no number"),
        ('{"f":"+1"}', "no number"),
        ('{"d":" 1"}', "no number"),
        ('{"l":"1\\n"}', "no number"),
        ('{"f":true}', "$.f: true is no number"),
        ('{"e":"1_0"}', "no value of E"),
        ('{"ml":{"1_0":"x"}}', '$.ml: "1_0" is no integer, which the keys of this map are'),
        ('{"t":"1_0s"}', "no duration"),
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


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"l":1e3}', 1000),
        ('{"l":"1e18"}', 10**18),
        ('{"l":-0.0}', None),
        ('{"l":"5.0"}', 5),
    ],
)
def test_an_integer_may_have_an_exponent(
    schema: ProtobufSchema, text: str, told: int | None
) -> None:
    shown = protobuf_values.shown(schema, b"\0" + protobuf_values.encoded(schema, text.encode()), 0)
    assert json.loads(shown) == ({} if told is None else {"l": str(told)})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"any":{"@type":5}}', "$.any.@type: 5 is no name of a type"),
        ('{"any":{"f":5}}', "$.any.@type: null is no name of a type"),
        ('{"any":[]}', "$.any: [] is no google.protobuf.Any"),
        ('{"m":{"true":null}}', "$.m.true: null is no value of a map"),
        ('{"m":[]}', "$.m: [] is no object, which a map is"),
        ('{"ml":{"1":null}}', "$.ml.1: null is no value of a map"),
    ],
)
def test_what_is_wrong_is_named_in_json_s_words(
    schema: ProtobufSchema, text: str, line: str
) -> None:
    with pytest.raises(ClientError) as refused:
        protobuf_values.encoded(schema, text.encode())
    assert str(refused.value) == f"not by its schema: {line}"


@pytest.mark.parametrize("value", [1e23, 1.7976931348623157e308, 5e-324, 0.1, 2.0**63, -(2.0**70)])
def test_what_is_shown_of_a_double_is_taken_for_it(schema: ProtobufSchema, value: float) -> None:
    data = b"\x11" + struct.pack("<d", value)
    assert protobuf_values.encoded(schema, protobuf_values.shown(schema, b"\0" + data, 0)) == data
