"""Configs out of the metadata log: what this version cannot use is named, never fatal.

A stored value was checked by whoever wrote it: an earlier version, Apache Kafka, a hand. Here it
is checked again, by the rules that clients are held to, and one that breaks them counts as not set:
the next level down has its say, in the end the default. All readers of stored configs (topics,
groups, client metrics, brokers, the controller) come through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.config.broker_config import BrokerConfig, definition_of, synonyms_of
from kwire.config.definitions import BROKER, ConfigDefinition
from kwire.config.errors import ConfigError
from kwire.config.listener_settings import PREFIX
from kwire.config.provider_settings import has_providers, is_provider_setting
from kwire.config.requirements import check_requirements, for_people
from kwire.config.usable import range_missed
from kwire.config.values import Value
from kwire.kept_errors import kept

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
        value = definition.parse(text)
    except ConfigError:
        return otherwise
    return value if range_missed(definition.name, value) is None else otherwise


def fault(
    owner: str, definition: ConfigDefinition, text: str, name: str | None = None
) -> Unusable | None:
    """What is wrong with a stored text; None for nothing. `name`: with a listener's prefix."""
    name = name or definition.name
    try:
        works = range_missed(definition.name, definition.parse(text))
    except ConfigError as error:
        if definition.sensitive:
            return Unusable(owner, name, "[hidden]", "it is malformed", definition.accepts)
        why = str(error)[: 2 * SHOWN_CHARACTERS]
        return Unusable(owner, name, text, why, definition.accepts)
    if works is not None:
        return Unusable(owner, name, text, "nothing works with it", str(works))
    return None


def resolved_levels(static: BrokerConfig, levels: Levels) -> tuple[Levels, list[Unusable]]:
    """`usable_levels` of what config providers make of the texts.

    What they gave is not told: it may be a secret.
    """
    if not has_providers(static.texts, *levels):
        return usable_levels(static, levels)
    from kwire.config.providers import resolve_stored

    resolved = resolve_stored(static.texts, levels)
    usable, faults = usable_levels(static, resolved.texts)
    names = owners(static)
    unusable = [
        Unusable(names[level], name, _shown(name, levels[level][name]), why, "")
        for level, name, why in resolved.refused
    ]
    for fault in faults:
        text = resolved.as_set[names.index(fault.owner)].get(fault.name)
        if text is not None:
            why = "what its config provider gives does not fit"
            fault = fault._replace(text=_shown(fault.name, text), why=why)
        unusable.append(fault)
    refused = {(level, name) for level, name, _ in resolved.refused}
    default, own = (
        {name: text for name, text in texts.items() if (level, name) not in refused}
        for level, texts in enumerate(usable)
    )
    return (default, own), unusable


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
    for number, owner in enumerate(owners(static)):
        for name, text in sorted(levels[number].items()):
            found = _alone(owner, name, text, per_broker=number == 1)
            if found is None:
                kept[number][name] = text
            else:
                faults.append(found)
    if _broken(static, (kept[0], kept[1])) is not None:
        together = _Together(static, (kept[0], kept[1]))
        return together.kept, faults + together.faults()
    return (kept[0], kept[1]), faults


def owners(static: BrokerConfig) -> tuple[str, str]:
    """What faults call the two levels."""
    return "the brokers' default", f"broker {static.node_id}"


def _alone(owner: str, name: str, text: str, *, per_broker: bool) -> Unusable | None:
    definition = definition_of(name)
    if definition is None or definition.name not in BROKER:
        return None
    shown = "[hidden]" if definition.sensitive else text
    if name == definition.name and definition.update_mode == "read-only":
        return Unusable(owner, name, shown, "it can only be set where the node is started", "")
    if name == definition.name and definition.update_mode == "per-broker" and not per_broker:
        return Unusable(owner, name, shown, "it can only be set for a single broker", "")
    return fault(owner, definition, text, name)


def _broken(static: BrokerConfig, levels: Levels) -> ConfigError | None:
    try:
        check_requirements(static.with_texts(merged(static, levels)))
    except ConfigError as error:
        return kept(error)
    return None


class _Together:
    """As many of the settings as go together: taken up in blocks, halved where one does not fit."""

    def __init__(self, static: BrokerConfig, levels: Levels) -> None:
        self.kept: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._static = static
        self._levels = levels
        self._reasons: dict[tuple[int, str], ConfigError] = {}
        waiting = [(number, name) for number in (0, 1) for name in levels[number]]
        count = len(waiting) + 1
        while len(waiting) < count:
            # What was taken up since may make room for others.
            count = len(waiting)
            waiting = self._take(waiting)
        self.left = waiting

    def _take(self, block: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Those of the block that do not go together with what is kept."""
        if not block:
            return []
        for number, name in block:
            self.kept[number][name] = self._levels[number][name]
        error = _broken(self._static, self.kept)
        if error is None:
            return []
        for number, name in block:
            del self.kept[number][name]
        if len(block) == 1:
            self._reasons[block[0]] = error
            return block
        middle = len(block) // 2
        return self._take(block[:middle]) + self._take(block[middle:])

    def faults(self) -> list[Unusable]:
        names = owners(self._static)
        result = []
        for number, name in self.left:
            definition = definition_of(name)
            assert definition is not None
            text = self._levels[number][name]
            error = self._reasons[number, name]
            shown = "[hidden]" if definition.sensitive else text
            result.append(Unusable(names[number], name, shown, for_people(error), ""))
        return result


def merged(static: BrokerConfig, levels: Levels) -> dict[str, str]:
    """What is set, at whichever level, as text.

    A dynamic setting takes the static ones it is a synonym of out of effect: with a dynamic
    `log.retention.ms`, `log.retention.hours` has its default (measured on Kafka 4.4). One that is a
    listener's own does not: other listeners may use the one of all.
    """
    texts = dict(static.texts)
    for level in levels:
        for name, text in level.items():
            for synonym in () if name.startswith(PREFIX) else synonyms_of(name):
                if synonym in BROKER:
                    texts.pop(synonym, None)
            texts[name] = text
    return texts
