"""Kafka's settings by Kafka's names: tables, a node's configuration, what may change at run time.

`BrokerConfig.load` is what a node starts with, `definitions` holds the tables, `topics` resolves
a topic's settings, `dynamic` adds what the metadata image says, `describe` answers
DescribeConfigs, `validate` checks what clients want to set.
"""

from __future__ import annotations

from kwire.config.broker_config import BrokerConfig, Source
from kwire.config.errors import ConfigError

__all__ = ["BrokerConfig", "ConfigError", "Source"]
