"""The records of the topic `_schemas`: JSON, in the order of names that compaction relies on.

    key                                                                value
    {"keytype":"SCHEMA","subject":S,"version":V,"magic":1}             {"subject","version","id",
                                                                        "schemaType"?,"references"?,
                                                                        "metadata"?,"ruleSet"?,
                                                                        "schema","deleted"}, or none
    {"keytype":"CONFIG","subject":S?,"magic":0}                        {"subject"?,
                                                                        "compatibilityLevel", ...}
    {"keytype":"MODE","subject":S?,"magic":0}                          {"subject"?,"mode"}
    {"keytype":"DELETE_SUBJECT","subject":S,"magic":0}                 {"subject","version"}: all up
                                                                        to it are deleted
    {"keytype":"CLEAR_SUBJECT","subject":S?,"magic":0}                 {"subject"?}: what was
                                                                        deleted is forgotten
    {"keytype":"CONTEXT","tenant":"default","context":".name"}         {"tenant","context"}
    {"keytype":"NOOP","magic":0}                                       none; kwire's has `Writer`

Other registries write the same; what they write beside it is kept, and nothing of it is lost when
a record is written anew. Keys of other kinds are left alone.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.schemas.registry.json_values import Json, JsonObject, read_json, written
from kwire.schemas.registry.version import (
    AVRO,
    Reference,
    Version,
    guid_of,
    guid_of_digest,
)

SCHEMA, CONFIG, MODE, NOOP = "SCHEMA", "CONFIG", "MODE", "NOOP"
DELETE_SUBJECT, CLEAR_SUBJECT, CONTEXT = "DELETE_SUBJECT", "CLEAR_SUBJECT", "CONTEXT"
TENANT = "default"
_KNOWN = (
    *("subject", "version", "id", "md5", "schemaType", "references", "metadata", "ruleSet"),
    *("schema", "deleted"),
)
ID_MAX = 2**31 - 1

Written = tuple[bytes, bytes | None]
"""A record: its key, and its value or None."""


class Key(NamedTuple):
    """`subject` is "" where a key has none: what holds for all. `context` is a CONTEXT's."""

    kind: str
    subject: str = ""
    version: int = 0
    context: str = ""


class Writer(NamedTuple):
    """What the record of whoever begins to write says: the producer that it is from then on, and
    the highest id that was ever given in each context, which permanent deletion would forget."""

    producer_id: int
    epoch: int
    ids: dict[str, int]


def read_key(data: bytes) -> Key | None:
    """None for what is of no kind that is known here; ValueError for no key at all."""
    found = read_json(data)
    if not isinstance(found, dict) or not isinstance(found.get("keytype"), str):
        raise ValueError("a key without a keytype")
    kind = str(found["keytype"])
    subject = found.get("subject")
    if subject is not None and not isinstance(subject, str):
        raise ValueError("a subject that is no text")
    if kind in (CONFIG, MODE, DELETE_SUBJECT, CLEAR_SUBJECT):
        return Key(kind, subject or "")
    if kind == SCHEMA:
        return Key(kind, subject or "", _number(found, "version", 1))
    if kind == CONTEXT:
        context = found.get("context")
        if not isinstance(context, str) or not context:
            raise ValueError("a context without a name")
        return Key(kind, context=context)
    return Key(NOOP) if kind == NOOP else None


def schema_key(subject: str, version: int) -> bytes:
    return written({"keytype": SCHEMA, "subject": subject, "version": version, "magic": 1})


def subject_key(kind: str, subject: str) -> bytes:
    """Of a CONFIG, a MODE, a DELETE_SUBJECT or a CLEAR_SUBJECT."""
    if not subject:
        return written({"keytype": kind, "magic": 0})
    return written({"keytype": kind, "subject": subject, "magic": 0})


def context_record(context: str, *, is_there: bool = True) -> Written:
    key = written({"keytype": CONTEXT, "tenant": TENANT, "context": context})
    return key, written({"tenant": TENANT, "context": context}) if is_there else None


def of_subject(subject: str, value: JsonObject) -> bytes:
    """The value of a subject's record: its name, where it has one, and the rest."""
    return written({"subject": subject, **value} if subject else value)


def writer_record(writer: Writer) -> Written:
    value: JsonObject = {
        "producerId": writer.producer_id,
        "producerEpoch": writer.epoch,
        "ids": dict(writer.ids),
    }
    return written({"keytype": NOOP, "magic": 0}), written({"kwire": value})


def read_writer(data: bytes | None) -> Writer | None:
    """None where another registry wrote it, which says nothing in it."""
    try:
        found = read_json(data) if data else None
        told = found.get("kwire") if isinstance(found, dict) else None
        if not isinstance(told, dict):
            return None
        ids = told.get("ids")
        named = ids if isinstance(ids, dict) else {}
        return Writer(
            _number(told, "producerId", 0),
            _number(told, "producerEpoch", 0),
            {context: _number(named, context, 0) for context in named},
        )
    except ValueError:
        return None


def version_record(version: Version) -> Written:
    value: JsonObject = {"subject": version.subject, "version": version.version, "id": version.id}
    if version.schema_type != AVRO:
        value["schemaType"] = version.schema_type
    if version.references:
        value["references"] = [reference.as_json() for reference in version.references]
    if version.metadata is not None:
        value["metadata"] = version.metadata
    if version.rule_set is not None:
        value["ruleSet"] = version.rule_set
    value["schema"] = version.schema
    value["deleted"] = version.is_deleted
    return schema_key(*version.key), written({**value, **version.rest})


def read_version(key: Key, data: bytes, timestamp: int) -> Version:
    """ValueError where it says no schema."""
    found = read_object(data)
    schema = found.get("schema")
    schema_type = found.get("schemaType") or AVRO
    if not isinstance(schema, str) or not isinstance(schema_type, str):
        raise ValueError("a version without a schema")
    references = _references(found.get("references"))
    metadata, rule_set = found.get("metadata"), found.get("ruleSet")
    metadata = metadata if isinstance(metadata, dict) else None
    rule_set = rule_set if isinstance(rule_set, dict) else None
    md5 = found.get("md5")
    told = guid_of_digest(md5) if isinstance(md5, str) else None
    rest = {name: value for name, value in found.items() if name not in _KNOWN}
    if told is not None:
        rest["md5"] = md5
    return Version(
        key.subject,
        key.version,
        _number(found, "id", 0),
        schema_type,
        schema,
        references,
        metadata,
        rule_set,
        bool(found.get("deleted")),
        told or guid_of(schema, references, metadata, rule_set),
        timestamp,
        rest,
    )


def read_object(data: bytes) -> JsonObject:
    """The value of a record; ValueError where it is no object."""
    found = read_json(data)
    if not isinstance(found, dict):
        raise ValueError("a value that is no object")
    return found


def read_number(found: JsonObject, name: str) -> int:
    """A number of a value from 0 on; ValueError."""
    return _number(found, name, 0)


def _references(given: Json) -> tuple[Reference, ...]:
    found = []
    for one in given if isinstance(given, list) else []:
        if not isinstance(one, dict):
            raise ValueError("a reference that is no object")
        name, subject = one.get("name"), one.get("subject")
        if not isinstance(name, str) or not isinstance(subject, str):
            raise ValueError("a reference without a name or a subject")
        found.append(Reference(name, subject, _number(one, "version", -1)))
    return tuple(found)


def _number(found: JsonObject, name: str, at_least: int) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= 2**63:
        raise ValueError(f"{name} is no number from {at_least} on")
    return value
