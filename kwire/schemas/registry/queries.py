"""What is asked and changes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from kwire.schemas.registry.errors import schema_not_found, subject_not_found, version_not_found
from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.machine import Registry, candidate, registered, shown, shown_schema
from kwire.schemas.registry.metadata import property_of
from kwire.schemas.registry.names import DEFAULT, EVERY, Name, context_of, name_of
from kwire.schemas.registry.registering import filled_from
from kwire.schemas.registry.requests import SchemaRequest
from kwire.schemas.registry.scopes import alias_of, config_of
from kwire.schemas.registry.version import LATEST, Version

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Wanted(Enum):
    """Which versions count."""

    LIVE = "live"
    ALL = "all"
    DELETED = "deleted"

    def takes(self, version: Version) -> bool:
        return self is Wanted.ALL or version.is_deleted == (self is Wanted.DELETED)


# -- by id


def version_of_id(registry: Registry, schema_id: int, scope: str) -> Version:
    """A version with an id. `scope` is a context, or a subject that may be in any context: that
    one is looked for first. RegistryError 40403."""
    state = registry.state
    name = name_of(scope)
    if name.subject:
        contexts = [name.context] if name.context != DEFAULT else state.contexts()
        for context in contexts:
            subject = Name(context, name.subject).qualified
            for version in reversed(state.of_id(context, schema_id)):
                if version.subject == subject:
                    return version
        if name.context != DEFAULT:
            raise schema_not_found(schema_id)
    found = state.of_id(name.context, schema_id)
    if not found:
        raise schema_not_found(schema_id)
    return next((one for one in found if not one.is_deleted), found[0])


def schema_of_id(
    registry: Registry, schema_id: int, scope: str, *, max_id: bool, with_subject: bool
) -> JsonObject:
    """RegistryError 40403."""
    version = version_of_id(registry, schema_id, scope)
    answer = _schema(version)
    if with_subject:
        answer = {"subject": version.subject, "version": version.version, **answer}
    if max_id:
        answer["maxId"] = registry.state.id_max(context_of(version.subject))
    return answer


def versions_of_id(
    registry: Registry, schema_id: int, scope: str, *, deleted: bool
) -> list[JsonObject]:
    """Where an id is registered; RegistryError 40403."""
    first = version_of_id(registry, schema_id, scope)
    return [
        {"subject": one.subject, "version": one.version}
        for one in registry.state.of_id(context_of(first.subject), schema_id)
        if deleted or not one.is_deleted
    ]


def subjects_of_id(registry: Registry, schema_id: int, scope: str, *, deleted: bool) -> list[Json]:
    """The same without versions."""
    found = versions_of_id(registry, schema_id, scope, deleted=deleted)
    return list(dict.fromkeys(str(one["subject"]) for one in found))


def ids_of_guid(registry: Registry, guid: str) -> list[JsonObject]:
    """In every context; empty where nobody has it."""
    found: list[JsonObject] = []
    if _GUID.fullmatch(guid.lower()):
        for context in registry.state.contexts():
            schema_id = registry.state.id_of_guid(context, guid.lower())
            if schema_id is not None:
                found.append({"context": context, "id": schema_id})
    return found


def version_of_guid(registry: Registry, guid: str) -> Version:
    """RegistryError 40403."""
    for context in registry.state.contexts():
        schema_id = registry.state.id_of_guid(context, guid.lower())
        if schema_id is not None:
            for version in registry.state.of_id(context, schema_id):
                if version.guid == guid.lower():
                    return version
    raise schema_not_found(guid[:100])


def schema_of_guid(registry: Registry, guid: str) -> JsonObject:
    """RegistryError 40403."""
    return _schema(version_of_guid(registry, guid))


def _schema(version: Version) -> JsonObject:
    return {
        "schema": version.schema,
        **shown_schema(version),
        "guid": version.guid,
        "ts": version.timestamp,
        "deleted": version.is_deleted,
    }


# -- by subject


def subjects(registry: Registry, prefix: str, wanted: Wanted) -> list[Json]:
    """Those with a prefix, which may be one of every context."""
    return [
        subject
        for subject in registry.state.subjects()
        if _has_prefix(subject, prefix)
        and any(wanted.takes(one) for one in registry.state.versions(subject))
        and not (wanted is Wanted.DELETED and registry.state.live(subject))
    ]


def schemas(
    registry: Registry,
    prefix: str,
    wanted: Wanted,
    *,
    latest_only: bool,
    aliases: bool,
    rule_type: str,
) -> list[JsonObject]:
    """Every version of subjects with a prefix; with `aliases` by those other names too."""
    found: list[JsonObject] = []
    named = _aliases(registry) if aliases else {}
    for subject in registry.state.subjects():
        others = [one for one in named.get(subject, []) if _has_prefix(one, prefix)]
        if not _has_prefix(subject, prefix) and not others:
            continue
        versions = [one for one in registry.state.versions(subject) if wanted.takes(one)]
        if rule_type:
            versions = [one for one in versions if _has_rule(one, rule_type)]
        for version in versions[-1:] if latest_only else versions:
            answer = shown(version)
            if subject in named:
                answer["aliases"] = list(named[subject])
            found.append(answer)
    return found


def version_numbers(
    registry: Registry, subject: str, wanted: Wanted, *, as_negative: bool
) -> list[Json]:
    """RegistryError 40401."""
    versions = registry.state.versions(subject)
    if as_negative:
        wanted = Wanted.ALL
    if not any(wanted is not Wanted.LIVE or not one.is_deleted for one in versions):
        raise subject_not_found(subject)
    return [
        -one.version if as_negative and one.is_deleted else one.version
        for one in versions
        if wanted.takes(one)
    ]


def version_of(registry: Registry, subject: str, number: int, *, deleted: bool) -> Version:
    """A subject of the default context is looked for in the others too. RegistryError 40401,
    40402."""
    for name in _in_contexts(registry, subject):
        if number == LATEST:
            found = registry.state.latest(name)
        else:
            found = registry.state.version(name, number)
        if found is not None and (deleted or not found.is_deleted):
            return found
    if _has_subject(registry, subject, deleted):
        raise version_not_found("latest" if number == LATEST else number)
    raise subject_not_found(subject)


def looked_up(
    registry: Registry,
    subject: str,
    request: SchemaRequest,
    *,
    normalize: bool,
    deleted: bool,
) -> Version:
    """The version of a subject that has a schema; RegistryError 40401, 40403, 42201."""
    for name in _in_contexts(registry, subject):
        config = config_of(registry.state, name)
        for asked in (request, filled_from(registry, name, request)):
            if asked is None or not registry.state.versions(name):
                continue
            wanted = candidate(registry, name, asked, normalize=normalize or config.normalize)
            found = registered(registry, name, wanted, deleted=deleted)
            if found is not None:
                return found
    if not _has_subject(registry, subject, deleted):
        raise subject_not_found(subject)
    raise schema_not_found()


def latest_with_metadata(
    registry: Registry, subject: str, properties: Mapping[str, str], *, deleted: bool
) -> Version:
    """The last version whose metadata has these properties; RegistryError 40401, 40403."""
    for version in reversed(registry.state.versions(subject)):
        if (deleted or not version.is_deleted) and all(
            property_of(version.metadata, name) == value for name, value in properties.items()
        ):
            return version
    if not _has_subject(registry, subject, deleted):
        raise subject_not_found(subject)
    raise schema_not_found()


def referenced_by(registry: Registry, subject: str, number: int, *, deleted: bool) -> list[Json]:
    """The ids of schemas that refer to a version; RegistryError 40401, 40402."""
    version = version_of(registry, subject, number, deleted=True)
    others = registry.state.referrers(*version.key)
    ids = {one.id: None for one in others if deleted or not one.is_deleted}
    return [*sorted(ids)]


def real_subject(registry: Registry, subject: str) -> str:
    """What an alias stands for, and any other subject itself."""
    alias = alias_of(registry.state, subject)
    if alias is None:
        return subject
    name = name_of(alias)
    if name.context == DEFAULT:
        name = Name(context_of(subject), name.subject)
    return name.qualified


def _in_contexts(registry: Registry, subject: str) -> list[str]:
    name = name_of(subject)
    if name.context != DEFAULT:
        return [subject]
    return [Name(context, name.subject).qualified for context in registry.state.contexts()]


def _has_subject(registry: Registry, subject: str, deleted: bool) -> bool:
    state = registry.state
    return bool(state.versions(subject) if deleted else state.live(subject))


def _has_prefix(subject: str, prefix: str) -> bool:
    if prefix.startswith(EVERY):
        return name_of(subject).subject.startswith(prefix[len(EVERY) :])
    return subject.startswith(prefix)


def _aliases(registry: Registry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for scope in registry.state.configured():
        real = real_subject(registry, scope)
        if real != scope:
            found.setdefault(real, []).append(scope)
    return found


def _has_rule(version: Version, rule_type: str) -> bool:
    for rules in (version.rule_set or {}).values():
        for rule in rules if isinstance(rules, list) else []:
            if isinstance(rule, dict) and rule.get("type") == rule_type:
                return True
    return False
