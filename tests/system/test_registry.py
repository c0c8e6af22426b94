"""The schema registry of a broker: what others' clients do with it, what it refuses, who may."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.protocol import messages as m
from kwire.schemas.registry.json_values import Json
from kwire.testing.cluster import Broker, free_ports
from tests.support.registry_client import RegistryClient
from tests.support.sasl import USERS, sasl_settings
from tests.support.wire import WireClient
from tests.system.test_http import port_of, wait_for

INT, STRING = '"int"', '"string"'
R1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
R2 = '{"type":"record","name":"R","fields":[{"name":"b","type":"int"}]}'


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={"http.listeners": "http://127.0.0.1:0"}) as one:
        yield one


@pytest.fixture(scope="module")
def registry(broker: Broker) -> RegistryClient:
    return RegistryClient(f"127.0.0.1:{port_of(broker)}")


def test_a_schema_is_registered_found_and_kept_over_a_kill(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    registry = RegistryClient(f"127.0.0.1:{port}")
    with Broker(data_dir=tmp_path, options={"http.listeners": f"http://127.0.0.1:{port}"}) as own:
        assert registry.get("/subjects").body == []
        told = registry.register("orders-value", R1)
        assert told.status == 200
        assert told.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
        assert isinstance(told.body, dict)
        assert (told.body["id"], told.body["version"]) == (1, 1)
        own.kill()
        own.start()
        found = registry.get("/schemas/ids/1").body
        assert isinstance(found, dict)
        assert (found["schema"], found["guid"]) == (R1, told.body["guid"])
        again = registry.register("orders-value", R1).body
        assert isinstance(again, dict)
        assert again["id"] == 1
        other = registry.register("other", R2).body
        assert isinstance(other, dict)
        assert other["id"] == 2


def test_fifty_at_once_get_one_id(registry: RegistryClient) -> None:
    schema = '{"type":"fixed","name":"At_once","size":7}'
    with ThreadPoolExecutor(50) as pool:
        answers = list(
            pool.map(lambda at: registry.register(f"at-once-{at % 5}", schema), range(50))
        )
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body["id"] for answer in answers}) == 1  # type: ignore[index,call-overload]
    assert {answer.body["version"] for answer in answers} == {1}  # type: ignore[index,call-overload]


def test_confluents_client_and_its_avro_serializer(
    broker: Broker, registry: RegistryClient
) -> None:
    client_module = pytest.importorskip("confluent_kafka.schema_registry")
    avro = pytest.importorskip("confluent_kafka.schema_registry.avro")
    from confluent_kafka.serialization import MessageField, SerializationContext

    schema = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
    with client_module.SchemaRegistryClient({"url": registry.url}) as client:
        serialize = avro.AvroSerializer(client, schema)
        context = SerializationContext("users", MessageField.VALUE)
        data = serialize({"name": "Ada"}, context)
        assert data[0] == 0
        assert avro.AvroDeserializer(client)(data, context) == {"name": "Ada"}

        subject = "users-value"
        latest = client.get_latest_version(subject)
        assert int.from_bytes(data[1:5], "big") == latest.schema_id
        assert client.get_versions(subject) == [1]
        assert subject in client.get_subjects()
        assert client.lookup_schema(subject, client_module.Schema(schema, "AVRO")).version == 1
        assert client.get_schema_by_guid(latest.guid).schema_str == latest.schema.schema_str
        assert client.get_schema_types()[0] == "AVRO"
        wider = client_module.Schema(
            '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
            '{"name":"age","type":"int"}]}',
            "AVRO",
        )
        assert not client.test_compatibility(subject, wider)
        with pytest.raises(client_module.SchemaRegistryError) as caught:
            client.register_schema(subject, wider)
        assert caught.value.http_status_code == 409
        client.set_compatibility(subject, "NONE")
        assert client.get_compatibility(subject) == "NONE"
        assert client.register_schema(subject, wider) > latest.schema_id
        assert client.delete_version(subject, 1) == 1
        assert client.delete_subject(subject) == [2]
        assert client.delete_subject(subject, permanent=True) == [1, 2]
        assert subject not in client.get_subjects(deleted=True)


def test_confluents_json_serializer(registry: RegistryClient) -> None:
    module = pytest.importorskip("confluent_kafka.schema_registry")
    json_schema = pytest.importorskip("confluent_kafka.schema_registry.json_schema")
    from confluent_kafka.serialization import MessageField, SerializationContext

    schema = """{"$schema": "http://json-schema.org/draft-07/schema#", "title": "Person",
        "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"""
    context = SerializationContext("people", MessageField.VALUE)
    with module.SchemaRegistryClient({"url": registry.url}) as client:
        data = json_schema.JSONSerializer(schema, client)({"name": "Ada"}, context)
        read = json_schema.JSONDeserializer(schema, schema_registry_client=client)
        assert read(data, context) == {"name": "Ada"}
        assert client.get_latest_version("people-value").schema.schema_type == "JSON"
        narrower = schema.replace('["name"]', '["name", "age"]')
        assert not client.test_compatibility("people-value", module.Schema(narrower, "JSON"))


def test_confluents_protobuf_serializer(registry: RegistryClient) -> None:
    module = pytest.importorskip("confluent_kafka.schema_registry")
    protobuf = pytest.importorskip("confluent_kafka.schema_registry.protobuf")
    from confluent_kafka.serialization import MessageField, SerializationContext
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    for name, kind in (("inner.proto", None), ("outer.proto", ".shop.Inner")):
        file = descriptor_pb2.FileDescriptorProto(name=name, package="shop", syntax="proto3")
        message = file.message_type.add(name="Outer" if kind else "Inner")
        field = message.field.add(name="text", number=1, label=1, type=11 if kind else 9)
        if kind:
            field.type_name = kind
            file.dependency.append("inner.proto")
        pool.Add(file)
    outer = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Outer"))
    inner = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Inner"))
    context = SerializationContext("shop", MessageField.VALUE)
    with module.SchemaRegistryClient({"url": registry.url}) as client:
        serialize = protobuf.ProtobufSerializer(outer, client, {"use.deprecated.format": False})
        data = serialize(outer(text=inner(text="hello")), context)
        latest = client.get_latest_version("shop-value")
        assert latest.schema.schema_type == "PROTOBUF"
        assert [reference.name for reference in latest.schema.references] == ["inner.proto"]
    with module.SchemaRegistryClient({"url": registry.url}) as client:  # what was asked is cached
        for known in (None, client):
            read = protobuf.ProtobufDeserializer(outer, {"use.deprecated.format": False}, known)
            assert read(data, context).text.text == "hello"


def test_confluents_protobuf_serializer_and_deserializer_share_a_client(
    registry: RegistryClient,
) -> None:
    module = pytest.importorskip("confluent_kafka.schema_registry")
    protobuf = pytest.importorskip("confluent_kafka.schema_registry.protobuf")
    from confluent_kafka.schema_registry.confluent.type import decimal_pb2
    from confluent_kafka.serialization import MessageField, SerializationContext
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    brought = "confluent/type/decimal.proto"
    file = descriptor_pb2.FileDescriptorProto(name="price.proto", package="shop", syntax="proto3")
    file.dependency.append(brought)
    message = file.message_type.add(name="Price")
    message.field.add(name="sum", number=1, label=1, type=11, type_name=".confluent.type.Decimal")
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    price = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Price"))
    context = SerializationContext("prices", MessageField.VALUE)
    settings = {"use.deprecated.format": False}
    with module.SchemaRegistryClient({"url": registry.url}) as client:
        serialize = protobuf.ProtobufSerializer(price, client, settings)
        data = serialize(price(sum=decimal_pb2.Decimal(value=b"\x07", scale=1)), context)
        read = protobuf.ProtobufDeserializer(price, settings, client)(data, context)
        assert read.sum.value == b"\x07"
        assert client.get_latest_version("prices-value").schema.references == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/schemas/ids/99999", None, 404, 40403),
        ("GET", "/schemas/ids/one", None, 404, 404),
        ("GET", "/schemas/ids/1/what", None, 404, 404),
        ("GET", "/schemas/guids/x", None, 404, 40403),
        ("GET", "/subjects/none/versions", None, 404, 40401),
        ("GET", "/subjects/none/versions/0", None, 422, 42202),
        ("GET", "/subjects/none/versions/latest", None, 404, 40401),
        ("GET", "/subjects?limit=many", None, 400, 400),
        ("GET", "/subjects?offset=-1", None, 400, 400),
        ("GET", "/subjects?deleted=perhaps", None, 400, 400),
        ("GET", "/subjects?subjectPrefix=%FF", None, 400, 400),
        ("GET", "/subjects/%FF/versions", None, 400, 400),
        ("GET", "/schemas?" + "&".join(["a=b"] * 200), None, 400, 400),
        ("PATCH", "/subjects", None, 405, 405),
        ("POST", "/subjects/bad/versions", b"{", 400, 400),
        ("POST", "/subjects/bad/versions", b'{"schema": "\\ud800"}', 400, 400),
        ("POST", "/subjects/bad/versions", b"[" * 200_000, 400, 400),
        ("POST", "/subjects/bad/versions", b'{"schema": NaN}', 400, 400),
        ("POST", "/subjects/bad/versions", {"schema": "{"}, 422, 42201),
        ("POST", "/subjects/bad/versions", {"schema": "[" * 50_000}, 422, 42201),
        ("POST", "/subjects/bad/versions", {"schema": "x" * 1_200_000}, 422, 42209),
        ("POST", "/subjects/bad/versions", b'"' + b"x" * 5_000_000 + b'"', 422, 42209),
        ("POST", "/subjects/b%0Ad/versions", {"schema": INT}, 422, 42208),
        ("POST", "/subjects/__GLOBAL/versions", {"schema": INT}, 422, 42208),
        ("POST", "/subjects/bad/versions?normalize=1", {"schema": INT}, 400, 400),
        ("POST", "/compatibility/subjects/none/versions/3", {"schema": INT}, 404, 40401),
        ("PUT", "/config", {"compatibility": "MOSTLY"}, 422, 42203),
        ("PUT", "/config/x", {"unknown": 1}, 422, 422),
        ("PUT", "/mode/x", {"mode": "FORWARD"}, 422, 42204),
        ("GET", "/config/none", None, 404, 40408),
        ("GET", "/mode/none", None, 404, 40409),
        ("DELETE", "/subjects/none?permanent=true", None, 404, 40401),
    ],
)
def test_wrong_input_is_refused_in_one_line(
    registry: RegistryClient, method: str, path: str, body: object, status: int, code: int
) -> None:
    answer = registry.ask(method, path, body)  # type: ignore[arg-type]
    assert (answer.status, answer.code) == (status, code)
    assert isinstance(answer.body, dict)
    message = answer.body["message"]
    assert isinstance(message, str)
    assert 0 < len(message) < 1500
    assert "\n" not in message


