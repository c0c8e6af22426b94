"""The broker configs that the log cleaner reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

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
    def from_values(cls, values: Mapping[str, Any]) -> CleanerSettings:
        """From typed broker config values by Kafka's names."""
        return cls(
            **{name: values[key] for name, key in _SETTINGS.items() if values.get(key) is not None}
        )

    def changed(self, values: Mapping[str, Any]) -> CleanerSettings:
        """These settings with the changed ones among `values`."""
        found = {name: values[key] for name, key in _SETTINGS.items() if key in values}
        return replace(self, **found) if found else self

    def map_bytes(self, offsets: int) -> int:
        """Memory of the key map for a range of that many offsets: no more than it can fill."""
        limit = self.dedupe_buffer_bytes // max(self.threads, 1)
        wanted = int(offsets / self.load_factor) * SLOT_BYTES + 2 * SLOT_BYTES
        return max(min(limit, wanted), 2 * SLOT_BYTES)


_SETTINGS = {
    "enabled": "log.cleaner.enable",
    "threads": "log.cleaner.threads",
    "dedupe_buffer_bytes": "log.cleaner.dedupe.buffer.size",
    "load_factor": "log.cleaner.io.buffer.load.factor",
    "io_buffer_bytes": "log.cleaner.io.buffer.size",
    "io_bytes_per_second_max": "log.cleaner.io.max.bytes.per.second",
    "backoff_ms": "log.cleaner.backoff.ms",
}
