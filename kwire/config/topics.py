"""A topic's settings: its own overrides over the broker's settings over Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.config.definitions import TOPIC, ConfigDefinition
from kwire.config.errors import ConfigError
from kwire.config.values import Value


def topic_defaults(broker_value: Callable[[str], Value]) -> dict[str, Value]:
    """Topic config name -> typed value that a topic without overrides has.

    `broker_value(name)` is the broker's effective value. The first broker synonym that is not
    null counts, times its factor; a negative time in hours or minutes means -1.
    """
    return {name: _default(definition, broker_value) for name, definition in TOPIC.items()}


def _default(definition: ConfigDefinition, broker_value: Callable[[str], Value]) -> Value:
    for synonym, factor in definition.broker_synonyms:
        value = broker_value(synonym)
        if value is None:
            continue
        if definition.name == "retention.ms" and isinstance(value, int) and value < 0:
            return -1
        return value * factor if factor != 1 else value
    return definition.default


def apply_overrides(
    defaults: Mapping[str, Value], overrides: Mapping[str, str]
) -> dict[str, Value]:
    """`defaults` with a topic's own settings on top.

    The overrides come from the metadata log, where only checked values arrive; one that this
    version cannot read keeps the default.
    """
    values = dict(defaults)
    for name, text in overrides.items():
        definition = TOPIC.get(name)
        if definition is None:
            continue
        try:
            values[name] = definition.parse(text)
        except ConfigError:
            continue
    return values
