"""What the configs of a topic ask of its keys and values.

Names of configs as in Confluent Server; `kwire.schema.validation.deep` is kwire's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kwire.config.values import Value

PACKAGE = "io.confluent.kafka.serializers.subject."
TOPIC_NAME, RECORD_NAME, TOPIC_RECORD_NAME = (
    PACKAGE + name
    for name in ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
)
DEEP = "kwire.schema.validation.deep"
VALIDATION = {
    "key": "confluent.key.schema.validation",
    "value": "confluent.value.schema.validation",
}
STRATEGY = {
    "key": "confluent.key.subject.name.strategy",
    "value": "confluent.value.subject.name.strategy",
}


class SideRules(NamedTuple):
    """Of a topic's keys, or of its values: `side` is key or value."""

    side: str
    strategy: str

    @property
    def header(self) -> bytes:
        """The name of the header that says the schema, where the bytes do not."""
        return f"__{self.side}_schema_id".encode()

    def subject(self, topic: str, record_name: str | None) -> str | None:
        """Where the schema has to be registered; None where the strategy needs a name of the
        record and there is none."""
        if self.strategy == TOPIC_NAME:
            return f"{topic}-{self.side}"
        if record_name is None:
            return None
        return record_name if self.strategy == RECORD_NAME else f"{topic}-{record_name}"


class TopicRules(NamedTuple):
    """`key` or `value` is None where nothing is asked of it; `is_deep`: the bytes must decode."""

    topic: str
    key: SideRules | None
    value: SideRules | None
    is_deep: bool


def rules_of(topic: str, values: Mapping[str, Value]) -> TopicRules | None:
    """From typed values by the names of topic configs; None where nothing is asked."""
    key, value = (
        SideRules(side, str(values.get(STRATEGY[side]) or TOPIC_NAME))
        if values.get(VALIDATION[side]) is True
        else None
        for side in ("key", "value")
    )
    if key is None and value is None:
        return None
    return TopicRules(topic, key, value, values.get(DEEP) is True)
