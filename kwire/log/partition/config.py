"""The settings of one partition's log: a topic's configs, resolved (Kafka's LogConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

LONG_MAX = 0x7FFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Every topic config that the log reads, under its Kafka name with underscores."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    delete_retention_ms: int = 86_400_000
    file_delete_delay_ms: int = 60_000
    flush_messages: int = LONG_MAX
    flush_ms: int = LONG_MAX
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = LONG_MAX
    max_decompressed_message_bytes: int = 2_147_483_639
    max_message_bytes: int = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    message_timestamp_before_max_ms: int = LONG_MAX
    message_timestamp_type: str = "CreateTime"
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_insync_replicas: int = 1
    preallocate: bool = False
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    segment_bytes: int = 1_073_741_824
    segment_index_bytes: int = 10_485_760
    segment_jitter_ms: int = 0
    segment_ms: int = 604_800_000
    unclean_leader_election_enable: bool = False
    # derived, so that the append does not look at strings
    compacts: bool = field(init=False, default=False)
    deletes: bool = field(init=False, default=True)
    is_log_append_time: bool = field(init=False, default=False)
    roll_ms: int = field(init=False, default=604_800_000)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compacts", "compact" in self.cleanup_policy)
        object.__setattr__(self, "deletes", "delete" in self.cleanup_policy)
        is_append_time = self.message_timestamp_type == "LogAppendTime"
        object.__setattr__(self, "is_log_append_time", is_append_time)
        # What compaction must have seen in time has to leave the active segment in time.
        lag_ms = self.max_compaction_lag_ms if self.compacts else 0
        roll_ms = min(lag_ms, self.segment_ms) if lag_ms > 0 else self.segment_ms
        object.__setattr__(self, "roll_ms", roll_ms)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> LogConfig:
        """From typed values by Kafka's topic config names; names that the log does not read pass.

        `internal.segment.bytes`, where set, overrides `segment.bytes` (as in Kafka).
        """
        known = {
            name: values[name.replace("_", ".")]
            for name in _FIELDS
            if values.get(name.replace("_", ".")) is not None
        }
        if values.get("internal.segment.bytes") is not None:
            known["segment_bytes"] = values["internal.segment.bytes"]
        if "cleanup_policy" in known:
            known["cleanup_policy"] = tuple(known["cleanup_policy"])
        return cls(**known)


_FIELDS = tuple(f.name for f in fields(LogConfig) if f.init)
