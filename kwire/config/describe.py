"""What DescribeConfigs answers for each kind of resource, as Apache Kafka 4.4 does (measured).

Values are shown as typed values written back, synonyms as they were set. The synonyms of a config
come from this broker's dynamic settings, the cluster-wide dynamic ones, the static ones and the
defaults, in this order; those in front of the first that has the described config's own name are
left out, which is why `log.roll.ms` has none while only `log.roll.hours` is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.config.authorizer import CLASS_NAME, TOLD_AS
from kwire.config.broker_config import BrokerConfig, definition_of, synonyms_of
from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, TOPIC, ConfigDefinition
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.values import Value, to_text

# DescribeConfigsResponse.ConfigSource
TOPIC_CONFIG = 1
DYNAMIC_BROKER_CONFIG = 2
DYNAMIC_DEFAULT_BROKER_CONFIG = 3
STATIC_BROKER_CONFIG = 4
DEFAULT_CONFIG = 5
DYNAMIC_BROKER_LOGGER_CONFIG = 6
CLIENT_METRICS_CONFIG = 7
GROUP_CONFIG = 8

# DescribeConfigsResponse.ConfigType; 0 is unknown.
CONFIG_TYPES = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


class Synonym(NamedTuple):
    """One place a value could come from: config name, text as set, ConfigSource."""

    name: str
    value: str | None
    source: int


class Entry(NamedTuple):
    """One described config; `documentation` is null but for loggers, as `type` is."""

    name: str
    value: str | None
    source: int
    synonyms: list[Synonym]
    type: int
    read_only: bool
    sensitive: bool
    documentation: str | None = None


def _wanted(names: Iterable[str], keys: Iterable[str] | None) -> list[str]:
    """The names to describe: all when `keys` is null or empty, else those of it that exist."""
    wanted = None if keys is None else dict.fromkeys(keys)
    return [name for name in dict.fromkeys(names) if not wanted or name in wanted]


class _Levels:
    """The four levels a broker setting's synonyms come from, each name -> text."""

    def __init__(self, dynamic: DynamicConfig) -> None:
        self.levels: list[tuple[int, Mapping[str, str]]] = [
            (DYNAMIC_BROKER_CONFIG, dynamic.per_broker),
            (DYNAMIC_DEFAULT_BROKER_CONFIG, dynamic.cluster_default),
            (STATIC_BROKER_CONFIG, static_texts(dynamic.static)),
        ]

    def synonyms(self, name: str, sensitive: bool) -> list[Synonym]:
        found: list[Synonym] = []
        names = synonyms_of(name)
        for source, texts in self.levels:
            found += [
                Synonym(synonym, None if sensitive else texts[synonym], source)
                for synonym in names
                if synonym in texts
            ]
        for synonym in names:
            definition = BROKER.get(synonym)
            if definition is not None and definition.default is not None:
                text = None if sensitive else to_text(definition.default)
                if not definition.dynamic_only:
                    found.append(Synonym(synonym, text, DEFAULT_CONFIG))
        for index, found_synonym in enumerate(found):
            if found_synonym.name == name:
                return found[index:]
        return []


def static_texts(config: BrokerConfig) -> dict[str, str]:
    """What the node was started with; Kafka adds `broker.id` where only `node.id` was given."""
    return {"broker.id": str(config.node_id), **config.texts}


def _source(synonyms: list[Synonym]) -> int:
    return synonyms[0].source if synonyms else DEFAULT_CONFIG


def describe_broker(dynamic: DynamicConfig, keys: Iterable[str] | None = None) -> list[Entry]:
    """Every setting of this broker: all public ones, and whatever else is set."""
    levels = _Levels(dynamic)
    public = [
        name
        for name, definition in BROKER.items()
        if not definition.internal and not definition.dynamic_only
    ]
    names = public + list(dynamic.effective_texts())
    entries = [_broker_entry(dynamic, levels, name) for name in _wanted(names, keys)]
    return entries + _authorizer_entries(dynamic.static, keys)


def _authorizer_entries(config: BrokerConfig, keys: Iterable[str] | None) -> list[Entry]:
    """What the authorizer decides by beside ACLs, for who names the keys of `TOLD_AS`."""
    if not config[CLASS_NAME]:
        return []
    return [
        Entry(
            key,
            config.texts.get(TOLD_AS[key], ""),
            STATIC_BROKER_CONFIG,
            [],
            CONFIG_TYPES["string"],
            True,
            False,
        )
        for key in dict.fromkeys(keys or ())
        if key in TOLD_AS
    ]


def describe_cluster_default(
    dynamic: DynamicConfig, keys: Iterable[str] | None = None
) -> list[Entry]:
    """The cluster-wide dynamic settings (broker resource with an empty name)."""
    entries: list[Entry] = []
    for name in _wanted(dynamic.cluster_default, keys):
        definition = definition_of(name)
        sensitive = definition is None or definition.sensitive
        text = None if sensitive else dynamic.cluster_default[name]
        synonyms = [Synonym(name, text, DYNAMIC_DEFAULT_BROKER_CONFIG)]
        value = _retyped(definition, text)
        source = DYNAMIC_DEFAULT_BROKER_CONFIG
        kind = CONFIG_TYPES[definition.type] if definition else 0
        entries.append(Entry(name, value, source, synonyms, kind, not is_dynamic(name), sensitive))
    return entries


