"""What the bodies of requests say, checked: RegistryError names the field and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kwire.schemas.compatibility import Compatibility
from kwire.schemas.formats import SCHEMA_TYPES
from kwire.schemas.formats.parsed import REFERENCES_MAX, TEXT_BYTES_MAX
from kwire.schemas.registry.errors import Code, RegistryError, invalid_schema
from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.metadata import checked_metadata, checked_rule_set
from kwire.schemas.registry.names import SUBJECT_MAX, check_subject
from kwire.schemas.registry.records import ID_MAX
from kwire.schemas.registry.scopes import Mode, level_named, mode_named
from kwire.schemas.registry.version import AVRO, LATEST, Reference

NO_ID = -1
NEXT = 0
"""The version of a request that names none."""
_SCHEMA_FIELDS = (
    *("subject", "version", "id", "schemaType", "references", "metadata", "ruleSet", "schema"),
    *("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags", "guid", "ts", "deleted"),
)
_CONFIG_FIELDS = (
    *("alias", "normalize", "compatibility", "compatibilityGroup", "compatibilityPolicy"),
    *("validateFields", "validateNewSchemas", "validateRules", "aliasForDeks"),
    *("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"),
)
_FLAGS = ("normalize", "validateFields", "validateNewSchemas", "validateRules")
_TEXTS = ("alias", "aliasForDeks", "compatibilityGroup", "compatibilityPolicy")


class SchemaRequest(NamedTuple):
    """A schema as it is brought. An empty text means that of the version before."""

    schema: str
    schema_type: str
    references: tuple[Reference, ...]
    metadata: JsonObject | None
    rule_set: JsonObject | None
    version: int
    id: int


def schema_request(body: Json) -> SchemaRequest:
    """Of a registration, a look-up or a check."""
    given = _fields(body, _SCHEMA_FIELDS)
    schema = given.get("schema")
    if schema is not None and not isinstance(schema, str):
        raise unprocessable("schema", "a text: the schema is quoted")
    if schema is not None and len(schema.encode()) > TEXT_BYTES_MAX:
        raise RegistryError(Code.TOO_LARGE, f"The schema is over {TEXT_BYTES_MAX} bytes")
    schema_type = given.get("schemaType")
    if schema_type is None or schema_type == "":
        schema_type = AVRO
    if not isinstance(schema_type, str) or schema_type not in SCHEMA_TYPES:
        shown = str(schema_type)[:100]
        raise invalid_schema(f"Invalid schema type {shown}: use one of {', '.join(SCHEMA_TYPES)}")
    if given.get("schemaTagsToAdd") or given.get("schemaTagsToRemove"):
        raise unprocessable("schemaTagsToAdd", "none: tags are not set by a request here")
    return SchemaRequest(
        schema or "",
        schema_type,
        _references(given.get("references")),
        checked_metadata(given.get("metadata")),
        checked_rule_set(given.get("ruleSet")),
        max(_number(given, "version", LATEST, NEXT), NEXT),
        _number(given, "id", NO_ID, NO_ID),
    )


def config_request(body: Json) -> JsonObject:
    """The changes to a config, by the names that records have; None takes a field away."""
    given = _fields(body, _CONFIG_FIELDS)
    found: JsonObject = {}
    for name, value in given.items():
        if name in _FLAGS and value is not None and not isinstance(value, bool):
            raise unprocessable(name, "true or false")
        if name in _TEXTS and value is not None and not isinstance(value, str):
            raise unprocessable(name, "a text")
        if name in ("defaultMetadata", "overrideMetadata"):
            value = checked_metadata(value)
        elif name in ("defaultRuleSet", "overrideRuleSet"):
            value = checked_rule_set(value)
        elif name == "alias" and isinstance(value, str) and value:
            value = check_subject(value)
        elif name == "compatibility":
            value = value.upper() if isinstance(value, str) else value
            if value is not None and level_named(value) is None:
                levels = ", ".join(one.value for one in Compatibility)
                raise RegistryError(
                    Code.INVALID_COMPATIBILITY,
                    f"Invalid compatibility level {str(value)[:100]}: use one of {levels}",
                )
            name = "compatibilityLevel"
        found[name] = value
    return found


def mode_request(body: Json) -> Mode | None:
    """The mode to set; None takes it away."""
    given = _fields(body, ("mode",))
    name = given.get("mode")
    if name is None and "mode" in given:
        return None
    mode = mode_named(name.upper() if isinstance(name, str) else name)
    if mode is None:
        modes = ", ".join(one.value for one in Mode)
        shown = str(name)[:100]
        raise RegistryError(Code.INVALID_MODE, f"Invalid mode {shown}: use one of {modes}")
    return mode


def version_number(text: str) -> int:
    """A version as a path has it, LATEST for `latest`; RegistryError 42202."""
    plain = text.strip().lower()
    if plain in ("latest", "-1"):
        return LATEST
    if plain.isdecimal() and plain.isascii() and len(plain) <= 10 and 0 < int(plain) <= ID_MAX:
        return int(plain)
    raise RegistryError(
        Code.INVALID_VERSION,
        f"'{text[:100]}' is no version: a number from 1 to {ID_MAX}, or latest",
    )


def _fields(body: Json, known: Sequence[str], where: str = "the body") -> JsonObject:
    if not isinstance(body, dict):
        raise unprocessable(where, "an object")
    for name in body:
        if name not in known:
            raise RegistryError(
                Code.UNPROCESSABLE,
                f"Unrecognized field: {name[:100]}; known are {', '.join(known)}",
            )
    return body


def _references(given: Json) -> tuple[Reference, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise unprocessable("references", "a list")
    if len(given) > REFERENCES_MAX:
        raise invalid_schema(f"More than {REFERENCES_MAX} references")
    found: dict[str, Reference] = {}
    for at, one in enumerate(given):
        reference = _fields(one, ("name", "subject", "version"), f"references[{at}]")
        name, subject = reference.get("name"), reference.get("subject")
        if not isinstance(name, str) or not name or len(name) > SUBJECT_MAX:
            raise unprocessable("references.name", f"a text of at most {SUBJECT_MAX} characters")
        if not isinstance(subject, str) or not subject:
            raise unprocessable("references.subject", "a subject")
        check_subject(subject)
        version = _number(reference, "version", LATEST, 0)
        if version == 0:
            raise unprocessable("references.version", "a version from 1 on, or -1 for the latest")
        if name in found:
            raise invalid_schema(f"Two references are called {name}")
        found[name] = Reference(name, subject, version)
    return tuple(found.values())


def _number(given: JsonObject, name: str, at_least: int, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= ID_MAX:
        raise unprocessable(name, f"a number from {at_least} to {ID_MAX}")
    return value


def unprocessable(where: str, expected: str) -> RegistryError:
    """Something has not the shape that it must have."""
    return RegistryError(Code.UNPROCESSABLE, f"{where}: expected {expected}")
