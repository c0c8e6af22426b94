"""The broker configs that the group coordinator reads, by Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# How long a member that is alone in its group waits when it joins again. Apache Kafka answers
# after some milliseconds, too. kafka-python 3.0 looks whether it has to rejoin before it awaits
# the join that it has under way: an assignment that arrives between two of its polls is lost to
# it, and it never consumes. A metadata refresh after 100 ms and polls of 50 ms meet just there.
REJOIN_SETTLE_MS = 30


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Resolved values; times in milliseconds, sizes in bytes. Defaults are Kafka's, but for
    `append_linger_ms`: tests want to see what one operation appends."""

    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    initial_rebalance_delay_ms: int = 3000
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_bytes_max: int = 4096
    offsets_retention_ms: int = 10080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    offset_commit_timeout_ms: int = 5000
    offsets_topic_partitions: int = 50
    load_bytes: int = 5_242_880
    append_linger_ms: int = 0
    rejoin_settle_ms: int = 0

    @classmethod
    def from_config(cls, value: Callable[[str], Any]) -> GroupSettings:
        """From a look-up by config name (`config.__getitem__`)."""
        return cls(
            min_session_timeout_ms=value("group.min.session.timeout.ms"),
            max_session_timeout_ms=value("group.max.session.timeout.ms"),
            max_size=value("group.max.size"),
            initial_rebalance_delay_ms=value("group.initial.rebalance.delay.ms"),
            offset_metadata_bytes_max=value("offset.metadata.max.bytes"),
            offsets_retention_ms=value("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=value("offsets.retention.check.interval.ms"),
            offset_commit_timeout_ms=value("offsets.commit.timeout.ms"),
            offsets_topic_partitions=value("offsets.topic.num.partitions"),
            load_bytes=value("offsets.load.buffer.size"),
            append_linger_ms=value("group.coordinator.append.linger.ms"),
            rejoin_settle_ms=REJOIN_SETTLE_MS,
        )
