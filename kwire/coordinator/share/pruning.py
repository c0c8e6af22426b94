"""Keeps `__share_group_state` short, as Kafka does.

Every `prune_interval_ms` the records in front of the oldest last snapshot are deleted from each
partition that this broker leads. A share partition that is not written to any more would hold its
old snapshot there, and all behind it: so every `cold_partition_snapshot_interval_ms` those with an
old one get a new one. Share partitions of topics that there are no more are forgotten: their
deletion may have come while nobody led the partition. Source: KIP-932; measured on Apache Kafka
4.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from kwire.coordinator.runtime import CoordinatorRuntime
from kwire.coordinator.shard_interface import Loop, TimerHandle
from kwire.coordinator.share import operations
from kwire.coordinator.share.shard import ShareCoordinatorSettings, ShareShard
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)

# What passes: the next turn tries again.
PASSING = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


class Pruning:
    """Two timers over the shards of a runtime, from `start` to `close`."""

    def __init__(
        self,
        *,
        runtime: CoordinatorRuntime[ShareShard],
        settings: ShareCoordinatorSettings,
        delete_records: Callable[[int, int], Pending[None]],
        is_enabled: Callable[[], bool],
        loop: Loop,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._delete_records = delete_records
        self._is_enabled = is_enabled
        self._loop = loop
        self._pruned: dict[int, int] = {}
        self._timers: dict[str, TimerHandle] = {}

    def start(self) -> None:
        """Begin, unless it has begun."""
        if not self._timers:
            self._later("prune", self._settings.prune_interval_ms, self._prune)
            interval_ms = self._settings.cold_partition_snapshot_interval_ms
            self._later("snapshot", interval_ms, self._snapshot_cold_partitions)

    def forget(self, partition: int) -> None:
        """Another broker leads the partition."""
        self._pruned.pop(partition, None)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _later(self, name: str, delay_ms: int, callback: Callable[[], None]) -> None:
        self._timers[name] = self._loop.call_at(self._loop.time() + delay_ms / 1000, callback)

    def _prune(self) -> None:
        self._later("prune", self._settings.prune_interval_ms, self._prune)
        if not self._is_enabled():
            return
        for partition in self._runtime.partitions():
            found = self._runtime.read(
                partition, lambda shard, moment: shard.last_redundant_offset()
            )
            found.add_done_callback(partial(self._found, partition))

    def _found(self, partition: int, done: Pending[int | None]) -> None:
        error = done.error()
        if error is not None:
            self._failed(partition, error)
            return
        offset = done.result()
        if offset is None or self._pruned.get(partition) == offset:
            return
        deleted = self._delete_records(partition, offset)
        deleted.add_done_callback(partial(self._deleted, partition, offset))

    def _deleted(self, partition: int, offset: int, done: Pending[None]) -> None:
        error = done.error()
        if error is None:
            self._pruned[partition] = offset
        else:
            self._failed(partition, error)

    @staticmethod
    def _failed(partition: int, error: Exception) -> None:
        if not isinstance(error, KafkaError) or error.code not in PASSING:
            logger.warning(
                "old records of __share_group_state-%d are not deleted this time: %s",
                partition,
                error,
            )

    def _snapshot_cold_partitions(self) -> None:
        interval_ms = self._settings.cold_partition_snapshot_interval_ms
        self._later("snapshot", interval_ms, self._snapshot_cold_partitions)
        if self._is_enabled():
            self._runtime.write_all(operations.snapshot_cold_partitions)
            self._runtime.write_all(operations.forget_missing_topics)
