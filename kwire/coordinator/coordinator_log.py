"""The partitions of an internal topic as a coordinator's runtime sees them."""

from __future__ import annotations

from kwire.clock import Clock
from kwire.coordinator.shard_interface import Buffer
from kwire.kept_errors import anew
from kwire.log.partition.producers import VerificationGuard
from kwire.log.types import AppendInfo, Isolation, Origin
from kwire.pending import Answer, Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.build import MadeBatch
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition

ACKS_ALL = -1


class PartitionCoordinatorLog:
    """`CoordinatorLog` (shard_interface.py) over the hosted partitions of one topic."""

    def __init__(self, topic: str, replicas: ReplicaManager, clock: Clock) -> None:
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
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
        at_once: bool = False,
    ) -> AppendInfo:
        """Append as acks=all would: NOT_ENOUGH_REPLICAS when that cannot be met."""
        found = self._partition(partition)
        info = found.append(
            batch,
            acks=ACKS_ALL,
            wall_ms=self._clock.wall_ms(),
            origin=Origin.COORDINATOR,
            guard=guard,
            transaction_version=transaction_version,
            leader_epoch=leader_epoch,
        )
        if at_once and found.log is not None:
            found.log.write_tail()
        return info

    def append_made(self, partition: int, made: MadeBatch) -> bool:
        """See `CoordinatorLog`: what `append` would do with it, without checking it again."""
        found = self._replicas.partition(self.topic, partition)
        return found is not None and found.append_made(made, self._clock.wall_ms())

    def check_append(self, partition: int, leader_epoch: int) -> tuple[int, int]:
        """NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR."""
        log = self._partition(partition).check_append(ACKS_ALL, leader_epoch)
        if log.error is not None:
            raise anew(log.error)
        config = log.config
        return log.next_offset, min(config.max_message_bytes, config.segment_bytes)

    def read(self, partition: int, offset: int, bytes_max: int) -> Answer[list[Buffer]]:
        """Whole batches up to the log end."""
        log = self._partition(partition).leader_log()
        found = log.read(offset, bytes_max, isolation=Isolation.LOG_END, min_one=True)
        if isinstance(found, Pending):
            return after(found, lambda done: done.result().buffers)
        return found.buffers

    def start_offset(self, partition: int) -> int:
        return self._partition(partition).leader_log().log_start_offset

    def end_offset(self, partition: int) -> int:
        return self._partition(partition).leader_log().log_end_offset

    def high_watermark(self, partition: int) -> int:
        return self._partition(partition).leader_log().high_watermark

    def batch_bytes_max(self, partition: int) -> int:
        return self._partition(partition).leader_log().config.max_message_bytes
