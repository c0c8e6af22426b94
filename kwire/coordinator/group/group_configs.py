"""The configs of single groups (consumer.session.timeout.ms) that groups on record read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

# A group config such as consumer.session.timeout.ms, by group id and name; all that these
# groups read are numbers.
GroupConfig: TypeAlias = Callable[[str, str], int]

_DEFAULTS = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "consumer.assignment.interval.ms": 1_000,
    "share.session.timeout.ms": 45_000,
    "share.heartbeat.interval.ms": 5_000,
    "share.assignment.interval.ms": 1_000,
}


def default_group_config(group_id: str, name: str) -> int:
    """Kafka's defaults of the group configs."""
    return _DEFAULTS[name]