def test_another_content_type_is_refused(registry: RegistryClient) -> None:
    other = RegistryClient(registry.address, {"Content-Type": "text/plain"})
    assert other.register("x", INT).status == 415
    plain = RegistryClient(registry.address, {"Accept": "application/json"})
    assert plain.get("/subjects").headers["content-type"] == "application/json"


def test_contexts_have_ids_of_their_own(registry: RegistryClient) -> None:
    first = registry.ask("POST", "/contexts/lab/subjects/c-value/versions", {"schema": STRING})
    assert isinstance(first.body, dict)
    assert first.body["id"] == 1
    assert registry.get("/contexts/.lab/subjects").body == [":.lab:c-value"]
    assert registry.get("/contexts/:.lab:/schemas/ids/1/schema").body == "string"
    assert registry.get("/schemas/ids/1/subjects?subject=:.lab:").body == [":.lab:c-value"]
    assert ".lab" in registry.get("/contexts").body  # type: ignore[operator]
    assert registry.get("/subjects/c-value/versions/latest").body["subject"] == ":.lab:c-value"  # type: ignore[index,call-overload]


def test_names_of_subjects_may_have_slashes(registry: RegistryClient) -> None:
    assert registry.register("a%2Fb%20c", STRING).status == 200
    assert "a/b c" in registry.get("/subjects").body  # type: ignore[operator]
    assert registry.get("/subjects/a%2Fb%20c/versions").body == [1]


