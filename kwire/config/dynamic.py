"""A broker's effective settings: the static ones under what the metadata log holds.

Precedence as Kafka's: this broker's own dynamic settings, then the cluster-wide dynamic
defaults, then what the node was started with, then Kafka's defaults. Synonyms count in their
order within a level, so that a dynamic `log.retention.ms` wins over a static
`log.retention.hours`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kwire.config.broker_config import BrokerConfig, definition_of, synonyms_of
from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigTable
from kwire.config.errors import ConfigError
from kwire.config.topics import apply_overrides, topic_defaults
from kwire.config.values import Value

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
logger = logging.getLogger(__name__)

# (resource type, resource name) -> name -> text: `configs` of the metadata image.
ImageConfigs = Mapping[tuple[int, str], Mapping[str, str]]
Listener = Callable[[dict[str, Value]], None]


class DynamicConfig:
    """Effective broker values, kept up to date by `update`; listeners hear of what changed."""

    def __init__(self, config: BrokerConfig, image_configs: ImageConfigs | None = None) -> None:
        self.static = config
        self.per_broker: dict[str, str] = {}
        self.cluster_default: dict[str, str] = {}
        self._effective: dict[str, Value] = {}
        self._listeners: list[Listener] = []
        self._told: dict[tuple[int, str], None] = {}
        self._topic_defaults: dict[str, Value] | None = None
        self.configs: ImageConfigs = {}
        if image_configs is not None:
            self.update(image_configs)

    def __getitem__(self, name: str) -> Any:
        """The typed effective value of a broker setting; KeyError for an unknown one."""
        if name in self._effective:
            return self._effective[name]
        return self.static[name]

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
        self._log_without_effect(image_configs if resources is None else resources)
        per_broker = dict(image_configs.get((RESOURCE_BROKER, str(self.static.node_id)), {}))
        cluster_default = dict(image_configs.get((RESOURCE_BROKER, ""), {}))
        if per_broker == self.per_broker and cluster_default == self.cluster_default:
            return {}
        self.per_broker, self.cluster_default = per_broker, cluster_default
        before = self._effective
        self._effective = _parse_known({**cluster_default, **per_broker})
        self._topic_defaults = None
        changed = {
            name: self[name]
            for name in sorted({**before, **self._effective})
            if before.get(name, self.static.get(name)) != self[name]
        }
        if changed:
            for listener in self._listeners:
                listener(changed)
        return changed

    def _log_without_effect(self, resources: Iterable[tuple[int, str]]) -> None:
        for resource_type, resource in resources:
            table = _TABLES.get(resource_type)
            if table is None:
                continue
            for name, text in self.configs.get((resource_type, resource), {}).items():
                definition = table.get(name)
                if definition is None or definition.support != "accepted":
                    continue
                if (resource_type, name) not in self._told:
                    self._told[resource_type, name] = None
                    shown = "[hidden]" if definition.sensitive else text
                    logger.warning("%s=%s is without effect: %s", name, shown, definition.note)

    def effective_texts(self) -> dict[str, str]:
        """What is set, at whichever level, as text.

        A dynamic setting takes the static ones it is a synonym of out of effect: with a dynamic
        `log.retention.ms`, `log.retention.hours` has its default (measured on Kafka 4.4).
        """
        texts = dict(self.static.texts)
        for level in (self.cluster_default, self.per_broker):
            for name, text in level.items():
                for synonym in synonyms_of(name):
                    if synonym in BROKER:
                        texts.pop(synonym, None)
                texts[name] = text
        return texts

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

    def topic_values(self, overrides: Mapping[str, str]) -> dict[str, Value]:
        """Typed values of every topic config of a topic with these overrides."""
        if self._topic_defaults is None:
            self._topic_defaults = topic_defaults(self.effective_value)
        return apply_overrides(self._topic_defaults, overrides)

    def topic_values_of(self, topic: str) -> dict[str, Value]:
        """`topic_values` with what the image holds for `topic`."""
        return self.topic_values(self.configs.get((RESOURCE_TOPIC, topic), {}))

    def group_values(self, group: str) -> dict[str, Value]:
        """Typed values of every group config of `group`: its own, the broker's, Kafka's."""
        overrides = self.group_overrides(group)
        values: dict[str, Value] = {}
        for name, definition in GROUP.items():
            synonym = definition.broker_synonyms
            value = self[synonym[0][0]] if synonym else definition.default
            # `streams.assignor.name` is the first of the broker's assignors.
            if isinstance(value, list) and definition.type != "list":
                value = value[0] if value else None
            values[name] = value
            if name in overrides:
                try:
                    values[name] = definition.parse(overrides[name])
                except ConfigError:
                    continue
        return values


def _parse_known(texts: Mapping[str, str]) -> dict[str, Value]:
    """Typed values of dynamic settings that this version knows and can read."""
    result: dict[str, Value] = {}
    for name, text in texts.items():
        definition = definition_of(name)
        if definition is None or definition.name not in BROKER:
            continue
        try:
            result[name] = definition.parse(text)
        except ConfigError:
            continue
    return result
