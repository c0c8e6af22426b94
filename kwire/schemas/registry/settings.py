"""Configs and modes are set and taken away. A scope is a subject, a context or "" for all."""

from __future__ import annotations

from kwire.schemas.registry import records
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import JsonObject
from kwire.schemas.registry.machine import Decision, Registry, check_writable
from kwire.schemas.registry.names import GLOBAL, name_of
from kwire.schemas.registry.records import Written
from kwire.schemas.registry.scopes import (
    DEFAULT_LEVEL,
    Mode,
    effective_config,
    mode_named,
    mode_of,
)


def shown_config(registry: Registry, scope: str, *, effective: bool) -> JsonObject:
    """RegistryError 40408 where a scope has none of its own and `effective` is not wanted."""
    if effective:
        return effective_config(registry.state, scope)
    config = registry.state.config(scope)
    if config is None and not _is_for_all(scope):
        raise RegistryError(
            Code.NO_SUBJECT_CONFIG,
            f"Subject '{scope}' does not have subject-level compatibility configured",
        )
    return {"compatibilityLevel": DEFAULT_LEVEL.value, **(config or {})}


def set_config(registry: Registry, scope: str, changes: JsonObject) -> Decision:
    """Field by field; None takes one away. The answer is what the config is, by the names of
    requests. RegistryError 42205."""
    check_writable(registry, scope)
    both = {**(registry.state.config(scope) or {}), **changes}
    config: JsonObject = {name: value for name, value in both.items() if value is not None}
    answer: JsonObject = {
        "compatibility" if name == "compatibilityLevel" else name: value
        for name, value in config.items()
    }
    key = records.subject_key(records.CONFIG, scope)
    return Decision([(key, records.of_subject(scope, config))], answer)


def delete_config(registry: Registry, scope: str) -> Decision:
    """The answer is the config that was. RegistryError 40408, 42205."""
    answer = shown_config(registry, scope, effective=False)
    check_writable(registry, scope)
    return Decision([(records.subject_key(records.CONFIG, scope), None)], answer)


def shown_mode(registry: Registry, scope: str, *, effective: bool) -> JsonObject:
    """RegistryError 40409 where a scope has none of its own and `effective` is not wanted."""
    if effective:
        return {"mode": mode_of(registry.state, scope).value}
    mode = mode_named(registry.state.mode(scope))
    if mode is None and not _is_for_all(scope):
        raise RegistryError(
            Code.NO_SUBJECT_MODE,
            f"Subject '{scope}' does not have subject-level mode configured",
        )
    return {"mode": (mode or Mode.READWRITE).value}


def set_mode(registry: Registry, scope: str, mode: Mode | None, *, force: bool) -> Decision:
    """The answer is the mode. To IMPORT only where no schema is there, unless `force`: what was
    deleted is forgotten for good then. RegistryError 42204, 42205, 42206."""
    if mode is Mode.FORWARD and not _is_for_all(scope):
        raise RegistryError(Code.INVALID_MODE, "The mode FORWARD can be set globally only")
    found: list[Written] = []
    if mode is Mode.IMPORT and mode_of(registry.state, scope) is not Mode.IMPORT and not force:
        found += _emptied(registry, scope)
    key = records.subject_key(records.MODE, scope)
    if mode is None:
        return Decision([*found, (key, None)], {"mode": None})
    value = records.of_subject(scope, {"mode": mode.value})
    return Decision([*found, (key, value)], {"mode": mode.value})


def _emptied(registry: Registry, scope: str) -> list[Written]:
    state = registry.state
    found: list[Written] = []
    for subject in state.matching(scope):
        for version in state.versions(subject):
            if not version.is_deleted:
                raise RegistryError(
                    Code.NOT_PERMITTED, "Cannot import since found existing subjects"
                )
            others = state.referrers(*version.key)
            if others:
                raise RegistryError(
                    Code.REFERENCED,
                    f"Version {version.version} of subject {subject} is referenced by version "
                    f"{others[0].version} of {others[0].subject}",
                )
            found.append((records.schema_key(*version.key), None))
    if found:
        key = records.subject_key(records.CLEAR_SUBJECT, scope)
        found.append((key, records.of_subject(scope, {})))
    return found


def delete_mode(registry: Registry, scope: str, *, recursive: bool) -> Decision:
    """The answer is the mode that was; with `recursive` those of all subjects of a context go as
    well. RegistryError 40409."""
    own = registry.state.mode(scope)
    if own is None and not recursive:
        shown_mode(registry, scope, effective=False)
    scopes = [scope]
    if recursive and not name_of(scope).subject:
        scopes += [one for one in registry.state.modes_under(scope) if one != scope]
    gone: list[Written] = [(records.subject_key(records.MODE, one), None) for one in scopes]
    return Decision(gone, {"mode": own or (Mode.READWRITE.value if not scope else None)})


def _is_for_all(scope: str) -> bool:
    return not scope or name_of(scope).context == GLOBAL
