"""Schemas of a registry: what is known, what refers to others, and what is no answer of one."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.spark import registry
from kwire.spark.avro import compile_schema, decode
from kwire.spark.decoding import Checked, Checker, Decoding, Undecodable, check_registry
from kwire.spark.registry import Registry, SchemaUnavailable
from kwire.spark.usage import JobError, UsageError
from tests.support.registry import NO_SCHEMA, FakeRegistry, Handler, running_registry


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    with running_registry() as server:
        yield server


def value(schema_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">bi", 0, schema_id) + body


def record(name: str, *fields: tuple[str, Any]) -> str:
    found = [{"name": field, "type": kind} for field, kind in fields]
    return json.dumps({"type": "record", "name": name, "fields": found})


def reference(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


def test_schemas_of_a_registry(fake: FakeRegistry) -> None:
    """Known, unknown, of another kind, and a registry that has trouble: that is no dead letter."""
    fake.answers = {
        "/base/schemas/ids/1": (200, {"schema": '"string"'}),
        "/base/schemas/ids/2": (200, {"schema": "message X {}", "schemaType": "PROTOBUF"}),
        "/base/schemas/ids/4": (500, {}),
    }
    schemas = Checker("avro", f"{fake.url}/base/", None)
    for text in ("one", "two"):
        data = bytes([len(text) * 2]) + text.encode()
        assert schemas.check(value(1, data)) == Checked(1)
    for number, reason in ((2, "schema 2 is PROTOBUF, not Avro"), (3, "schema 3 is not known")):
        with pytest.raises(Undecodable, match=reason):
            schemas.check(value(number))
    with pytest.raises(SchemaUnavailable, match="status 500"):
        schemas.check(value(4))
    # Once for each schema that there is an answer about.
    assert fake.asked.count("/base/schemas/ids/1") == 1


def test_a_registry_that_is_not_there_is_no_property_of_a_record(fake: FakeRegistry) -> None:
    """A proxy's 404 and answers without a schema made dead letters of good records."""
    schemas = Checker("avro", fake.url, None)
    for answer in (
        (404, b"<html>no such page</html>"),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, b""),
        (200, b""),
        (200, b"<html>down for maintenance</html>"),
        (200, {}),
        (200, []),
        (200, {"schema": None}),
        (200, {"schema": '{"type": "rec'}),
        (200, {"schema": '"int"', "references": [{}]}),
        (200, {"schema": '"int"', "references": 7}),
        (200, {"schema": '"int"', "references": ["a"]}),
        (200, {"schemaType": 7}),
        (401, {"error_code": 40101}),
        (429, {}),
        (503, {}),
    ):
        fake.answers = {"/schemas/ids/1": answer}
        with pytest.raises(SchemaUnavailable):
            schemas.check(value(1, b"\2"))
    fake.answers = {"/schemas/ids/1": (200, {"schema": '"int"'})}
    assert schemas.check(value(1, b"\2")) == Checked(1)
    with pytest.raises(SchemaUnavailable):
        Checker("avro", "http://127.0.0.1:1", None).check(value(1, b"\2"))


def test_schemas_that_refer_to_others(fake: FakeRegistry) -> None:
    """They were dead letters: of an unknown type."""
    place = {"references": [reference("geo.Point", "geo/point", 3)]}
    fake.answers = {
        "/schemas/ids/7": (
            200,
            {
                "schema": record("Visit", ("at", "geo.Point"), ("by", "Person")),
                "references": [
                    reference("Person", "person"),
                    reference("geo.Point", "geo/point", 3),
                ],
            },
        ),
        "/subjects/person/versions/1?deleted=true": (
            200,
            {"schema": record("Person", ("home", "geo.Point"), ("boss", ["null", "Person"]))}
            | place,
        ),
        "/subjects/geo%2Fpoint/versions/3?deleted=true": (
            200,
            {"schema": record("geo.Point", ("x", "int"), ("y", "int"))},
        ),
    }
    schemas = Checker("avro", fake.url, None)
    body = b"\2\4" + b"\6\10" + b"\0"
    for _ in range(2):
        assert schemas.check(value(7, body)) == Checked(7)
    assert len(fake.asked) == 3
    found = Registry(fake.url).schema(7)
    assert found.names == ("geo.Point", "Person")
    assert decode(compile_schema(found.text, found.references), body) == {
        "at": {"x": 1, "y": 2},
        "by": {"home": {"x": 3, "y": 4}, "boss": None},
    }


