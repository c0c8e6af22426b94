"""The broker configs that the log manager reads."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.log.config_values import TypedValues, Values

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
    def from_values(cls, values: Values) -> ManagerSettings:
        """From typed broker config values by Kafka's names."""
        read, default = TypedValues(values), cls()
        session_ms = read.integer("broker.session.timeout.ms", 0)
        return cls(
            retention_check_interval_ms=read.integer(
                "log.retention.check.interval.ms", default.retention_check_interval_ms
            ),
            flush_check_interval_ms=read.integer(
                "log.flush.scheduler.interval.ms", default.flush_check_interval_ms
            ),
            checkpoint_interval_ms=read.integer(
                "log.flush.offset.checkpoint.interval.ms", default.checkpoint_interval_ms
            ),
            start_offset_checkpoint_interval_ms=read.integer(
                "log.flush.start.offset.checkpoint.interval.ms",
                default.start_offset_checkpoint_interval_ms,
            ),
            high_watermark_checkpoint_interval_ms=read.integer(
                "replica.high.watermark.checkpoint.interval.ms",
                default.high_watermark_checkpoint_interval_ms,
            ),
            producer_id_expiration_ms=read.integer(
                "producer.id.expiration.ms", default.producer_id_expiration_ms
            ),
            producer_id_check_interval_ms=read.integer(
                "producer.id.expiration.check.interval.ms",
                default.producer_id_check_interval_ms,
            ),
            initial_task_delay_ms=read.integer(
                "log.initial.task.delay.ms", default.initial_task_delay_ms
            ),
            file_delete_delay_ms=read.integer(
                "log.segment.delete.delay.ms", default.file_delete_delay_ms
            ),
            verify_transactions=read.flag(
                "transaction.partition.verification.enable", default.verify_transactions
            ),
            shortage_timeout_ms=max(SHORTAGE_TIMEOUT_MS_MIN, session_ms),
        )
