"""A schema becomes a version of a subject.

One that is there already keeps its version; one that another subject of the context has keeps its
id, any other gets the next one. In the modes IMPORT and FORWARD ids and versions are told, and
nothing is compared.
"""

from __future__ import annotations

from kwire.schemas.registry.checks import reasons
from kwire.schemas.registry.errors import Code, RegistryError, invalid_schema
from kwire.schemas.registry.json_values import JsonObject
from kwire.schemas.registry.machine import (
    Candidate,
    Decision,
    Registry,
    candidate,
    check_writable,
    not_permitted,
    registered,
    shown_schema,
)
from kwire.schemas.registry.metadata import (
    merged_metadata,
    merged_rule_sets,
    told_version,
    with_version,
)
from kwire.schemas.registry.names import context_of
from kwire.schemas.registry.records import (
    ID_MAX,
    Written,
    context_record,
    schema_key,
    version_record,
)
from kwire.schemas.registry.requests import NEXT, NO_ID, SchemaRequest
from kwire.schemas.registry.scopes import Config, Mode, config_of, mode_of
from kwire.schemas.registry.version import Version


def existing(
    registry: Registry, subject: str, request: SchemaRequest, *, normalize: bool
) -> JsonObject | None:
    """The answer where the schema is there already and no record is needed; RegistryError 42201.

    Whoever registers what is registered need not be able to write.
    """
    config = config_of(registry.state, subject)
    if request.id != NO_ID or request.version != NEXT or not request.schema.strip():
        return None
    if any(config[3:]):  # defaults and overrides may make another schema of it
        return None
    wanted = candidate(registry, subject, request, normalize=normalize or config.normalize)
    found = registered(registry, subject, wanted, deleted=False)
    return None if found is None else _answer(found, is_filled=False)


def register(
    registry: Registry,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool,
    force: bool = False,
) -> Decision:
    """See the module. `force` leaves out the comparison. RegistryError 409, 42201, 42205."""
    state = registry.state
    mode = mode_of(state, subject)
    _check_mode(registry, subject, mode, request)
    config = config_of(state, subject)
    versions = state.versions(subject)
    live = state.live(subject)
    next_version = versions[-1].version + 1 if versions else 1
    is_filled = False
    if not mode.is_importing:
        was_empty = not request.schema.strip()
        request = _filled(config, request, live[-1] if live else None, next_version)
        is_filled = was_empty or request.metadata is not None or request.rule_set is not None
    if not request.schema.strip():
        raise invalid_schema("Empty schema")
    wanted = candidate(registry, subject, request, normalize=normalize or config.normalize)
    known = state.id_of_guid(context_of(subject), wanted.guid)
    if request.version == NEXT:
        same = registered(registry, subject, wanted, deleted=False)
        if same is not None and request.id in (NO_ID, same.id):
            return Decision([], _answer(same, is_filled))
    if not mode.is_importing and not force:
        against = reasons(registry, subject, config, wanted, live)
        if against:
            raise RegistryError(
                Code.INCOMPATIBLE,
                "Schema being registered is incompatible with an earlier schema for subject "
                f'"{subject}", details: [{", ".join(against)}]',
            )
    number = request.version or next_version
    if number != next_version and not mode.is_importing:
        raise invalid_schema("Version is not one more than previous version")
    schema_id = request.id if request.id != NO_ID else known
    if schema_id is None:
        schema_id = state.id_max(context_of(subject)) + 1
        if schema_id > ID_MAX:
            raise RegistryError(Code.NOT_PERMITTED, f"All ids up to {ID_MAX} are given")
    else:
        _check_id(registry, subject, schema_id, wanted)
    version = _version(subject, number, schema_id, request.schema_type, wanted)
    return Decision(_records(registry, version), _answer(version, is_filled))


def _check_mode(registry: Registry, subject: str, mode: Mode, request: SchemaRequest) -> None:
    check_writable(registry, subject)
    if request.id != NO_ID and not mode.is_importing:
        raise not_permitted(subject, "is not in import mode")
    if request.id == NO_ID and mode is not Mode.READWRITE:
        raise not_permitted(subject, "is not in read-write mode")


def _filled(
    config: Config, request: SchemaRequest, before: Version | None, next_version: int
) -> SchemaRequest:
    """With what the request leaves out: the schema, metadata and rules of the version before, and
    what the config has for all."""
    if not request.schema.strip() and before is not None:
        request = request._replace(
            schema=before.schema, schema_type=before.schema_type, references=before.references
        )
    own_metadata, own_rules = request.metadata, request.rule_set
    if own_metadata is None and before is not None:
        own_metadata = before.metadata
    if own_rules is None and before is not None:
        own_rules = before.rule_set
    metadata = merged_metadata(config.default_metadata, own_metadata, config.override_metadata)
    rules = merged_rule_sets(config.default_rule_set, own_rules, config.override_rule_set)
    if request.version != NEXT or told_version(metadata) is not None:
        metadata = with_version(metadata, next_version)
    return request._replace(metadata=metadata, rule_set=rules)


def filled_from(registry: Registry, subject: str, request: SchemaRequest) -> SchemaRequest | None:
    """A look-up as its registration would have filled it in; None where that changes nothing."""
    before = registry.state.latest(subject)
    if before is None:
        return None
    config = config_of(registry.state, subject)
    filled = _filled(config, request._replace(version=NEXT), before, before.version)
    return filled if filled != request else None


def _check_id(registry: Registry, subject: str, schema_id: int, wanted: Candidate) -> None:
    """An id is one schema's for good."""
    for other in registry.state.of_id(context_of(subject), schema_id):
        if other.guid != wanted.guid and not (
            other.schema == wanted.schema and other.references == wanted.references
        ):
            raise RegistryError(
                Code.NOT_PERMITTED,
                f"Overwrite new schema with id {schema_id} in context {context_of(subject)} is "
                "not permitted.",
            )


def _version(
    subject: str, number: int, schema_id: int, schema_type: str, wanted: Candidate
) -> Version:
    return Version(
        subject,
        number,
        schema_id,
        schema_type,
        wanted.schema,
        wanted.references,
        wanted.metadata,
        wanted.rule_set,
        False,
        wanted.guid,
        0,
        {},
    )


def _records(registry: Registry, version: Version) -> list[Written]:
    state = registry.state
    found: list[Written] = []
    context = context_of(version.subject)
    if not state.has_context(context):
        found.append(context_record(context))
    for older in state.versions(version.subject):
        is_same = older.is_deleted and older.id == version.id and older.version < version.version
        if is_same and not state.referrers(*older.key):
            found.append((schema_key(*older.key), None))  # the new one is in its place
    return [*found, version_record(version)]


def _answer(version: Version, is_filled: bool) -> JsonObject:
    """With the schema where it may be another one than was sent: clients keep what they are told
    in the place of their own, and a text is not the descriptor that Protobuf's read."""
    answer: JsonObject = {"id": version.id, "version": version.version, "guid": version.guid}
    if is_filled:
        answer |= {**shown_schema(version), "schema": version.schema}
    return answer