def test_references_that_lead_nowhere(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "REFERENCES_MAX", 20)
    needs = {"schema": '"A"', "references": [reference("A", "a")]}
    fake.answers = {
        "/schemas/ids/1": (200, needs),
        "/schemas/ids/2": (200, {"schema": '"B"', "references": [reference("B", "b")]}),
        "/schemas/ids/3": (200, {"schema": '"L"', "references": [reference("L", "long", 0)]}),
        # Of one that refers to itself the types are missing.
        "/subjects/b/versions/1?deleted=true": (
            200,
            {"schema": record("X", ("b", "B")), "references": [reference("B", "b")]},
        ),
    }
    for at in range(30):
        fake.answers[f"/subjects/long/versions/{at}?deleted=true"] = (
            200,
            {"schema": '"int"', "references": [reference("L", "long", at + 1)]},
        )
    schemas = Checker("avro", fake.url, None)
    for schema_id, reason in (
        (1, "schema 1 refers to a 1, which is not known"),
        (2, "schema 2: unknown type B"),
        (3, "schema 3 has more than 20 references"),
    ):
        with pytest.raises(Undecodable, match=reason):
            schemas.check(value(schema_id))
    # A registry that ends in the middle of it is not one that does not know.
    fake.answers["/subjects/a/versions/1?deleted=true"] = (502, {})
    with pytest.raises(SchemaUnavailable, match="status 502"):
        Checker("avro", fake.url, None).check(value(1))


