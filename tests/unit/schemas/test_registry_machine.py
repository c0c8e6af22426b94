"""The registry as a state machine: what is decided, what is refused, and that its log tells all."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.schemas.registry import deleting, queries
from kwire.schemas.registry import settings as setting
from kwire.schemas.registry.checks import check_compatibility
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry, shown
from kwire.schemas.registry.queries import Wanted
from kwire.schemas.registry.records import Writer, writer_record
from kwire.schemas.registry.registering import register
from kwire.schemas.registry.requests import (
    config_request,
    mode_request,
    schema_request,
    version_number,
)
from kwire.schemas.registry.scopes import Mode
from tests.support.schema_log import SchemaLog, shown_state

pytest.importorskip("avro")

RULE = {"name": "x", "kind": "CONDITION", "type": "CEL"}
S, T = "orders-value", "payments-value"


def record(*fields: str, name: str = "R", default: bool = False) -> str:
    """An Avro record of int fields."""
    extra = {"default": 0} if default else {}
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": one, "type": "int", **extra} for one in fields],
        }
    )


A, AB, B = record("a"), record("a", "b"), record("b")
A_B0 = json.dumps(
    {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}],
    }
)


@pytest.fixture
def log() -> SchemaLog:
    return SchemaLog()


def refused(action: Callable[[], object]) -> tuple[int, int]:
    """(code, status)."""
    with pytest.raises(RegistryError) as caught:
        action()
    assert str(caught.value)
    assert "\n" not in str(caught.value)
    return int(caught.value.code), caught.value.status


def delete(log: SchemaLog, subject: str, version: int | None = None, permanent: bool = False):  # type: ignore[no-untyped-def]
    if version is None:
        return log.do(lambda r: deleting.delete_subject(r, subject, permanent=permanent))
    return log.do(lambda r: deleting.delete_version(r, subject, version, permanent=permanent))


def set_level(log: SchemaLog, level: str, scope: str = "", **fields: object) -> None:
    request = config_request({"compatibility": level, **fields})  # type: ignore[dict-item]
    log.do(lambda r: setting.set_config(r, scope, request))


def set_mode(log: SchemaLog, mode: str, scope: str = "", force: bool = False) -> None:
    log.do(lambda r: setting.set_mode(r, scope, mode_request({"mode": mode}), force=force))


# -- ids and versions


def test_one_schema_has_one_id_in_a_context_and_a_version_in_each_subject(log: SchemaLog) -> None:
    first = log.register(S, A)
    assert (first["id"], first["version"]) == (1, 1)
    assert log.register(S, A) == first
    assert len(log.records) == 1
    set_level(log, "NONE")
    assert log.register(S, B)["id"] == 2
    other = log.register(T, B)
    assert (other["id"], other["version"]) == (2, 1)
    apart = log.register(f":.lab:{S}", B)
    assert (apart["id"], apart["version"], apart["guid"]) == (1, 1, other["guid"])
    assert log.registry.state.contexts() == [".", ".lab"]
    assert queries.ids_of_guid(log.registry, str(other["guid"])) == [
        {"context": ".", "id": 2},
        {"context": ".lab", "id": 1},
    ]


def test_ids_are_not_given_twice_although_the_highest_is_gone_for_good(log: SchemaLog) -> None:
    set_level(log, "NONE")
    log.register(S, A)
    log.register(S, B)
    delete(log, S, 2)
    delete(log, S, 2, permanent=True)
    again = SchemaLog(log.compacted())
    assert again.register(S, AB)["id"] == 3


def test_a_deleted_schema_comes_back_with_its_id_and_the_next_version(log: SchemaLog) -> None:
    log.register(S, A)
    delete(log, S)
    back = log.register(S, A)
    assert (back["id"], back["version"]) == (1, 2)
    assert queries.version_numbers(log.registry, S, Wanted.ALL, as_negative=False) == [2]


def test_an_id_that_two_writers_gave_is_the_first_ones_for_all_readers() -> None:
    one, other = SchemaLog(), SchemaLog()
    one.register(S, A)
    other.register(T, B)
    both = Registry()
    assert both.replay(*one.records[0], 1) == ""
    assert "another schema" in both.replay(*other.records[0], 2)
    assert [version.subject for version in both.state.of_id(".", 1)] == [S]


def test_the_guid_is_that_of_other_registries() -> None:
    """The MD5 of the schema's text, as a UUID, where nothing else belongs to it."""
    digest = hashlib.md5(b'"string"', usedforsecurity=False).digest()
    assert SchemaLog().register(S, '"string"')["guid"] == str(uuid.UUID(bytes=digest))


