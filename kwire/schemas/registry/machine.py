"""The registry: its state, its schemas, and what a request decides about them.

A request that changes something is a function `(registry, ...) -> Decision`: records that are
written together, and the answer once they are. Nothing has changed until `replay` has seen them.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.metadata import without_version
from kwire.schemas.registry.names import Name, name_of
from kwire.schemas.registry.records import Writer, Written, writer_record
from kwire.schemas.registry.requests import SchemaRequest
from kwire.schemas.registry.schemas import Schemas
from kwire.schemas.registry.scopes import mode_of
from kwire.schemas.registry.state import State
from kwire.schemas.registry.version import AVRO, Reference, Version, guid_of


class Decision(NamedTuple):
    """See the module."""

    records: list[Written]
    answer: Json


class Registry:
    """See the module."""

    def __init__(self) -> None:
        self.state = State()
        self.schemas = Schemas(self.state)

    def replay(self, key: bytes | None, value: bytes | None, timestamp: int) -> str:
        """A record of the topic; why it is passed over, empty where it is not."""
        return self.state.replay(key, value, timestamp)


def with_maxima(
    registry: Registry, written: list[Written], producer_id: int, epoch: int
) -> list[Written]:
    """Records as the producer writes them: where something goes for good, it may be the highest
    id, and that it was given is written in front."""
    state = registry.state
    maxima = state.id_maxima()
    if all(value is not None for _, value in written):
        return written
    if state.writer is not None and state.writer.ids == maxima:
        return written
    return [writer_record(Writer(producer_id, epoch, maxima)), *written]


class Candidate(NamedTuple):
    """A schema of a request as it would be stored."""

    schema_type: str
    schema: str
    references: tuple[Reference, ...]
    metadata: JsonObject | None
    rule_set: JsonObject | None

    @property
    def guid(self) -> str:
        return guid_of(self.schema, self.references, self.metadata, self.rule_set)


def candidate(
    registry: Registry, subject: str, request: SchemaRequest, *, normalize: bool
) -> Candidate:
    """The schema of a request; RegistryError 42201, WorkNeeded."""
    references = registry.schemas.settled(subject, request.references)
    found = registry.schemas.read(subject, request.schema_type, request.schema, references)
    text = found.canonical
    if normalize and not mode_of(registry.state, subject).is_importing:
        text = found.normalized
        registry.schemas.read(subject, request.schema_type, text, references)
        references = tuple(sorted(dict.fromkeys(references)))
    return Candidate(request.schema_type, text, references, request.metadata, request.rule_set)


def registered(
    registry: Registry, subject: str, wanted: Candidate, *, deleted: bool
) -> Version | None:
    """The version of a subject that has this very schema: the latest of them."""
    for version in reversed(registry.state.versions(subject)):
        if version.is_deleted and not deleted:
            continue
        if version.guid == wanted.guid or _is_same(registry, version, wanted):
            return version
    return None


def _is_same(registry: Registry, version: Version, wanted: Candidate) -> bool:
    """But for the property that tells a version, and, where a request has its references within
    the schema, for the references."""
    if version.schema_type != wanted.schema_type:
        return False
    if version.schema != wanted.schema and _printed(registry, version) != wanted.schema:
        return False
    references = registry.schemas.settled(version.subject, version.references)
    return (
        without_version(version.metadata) == without_version(wanted.metadata)
        and version.rule_set == wanted.rule_set
        and (references == wanted.references or (bool(references) and not wanted.references))
    )


def _printed(registry: Registry, version: Version) -> str:
    """The text of a version as it is printed here: others may have written it otherwise."""
    try:
        return registry.schemas.read_version(version).canonical
    except RegistryError:
        return version.schema


def check_writable(registry: Registry, subject: str) -> None:
    """RegistryError 42205 where nothing may be written."""
    if mode_of(registry.state, subject).is_readonly:
        raise not_permitted(subject, "is in read-only mode")


def not_permitted(subject: str, why: str) -> RegistryError:
    name = name_of(subject)
    context = Name(name.context, "").qualified_context
    return RegistryError(Code.NOT_PERMITTED, f"Subject {subject} in context {context or '.'} {why}")


def shown(version: Version, *, schema: str | None = None) -> JsonObject:
    """A version as answers have it; `schema` is its text in another form."""
    return {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        **shown_schema(version),
        "schema": version.schema if schema is None else schema,
        "ts": version.timestamp,
        "deleted": version.is_deleted,
    }


def shown_schema(version: Version) -> JsonObject:
    """What an answer says of a schema beside its text."""
    found: JsonObject = {}
    if version.schema_type != AVRO:
        found["schemaType"] = version.schema_type
    if version.references:
        found["references"] = [reference.as_json() for reference in version.references]
    if version.metadata is not None:
        found["metadata"] = version.metadata
    if version.rule_set is not None:
        found["ruleSet"] = version.rule_set
    return found