def _broker_entry(dynamic: DynamicConfig, levels: _Levels, name: str) -> Entry:
    definition = definition_of(name)
    sensitive = definition is None or definition.sensitive
    synonyms = levels.synonyms(name, sensitive)
    if sensitive:
        value = None
    elif name == "broker.id":
        value = str(dynamic.static.node_id)
    else:
        value = to_text(dynamic.effective_value(name))
    kind = CONFIG_TYPES[definition.type] if definition else 0
    return Entry(name, value, _source(synonyms), synonyms, kind, not is_dynamic(name), sensitive)


def is_dynamic(name: str) -> bool:
    """Whether Kafka lets a setting of this very name change at run time."""
    definition = BROKER.get(name)
    return definition is not None and definition.update_mode != "read-only"


def _retyped(definition: ConfigDefinition | None, text: str | None) -> str | None:
    """`text` parsed and written back; as it is when it cannot be parsed."""
    if definition is None or text is None:
        return text
    try:
        return to_text(definition.parse(text))
    except ConfigError:
        return text


def describe_topic(
    dynamic: DynamicConfig, overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[Entry]:
    """Every config of a topic with these overrides."""
    levels = _Levels(dynamic)
    values = dynamic.topic_values(overrides)
    names = [n for n, definition in TOPIC.items() if not definition.internal or n in overrides]
    entries: list[Entry] = []
    for name in _wanted(names, keys):
        definition = TOPIC[name]
        value = to_text(values[name])
        synonyms: list[Synonym] = []
        if definition.describe_synonym is not None:
            synonyms = levels.synonyms(definition.describe_synonym, definition.sensitive)
        if name in overrides:
            synonyms = [Synonym(name, value, TOPIC_CONFIG), *synonyms]
        entries.append(_entry(definition, value, synonyms))
    return entries


def _entry(definition: ConfigDefinition, value: str | None, synonyms: list[Synonym]) -> Entry:
    return Entry(
        definition.name,
        value,
        _source(synonyms),
        synonyms,
        CONFIG_TYPES[definition.type],
        False,
        definition.sensitive,
    )


def describe_group(
    dynamic: DynamicConfig, group: str, keys: Iterable[str] | None = None
) -> list[Entry]:
    """Every config of a group, whether it exists or not."""
    overrides = dynamic.group_overrides(group)
    values = dynamic.group_values(group)
    levels = _Levels(dynamic)
    names = [n for n, definition in GROUP.items() if not definition.internal or n in overrides]
    entries: list[Entry] = []
    for name in _wanted(names, keys):
        definition = GROUP[name]
        value = to_text(values[name])
        synonyms: list[Synonym] = []
        if definition.describe_synonym is not None:
            synonyms = levels.synonyms(definition.describe_synonym, definition.sensitive)
        elif definition.default is not None:
            synonyms = [Synonym(name, to_text(definition.default), DEFAULT_CONFIG)]
        if name in overrides:
            synonyms = [Synonym(name, value, GROUP_CONFIG), *synonyms]
        entries.append(_entry(definition, value, synonyms))
    return entries


def describe_client_metrics(
    overrides: Mapping[str, str], keys: Iterable[str] | None = None
) -> list[Entry]:
    """A client metrics subscription, whether it exists or not."""
    entries: list[Entry] = []
    for name in _wanted(CLIENT_METRICS, keys):
        definition = CLIENT_METRICS[name]
        if name in overrides:
            value = _retyped(definition, overrides[name])
            synonyms = [Synonym(name, value, CLIENT_METRICS_CONFIG)]
        else:
            value, synonyms = to_text(definition.default), []
        entries.append(_entry(definition, value, synonyms))
    return entries


def describe_loggers(levels: Mapping[str, str], keys: Iterable[str] | None = None) -> list[Entry]:
    """Loggers and their levels, in Kafka's level names."""
    source = DYNAMIC_BROKER_LOGGER_CONFIG
    return [
        Entry(name, levels[name], source, [], 0, False, False, "") for name in _wanted(levels, keys)
    ]


class EffectiveTopicConfig(NamedTuple):
    """A topic config as CreateTopics answers it: text as set, ConfigSource."""

    name: str
    value: str | None
    source: int
    sensitive: bool


def effective_topic_configs(
    overrides: Mapping[str, str],
    per_broker: Mapping[str, str],
    cluster_default: Mapping[str, str],
    static: Mapping[str, str],
) -> list[EffectiveTopicConfig]:
    """Every public topic config by name, as the controller resolves them for CreateTopics.

    Texts stay as they were set, hours and minutes are turned into milliseconds.
    """
    levels = (
        (DYNAMIC_BROKER_CONFIG, per_broker),
        (DYNAMIC_DEFAULT_BROKER_CONFIG, cluster_default),
        (STATIC_BROKER_CONFIG, static),
    )
    result: list[EffectiveTopicConfig] = []
    for name in sorted(TOPIC):
        definition = TOPIC[name]
        if definition.internal and name not in overrides:
            continue
        value, source = _resolve(definition, overrides, levels)
        sensitive = definition.sensitive
        result.append(EffectiveTopicConfig(name, None if sensitive else value, source, sensitive))
    return result


def _resolve(
    definition: ConfigDefinition,
    overrides: Mapping[str, str],
    levels: Iterable[tuple[int, Mapping[str, str]]],
) -> tuple[str | None, int]:
    if definition.name in overrides:
        return overrides[definition.name], TOPIC_CONFIG
    for source, texts in levels:
        for synonym, factor in definition.broker_synonyms:
            if synonym in texts:
                return _scaled(texts[synonym], factor), source
    default: Value = definition.default
    return to_text(default), DEFAULT_CONFIG


def _scaled(text: str, factor: int) -> str:
    if factor == 1:
        return text
    try:
        return str(int(text.strip()) * factor)
    except ValueError:
        return text