def test_the_topic_is_compacted_and_has_one_partition(
    broker: Broker, registry: RegistryClient
) -> None:
    registry.register("any", STRING)
    from confluent_kafka.admin import AdminClient, ConfigResource

    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    assert len(admin.list_topics("_schemas", timeout=20).topics["_schemas"].partitions) == 1
    resource = ConfigResource(ConfigResource.Type.TOPIC, "_schemas")
    configs = admin.describe_configs([resource])[resource].result(20)
    assert configs["cleanup.policy"].value == "compact"


# -- who may


class Secure(Broker):
    """A broker where `admin` may do everything and others what ACLs say."""

    def __init__(self) -> None:
        port, sasl_port = free_ports(2)
        listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
        super().__init__(
            port=port,
            options={
                "listeners": listeners,
                "advertised.listeners": listeners,
                "http.listeners": "http://127.0.0.1:0",
                "http.authentication": "basic",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
                "connection.failed.authentication.delay.ms": "0",
                **sasl_settings("SASL_PLAINTEXT", mechanisms=("PLAIN",)),
            },
        )


def asks_as(address: str, user: str) -> RegistryClient:
    token = base64.b64encode(f"{user}:{USERS[user]}".encode()).decode()
    return RegistryClient(address, {"Authorization": f"Basic {token}"})


