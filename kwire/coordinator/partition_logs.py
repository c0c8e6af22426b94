"""A coordinator's topic over the replicas of this broker: the CoordinatorLog of production."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.clock import Clock
from kwire.log.types import Isolation, Origin
from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition


class ReplicaLogs:
    """The partitions of `topic` that this broker hosts."""

    def __init__(self, topic: str, replicas: ReplicaManager, clock: Clock) -> None:
        self._topic = topic
        self._replicas = replicas
        self._clock = clock

    def append(
        self, partition: int, batch: bytearray, leader_epoch: int, guard: object = None
    ) -> Any:
        """Append with acks=all in mind: too few replicas in sync refuse it at once."""
        return self._partition(partition).append(
            batch,
            acks=-1,
            wall_ms=self._clock.wall_ms(),
            origin=Origin.COORDINATOR,
            guard=guard,
            leader_epoch=leader_epoch,
        )

    def read(self, partition: int, offset: int, bytes_max: int) -> Any:
        found = self._partition(partition).read(
            offset, bytes_max, isolation=Isolation.LOG_END, min_one=True
        )
        if isinstance(found, Pending):
            return after(found, lambda done: done.result().buffers)
        return found.buffers

    def start_offset(self, partition: int) -> int:
        return int(self._log(partition).log_start_offset)

    def end_offset(self, partition: int) -> int:
        return int(self._log(partition).log_end_offset)

    def high_watermark(self, partition: int) -> int:
        return int(self._partition(partition).state.high_watermark)

    def batch_bytes_max(self, partition: int) -> int:
        return int(self._log(partition).config.max_message_bytes)

    def _partition(self, index: int) -> Partition:
        partition = self._replicas.partition(self._topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def _log(self, index: int) -> Any:
        return self._partition(index).leader_log()


def follow_leaderships(
    topic: str,
    replicas: ReplicaManager,
    *,
    load: Callable[[int, int], None],
    unload: Callable[[int], None],
    committed: Callable[[int, int], None],
) -> None:
    """Tell a coordinator what this broker leads of its topic: `load(partition, leader_epoch)`,
    `unload(partition)`, and `committed(partition, high_watermark)` whenever it moves."""

    def listener(partition: Partition, leader_epoch: int | None) -> None:
        if partition.topic != topic:
            return
        if leader_epoch is None:
            partition.on_high_watermark = None
            unload(partition.index)
        else:
            partition.on_high_watermark = committed
            load(partition.index, leader_epoch)

    replicas.add_listener(listener)