def test_metadata_and_rules_make_another_schema_of_a_text(log: SchemaLog) -> None:
    plain = log.register(S, A)
    metadata = {"properties": {"owner": "me"}, "tags": {"R.a": ["PII"]}, "sensitive": ["owner"]}
    rules = {
        "domainRules": [
            {"name": "check", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}
        ]
    }
    told = log.register(S, A, metadata=metadata, ruleSet=rules)  # type: ignore[arg-type]
    assert (told["id"], told["version"]) == (2, 2)
    assert told["guid"] != plain["guid"]
    found = shown(queries.version_of(log.registry, S, 2, deleted=False))
    assert found["metadata"] == metadata
    assert found["ruleSet"]["domainRules"][0]["name"] == "check"  # type: ignore[index,call-overload]
    third = log.register(S, A_B0)
    assert third["metadata"] == metadata, "kept from the version before"
    by = queries.latest_with_metadata(log.registry, S, {"owner": "me"}, deleted=False)
    assert by.version == 3


# -- refusals


def test_what_is_not_there(log: SchemaLog) -> None:
    log.register(S, A)
    registry = log.registry
    request = schema_request({"schema": B})
    assert refused(lambda: queries.version_of(registry, T, 1, deleted=False)) == (40401, 404)
    assert refused(lambda: queries.version_of(registry, S, 2, deleted=False)) == (40402, 404)
    assert refused(lambda: queries.version_of_id(registry, 2, "")) == (40403, 404)
    assert refused(lambda: queries.version_of_guid(registry, "x")) == (40403, 404)
    assert refused(lambda: delete(log, T)) == (40401, 404)
    assert refused(lambda: delete(log, T, 1)) == (40401, 404)
    assert refused(lambda: delete(log, S, 2)) == (40402, 404)
    for subject, code in ((T, 40401), (S, 40403)):
        assert refused(
            lambda name=subject: queries.looked_up(  # type: ignore[misc]
                registry, name, request, normalize=False, deleted=False
            )
        ) == (code, 404)
    assert refused(lambda: setting.shown_config(registry, S, effective=False)) == (40408, 404)
    assert refused(lambda: setting.shown_mode(registry, S, effective=False)) == (40409, 404)


def test_deletion_hides_first_and_removes_then(log: SchemaLog) -> None:
    set_level(log, "NONE")
    log.register(S, A)
    log.register(S, B)
    assert refused(lambda: delete(log, S, 1, permanent=True)) == (40407, 404)
    assert refused(lambda: delete(log, S, permanent=True)) == (40405, 404)
    assert delete(log, S, 1) == 1
    assert refused(lambda: delete(log, S, 1)) == (40406, 404)
    assert queries.version_of_id(log.registry, 1, "").is_deleted, "records of it are still read"
    assert delete(log, S) == [2]
    assert refused(lambda: delete(log, S)) == (40404, 404)
    assert queries.subjects(log.registry, ":*:", Wanted.LIVE) == []
    assert queries.subjects(log.registry, ":*:", Wanted.DELETED) == [S]
    assert delete(log, S, permanent=True) == [1, 2]
    assert refused(lambda: queries.version_of_id(log.registry, 1, "")) == (40403, 404)
    assert log.register(S, A)["id"] == 3