def test_an_answer_that_does_not_end(fake: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time-outs of a socket are for each piece: one that came slowly held the batch for ever."""
    times = iter(range(0, 10**9, 10))
    monkeypatch.setattr(registry, "time", SimpleNamespace(monotonic=lambda: next(times)))
    fake.answers = {"/schemas/ids/1": (200, b" " * (registry.PIECE_BYTES * 4))}
    with pytest.raises(SchemaUnavailable, match="not all of the answer in 15 s"):
        Registry(fake.url).schema(1)
    monkeypatch.setattr(registry, "ANSWER_BYTES_MAX", 1 << 20)
    fake.answers = {"/schemas/ids/1": (200, b" " * (1 << 21))}
    with pytest.raises(SchemaUnavailable, match="more than 1 MB"):
        Registry(fake.url, timeout_s=1e9).schema(1)


class Cut(Handler):
    """Ends in the middle of what it has said to be longer."""

    def end_headers(self) -> None:
        self.send_header("Content-Length", "1000")
        super().end_headers()


def test_an_answer_that_ends_in_the_middle(fake: FakeRegistry) -> None:
    """It was no answer of a registry, where the connection had only been cut."""
    fake.RequestHandlerClass = Cut
    fake.answers = {"/schemas/ids/0": (200, b"{"), "/schemas/ids/1": (200, {"schema": '"int"'})}
    assert "999 more expected" in (Registry(fake.url).unreached() or "")
    with pytest.raises(SchemaUnavailable, match="IncompleteRead"):
        Registry(fake.url).schema(1)


def test_user_and_password_of_a_registry(fake: FakeRegistry) -> None:
    """They are sent, and stand in no line about the registry."""
    fake.answers = {"/schemas/ids/1": (200, {"schema": '"int"'})}
    at = fake.url.replace("http://", "http://me:pass%40word@")
    assert Registry(at).schema(1).text == '"int"'
    assert fake.authorizations == {f"Basic {base64.b64encode(b'me:pass@word').decode()}"}
    fake.answers = {"/schemas/ids/1": (500, {})}
    with pytest.raises(SchemaUnavailable) as caught:
        Registry(at).schema(1)
    assert "word" not in str(caught.value)


def test_a_registry_of_other_formats(fake: FakeRegistry) -> None:
    """Each format asks for its own, and what lies about it is a reason, or no answer."""
    fake.answers = {
        "/schemas/ids/1": (200, {"schema": '{"type": "integer"}', "schemaType": "JSON"}),
        "/schemas/ids/2": (200, {"schema": 'syntax = "proto3"; message M { int32 n = 1; }'}),
        "/schemas/ids/3": (200, {"schema": "message {", "schemaType": "PROTOBUF"}),
        "/schemas/ids/4": (200, {"schema": 7, "schemaType": "PROTOBUF"}),
        "/schemas/ids/5": (200, {"schema": "message M { N n = 1; }", "schemaType": "PROTOBUF"}),
        "/schemas/ids/6": (200, {"schema": "7", "schemaType": "JSON"}),
    }
    known = {"schema": fake.answers["/schemas/ids/2"][1]["schema"], "schemaType": "PROTOBUF"}
    fake.answers["/schemas/ids/7"] = (200, known)
    json_, protobuf = (Checker(form, fake.url, None) for form in ("json", "protobuf"))
    assert json_.check(value(1, b"12")) == Checked(1, None, "12")
    assert protobuf.check(value(7, b"\0\x08\x05")) == Checked(7, "M", '{"n": 5}')
    for checker, number, reason in (
        (json_, 2, "schema 2 is AVRO, not JSON Schema|holds no schema"),
        (json_, 6, "schema 6: the schema is no JSON Schema"),
        (protobuf, 1, "schema 1 is JSON, not Protobuf"),
        (protobuf, 2, "schema 2 is AVRO, not Protobuf"),
        (protobuf, 3, "schema 3: "),
        (protobuf, 5, "schema 5: "),
    ):
        with pytest.raises(Undecodable, match=reason):
            checker.check(value(number, b"\0"))
    with pytest.raises(SchemaUnavailable, match="holds no schema"):
        protobuf.check(value(4))


def test_what_is_no_registry_is_found_before_any_work(fake: FakeRegistry) -> None:
    """It was found with the first batch, which waited for five minutes."""
    asked = "/schemas/ids/0"
    for answer in (NO_SCHEMA, (404, b"<html>"), (200, {"schema": None}), (403, b"")):
        fake.answers = {asked: answer}
        assert Registry(fake.url).unreached() is None
    for answer in ((500, {}), (503, b"")):
        fake.answers = {asked: answer}
        assert f"{fake.url}: status {answer[0]}" in (Registry(fake.url).unreached() or "")
    for answer, words in (
        ((200, b"<html>welcome</html>"), "no schema registry: what it answers is no JSON"),
        ((200, b""), "no schema registry"),
        ((401, {"error_code": 40101}), "asks for user and password"),
    ):
        fake.answers = {asked: answer}
        with pytest.raises(UsageError, match=f"--registry {fake.url}: .*{words}"):
            Registry(fake.url.replace("://", "://me:secret@")).unreached()
    for path in ("a b", "\u20ac"):
        with pytest.raises(UsageError, match="--registry "):
            Registry(f"{fake.url}/{path}").unreached()


def test_a_registry_that_cannot_be_reached_is_waited_for(fake: FakeRegistry) -> None:
    told: list[str] = []
    waited: list[float] = []
    registry.wait_for(Registry(fake.url).unreached, 0.0, told.append, waited.append)
    assert (told, waited) == ([], [])
    away = Registry("http://me:secret@127.0.0.1:1").unreached
    with pytest.raises(JobError, match=r"--registry http://127\.0\.0\.1:1: .*refused"):
        registry.wait_for(away, 0.5, told.append, waited.append)
    assert (told, waited) == ([], [])

    def end_waiting(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.wait_for(away, 60.0, told.append, end_waiting)
    assert len(told) == 1
    assert "trying again for 15 s" in told[0]  # it has never answered
    assert "secret" not in told[0]


def test_newest_schemas_of_topics_are_looked_at_before_any_work(fake: FakeRegistry) -> None:
    """A registry that lies about them was found with the first batch, which waited for minutes."""
    path = "/subjects/t%20-value/versions/latest"
    told: list[str] = []

    def look(answer: tuple[int, Any], **given: str) -> None:
        fake.answers = {path: answer}
        url = fake.url.replace("://", "://me:secret@")
        decoding = Decoding(given.get("form", "avro"), None, url, None)
        check_registry(decoding, ["t "], 0.0, told.append, lambda _: None)
        assert fake.asked[-1] == path

    # Subjects may be named otherwise, or hold none of the kind; older values may decode then.
    for answer in (
        (200, {"schema": '"int"'}),
        (404, {"error_code": 40401}),
        (404, b"<html>"),
        (403, {}),
        (405, b""),
        (200, {"schema": "{}", "schemaType": "JSON"}),
    ):
        look(answer)
    for answer, words in (
        ((200, b"<html>"), "Expecting value"),
        ((200, {}), "the answer holds no schema"),
        ((200, []), "the answer holds no schema"),
        ((200, {"schema": '{"type": "rec'}), "the answer holds no schema"),
        ((200, {"schema": '"no such type"'}), "no such type"),
        ((200, {"schema": '"int"', "references": ["a"]}), "a reference without a name"),
    ):
        with pytest.raises(UsageError, match=f"--registry.*{words}") as refused:
            look(answer)
        assert "secret" not in str(refused.value)
        assert "\n" not in str(refused.value)
    with pytest.raises(UsageError, match=r"--registry.*subject t -value: "):
        look((200, {"schema": "message {", "schemaType": "PROTOBUF"}), form="protobuf")
    with pytest.raises(JobError, match="status 500"):
        look((500, {}))
