"""A read of the partitions of a session of fetches where nothing happens.

A session (KIP-227) asks for the same positions again and again, and in nearly all partitions
nothing has happened. A partition joins when a read of it would find nothing, and nothing is to be
told of it. `QuietRead` watches it: before it moves it leaves, and who waits is given it to read and
to listen to. So a fetch of thousands of partitions costs what has moved since the last one.

What each of these reads would have left behind in every partition is written there when somebody
looks, or when the partition leaves: how many fetches there were, and when a follower was caught up
last.

It stands for reads at the end of what is shown: by consumers at the high watermark, by followers
that are in sync at the end of the log, which the high watermark has reached. With all others a read
may do more than to find nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol

from kwire.log.types import COMMITTED, Isolation
from kwire.protocol.errors import KafkaError
from kwire.replica.bounded_read import UNREAD, ReadTarget, Request
from kwire.replica.hosted_log import NO_EPOCH, HostedLog
from kwire.replica.partition import Partition
from kwire.replica.reading import ReadLimits, ReadRequest, diverging_epoch, nothing_read
from kwire.replica.state import FollowerFetched
from kwire.replica.traffic import LateCounts, TopicTraffic, Traffic


class HostedPartitions(Protocol):
    """The partitions of a node, and what they count in."""

    def partition(self, topic: str, index: int) -> Partition | None: ...

    def partition_by_id(self, topic_id: bytes, index: int) -> Partition | None: ...

    @property
    def traffic(self) -> TopicTraffic: ...


class ReadKind(NamedTuple):
    """What of a request's limits tells whether its read finds nothing as another one did."""

    isolation: Isolation
    replica_id: int
    replica_epoch: int
    from_follower: bool


def kind_of(limits: ReadLimits) -> ReadKind:
    """The kind of a read with these limits, in no rack."""
    return ReadKind(limits.isolation, limits.replica_id, limits.replica_epoch, limits.from_follower)


def _is_at_the_end(partition: Partition, request: ReadRequest, kind: ReadKind) -> bool:
    """Whether a read finds nothing, and nothing that is wrong."""
    log, state = partition.log, partition.state
    if (
        log is None
        or request.fetch_offset != log.high_watermark
        or request.current_leader_epoch not in (NO_EPOCH, state.leader_epoch)
        or (kind.isolation is COMMITTED and log.last_stable_offset != log.high_watermark)
    ):
        return False
    if not partition.is_leader:
        return kind.from_follower and request.last_fetched_epoch < 0
    if request.last_fetched_epoch >= 0:
        try:
            if diverging_epoch(log, request) is not None:
                return False
        except KafkaError:
            return False
    return kind.replica_id < 0 or _is_in_sync(partition, request, kind)


def _is_in_sync(partition: Partition, request: ReadRequest, kind: ReadKind) -> bool:
    """Whether one more fetch of a follower tells nothing but that it is there."""
    state, end = partition.state, request.fetch_offset
    progress = state.followers.get(kind.replica_id)
    assert partition.log is not None
    return (
        progress is not None
        and kind.replica_id in state.isr
        and end == partition.log.log_end_offset == state.log_end_offset == state.high_watermark
        and end == progress.log_end_offset == progress.last_fetch_leader_log_end_offset
        and progress.log_start_offset == request.log_start_offset
        and progress.replica_epoch == kind.replica_epoch
    )


class QuietWait(Protocol):
    """A read that waits for what does not happen."""

    def left(self, target: ReadTarget[Any]) -> None:
        """It may happen in this partition from now on; the target is its own, and says what it has
        found there: nothing."""
        ...


class QuietRead(Generic[Request]):
    """See the module. `left(request)` is called when one leaves, `late` is who counts late.

    Nobody joins while somebody waits: who waits hears of all that were there when it began.
    """

    __slots__ = ("_late", "_left", "_members", "_read_ms", "_reads", "_topics", "kind", "waits")

    def __init__(
        self, kind: ReadKind, late: dict[LateCounts, None], left: Callable[[Request], None]
    ) -> None:
        self.kind = kind
        self._late = late
        self._left = left
        self.waits: dict[QuietWait, None] = {}
        self._members: dict[HostedLog, tuple[ReadTarget[Request], int]] = {}
        """And how many reads there were when it joined."""
        self._reads = 0
        self._read_ms = -1  # when a follower read last
        self._topics: dict[Traffic, list[int]] = {}
        """How many of its partitions are here, and up to which read they are counted."""

    def __len__(self) -> int:
        return len(self._members)

    def join(self, replicas: HostedPartitions, target: ReadTarget[Request]) -> bool:
        """Whether the target is part of it from now on; the target is its own then."""
        partition = target.partition
        index, topics = partition.index, self._topics
        if (
            self.waits
            or target.is_other_topic
            or partition in self._members
            or replicas.partition_by_id(partition.topic_id, index) is not partition
            or replicas.partition(partition.topic, index) is not partition
            or not _is_at_the_end(partition, target.request, self.kind)
        ):
            return False
        target.result = UNREAD
        self._members[partition] = target, self._reads
        counted = topics.get(partition.traffic)
        if counted is None:
            topics[partition.traffic] = [1, self._reads]
        else:
            self._count(partition.traffic, counted)
            counted[0] += 1
        partition.watch(self)
        return True

    def read(self) -> None:
        """All that are in it are read once more."""
        if not self._members:
            return
        self._late[self] = None
        self._reads += 1
        if self.kind.replica_id >= 0:
            target, _ = next(iter(self._members.values()))
            self._read_ms = target.partition.now_ms()

    def count(self) -> None:
        """See LateCounts."""
        self._late.pop(self, None)
        for traffic, counted in self._topics.items():
            self._count(traffic, counted)

    def _count(self, traffic: Traffic, counted: list[int]) -> None:
        partitions, reads = counted
        traffic.fetch_requests += partitions * (self._reads - reads)
        counted[1] = self._reads

    def disturbed(self, hosted: HostedLog) -> None:
        """See LogWatcher: this one leaves."""
        found = self._members.pop(hosted, None)
        if found is None:
            return
        target, joined = found
        partition = target.partition
        partition.unwatch(self)
        counted = self._topics[partition.traffic]
        self._count(partition.traffic, counted)
        counted[0] -= 1
        if not counted[0]:
            del self._topics[partition.traffic]
        if self._reads > joined and self.kind.replica_id >= 0:
            self._follower_read(target)
        self._left(target.request)
        for wait in list(self.waits):
            wait.left(self._found(target))

    def follower_fetched(self, hosted: HostedLog, replica_id: int) -> None:
        """See LogWatcher."""
        if replica_id == self.kind.replica_id:
            self.disturbed(hosted)

    def end(self) -> None:
        """All of them leave."""
        for partition in list(self._members):
            self.disturbed(partition)
        self._late.pop(self, None)

    def _follower_read(self, target: ReadTarget[Request]) -> None:
        """The follower had everything when it read last. It is in sync, so nothing follows."""
        _, replica_id, replica_epoch, _ = self.kind
        request = target.request
        event = FollowerFetched(
            replica_id, replica_epoch, request.fetch_offset, request.log_start_offset
        )
        target.partition.state.step(event, self._read_ms)

    def _found(self, target: ReadTarget[Request]) -> ReadTarget[Request]:
        """What a read that waits has found: nothing, before anything moves."""
        found = ReadTarget(target.partition, target.request)
        log = target.partition.log
        if log is not None and self.kind.isolation is COMMITTED:  # no other read asks for it
            found.result = nothing_read(log, COMMITTED)
        return found
