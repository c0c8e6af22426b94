"""Every config with many texts: parsed, written back and refused as Apache Kafka 4.4 does.

`data/config_values.json.gz` holds what Kafka's own ConfigDefs answered, made by
`compat_tests/peers/ConfigValues.java`: scope -> config -> [text, written back, error].
"""

from __future__ import annotations

import gzip
import json
import pathlib

import pytest

from kwire.config import ConfigError
from kwire.config.definitions import BROKER, CLIENT_METRICS, GROUP, QUOTA, TOPIC, ConfigTable
from kwire.config.values import to_text

DATA = pathlib.Path(__file__).parent / "data" / "config_values.json.gz"
TABLES: dict[str, ConfigTable] = {
    "broker": BROKER,
    "quota-broker": BROKER,
    "topic": TOPIC,
    "group": GROUP,
    "client-metrics": CLIENT_METRICS,
    "quota-user": QUOTA,
    "quota-ip": QUOTA,
}
ANSWERS = json.loads(gzip.decompress(DATA.read_bytes()))


@pytest.mark.parametrize("scope", list(TABLES))
def test_texts_are_taken_and_refused_as_kafka_does(scope: str) -> None:
    table = TABLES[scope]
    differences = []
    for name, answers in ANSWERS[scope].items():
        # Whether a Java class exists is not for a Python broker to know.
        if table[name].type == "class":
            continue
        for text, written_back, error in answers:
            try:
                got, got_error = to_text(table.parse(name, text)), None
            except ConfigError as refusal:
                got, got_error = None, str(refusal)
            if (got, got_error) != (written_back, error):
                differences.append((name, text, got, got_error, written_back, error))
    assert not differences


@pytest.mark.parametrize("scope", list(TABLES))
def test_every_config_that_kafka_has_is_in_the_table(scope: str) -> None:
    assert [name for name in ANSWERS[scope] if name not in TABLES[scope]] == []


def test_there_is_no_config_that_kafka_lacks() -> None:
    """But those that validate schemas at publish, which Confluent Server has (ADR 51)."""
    known = {name for answers in ANSWERS.values() for name in answers}
    tables = (BROKER, TOPIC, GROUP, CLIENT_METRICS, QUOTA)
    assert [name for table in tables for name in table if name not in known] == [
        "confluent.key.schema.validation",
        "confluent.key.subject.name.strategy",
        "confluent.value.schema.validation",
        "confluent.value.subject.name.strategy",
        "kwire.schema.validation.deep",
    ]