def test_what_others_refer_to_stays(log: SchemaLog) -> None:
    log.register(T, record("x", name="Inner"))
    outer = json.dumps(
        {"type": "record", "name": "Outer", "fields": [{"name": "i", "type": "Inner"}]}
    )
    reference = {"name": "Inner", "subject": T, "version": -1}
    answer = log.register(S, outer, references=[reference])  # type: ignore[list-item]
    kept = log.registry.state.version(S, 1)
    assert kept is not None
    assert [one.as_json() for one in kept.references] == [{**reference, "version": 1}]
    assert queries.referenced_by(log.registry, T, 1, deleted=False) == [answer["id"]]
    assert refused(lambda: delete(log, T, 1)) == (42206, 422)
    assert refused(lambda: delete(log, T)) == (42206, 422)
    delete(log, S)
    assert delete(log, T) == [1]
    assert refused(lambda: delete(log, T, permanent=True)) == (42206, 422)
    delete(log, S, permanent=True)
    assert delete(log, T, permanent=True) == [1]
    missing = {"name": "Inner", "subject": T, "version": 1}
    assert refused(lambda: log.register(S, outer, references=[missing])) == (42201, 422)  # type: ignore[list-item]


def test_an_incompatible_schema_is_told_why(log: SchemaLog) -> None:
    log.register(S, A)
    assert refused(lambda: log.register(S, AB)) == (40901, 409)
    request = schema_request({"schema": AB})

    def checked(verbose: bool) -> dict[str, object]:
        return dict(
            check_compatibility(log.registry, S, None, request, normalize=False, verbose=verbose)
        )

    assert checked(False) == {"is_compatible": False}
    told = checked(True)
    assert told["is_compatible"] is False
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in str(told["messages"])
    assert log.register(S, A_B0)["version"] == 2
    set_level(log, "NONE", S)
    assert log.register(S, B)["version"] == 3


def test_a_compatibility_group_is_compared_with_itself_only(log: SchemaLog) -> None:
    set_level(log, "BACKWARD", S, compatibilityGroup="major")
    log.register(S, A, metadata={"properties": {"major": "1"}})
    second = log.register(S, AB, metadata={"properties": {"major": "2"}})
    assert second["version"] == 2
    wrong = {"properties": {"major": "1"}}
    assert refused(lambda: log.register(S, record("a", "c"), metadata=wrong)) == (40901, 409)  # type: ignore[arg-type]


def test_modes_say_what_may_be_written(log: SchemaLog) -> None:
    log.register(S, A)
    assert refused(lambda: log.register(T, A, id=9)) == (42205, 422)
    set_mode(log, "READONLY", S)
    assert refused(lambda: log.register(S, A_B0)) == (42205, 422)
    assert refused(lambda: delete(log, S)) == (42205, 422)
    assert refused(lambda: set_level(log, "FULL", S)) == (42205, 422)
    assert log.register(T, A)["id"] == 1
    set_mode(log, "READONLY_OVERRIDE")
    assert refused(lambda: log.register(T, A_B0)) == (42205, 422)
    set_mode(log, "READWRITE")
    assert refused(lambda: set_mode(log, "IMPORT", T)) == (42205, 422)
    assert refused(lambda: set_mode(log, "FORWARD", T)) == (42204, 422)
    set_mode(log, "IMPORT", "new")
    assert log.register("new", B, id=77, version=5)["id"] == 77
    assert refused(lambda: log.register("new", A_B0, id=77)) == (42205, 422)
    assert refused(lambda: log.register("new", A_B0)) == (42205, 422)
    assert [one.version for one in log.registry.state.versions("new")] == [5]
    assert log.register(T, A_B0)["id"] == 78


def test_import_forgets_what_was_deleted(log: SchemaLog) -> None:
    log.register(S, A)
    delete(log, S)
    set_mode(log, "IMPORT", S)
    assert log.registry.state.versions(S) == []
    assert b"CLEAR_SUBJECT" in b"".join(key for key, _ in log.records)


