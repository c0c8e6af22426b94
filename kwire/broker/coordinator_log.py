"""The partitions of an internal topic as a coordinator's runtime sees them."""

from __future__ import annotations

from typing import Any

from kwire.log.types import Isolation, Origin
from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition

ACKS_ALL = -1


class PartitionCoordinatorLog:
    """`kwire.coordinator.seam.CoordinatorLog` over the hosted partitions of one topic."""

    def __init__(self, topic: str, replicas: ReplicaManager, clock: Any) -> None:
        self.topic = topic
        self._replicas = replicas
        self._clock = clock

    def _partition(self, index: int) -> Partition:
        partition = self._replicas.partition(self.topic, index)
        if partition is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def append(
        self,
        partition: int,
        batch: bytearray,
        leader_epoch: int,
        guard: object = None,
        transaction_version: int = 0,
    ) -> Any:
        """Append as acks=all would: NOT_ENOUGH_REPLICAS when that cannot be met."""
        return self._partition(partition).append(
            batch,
            acks=ACKS_ALL,
            wall_ms=self._clock.wall_ms(),
            origin=Origin.COORDINATOR,
            guard=guard,
            transaction_version=transaction_version,
            leader_epoch=leader_epoch,
        )

    def read(self, partition: int, offset: int, bytes_max: int) -> Any:
        """Whole batches up to the log end."""
        log = self._partition(partition).leader_log()
        found = log.read(offset, bytes_max, isolation=Isolation.LOG_END, min_one=True)
        if isinstance(found, Pending):
            return after(found, lambda done: done.result().buffers)
        return found.buffers

    def start_offset(self, partition: int) -> int:
        return int(self._partition(partition).leader_log().log_start_offset)

    def end_offset(self, partition: int) -> int:
        return int(self._partition(partition).leader_log().log_end_offset)

    def high_watermark(self, partition: int) -> int:
        return int(self._partition(partition).leader_log().high_watermark)

    def batch_bytes_max(self, partition: int) -> int:
        return int(self._partition(partition).leader_log().config.max_message_bytes)
