"""A topic's settings: its own overrides over the broker's settings over Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kwire.config import checks, stored
from kwire.config.definitions import TOPIC, ConfigDefinition
from kwire.config.errors import ConfigError
from kwire.config.values import Value, to_text

OnFault = Callable[[stored.Unusable], object]


def topic_defaults(
    broker_value: Callable[[str], Value], on_fault: OnFault | None = None
) -> dict[str, Value]:
    """Topic config name -> typed value that a topic without overrides has.

    `broker_value(name)` is the broker's effective value. The first broker synonym counts that is
    not null and that a topic may have, times its factor; a negative time in hours or minutes means
    -1. What a topic may not have (Kafka checks less of brokers) is told to `on_fault`.
    """
    return {
        name: _default(definition, broker_value, on_fault) for name, definition in TOPIC.items()
    }


def _default(
    definition: ConfigDefinition, broker_value: Callable[[str], Value], on_fault: OnFault | None
) -> Value:
    for synonym, factor in definition.broker_synonyms:
        value = broker_value(synonym)
        if value is None:
            continue
        if definition.name == "retention.ms" and isinstance(value, int) and value < 0:
            return -1
        found: Value = value * factor if factor != 1 else value
        try:
            checks.check(definition.name, definition.check, found)
        except ConfigError as error:
            if on_fault is not None:
                on_fault(
                    stored.Unusable(
                        "topics by default",
                        synonym,
                        to_text(value) or "",
                        str(error),
                        definition.accepts,
                    )
                )
            continue
        return found
    return definition.default


def apply_overrides(
    defaults: Mapping[str, Value], overrides: Mapping[str, str]
) -> dict[str, Value]:
    """`defaults` with a topic's own settings on top, those that this version can use."""
    values = dict(defaults)
    for name, text in overrides.items():
        definition = TOPIC.get(name)
        if definition is not None:
            values[name] = stored.read(definition, text, values[name])
    return values
