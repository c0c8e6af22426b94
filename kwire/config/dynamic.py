"""A broker's effective settings: the static ones under what the metadata log holds.

Precedence as Kafka's: this broker's own dynamic settings, then the cluster-wide dynamic
defaults, then what the node was started with, then Kafka's defaults. Synonyms count in their
order within a level, so that a dynamic `log.retention.ms` wins over a static
`log.retention.hours`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from kwire.config import stored
from kwire.config.broker_config import (
    OF_ONE_LISTENER,
    BrokerConfig,
    acts_for_listeners,
    definition_of,
)
from kwire.config.definitions import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ConfigDefinition,
    ConfigTable,
)
from kwire.config.provider_settings import PROVIDERS
from kwire.config.topics import apply_overrides, topic_defaults
from kwire.config.values import TypedValue, Value, to_text

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32

_TABLES: dict[int, ConfigTable] = {
    RESOURCE_TOPIC: TOPIC,
    RESOURCE_BROKER: BROKER,
    RESOURCE_CLIENT_METRICS: CLIENT_METRICS,
    RESOURCE_GROUP: GROUP,
}
_OWNERS = {
    RESOURCE_TOPIC: "topic",
    RESOURCE_BROKER_LOGGER: "logger",
    RESOURCE_CLIENT_METRICS: "client metrics",
    RESOURCE_GROUP: "group",
}
logger = logging.getLogger(__name__)

# Kafka opens and closes listeners while it runs; here these wait for a start.
OF_A_START = ("listeners", "listener.security.protocol.map")

# (resource type, resource name) -> name -> text: `configs` of the metadata image.
ImageConfigs = Mapping[tuple[int, str], Mapping[str, str]]
Listener = Callable[[dict[str, Value]], None]
Check = Callable[[BrokerConfig], None]


class DynamicConfig:
    """Effective broker values, kept up to date by `update`; listeners hear of what changed."""

    def __init__(
        self,
        config: BrokerConfig,
        image_configs: ImageConfigs | None = None,
        *,
        is_catching_up: bool = False,
    ) -> None:
        self.static = config
        # Old metadata are not worth a line: what counts is what is there in the end.
        self._is_catching_up = is_catching_up
        self.per_broker: dict[str, str] = {}
        self.cluster_default: dict[str, str] = {}
        self._effective: dict[str, Value] = {}
        self._listeners: list[Listener] = []
        self.checks: list[Check] = []
        """What says whether changed settings could be taken over; ConfigError in Kafka's words."""
        self._usable: stored.Levels = ({}, {})
        self._without_effect: dict[tuple[int, str], None] = {}
        # What was said of a resource's unusable configs: said again only when it changes.
        self._faults: dict[tuple[int, str], list[stored.Unusable]] = {}
        self._topic_defaults: dict[str, Value] | None = None
        self.configs: ImageConfigs = {}
        if image_configs is not None:
            self.update(image_configs)

    def __getitem__(self, name: str) -> TypedValue:
        """The typed effective value of a broker setting; KeyError for an unknown one."""
        if name in self._effective:
            return self._effective[name]
        return self.static[name]

    def is_set(self, name: str) -> bool:
        """Whether it has a value of its own, at whichever level, that can be used."""
        return name in self._effective or name in self.static.texts

    def add_listener(self, listener: Listener) -> None:
        """Call `listener(changed name -> new effective value)` after every change."""
        self._listeners.append(listener)

    def update(
        self, image_configs: ImageConfigs, resources: Iterable[tuple[int, str]] | None = None
    ) -> dict[str, Value]:
        """Take the image's configs over; returns what changed, after telling the listeners.

        `resources` are those whose configs changed (None: any). A config that has no effect here
        is logged when it is first seen.
        """
        self.configs = image_configs
        changed_resources = list(image_configs if resources is None else resources)
        self._log_without_effect(changed_resources)
        per_broker = dict(image_configs.get((RESOURCE_BROKER, str(self.static.node_id)), {}))
        cluster_default = dict(image_configs.get((RESOURCE_BROKER, ""), {}))
        changed: dict[str, Value] = {}
        is_other = per_broker != self.per_broker or cluster_default != self.cluster_default
        # What providers give may have changed: a broker's config that is written again is reloaded.
        is_written = any(resource_type == RESOURCE_BROKER for resource_type, _ in changed_resources)
        if is_other or (is_written and self._has_placeholders):
            self.per_broker, self.cluster_default = per_broker, cluster_default
            changed = self._take_over()
        for resource_type, resource in changed_resources:
            if resource_type != RESOURCE_BROKER:
                self._log_faults(resource_type, resource, self._faults_of(resource_type, resource))
        if changed:
            for listener in self._listeners:
                listener(changed)
        return changed

    @property
    def _has_placeholders(self) -> bool:
        levels = (self.cluster_default, self.per_broker)
        return any("${" in text for level in levels for text in level.values())

    def _take_over(self) -> dict[str, Value]:
        """Make the broker's settings effective, those that can be used; what changed by that."""
        before = self._effective
        self._usable, faults = stored.resolved_levels(
            self.static, (self.cluster_default, self.per_broker)
        )
        self._effective = _parse_known({**self._usable[0], **self._usable[1]})
        self._topic_defaults = topic_defaults(self.effective_value, faults.append)
        self._log_faults(RESOURCE_BROKER, "", faults)
        return {
            name: self[name]
            for name in sorted({**before, **self._effective})
            if before.get(name, self.static.get(name)) != self[name]
        }

    def _faults_of(self, resource_type: int, resource: str) -> list[stored.Unusable]:
        table = _TABLES.get(resource_type)
        texts = self.configs.get((resource_type, resource))
        if table is None or not texts:
            return []
        owner = f"{_OWNERS[resource_type]} {resource}"
        found = (
            stored.fault(owner, table[name], text) for name, text in texts.items() if name in table
        )
        faults = [fault for fault in found if fault is not None]
        if not faults:
            return faults
        values = self._fallbacks(resource_type)
        return [
            fault._replace(instead=to_text(values.get(fault.name, table[fault.name].default)) or "")
            for fault in faults
        ]

    def _fallbacks(self, resource_type: int) -> Mapping[str, Value]:
        if resource_type == RESOURCE_TOPIC:
            return self._topic_values()
        return self._group_defaults() if resource_type == RESOURCE_GROUP else {}

    def _log_faults(self, resource_type: int, resource: str, faults: list[stored.Unusable]) -> None:
        """One line for each config of a resource that cannot be used, when it comes up."""
        key = (resource_type, resource)
        known = self._faults.pop(key, [])
        if faults:
            self._faults[key] = faults
        for fault in faults:
            if fault not in known and not self._is_catching_up:
                logger.error("%s", fault)

    def caught_up(self) -> None:
        """The metadata are as new as they get: name what of them cannot be used, from now on."""
        self._is_catching_up = False
        for faults in self._faults.values():
            for fault in faults:
                logger.error("%s", fault)

    def _log_without_effect(self, resources: Iterable[tuple[int, str]]) -> None:
        for resource_type, resource in resources:
            table = _TABLES.get(resource_type)
            if table is None:
                continue
            for name, text in self.configs.get((resource_type, resource), {}).items():
                definition = definition_of(name) if table is BROKER else table.get(name)
                why = "" if definition is None else _without_effect(name, definition)
                if why and (resource_type, name) not in self._without_effect:
                    assert definition is not None
                    self._without_effect[resource_type, name] = None
                    shown = "[hidden]" if definition.sensitive else text
                    logger.warning("%s=%s is without effect: %s", name, shown, why)

    def effective_texts(self) -> dict[str, str]:
        """What is set, at whichever level, as text: see `stored.merged`."""
        return stored.merged(self.static, (self.cluster_default, self.per_broker))

    def usable(self, *, per_broker: bool) -> dict[str, str]:
        """What is set at one level, as it was set, without what cannot be used."""
        level = self.per_broker if per_broker else self.cluster_default
        usable = self._usable[1 if per_broker else 0]
        # A list of providers is never checked: who takes one up, or not, is up to the providers.
        return {n: text for n, text in level.items() if n in usable or n == PROVIDERS}

    def current(self) -> BrokerConfig:
        """What this broker runs with now."""
        return self.static.with_texts(stored.merged(self.static, self._usable))

    def candidate(self, changed: Mapping[str, str], *, per_broker: bool) -> BrokerConfig:
        """What this broker would run with if `changed` were all that is set at one level.

        ConfigError for a malformed value.
        """
        cluster_default, own = self._usable
        levels = (cluster_default, changed) if per_broker else (changed, own)
        return self.static.with_texts(stored.merged(self.static, levels))

    def effective_value(self, name: str) -> Value:
        """The typed value of `name` by itself, static synonyms that are out of effect removed."""
        if name in self._effective:
            return self._effective[name]
        if name in self.static.texts and name not in self.effective_texts():
            definition = definition_of(name)
            return None if definition is None else definition.default
        value: Value = self.static[name]
        return value

    def group_overrides(self, group: str) -> Mapping[str, str]:
        """What the image holds for `group`."""
        return self.configs.get((RESOURCE_GROUP, group), {})

    def _topic_values(self) -> dict[str, Value]:
        if self._topic_defaults is None:
            self._topic_defaults = topic_defaults(self.effective_value)
        return self._topic_defaults

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Value]:
        """Typed values of every topic config of a topic with these overrides."""
        return apply_overrides(self._topic_values(), overrides)

    def topic_values_of(self, topic: str) -> Mapping[str, Value]:
        """`topic_values` with what the image holds for `topic`."""
        overrides = self.configs.get((RESOURCE_TOPIC, topic))
        return self.topic_values(overrides) if overrides else self._topic_values()

    def group_values(self, group: str) -> dict[str, Value]:
        """Typed values of every group config of `group`: its own, the broker's, Kafka's."""
        values = self._group_defaults()
        for name, text in self.group_overrides(group).items():
            if name in values:
                values[name] = stored.read(GROUP[name], text, values[name])
        return values

    def _group_defaults(self) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for name, definition in GROUP.items():
            synonym = definition.broker_synonyms
            value = self[synonym[0][0]] if synonym else definition.default
            # `streams.assignor.name` is the first of the broker's assignors.
            if isinstance(value, list) and definition.type != "list":
                value = value[0] if value else None
            values[name] = value
        return values


def _without_effect(name: str, definition: ConfigDefinition) -> str:
    """Why a dynamic config has no effect here; empty where it has one."""
    if definition.support != "acts":
        return definition.note
    if name in OF_A_START:
        return "listeners are opened at the start, as the node's own configuration has them"
    acts = name == definition.name or acts_for_listeners(definition)
    return "" if acts else OF_ONE_LISTENER


def _parse_known(texts: Mapping[str, str]) -> dict[str, Value]:
    """Typed values of usable dynamic settings that this version knows."""
    result: dict[str, Value] = {}
    for name, text in texts.items():
        definition = definition_of(name)
        if definition is not None and definition.name in BROKER:
            result[name] = definition.parse(text)
    return result
