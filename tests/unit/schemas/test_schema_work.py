"""What a decision needs to be read: small schemas at once, others as work for another process."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("avro")
pytest.importorskip("google.protobuf")

from kwire.schemas.registry import schemas
from kwire.schemas.registry.checks import check_compatibility
from kwire.schemas.registry.errors import RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.records import version_record
from kwire.schemas.registry.registering import register
from kwire.schemas.registry.requests import schema_request
from kwire.schemas.registry.schemas import TOLD_MAX
from kwire.schemas.registry.version import Reference, Version
from kwire.schemas.registry.work import (
    Kind,
    Part,
    ReadSchema,
    Refused,
    SchemaWork,
    WorkNeeded,
    decoded,
    decoded_done,
    done,
    encoded,
    encoded_done,
)
from tests.support.schema_log import SchemaLog

SMALL = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


def wide(fields: int, kind: str = "int") -> str:
    """A record of so many fields."""
    told = [{"name": f"field_{at}", "type": kind} for at in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": told}, separators=(",", ":"))


def through_bytes(work: SchemaWork) -> object:
    """Done as another process does it."""
    return decoded_done(encoded_done(done(decoded(encoded(work)))))


class Registering:
    """Registers, and does the work that is needed as somebody else would."""

    def __init__(self) -> None:
        self.log = SchemaLog()
        self.works: list[SchemaWork] = []

    def register(self, subject: str, schema: str, **fields: Json) -> Json:
        while True:
            try:
                return self.log.register(subject, schema, **fields)
            except WorkNeeded as needed:
                work = needed.work
            self.works.append(work)
            found = through_bytes(work)
            assert isinstance(found, tuple)
            self.log.registry.schemas.tell(work, found)  # type: ignore[arg-type]


def test_what_is_small_is_no_work_for_others() -> None:
    one = Registering()
    one.register("s", SMALL)
    assert not one.works


def test_a_large_schema_is_read_and_compared_elsewhere_with_the_same_answers() -> None:
    one = Registering()
    first = one.register("s", wide(500))
    assert [work.kind for work in one.works] == [Kind.READ]
    assert one.register("s", wide(500)) == first
    with pytest.raises(RegistryError) as refused:
        one.register("s", wide(501, "string"))
    assert refused.value.code == 40901
    assert "TYPE_MISMATCH" in str(refused.value)
    assert [work.kind for work in one.works] == [Kind.READ, Kind.READ, Kind.COMPARE]


def test_many_small_versions_are_large_together() -> None:
    one = Registering()
    one.log.do(lambda registry: _level(registry))
    for at in range(12):
        one.register("s", wide(30).replace('"R"', f'"R","doc":"{at}"'))
    assert one.works
    assert {work.kind for work in one.works} == {Kind.COMPARE}


def _level(registry: Registry):  # type: ignore[no-untyped-def]
    from kwire.schemas.registry.settings import set_config

    return set_config(registry, "s", {"compatibilityLevel": "BACKWARD_TRANSITIVE"})


def test_a_protobuf_schema_that_is_large_has_its_descriptor_made_elsewhere() -> None:
    text = "message A {" + "".join(f"string field_{at} = {at + 1};" for at in range(600)) + "}"
    one = Registering()
    one.register("s", f'syntax = "proto3";{text}', schemaType="PROTOBUF")
    (version,) = one.log.registry.state.versions("s")
    with pytest.raises(WorkNeeded) as needed:
        one.log.registry.schemas.described(version)
    one.log.registry.schemas.tell(needed.value.work, done(needed.value.work))
    told = one.log.registry.schemas.described(version)
    small = SchemaLog()
    small.register("s", 'syntax = "proto3";message A {string x = 1;}', schemaType="PROTOBUF")
    assert len(told) > 5000
    assert small.registry.schemas.described(small.registry.state.versions("s")[0])


def test_what_is_refused_elsewhere_is_refused_with_its_reason() -> None:
    registry = Registry()
    request = schema_request({"schema": wide(500, "nothing")})
    with pytest.raises(WorkNeeded) as needed:
        register(registry, "s", request, normalize=False)
    registry.schemas.tell(needed.value.work, done(needed.value.work))
    with pytest.raises(RegistryError, match="Invalid schema of type AVRO: ") as refused:
        register(registry, "s", request, normalize=False)
    assert refused.value.code == 42201
    answer = check_compatibility(registry, "s", None, request, normalize=False, verbose=True)
    assert answer["is_compatible"] is False
    registry.schemas.forget(needed.value.work)
    with pytest.raises(WorkNeeded):
        register(registry, "s", request, normalize=False)


def test_a_package_that_is_missing_is_named() -> None:
    registry = Registry()
    request = schema_request({"schema": wide(500)})
    with pytest.raises(WorkNeeded) as needed:
        register(registry, "s", request, normalize=False)
    registry.schemas.tell(needed.value.work, Refused("", "avro"))
    with pytest.raises(RegistryError, match=r"not installed \(avro\)") as refused:
        register(registry, "s", request, normalize=False)
    assert refused.value.status == 501


def test_what_is_told_is_bounded() -> None:
    registry = Registry()
    for at in range(TOLD_MAX + 5):
        work = SchemaWork(Kind.READ, (Part("AVRO", f'"{at}"', ()),), (0,))
        registry.schemas.tell(work, ReadSchema("", "", None))
    assert len(registry.schemas._told) == TOLD_MAX


def test_references_that_double_at_each_level_are_read_once() -> None:
    """Each subject refers twice to the one before: 2^20 ways lead to the first."""
    log = SchemaLog()
    log.register("s0", '{"type":"string"}', schemaType="JSON")
    for at in range(1, 21):
        references: Json = [
            {"name": f"{name}{at}", "subject": f"s{at - 1}", "version": 1} for name in ("a", "b")
        ]
        schema = f'{{"allOf":[{{"$ref":"a{at}"}},{{"$ref":"b{at}"}}]}}'
        log.register(f"s{at}", schema, references=references, schemaType="JSON")
    version = log.registry.state.versions("s20")[0]
    assert len(log.registry.schemas.work_of(version).parts) == 21


def test_references_in_a_circle_are_refused() -> None:
    """No request makes one; another registry's topic may have it."""
    registry = Registry()
    for own, other in (("a", "b"), ("b", "a")):
        version = Version(
            *(own, 1, 1 if own == "a" else 2, "AVRO", SMALL, (Reference("R", other, 1),)),
            *(None, None, False, own * 32, 0, {}),
        )
        assert not registry.replay(*version_record(version), 1)
    with pytest.raises(RegistryError, match="lead in a circle") as refused:
        registry.schemas.read_version(registry.state.versions("a")[0])
    assert refused.value.code == 42201


def test_more_text_than_any_request_may_have_read_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schemas, "CHARACTERS_MAX", 20_000)
    one = Registering()
    with pytest.raises(RegistryError, match="at most 20000 are read") as refused:
        one.register("s", wide(1000))
    assert refused.value.code == 42201
