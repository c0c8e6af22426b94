"""The broker configs that consumer groups read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """Broker configs under group.consumer; times in milliseconds. Defaults are Kafka's."""

    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    regex_refresh_interval_ms: int = 600_000
    migration_policy: str = "bidirectional"
    has_authorizer: bool = False
