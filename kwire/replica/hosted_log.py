"""The log of a hosted partition: who may have it, and who hears before it moves.

Errors are KafkaError with Kafka's codes.
"""

from __future__ import annotations

from typing import Protocol

from kwire.log.partition.partition_log import PartitionLog
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.state import ReplicaState

NO_EPOCH = -1


class LogWatcher(Protocol):
    """Someone who takes it that a partition stays as it is."""

    def disturbed(self, hosted: HostedLog, /) -> None:
        """Something is about to move there that a read could tell of: an offset, or who may read.
        It watches that partition no more."""
        ...

    def follower_fetched(self, hosted: HostedLog, replica_id: int, /) -> None:
        """A follower reads there in the usual way."""
        ...


_NOBODY: dict[LogWatcher, None] = {}


class HostedLog:
    """What a partition says of its log. `log` is None only while its directory is offline."""

    __slots__ = ("log", "state", "watchers")

    def __init__(self, state: ReplicaState) -> None:
        self.state = state
        self.log: PartitionLog | None = None
        self.watchers = _NOBODY

    @property
    def is_leader(self) -> bool:
        return self.state.leader_id == self.state.broker_id

    @property
    def leader_epoch(self) -> int:
        return self.state.leader_epoch

    # -- who may ask

    def check_epoch(self, current_leader_epoch: int) -> None:
        """FENCED_LEADER_EPOCH for an older epoch, UNKNOWN_LEADER_EPOCH for a newer one; -1 is
        not checked (KIP-320)."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.state.leader_epoch:
            code = (
                ErrorCode.FENCED_LEADER_EPOCH
                if current_leader_epoch < self.state.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
            raise KafkaError(code)

    def leader_log(self, current_leader_epoch: int = NO_EPOCH) -> PartitionLog:
        """The log, when we lead at this epoch; NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR."""
        state = self.state
        if current_leader_epoch not in (NO_EPOCH, state.leader_epoch):
            self.check_epoch(current_leader_epoch)
        if state.leader_id != state.broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.log is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        return self.log

    def readable_log(self, current_leader_epoch: int = NO_EPOCH) -> PartitionLog:
        """The log of whatever role we have, for a consumer that may read from followers."""
        if current_leader_epoch != NO_EPOCH:
            self.check_epoch(current_leader_epoch)
        if self.log is None:
            is_gone = self.state.leader_id < 0
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if is_gone else ErrorCode.KAFKA_STORAGE_ERROR
            )
        return self.log

    # -- who watches

    def watch(self, watcher: LogWatcher) -> None:
        """Hear, once, before something moves. The log has to be there."""
        assert self.log is not None
        if self.watchers is _NOBODY:
            self.watchers = {}
        self.watchers[watcher] = None
        self.log.on_moving = self.disturb

    def unwatch(self, watcher: LogWatcher) -> None:
        """Hear nothing any more."""
        self.watchers.pop(watcher, None)
        if not self.watchers:
            self.watchers = _NOBODY
            if self.log is not None:
                self.log.on_moving = None

    def disturb(self) -> None:
        """Something is about to move."""
        for watcher in list(self.watchers):
            watcher.disturbed(self)
