"""The configs that consumer groups read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

# A group config such as consumer.session.timeout.ms, by group id and name; all that consumer groups
# read are numbers.
GroupConfig: TypeAlias = Callable[[str, str], int]

_DEFAULTS = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "consumer.assignment.interval.ms": 1_000,
}


def default_group_config(group_id: str, name: str) -> int:
    """Kafka's defaults of the group configs."""
    return _DEFAULTS[name]


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Broker configs under group.consumer; times in milliseconds. Defaults are Kafka's."""

    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: str = "bidirectional"
    has_authorizer: bool = False
