"""Which config and which mode hold for a subject: its own, its context's, those of all.

    subject -> `:.context:` (in the default context: what is set globally) -> `:.__GLOBAL:`

A config is taken field by field, a mode whole. READONLY_OVERRIDE set globally holds for all,
whatever they have themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from kwire.schemas.compatibility import Compatibility
from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.names import GLOBAL, Name, name_of
from kwire.schemas.registry.state import State

DEFAULT_LEVEL = Compatibility.BACKWARD
GLOBAL_SCOPE = Name(GLOBAL, "").qualified_context


class Mode(Enum):
    """What may be written."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_readonly(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)

    @property
    def is_importing(self) -> bool:
        """Ids and versions are told by whoever registers, and nothing is compared."""
        return self in (Mode.IMPORT, Mode.FORWARD)


class Config(NamedTuple):
    """What holds for a subject."""

    compatibility: Compatibility
    group: str | None
    normalize: bool
    default_metadata: JsonObject | None
    override_metadata: JsonObject | None
    default_rule_set: JsonObject | None
    override_rule_set: JsonObject | None


def scopes(subject: str) -> list[str]:
    """Where something that holds for a subject may be set, the nearest first."""
    name = name_of(subject)
    return list(dict.fromkeys([subject, name.qualified_context, GLOBAL_SCOPE]))


def effective_config(state: State, subject: str) -> JsonObject:
    """Field by field; the compatibility level is always there."""
    found: JsonObject = {}
    for scope in scopes(subject):
        for name, value in (state.config(scope) or {}).items():
            if value is not None:
                found.setdefault(name, value)
    found.setdefault("compatibilityLevel", DEFAULT_LEVEL.value)
    return found


def config_of(state: State, subject: str) -> Config:
    """The same, typed."""
    found = effective_config(state, subject)
    group = found.get("compatibilityGroup")
    return Config(
        level_named(found.get("compatibilityLevel")) or DEFAULT_LEVEL,
        group if isinstance(group, str) and group else None,
        found.get("normalize") is True,
        _object(found.get("defaultMetadata")),
        _object(found.get("overrideMetadata")),
        _object(found.get("defaultRuleSet")),
        _object(found.get("overrideRuleSet")),
    )


def mode_of(state: State, subject: str) -> Mode:
    """The mode that holds for a subject."""
    if mode_named(state.mode("")) is Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    for scope in scopes(subject):
        mode = mode_named(state.mode(scope))
        if mode is not None:
            return mode
    return Mode.READWRITE


def alias_of(state: State, subject: str) -> str | None:
    """The subject that another one stands for."""
    alias = (state.config(subject) or {}).get("alias")
    return alias if isinstance(alias, str) and alias else None


def level_named(name: Json) -> Compatibility | None:
    return next((one for one in Compatibility if one.value == name), None)


def mode_named(name: Json) -> Mode | None:
    return next((one for one in Mode if one.value == name), None)


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None
