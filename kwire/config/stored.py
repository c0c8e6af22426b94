"""Configs out of the metadata log: what this version cannot use is named, never fatal.

A stored value was checked by whoever wrote it: an earlier version, Apache Kafka, a hand. Here it
is checked again, by the rules that clients are held to, and one that breaks them counts as not set:
the next level down has its say, in the end the default. All readers of stored configs (topics,
groups, client metrics, brokers, the controller) come through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.config.broker_config import BrokerConfig, definition_of
from kwire.config.definitions import BROKER, ConfigDefinition
from kwire.config.errors import ConfigError
from kwire.config.providers import is_provider_setting, resolve_stored
from kwire.config.requirements import REQUIREMENT, check_requirements
from kwire.config.values import Value, to_text

SHOWN_CHARACTERS = 200
Levels = tuple[Mapping[str, str], Mapping[str, str]]
"""Dynamic settings: the cluster's defaults, this broker's own."""


class Unusable(NamedTuple):
    """A stored config that counts as not set. `instead` is what is used, where that is known."""

    owner: str
    name: str
    text: str
    why: str
    accepts: str
    instead: str = ""

    def __str__(self) -> str:
        shown = self.text[:SHOWN_CHARACTERS]
        shown += "..." if shown != self.text else ""
        accepted = f"; accepted: {self.accepts}" if self.accepts else ""
        instead = f"; {self.instead} is used" if self.instead else "; it counts as not set"
        line = f"{self.owner}: {self.name}={shown} cannot be used: {self.why}{accepted}{instead}"
        return " ".join(line.splitlines())


def read(definition: ConfigDefinition, text: str, otherwise: Value) -> Value:
    """The value of a stored text; `otherwise` when this version cannot use it."""
    try:
        return definition.parse(text)
    except ConfigError:
        return otherwise


def fault(owner: str, definition: ConfigDefinition, text: str, otherwise: Value) -> Unusable | None:
    """What is wrong with a stored text; None for nothing."""
    try:
        definition.parse(text)
    except ConfigError as error:
        return _unusable(owner, definition.name, definition, text, error, to_text(otherwise) or "")
    return None


def _unusable(
    owner: str,
    name: str,
    definition: ConfigDefinition,
    text: str,
    error: ConfigError,
    instead: str = "",
) -> Unusable:
    hidden = definition.sensitive
    why = (
        "it is malformed"
        if hidden
        else str(error).removeprefix(REQUIREMENT)[: SHOWN_CHARACTERS * 2]
    )
    return Unusable(owner, name, "[hidden]" if hidden else text, why, definition.accepts, instead)


def resolved_levels(static: BrokerConfig, levels: Levels) -> tuple[Levels, list[Unusable]]:
    """`usable_levels` of what config providers make of the texts.

    What they gave is not told: it may be a secret.
    """
    resolved = resolve_stored(static.texts, levels)
    usable, faults = usable_levels(static, resolved.texts)
    owners = _owners(static)
    told = [
        Unusable(owners[level], name, _shown(name, levels[level][name]), why, "")
        for level, name, why in resolved.refused
    ]
    for fault in faults:
        text = resolved.as_set[owners.index(fault.owner)].get(fault.name)
        if text is not None:
            why = "what its config provider gives does not fit"
            fault = fault._replace(text=_shown(fault.name, text), why=why)
        told.append(fault)
    return usable, told


def _shown(name: str, text: str) -> str:
    if is_provider_setting(name):
        return text
    definition = definition_of(name)
    return "[hidden]" if definition is None or definition.sensitive else text


def usable_levels(static: BrokerConfig, levels: Levels) -> tuple[Levels, list[Unusable]]:
    """The dynamic settings that a broker can run with, and what is wrong with the others.

    Names that nobody knows are kept: they have no effect.
    """
    kept: list[dict[str, str]] = [{}, {}]
    faults: list[Unusable] = []
    for number, owner in enumerate(_owners(static)):
        for name, text in sorted(levels[number].items()):
            found = _alone(owner, name, text, per_broker=number == 1)
            if found is None:
                kept[number][name] = text
            else:
                faults.append(found)
    if _broken(static, (kept[0], kept[1])) is not None:
        kept, refused = _together(static, (kept[0], kept[1]))
        faults += refused
    return (kept[0], kept[1]), faults


def _owners(static: BrokerConfig) -> tuple[str, str]:
    return "the brokers' default", f"broker {static.node_id}"


def _alone(owner: str, name: str, text: str, *, per_broker: bool) -> Unusable | None:
    definition = definition_of(name)
    if definition is None or definition.name not in BROKER:
        return None
    if name == definition.name and definition.update_mode == "read-only":
        return Unusable(owner, name, text, "it can only be set where the node is started", "")
    if name == definition.name and definition.update_mode == "per-broker" and not per_broker:
        return Unusable(owner, name, text, "it can only be set for a single broker", "")
    try:
        definition.parse(text)
    except ConfigError as error:
        return _unusable(owner, name, definition, text, error)
    return None


def _broken(static: BrokerConfig, levels: Levels) -> ConfigError | None:
    try:
        check_requirements(static.with_texts(merged(static, levels)))
    except ConfigError as error:
        return error
    return None


def _together(static: BrokerConfig, levels: Levels) -> tuple[list[dict[str, str]], list[Unusable]]:
    """As many of the settings as go together, taken up one after the other."""
    kept: list[dict[str, str]] = [{}, {}]
    waiting = [(number, name) for number in (0, 1) for name in levels[number]]
    reasons: dict[tuple[int, str], ConfigError] = {}
    grows = True
    while grows:
        grows = False
        for number, name in list(waiting):
            kept[number][name] = levels[number][name]
            error = _broken(static, (kept[0], kept[1]))
            if error is None:
                waiting.remove((number, name))
                grows = True
            else:
                del kept[number][name]
                reasons[number, name] = error
    owners = _owners(static)
    faults = []
    for number, name in waiting:
        definition = definition_of(name)
        assert definition is not None
        text = levels[number][name]
        faults.append(_unusable(owners[number], name, definition, text, reasons[number, name]))
    return kept, faults


def merged(static: BrokerConfig, levels: Levels) -> dict[str, str]:
    """What is set, at whichever level, as text.

    A dynamic setting takes the static ones it is a synonym of out of effect: with a dynamic
    `log.retention.ms`, `log.retention.hours` has its default (measured on Kafka 4.4).
    """
    from kwire.config.broker_config import synonyms_of

    texts = dict(static.texts)
    for level in levels:
        for name, text in level.items():
            for synonym in synonyms_of(name):
                if synonym in BROKER:
                    texts.pop(synonym, None)
            texts[name] = text
    return texts