def test_configs_are_taken_field_by_field_from_the_nearest_scope(log: SchemaLog) -> None:
    set_level(log, "FULL", ":.__GLOBAL:")
    set_level(log, "NONE", ":.lab:", normalize=True)
    log.do(lambda r: setting.set_config(r, ":.lab:x", config_request({"alias": "y"})))
    config = setting.shown_config(log.registry, ":.lab:x", effective=True)
    assert config == {"alias": "y", "compatibilityLevel": "NONE", "normalize": True}
    assert setting.shown_config(log.registry, "x", effective=True) == {"compatibilityLevel": "FULL"}
    assert queries.real_subject(log.registry, ":.lab:x") == ":.lab:y"
    log.do(lambda r: setting.set_config(r, ":.lab:x", config_request({"alias": None})))
    assert queries.real_subject(log.registry, ":.lab:x") == ":.lab:x"
    log.do(lambda r: setting.delete_config(r, ":.lab:"))
    assert setting.shown_config(log.registry, ":.lab:x", effective=True) == {
        "compatibilityLevel": "FULL"
    }


def test_a_context_goes_when_it_is_empty(log: SchemaLog) -> None:
    log.register(f":.lab:{S}", A)
    assert refused(lambda: log.do(lambda r: deleting.delete_context(r, ".lab"))) == (42211, 422)
    delete(log, f":.lab:{S}")
    delete(log, f":.lab:{S}", permanent=True)
    log.do(lambda r: deleting.delete_context(r, ".lab"))
    assert log.registry.state.contexts() == ["."]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([], 422),
        ({"schema": 1}, 422),
        ({"shema": "x"}, 422),
        ({"schema": A, "schemaType": "XML"}, 42201),
        ({"schema": A, "references": {}}, 422),
        ({"schema": A, "references": [{"name": "x"}]}, 422),
        ({"schema": A, "references": [{"name": "x", "subject": "s", "version": 0}]}, 422),
        ({"schema": A, "version": 2**31}, 422),
        ({"schema": A, "id": True}, 422),
        ({"schema": "x" * 1_100_000}, 42209),
        ({"schema": A, "metadata": {"properties": {"a": 1}}}, 422),
        ({"schema": A, "metadata": {"tags": {"a": "b"}}}, 422),
        ({"schema": A, "ruleSet": {"domainRules": [{"name": "x"}]}}, 42210),
        (
            {
                "schema": A,
                "ruleSet": {"migrationRules": [{"name": "x", "mode": "READ", "type": "CEL"}]},
            },
            42210,
        ),
        ({"schema": A, "schemaTagsToAdd": [{}]}, 422),
    ],
)
def test_bodies_of_schemas_are_checked(body: object, code: int) -> None:
    assert refused(lambda: schema_request(body))[0] == code  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (lambda: config_request({"compatibility": "SIDEWAYS"}), 42203),
        (lambda: config_request({"normalize": "yes"}), 422),
        (lambda: config_request({"alias": "a\nb"}), 42208),
        (lambda: mode_request({"mode": "WRITEONLY"}), 42204),
        (lambda: mode_request({}), 42204),
        (lambda: version_number("0"), 42202),
        (lambda: version_number("last"), 42202),
        (lambda: version_number("9999999999"), 42202),
        (lambda: version_number("١"), 42202),
    ],
)
def test_other_values_are_checked(action: Callable[[], object], code: int) -> None:
    assert refused(action)[0] == code


def test_an_answer_has_the_schema_where_it_may_be_another_than_was_sent(log: SchemaLog) -> None:
    plain = log.register(S, A)
    assert list(plain) == ["id", "version", "guid"]
    assert list(log.register(S, A)) == ["id", "version", "guid"]
    filled = log.register(S, "", metadata={"properties": {"a": "1"}})
    assert json.loads(str(filled["schema"])) == json.loads(A)
    set_level(log, "NONE", T, defaultMetadata={"properties": {"b": "2"}})
    answer = log.register(T, A)
    assert answer["metadata"] == {"properties": {"b": "2"}}
    assert json.loads(str(answer["schema"])) == json.loads(A)


def test_levels_and_modes_are_read_in_any_case() -> None:
    assert config_request({"compatibility": "full_transitive"}) == {
        "compatibilityLevel": "FULL_TRANSITIVE"
    }
    assert mode_request({"mode": "readonly"}) is Mode.READONLY