def test_rights_are_those_on_the_topic() -> None:
    with Secure() as secure:
        address = f"127.0.0.1:{port_of(secure)}"
        admin, alice = asks_as(address, "admin"), asks_as(address, "alice")
        assert RegistryClient(address).get("/subjects").status == 401
        assert admin.register("s", STRING).status == 200
        assert alice.get("/schemas/ids/1").status == 403
        assert alice.register("s", STRING).code == 403
        with WireClient(secure.bootstrap) as client:
            allow(client, "alice", 3)
            wait_for(lambda: alice.get("/schemas/ids/1").status == 200)
            assert alice.register("s", STRING).status == 200, "what is there needs no write"
            assert alice.register("t", INT).status == 403
            assert alice.ask("DELETE", "/subjects/s").status == 403
            allow(client, "alice", 4)
            allow(client, "alice", 4, resource=5)
            wait_for(lambda: alice.register("t", INT).status == 200)
        told = alice.get("/subjects").body
        assert told == ["s", "t"]


def allow(client: WireClient, user: str, operation: int, resource: int = 2) -> None:
    """Allow an operation on the topic (or the transactional id) `_schemas`."""
    request = m.CreateAclsRequest(
        creations=[
            m.CreateAclsRequest.AclCreation(
                resource_type=resource,
                resource_name="_schemas",
                resource_pattern_type=3,
                principal=f"User:{user}",
                host="*",
                operation=operation,
                permission_type=3,
            )
        ]
    )
    assert client.call(request, 3).results[0].error_code == 0


def test_the_answers_are_json(registry: RegistryClient) -> None:
    assert json.dumps(registry.get("/v1/metadata/id").body)
    assert registry.get("/v1/metadata/version").status == 200
    assert registry.get("/").body == {}


def test_a_schema_that_takes_long_holds_up_nobody(registry: RegistryClient) -> None:
    """Fifteen hundred properties, checked by the meta-schema of 2020-12, take long;
    meanwhile others are answered."""
    properties = {f"p{at}": {"type": "string"} for at in range(1500)}
    schema: Json = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": properties,
    }
    large = {"schema": json.dumps(schema), "schemaType": "JSON"}
    order: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        registering = pool.submit(registry.ask, "POST", "/subjects/large/versions", large)
        registering.add_done_callback(lambda _: order.append("large"))
        for at in range(20):
            assert registry.register(f"beside-{at}", INT).status == 200
            order.append("small")
        answer = registering.result()
    assert answer.status == 200, answer.body
    assert order.index("large") > 2
    assert registry.ask("POST", "/subjects/large", large).status == 200


@pytest.mark.parametrize("schema_type", ["AVRO", "JSON", "PROTOBUF"])
def test_a_schema_over_a_megabyte_is_refused(registry: RegistryClient, schema_type: str) -> None:
    body: Json = {"schema": " " * 1_048_577, "schemaType": schema_type}
    told = registry.ask("POST", "/subjects/huge/versions", body)
    assert (told.status, told.code) == (422, 42209)


def test_a_schema_that_nests_deep_is_refused(registry: RegistryClient) -> None:
    for kind, text in (
        ("AVRO", '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000),
        ("JSON", '{"not":' * 5000 + "{}" + "}" * 5000),
        ("PROTOBUF", "message A {" * 5000 + "}" * 5000),
    ):
        told = registry.ask("POST", "/subjects/deep/versions", {"schema": text, "schemaType": kind})
        assert (told.status, told.code) == (422, 42201), (kind, told.body)
