"""Kafka's configs as data: one table a scope, read from `data/*.tsv` at first use.

A table has one config a line; the columns are those of `ConfigDefinition`. Names, types, defaults
and order are Apache Kafka 4.4's. `support` says honestly what kwire does with a value that is set:

    acts      it has Kafka's effect
    accepted  it has none, and one log line says so (never durability or security)
    refused   anything but the default ends the start, or is answered INVALID_CONFIG

`kwire.tsv` holds kwire's own settings; their names begin with `kwire.` or `http.`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from kwire.config import checks, values
from kwire.config.errors import ConfigError
from kwire.config.values import Value

REQUIRED = "(required)"
DATA = os.path.join(os.path.dirname(__file__), "data")


class ConfigDefinition:
    """One config: what Kafka says about it, and what kwire does with it.

    `default_text` is Kafka's default as text (None is null), `required` tells a config without
    one. `synonyms` are broker configs in order of precedence, this one included. `topic_config`
    names the topic config that a broker config is the default for. `broker_synonyms` of a topic
    or group config are the broker configs behind it as (name, factor to this config's unit);
    `describe_synonym` is the one that DescribeConfigs starts from.
    """

    __slots__ = (
        "_default",
        "_is_default_parsed",
        "broker_synonyms",
        "check",
        "default_text",
        "describe_synonym",
        "dynamic_only",
        "entity",
        "importance",
        "internal",
        "name",
        "note",
        "required",
        "support",
        "synonyms",
        "topic_config",
        "type",
        "update_mode",
    )

    def __init__(self, row: Mapping[str, str]) -> None:
        get = row.get
        self.name = row["name"]
        self.type = row["type"]
        default = row["default"]
        self.required = default == REQUIRED
        self.default_text = None if default in ("null", REQUIRED) else default
        self.check = get("check", "")
        self.importance = get("importance", "medium")
        self.internal = get("internal") == "yes"
        self.update_mode = get("update_mode", "")
        self.synonyms = tuple((get("synonyms") or self.name).split(","))
        self.topic_config = get("topic_config") or None
        self.dynamic_only = get("dynamic_only") == "yes"
        behind = get("broker_synonyms") or get("broker_synonym") or ""
        self.broker_synonyms = tuple(_synonym(text) for text in behind.split(",") if text)
        self.describe_synonym = get("describe_synonym") or get("broker_synonym") or None
        self.entity = get("entity", "")
        self.support = get("support", "acts")
        self.note = get("note", "")
        self._default: Value = None
        self._is_default_parsed = False

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type == "password"

    @property
    def default(self) -> Value:
        """The typed default; None for null and for a required config."""
        if not self._is_default_parsed:
            if self.default_text is not None:
                self._default = values.parse(self.name, self.type, self.default_text)
            self._is_default_parsed = True
        return self._default

    def parse(self, text: str) -> Value:
        """The checked, typed value of `text`; ConfigError in Kafka's words."""
        value = values.parse(self.name, self.type, text)
        value = checks.without_repeats(self.check, value)
        checks.check(self.name, self.check, value)
        return value

    @property
    def accepts(self) -> str:
        """What fits, in words for people."""
        return checks.advice(self.type, self.check)

    def __repr__(self) -> str:
        return f"ConfigDefinition({self.name}: {self.type})"


def _synonym(text: str) -> tuple[str, int]:
    name, _, factor = text.partition("*")
    return name, int(factor or 1)


class ConfigTable(Mapping[str, ConfigDefinition]):
    """The configs of one scope by name, in Kafka's order; read from its file at first use."""

    def __init__(self, file_name: str) -> None:
        self._file_name = file_name
        self._rows: dict[str, ConfigDefinition] | None = None

    def _load(self) -> dict[str, ConfigDefinition]:
        rows = self._rows
        if rows is None:
            with open(os.path.join(DATA, self._file_name), encoding="utf-8") as file:
                header, *lines = file.read().splitlines()
            columns = header.split("\t")
            rows = {}
            for line in lines:
                definition = ConfigDefinition(dict(zip(columns, line.split("\t"))))
                rows[definition.name] = definition
            self._rows = rows  # whole: nodes that start in other threads read it as well
        return rows

    def __getitem__(self, name: str) -> ConfigDefinition:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def parse(self, name: str, text: str) -> Value:
        """The typed value of a config of this table; ConfigError also when there is none."""
        definition = self._load().get(name)
        if definition is None:
            raise ConfigError(f"Unknown configuration {name}")
        return definition.parse(text)


BROKER = ConfigTable("broker.tsv")
TOPIC = ConfigTable("topic.tsv")
GROUP = ConfigTable("group.tsv")
CLIENT_METRICS = ConfigTable("client_metrics.tsv")
QUOTA = ConfigTable("quota.tsv")
KWIRE = ConfigTable("kwire.tsv")
