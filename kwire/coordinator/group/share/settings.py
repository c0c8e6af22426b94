"""The broker configs that share groups read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareGroupSettings:
    """Broker configs under group.share; times in milliseconds. Defaults are Kafka's."""

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
