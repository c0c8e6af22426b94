"""The broker configs that the log cleaner reads."""

from __future__ import annotations

from dataclasses import dataclass

from kwire.log.config_values import TypedValues, Values

NO_LIMIT = 1.7976931348623157e308
SLOT_BYTES = 24  # of an OffsetMap


@dataclass(frozen=True, slots=True)
class CleanerSettings:
    """Sizes in bytes, times in milliseconds.

    `dedupe_buffer_bytes` and `io_buffer_bytes` are shared by all `threads`, as in Kafka.
    """

    enabled: bool = True
    threads: int = 1
    dedupe_buffer_bytes: int = 134_217_728
    load_factor: float = 0.9
    io_buffer_bytes: int = 524_288
    io_bytes_per_second_max: float = NO_LIMIT
    backoff_ms: int = 15_000

    @classmethod
    def from_values(cls, values: Values) -> CleanerSettings:
        """From typed broker config values by Kafka's names."""
        return cls().changed(values)

    def changed(self, values: Values) -> CleanerSettings:
        """These settings with the changed ones among `values`."""
        read = TypedValues(values)
        return CleanerSettings(
            enabled=read.flag("log.cleaner.enable", self.enabled),
            threads=read.integer("log.cleaner.threads", self.threads),
            dedupe_buffer_bytes=read.integer(
                "log.cleaner.dedupe.buffer.size", self.dedupe_buffer_bytes
            ),
            load_factor=read.number("log.cleaner.io.buffer.load.factor", self.load_factor),
            io_buffer_bytes=read.integer("log.cleaner.io.buffer.size", self.io_buffer_bytes),
            io_bytes_per_second_max=read.number(
                "log.cleaner.io.max.bytes.per.second", self.io_bytes_per_second_max
            ),
            backoff_ms=read.integer("log.cleaner.backoff.ms", self.backoff_ms),
        )

    def map_bytes(self, offsets: int) -> int:
        """Memory of the key map for a range of that many offsets: no more than it can fill."""
        limit = self.dedupe_buffer_bytes // max(self.threads, 1)
        wanted = int(offsets / self.load_factor) * SLOT_BYTES + 2 * SLOT_BYTES
        return max(min(limit, wanted), 2 * SLOT_BYTES)
