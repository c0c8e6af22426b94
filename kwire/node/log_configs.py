"""The configs of topics, resolved for their logs."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.config.dynamic import DynamicConfig
from kwire.config.values import Value
from kwire.log.partition.config import LogConfig


class LogConfigs:
    """Most topics have the values of most others: theirs are read once."""

    def __init__(self, config: DynamicConfig) -> None:
        self._config = config
        self._values: Mapping[str, Value] = {}
        self._read = LogConfig()

    def of(self, topic: str) -> LogConfig:
        values = self._config.topic_values_of(topic)
        if values is not self._values and values != self._values:
            self._values, self._read = values, LogConfig.from_values(values)
        return self._read