def test_an_invalid_schema_is_refused_and_an_empty_one(log: SchemaLog) -> None:
    assert refused(lambda: log.register(S, '{"type": "recrod"}')) == (42201, 422)
    assert refused(lambda: log.register(S, "")) == (42201, 422)
    assert not log.records


# -- the log


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"", b"{}"),
        (b"\xff", None),
        (b"[]", None),
        (b'{"keytype":"SCHEMA","subject":"s","magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', b'{"schema":"x","id":"1"}'),
        (b'{"keytype":"CONFIG","magic":0}', b"1"),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b"{}"),
        (b'{"keytype":"CONTEXT"}', b"{}"),
        (b"[" * 100_000, None),
    ],
)
def test_a_record_that_makes_no_sense_is_passed_over(
    key: bytes | None, value: bytes | None
) -> None:
    registry = Registry()
    assert registry.replay(key, value, 1)
    assert registry.state.subjects() == []


@pytest.mark.parametrize(
    "key",
    [
        b'{"keytype":"ASSOC","tenant":"default"}',
        b'{"keytype":"NOOP","magic":0}',
        b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
    ],
)
def test_records_of_others_are_left_alone(key: bytes) -> None:
    assert Registry().replay(key, None, 1) == ""


def test_fields_that_nobody_here_knows_are_kept(log: SchemaLog) -> None:
    log.register(S, A)
    key, value = log.records[0]
    assert value is not None
    log.write([(key, json.dumps({**json.loads(value), "owner": {"team": 1}}).encode())])
    delete(log, S, 1)
    written = log.records[-1][1]
    assert written is not None
    assert json.loads(written)["owner"] == {"team": 1}


def test_a_text_that_another_registry_printed_otherwise_is_the_same_schema(log: SchemaLog) -> None:
    """Karapace sorts the names of an Avro schema."""
    log.register(S, A)
    key, value = log.records[0]
    assert value is not None
    other = {**json.loads(value), "schema": json.dumps(json.loads(A), sort_keys=True)}
    taken_over = SchemaLog([(key, json.dumps(other).encode())])
    assert taken_over.register(S, A)["version"] == 1
    both = Registry()
    assert both.replay(*log.records[0], 1) == ""
    sorted_too = key.replace(S.encode(), T.encode()), json.dumps({**other, "subject": T}).encode()
    assert both.replay(*sorted_too, 2) == "", "its id is that of the same schema"
    assert len(taken_over.records) == 1


def test_the_records_are_those_that_other_registries_write(log: SchemaLog) -> None:
    log.register(S, '"string"')
    set_level(log, "FULL")
    set_mode(log, "READONLY", S)
    assert [(key.decode(), (value or b"").decode()) for key, value in log.records] == [
        (
            '{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
            '{"subject":"orders-value","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
        ),
        ('{"keytype":"CONFIG","magic":0}', '{"compatibilityLevel":"FULL"}'),
        (
            '{"keytype":"MODE","subject":"orders-value","magic":0}',
            '{"subject":"orders-value","mode":"READONLY"}',
        ),
    ]
    key, value = writer_record(Writer(5, 6, {".": 1}))
    assert key == b'{"keytype":"NOOP","magic":0}'
    log.write([(key, value)])
    assert log.registry.state.writer == Writer(5, 6, {".": 1})


# -- against a model

SUBJECTS = ("a", "b", ":.c:a")
TEXTS = tuple(record(*fields) for fields in (("x",), ("y",), ("x", "y"), ("z",)))
OPERATIONS = st.one_of(
    st.tuples(st.just("register"), st.sampled_from(SUBJECTS), st.sampled_from(TEXTS)),
    st.tuples(st.just("register"), st.sampled_from(SUBJECTS), st.sampled_from(TEXTS)),
    st.tuples(st.just("version"), st.sampled_from(SUBJECTS), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("subject"), st.sampled_from(SUBJECTS), st.booleans()),
    st.tuples(st.just("restart"), st.booleans()),
)


