"""What a share group's configs say about its partitions."""

from __future__ import annotations

from typing import NamedTuple

from kwire.log.types import READ_UNCOMMITTED


class ShareSettings(NamedTuple):
    """Configs of a group as they are now; Kafka's defaults. `reset` is `latest`, `earliest` or
    `by_duration:` with an ISO 8601 duration, `has_dead_letters` whether archived records go to a
    topic first."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    record_locks_max: int = 2000
    isolation_level: int = READ_UNCOMMITTED
    reset: str = "latest"
    may_renew: bool = True
    has_dead_letters: bool = False

    @property
    def throttled_from(self) -> int:
        """The delivery count from which a batch is handed out in parts (measured on Apache Kafka
        4.4)."""
        return max(2, -(-self.delivery_count_limit // 2))
