"""Partitions of which a follower has asked its leader for nothing new, and has got nothing new.

Until something of one of them moves here, or the leader says something of it, the same is to be
asked of it again: only the others are looked at before the next fetch.
"""

from __future__ import annotations

from kwire.replica.follower_session import TopicIdPartition
from kwire.replica.hosted_log import HostedLog
from kwire.replica.partition import Partition


class SettledPartitions:
    """A `LogWatcher` of those that have settled; `moving` are the others, in no order."""

    __slots__ = ("_keys", "moving")

    def __init__(self) -> None:
        self._keys: dict[HostedLog, TopicIdPartition] = {}
        self.moving: dict[TopicIdPartition, None] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def settle(self, key: TopicIdPartition, partition: Partition) -> None:
        """It is not looked at until it moves."""
        self.moving.pop(key, None)
        self._keys[partition] = key
        partition.watch(self)

    def stir(self, key: TopicIdPartition, partition: Partition) -> None:
        """It is looked at again."""
        if self._keys.pop(partition, None) is not None:
            partition.unwatch(self)
        self.moving[key] = None

    def disturbed(self, hosted: HostedLog) -> None:
        """See LogWatcher."""
        key = self._keys.pop(hosted, None)
        if key is not None:
            hosted.unwatch(self)
            self.moving[key] = None

    def stir_all(self) -> None:
        """All are looked at again."""
        for partition in list(self._keys):
            self.disturbed(partition)

    def follower_fetched(self, hosted: HostedLog, replica_id: int) -> None:
        """See LogWatcher. That is another matter."""
