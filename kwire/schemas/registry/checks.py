"""Whether a schema may follow those before it."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.schemas.compatibility import Compatibility
from kwire.schemas.registry.errors import RegistryError, version_not_found
from kwire.schemas.registry.errors import subject_not_found as no_subject
from kwire.schemas.registry.json_values import JsonObject
from kwire.schemas.registry.machine import Candidate, Registry, candidate
from kwire.schemas.registry.metadata import property_of
from kwire.schemas.registry.requests import SchemaRequest
from kwire.schemas.registry.scopes import Config, config_of
from kwire.schemas.registry.version import LATEST, Version

OLD_SCHEMA_MAX = 4096
"""Characters of it in a message."""


def reasons(
    registry: Registry,
    subject: str,
    config: Config,
    wanted: Candidate,
    earlier: Sequence[Version],
) -> list[str]:
    """Why a schema may not follow; empty when it may. With a compatibility group only those count
    whose metadata has the same value of that property. RegistryError 42201, WorkNeeded."""
    level = config.compatibility
    if config.group is not None:
        value = property_of(wanted.metadata, config.group)
        earlier = [one for one in earlier if property_of(one.metadata, config.group) == value]
    if level is Compatibility.NONE or not earlier:
        return []
    if not level.is_transitive:
        earlier = earlier[-1:]
    schema = subject, wanted.schema_type, wanted.schema, wanted.references
    found, at = registry.schemas.compared(level, schema, earlier)
    if at is None:
        return []
    old = earlier[at]
    return [
        *found,
        f"{{oldSchemaVersion: {old.version}}}",
        f"{{oldSchema: '{old.schema[:OLD_SCHEMA_MAX]}'}}",
        f"{{compatibility: '{level.value}'}}",
    ]


def check_compatibility(
    registry: Registry,
    subject: str,
    version: int | None,
    request: SchemaRequest,
    *,
    normalize: bool,
    verbose: bool,
) -> JsonObject:
    """Of a schema with a version of a subject, or with as many as its level asks for.

    RegistryError 40401, 40402, 42201; with `verbose` a schema that cannot be read is an answer.
    """
    state = registry.state
    if version is None:
        earlier = state.live(subject)
    elif version == LATEST:
        earlier = state.live(subject)[-1:]
    else:
        one = state.version(subject, version)
        if one is None or one.is_deleted:
            raise version_not_found(version) if state.live(subject) else no_subject(subject)
        earlier = [one]
    config = config_of(state, subject)
    try:
        wanted = candidate(registry, subject, request, normalize=normalize or config.normalize)
        messages = reasons(registry, subject, config, wanted, earlier)
    except RegistryError as error:
        if not verbose:
            raise
        messages = [str(error)]
    if not verbose:
        return {"is_compatible": not messages}
    return {"is_compatible": not messages, "messages": list(messages)}
