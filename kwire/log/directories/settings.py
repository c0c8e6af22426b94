"""The broker configs that the log manager reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHORTAGE_TIMEOUT_MS_MIN = 10_000
"""How long a broker that is short of space keeps its leaderships though others could write: as
long as one that is not heard of (broker.session.timeout.ms), and never less than this."""


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """The broker configs that the log manager reads, in milliseconds."""

    retention_check_interval_ms: int = 300_000
    flush_check_interval_ms: int = 0x7FFFFFFFFFFFFFFF
    checkpoint_interval_ms: int = 60_000
    start_offset_checkpoint_interval_ms: int = 60_000
    high_watermark_checkpoint_interval_ms: int = 5_000
    producer_id_expiration_ms: int = 86_400_000
    producer_id_check_interval_ms: int = 600_000
    initial_task_delay_ms: int = 30_000
    file_delete_delay_ms: int = 60_000
    verify_transactions: bool = True
    shortage_timeout_ms: int = 10_000

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> ManagerSettings:
        """From typed broker config values by Kafka's names."""
        found = {
            name: values[key] for name, key in _SETTINGS.items() if values.get(key) is not None
        }
        session_ms = values.get("broker.session.timeout.ms") or 0
        return cls(**found, shortage_timeout_ms=max(SHORTAGE_TIMEOUT_MS_MIN, session_ms))


_SETTINGS = {
    "retention_check_interval_ms": "log.retention.check.interval.ms",
    "flush_check_interval_ms": "log.flush.scheduler.interval.ms",
    "checkpoint_interval_ms": "log.flush.offset.checkpoint.interval.ms",
    "start_offset_checkpoint_interval_ms": "log.flush.start.offset.checkpoint.interval.ms",
    "high_watermark_checkpoint_interval_ms": "replica.high.watermark.checkpoint.interval.ms",
    "producer_id_expiration_ms": "producer.id.expiration.ms",
    "producer_id_check_interval_ms": "producer.id.expiration.check.interval.ms",
    "initial_task_delay_ms": "log.initial.task.delay.ms",
    "file_delete_delay_ms": "log.segment.delete.delay.ms",
    "verify_transactions": "transaction.partition.verification.enable",
}
