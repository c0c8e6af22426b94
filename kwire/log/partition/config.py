"""The settings of one partition's log: a topic's configs, resolved (Kafka's LogConfig)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kwire.log.config_values import TypedValues, Values

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
    def from_values(cls, values: Values) -> LogConfig:
        """From typed values by Kafka's topic config names; names that the log does not read pass.

        `internal.segment.bytes`, where set, overrides `segment.bytes` (as in Kafka).
        """
        read, default = TypedValues(values), DEFAULT
        return cls(
            cleanup_policy=read.texts("cleanup.policy", default.cleanup_policy),
            compression_type=read.text("compression.type", default.compression_type),
            compression_gzip_level=read.integer(
                "compression.gzip.level", default.compression_gzip_level
            ),
            compression_lz4_level=read.integer(
                "compression.lz4.level", default.compression_lz4_level
            ),
            compression_zstd_level=read.integer(
                "compression.zstd.level", default.compression_zstd_level
            ),
            delete_retention_ms=read.integer("delete.retention.ms", default.delete_retention_ms),
            file_delete_delay_ms=read.integer("file.delete.delay.ms", default.file_delete_delay_ms),
            flush_messages=read.integer("flush.messages", default.flush_messages),
            flush_ms=read.integer("flush.ms", default.flush_ms),
            index_interval_bytes=read.integer("index.interval.bytes", default.index_interval_bytes),
            max_compaction_lag_ms=read.integer(
                "max.compaction.lag.ms", default.max_compaction_lag_ms
            ),
            max_decompressed_message_bytes=read.integer(
                "max.decompressed.message.bytes", default.max_decompressed_message_bytes
            ),
            max_message_bytes=read.integer("max.message.bytes", default.max_message_bytes),
            message_timestamp_after_max_ms=read.integer(
                "message.timestamp.after.max.ms", default.message_timestamp_after_max_ms
            ),
            message_timestamp_before_max_ms=read.integer(
                "message.timestamp.before.max.ms", default.message_timestamp_before_max_ms
            ),
            message_timestamp_type=read.text(
                "message.timestamp.type", default.message_timestamp_type
            ),
            min_cleanable_dirty_ratio=read.number(
                "min.cleanable.dirty.ratio", default.min_cleanable_dirty_ratio
            ),
            min_compaction_lag_ms=read.integer(
                "min.compaction.lag.ms", default.min_compaction_lag_ms
            ),
            min_insync_replicas=read.integer("min.insync.replicas", default.min_insync_replicas),
            preallocate=read.flag("preallocate", default.preallocate),
            retention_bytes=read.integer("retention.bytes", default.retention_bytes),
            retention_ms=read.integer("retention.ms", default.retention_ms),
            segment_bytes=read.integer(
                "internal.segment.bytes",
                read.integer("segment.bytes", default.segment_bytes),
            ),
            segment_index_bytes=read.integer("segment.index.bytes", default.segment_index_bytes),
            segment_jitter_ms=read.integer("segment.jitter.ms", default.segment_jitter_ms),
            segment_ms=read.integer("segment.ms", default.segment_ms),
            unclean_leader_election_enable=read.flag(
                "unclean.leader.election.enable", default.unclean_leader_election_enable
            ),
        )


DEFAULT = LogConfig()