class Model:
    """What a registry without compatibility is to answer, said once more and simply."""

    def __init__(self) -> None:
        self.given: dict[str, list[str]] = {".": [], ".c": []}
        """Every text that was ever given an id in a context, in the order of ids."""
        self.versions: dict[str, dict[int, tuple[str, int, bool]]] = {one: {} for one in SUBJECTS}

    def register(self, subject: str, text: str) -> tuple[int, int]:
        versions = self.versions[subject]
        for number in sorted(versions, reverse=True):
            if versions[number][0] == text and not versions[number][2]:
                return versions[number][1], number
        context = ".c" if subject.startswith(":") else "."
        held = [
            one[1]
            for name in SUBJECTS
            if name.startswith(":") == subject.startswith(":")
            for one in self.versions[name].values()
            if one[0] == text
        ]
        if not held:
            self.given[context].append(text)
        schema_id = held[0] if held else len(self.given[context])
        number = max(versions, default=0) + 1
        for older, (other, _, is_deleted) in list(versions.items()):
            if other == text and is_deleted:
                del versions[older]
        versions[number] = (text, schema_id, False)
        return schema_id, number

    def delete_version(self, subject: str, number: int, permanent: bool) -> int | Code:
        versions = self.versions[subject]
        if number not in versions:
            return Code.VERSION_NOT_FOUND if versions else Code.SUBJECT_NOT_FOUND
        text, schema_id, is_deleted = versions[number]
        if is_deleted and not permanent:
            return Code.VERSION_SOFT_DELETED
        if permanent and not is_deleted:
            return Code.VERSION_NOT_SOFT_DELETED
        if permanent:
            del versions[number]
        else:
            versions[number] = (text, schema_id, True)
        return number

    def delete_subject(self, subject: str, permanent: bool) -> list[int] | Code:
        versions = self.versions[subject]
        live = [number for number in sorted(versions) if not versions[number][2]]
        if not versions:
            return Code.SUBJECT_NOT_FOUND
        if not permanent and not live:
            return Code.SUBJECT_SOFT_DELETED
        if permanent and live:
            return Code.SUBJECT_NOT_SOFT_DELETED
        gone = sorted(versions) if permanent else live
        for number in gone:
            text, schema_id, _ = versions[number]
            if permanent:
                del versions[number]
            else:
                versions[number] = (text, schema_id, True)
        return gone


def answered(action: Callable[[], object]) -> object:
    try:
        return action()
    except RegistryError as error:
        return error.code


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATIONS, max_size=25))
def test_random_requests_are_answered_as_a_model_says(operations: list[tuple]) -> None:  # type: ignore[type-arg]
    log, model = SchemaLog(), Model()
    set_level(log, "NONE", ":.__GLOBAL:")
    log.write([writer_record(Writer(7, 0, {}))])
    for operation in operations:
        match operation:
            case ("register", subject, text):
                answer = log.register(subject, text)
                assert (answer["id"], answer["version"]) == model.register(subject, text)
            case ("version", subject, number, permanent):
                assert answered(
                    lambda: delete(log, subject, number, permanent)  # noqa: B023
                ) == model.delete_version(subject, number, permanent)
            case ("subject", subject, permanent):
                assert answered(
                    lambda: delete(log, subject, permanent=permanent)  # noqa: B023
                ) == model.delete_subject(subject, permanent)
            case ("restart", compact):
                again = SchemaLog(log.compacted() if compact else log.records)
                assert shown_state(again.registry) == shown_state(log.registry)
                log = again
    found = {
        subject: {
            one.version: (one.schema, one.id, one.is_deleted)
            for one in log.registry.state.versions(subject)
        }
        for subject in SUBJECTS
    }
    canonical = {
        subject: {
            number: (json.dumps(json.loads(text), separators=(",", ":")), schema_id, is_deleted)
            for number, (text, schema_id, is_deleted) in versions.items()
        }
        for subject, versions in model.versions.items()
    }
    assert found == canonical


def test_registering_what_is_there_needs_no_record(log: SchemaLog) -> None:
    log.register(S, A)
    decision = register(log.registry, S, schema_request({"schema": f" {A} "}), normalize=False)
    assert decision.records == []
