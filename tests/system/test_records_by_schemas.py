"""`kwire produce --schema` and `kwire consume --schema`: JSON in and out, bytes of a registry's
schemas in the records, which other programs read."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")
pytest.importorskip("confluent_kafka.schema_registry")

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2

from kwire.cli import app
from kwire.testing.cluster import Broker
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, fetch_values, produce_values
from tests.system.test_http import port_of

LETTER = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": "double"}},
        {"name": "blob", "type": ["bytes", "int"]},
        {
            "name": "by",
            "type": {"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        },
    ],
}
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; repeated string tag_names = 2; }'
REST = '"note":null,"lines":[],"blob":{"int":1},"by":{}}'
SHAPE = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}


class Cluster:
    """A broker that is a registry, and commands against it, in this process."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.bootstrap = broker.bootstrap
        self.url = f"http://127.0.0.1:{port_of(broker)}"
        self.folder = folder
        self.capture: pytest.CaptureFixture[str] | None = None

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run(self, *arguments: str, lines: str = "", status: int = 0) -> str:
        assert self.capture is not None
        self.capture.readouterr()
        with open(self.file("lines", lines)) as source, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", source)
            brokers = () if arguments[0] == "schema" else ("-b", self.bootstrap)
            got = app.main([*arguments, *brokers, "--registry", self.url])
        told = self.capture.readouterr()
        assert got == status, told.err
        return told.out if status == 0 else told.err


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as one:
        yield one


@pytest.fixture
def cluster(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cluster:
    one = Cluster(broker, tmp_path)
    one.capture = capsys
    return one


def values(cluster: Cluster, topic: str) -> list[bytes]:
    with WireClient(cluster.bootstrap) as client:
        return [value for value in fetch_values(client, topic, 0) if value is not None]


def test_avro_goes_in_and_out_and_confluents_client_reads_it(cluster: Cluster) -> None:
    lines = [
        '{"id":7,"note":{"string":"é"},"lines":[1.5,2],"blob":{"bytes":"\\u00ff\\u0000"},"by":{"x":"B"}}',
        '{"id":-9007199254740993,"note":"plain","lines":[],"blob":{"int":3},"by":{}}',
        '{"id":0,"note":null,"lines":[0.1],"blob":{"bytes":""},"by":{}}',
    ]
    file = cluster.file("order.avsc", json.dumps(ORDER))
    cluster.run("produce", "orders", "--schema", file, lines="\n".join(lines) + "\n")
    shown = cluster.run("consume", "orders", "--schema").splitlines()
    assert [json.loads(line)["id"] for line in shown] == [7, -9007199254740993, 0]
    assert json.loads(shown[0]) == json.loads(lines[0])
    assert json.loads(shown[1])["note"] == {"string": "plain"}
    with SchemaRegistryClient({"url": cluster.url}) as registry:
        read = AvroDeserializer(registry)
        context = SerializationContext("orders", MessageField.VALUE)
        told = [read(value, context) for value in values(cluster, "orders")]
    assert told[0] == {
        "id": 7,
        "note": "é",
        "lines": [1.5, 2.0],
        "blob": b"\xff\0",
        "by": {"x": "B"},
    }
    assert told[2]["note"] is None
    again = cluster.run("produce", "again", "--schema", file, lines="\n".join(shown) + "\n")
    assert again == ""
    assert cluster.run("consume", "again", "--schema").splitlines() == shown


def test_what_confluents_serializers_write_is_shown(cluster: Cluster) -> None:
    with (
        SchemaRegistryClient({"url": cluster.url}) as registry,
        WireClient(cluster.bootstrap) as client,
    ):
        context = SerializationContext("theirs", MessageField.VALUE)
        avro = AvroSerializer(
            registry, '{"type":"record","name":"U","fields":[{"name":"a","type":"int"}]}'
        )
        proto = ProtobufSerializer(
            timestamp_pb2.Timestamp,
            registry,
            {"use.deprecated.format": False, "subject.name.strategy": lambda c, _: "theirs-proto"},
        )
        client.create_topic("theirs")
        for value in (avro({"a": 1}, context), proto(timestamp_pb2.Timestamp(seconds=5), context)):
            assert value is not None
            produce_values(client, "theirs", 0, [value])
        produce_values(client, "theirs", 0, [b"plain text"])
    shown = cluster.run("consume", "theirs", "--schema").splitlines()
    assert shown == ['{"a":1}', '"1970-01-01T00:00:05Z"', "plain text"]


def test_json_protobuf_keys_and_versions(cluster: Cluster) -> None:
    proto = cluster.file("order.proto", PROTO)
    key = cluster.file("key.avsc", '"string"')
    lines = '"a"|{"id":"5","tag_names":["x"]}\n'
    cluster.run("produce", "protos", "-K", "|", "--schema", proto, "--key-schema", key, lines=lines)
    cluster.run(
        "produce", "protos", "-K", "|", "--schema", "1", "--key-schema", "latest", lines=lines
    )
    told = cluster.run("consume", "protos", "--schema", "--key-schema", "--keys").splitlines()
    assert told == ['"a"\t{"id":"5","tag_names":["x"]}'] * 2
    shape = cluster.file("shape.json", json.dumps(SHAPE))
    cluster.run("produce", "shapes", "--schema", shape, lines='{"id": 1}\n')
    assert cluster.run("consume", "shapes", "--schema") == '{"id": 1}\n'
    assert (
        json.loads(cluster.run("consume", "shapes", "--schema", "--json"))["value"] == '{"id": 1}'
    )


@pytest.mark.parametrize(
    ("given", "line", "why"),
    [
        ("order.avsc", '{"id":1}', "line 1: not by its schema: $: the field note is missing"),
        ("order.avsc", "{", "line 1: it is no JSON"),
        (
            "order.avsc",
            '{"id":true,"note":null,"lines":[],"blob":{"int":1},"by":{}}',
            "$.id: true is no long",
        ),
        (
            "order.avsc",
            '{"id":1,"note":null,"lines":[],"blob":3,"by":{}}',
            "of one of the names bytes, int",
        ),
        (
            "order.avsc",
            '{"id":99999999999999999999,"note":null,"lines":[],"blob":3,"by":{}}',
            "is no long",
        ),
        ("shape.json", '{"id":"x"}', "$.id: 'x' is not of type 'integer'"),
        ("order.proto", '{"idd":1}', "no field named"),
        ("latest", "{}", "not found"),
        ("missing.avsc", "{}", "missing.avsc: No such file or directory"),
        ("order.txt", "{}", "a schema is a file (.avsc, .json, .proto), a version or latest"),
        ("bad.avsc", "{}", "Invalid schema"),
    ],
)
def test_what_goes_wrong_is_one_line(cluster: Cluster, given: str, line: str, why: str) -> None:
    cluster.file("order.avsc", json.dumps(ORDER))
    cluster.file("shape.json", json.dumps(SHAPE))
    cluster.file("order.proto", PROTO)
    bad = cluster.file("bad.avsc", '{"type":"nothing"}')
    schema = given if given == "latest" else str(Path(bad).parent / given)
    topic = f"wrong-{given.replace('.', '-')}"
    told = cluster.run("produce", topic, "--schema", schema, lines=line + "\n", status=1)
    assert why in told
    assert told.startswith("kwire: ")
    assert told.count("\n") == 1


def test_a_schema_that_the_registry_has_not_is_named(cluster: Cluster) -> None:
    with WireClient(cluster.bootstrap) as client:
        client.create_topic("unknown")
        produce_values(client, "unknown", 0, [b"\0\0\0\x03\xe7x"])
    told = cluster.run("consume", "unknown", "--schema", status=1)
    assert "unknown-0 offset 0" in told
    assert "not found" in told


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a registry that nobody answers for."""
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unheard.getsockname()[1]}"


def test_a_group_commits_what_is_printed_and_nothing_else(cluster: Cluster, silent: str) -> None:
    """A record that could not be shown was committed, so that each rerun lost one more."""
    file = cluster.file("key.avsc", '"string"')
    cluster.run("produce", "lost", "--schema", file, lines='"a"\n"b"\n')
    with WireClient(cluster.bootstrap) as client:
        produce_values(client, "lost", 0, [b"\0\0\0\x03\x7fx", b"plain"])
    read = ("consume", "lost", "-g", "lost-readers")
    registry, cluster.url = cluster.url, silent
    for _ in range(2):
        assert silent in cluster.run(*read, "--schema", status=1)
    cluster.url = registry
    assert cluster.run(*read, "--schema", "-c", "1") == '"a"\n'
    for _ in range(2):
        assert "lost-0 offset 2" in cluster.run(*read, "--schema", status=1)
    assert cluster.run(*read, "-c", "1") == "\0\0\0\x03\x7fx\n"
    assert cluster.run(*read, "--schema") == "plain\n"
    assert cluster.run(*read) == ""


def test_a_command_of_a_share_group_gets_json_too(cluster: Cluster) -> None:
    """`--exec` was given the bytes, whatever `--schema` asked."""
    file = cluster.file("text.avsc", '"string"')
    both = ("--schema", file, "--key-schema", file, "-K", "|")
    cluster.run("produce", "jobs", *both, lines='"k"|"a"\n')
    with WireClient(cluster.bootstrap) as client:
        produce_values(client, "jobs", 0, [b"\0\0\0\x03\x7fx"])
        set_group_config(client, "workers", share_auto_offset_reset="earliest")
    seen = cluster.folder / "seen"
    command = f'(echo "$KWIRE_KEY"; cat) >> {seen}'
    work = ("consume", "jobs", "--share", "workers", "--exec", command)
    cluster.run(*work, "--schema", "--key-schema", "-c", "1")
    assert seen.read_text() == '"k"\n"a"'
    told = cluster.run(*work, "--schema", status=1)
    assert "jobs-0 offset 1" in told
    assert told.count("\n") == 1
    assert seen.read_text() == '"k"\n"a"'


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
    ("file", "schema", "line", "why"),
    [
        ("f.avsc", '"float"', "16777217", "$: a float cannot hold 16777217"),
        ("many.proto", MANY, "[]", "$: [] is no p.Many"),
    ],
)
def test_no_value_is_altered_on_its_way(
    cluster: Cluster, file: str, schema: str, line: str, why: str
) -> None:
    """These were sent as something else, or ended as faults of kwire's."""
    topic = f"altered-{file.replace('.', '-')}"
    path = cluster.file(file, schema)
    told = cluster.run("produce", topic, "--schema", path, lines=line + "\n", status=1)
    assert told.startswith("kwire: line 1: ")
    assert why in told
    assert told.count("\n") == 1


def test_no_numbers_and_anys_go_in_and_out(cluster: Cluster) -> None:
    file = cluster.file("floats.avsc", '{"type":"array","items":["float","double"]}')
    line = '[{"float":"NaN"},{"double":"Infinity"},{"float":"-Infinity"},{"float":16777216.0}]\n'
    cluster.run("produce", "floats", "--schema", file, lines=line)
    assert cluster.run("consume", "floats", "--schema") == line
    cluster.run(
        "produce", "floats", "--schema", file, lines=cluster.run("consume", "floats", "--schema")
    )
    assert cluster.run("consume", "floats", "--schema") == line * 2
    proto = cluster.file("many.proto", MANY)
    line = (
        '{"id":1,"any":{"@type":"type.googleapis.com/p.Inner","text":"x"},"struct":{"a":[]},'
        '"mask":"a,b","one":{},"all":[{"text":"y"}],"by":{"k":{}},"wrapped":5,"number":"NaN"}\n'
    )
    cluster.run("produce", "anys", "--schema", proto, lines=line)
    shown = cluster.run("consume", "anys", "--schema")
    assert json.loads(shown) == json.loads(line)


@pytest.mark.parametrize(
    ("name", "message", "why"),
    [
        ("any", b"\x12\x0f\x0a\x0da/p.Forgotten", "p.Forgotten"),
        ("mask", b"\x22\x05\x0a\x03A_B", "A_B"),
        ("struct", b"\x1a\x10\x0a\x0e\x0a\x01a\x12\x09\x11" + b"\0" * 6 + b"\xf8\x7f", "nan"),
    ],
)
def test_a_message_that_has_no_json_is_one_line(
    cluster: Cluster, name: str, message: bytes, why: str
) -> None:
    topic = f"no-json-{name}"
    proto = cluster.file("many.proto", MANY)
    cluster.run("produce", topic, "--schema", proto, lines='{"id":1}\n')
    (first,) = values(cluster, topic)
    with WireClient(cluster.bootstrap) as client:
        produce_values(client, topic, 0, [first[:6] + b"\x08\x01" + message])
    told = cluster.run("consume", topic, "--schema", status=1)
    assert told.startswith(f"kwire: {topic}-0 offset 1: it has no JSON: ")
    assert why.lower() in told.lower()
    assert told.count("\n") == 1


def test_what_a_record_says_does_not_bound_the_memory_of_who_shows_it(cluster: Cluster) -> None:
    """Ten blocks of a million nulls are 36 bytes."""
    file = cluster.file("nulls.avsc", '{"type":"array","items":"null"}')
    cluster.run("produce", "nulls", "--schema", file, lines="[null,null]\n")
    (first,) = values(cluster, "nulls")
    with WireClient(cluster.bootstrap) as client:
        produce_values(client, "nulls", 0, [first[:5] + b"\x80\x89\x7a" * 10 + b"\0"])
    told = cluster.run("consume", "nulls", "--schema", status=1)
    assert "nulls-0 offset 1" in told
    assert "too many values" in told
    assert told.count("\n") == 1


def test_json_of_several_lines_is_shown_on_one(cluster: Cluster) -> None:
    shape = cluster.file("shape.json", json.dumps(SHAPE))
    cluster.run("produce", "lines", "--schema", shape, lines='{"id": 1}\n')
    (first,) = values(cluster, "lines")
    text = b'{\r\n  "id": 10000000000000000000000000,\n  "a\\nb": "\\n\xe2\x80\xa8", "c": 1.10\n}\n'
    with WireClient(cluster.bootstrap) as client:
        produce_values(client, "lines", 0, [first[:5] + text])
    shown = cluster.run("consume", "lines", "--schema")
    assert shown.count("\n") == 2
    told = shown.partition("\n")[2]
    assert json.loads(told) == json.loads(text)
    assert '"c": 1.10' in told


def test_no_subject_is_left_behind_by_a_wrong_topic(cluster: Cluster) -> None:
    """The schema was registered before the cluster was asked."""
    file = cluster.file("left.avsc", '"string"')
    told = cluster.run("produce", "no/topic", "--schema", file, lines='"a"\n', status=1)
    assert told.count("\n") == 1
    assert "no/topic" not in cluster.run("schema", "list")
