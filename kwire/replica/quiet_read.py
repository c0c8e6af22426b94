"""A read that found nothing, as long as it would find nothing again.

A session of fetches (KIP-227) asks for the same positions again and again, and nearly always
nothing has happened. `QuietRead` watches all partitions of such a read: before one of them moves it
is told, and is over. Until then a read of thousands of partitions costs what one of a single
partition does.

What each of these reads would have left behind in every partition is written there when somebody
looks, or when it is over: how many fetches there were, and when a follower was caught up last. A
read that is part of it and waits goes on in the usual way from then on.

It stands for reads at the end of what is shown: by consumers at the high watermark, by followers
that are in sync at the end of the log, which the high watermark has reached. With all others a read
may do more than to find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol

from kwire.log.types import COMMITTED, Isolation
from kwire.protocol.errors import KafkaError
from kwire.replica.bounded_read import UNREAD, ReadTarget, Request
from kwire.replica.hosted_log import NO_EPOCH
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


def quiet_read(
    replicas: HostedPartitions,
    targets: Sequence[ReadTarget[Request]],
    limits: ReadLimits,
    over: Callable[[], None],
) -> QuietRead[Request] | None:
    """What stands for more reads of these targets, which have found nothing; None where one may
    find something, or do more than that."""
    kind = kind_of(limits)
    for target in targets:
        partition, request = target.partition, target.request
        index = partition.index
        if (
            target.is_other_topic
            or replicas.partition_by_id(partition.topic_id, index) is not partition
            or replicas.partition(partition.topic, index) is not partition
            or not _is_at_the_end(partition, request, kind)
        ):
            return None
    return QuietRead(targets, kind, replicas.traffic.late, over) if targets else None


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

    def go_on(self) -> None:
        """It may happen from now on."""
        ...


class QuietRead(Generic[Request]):
    """See the module. `over()` is called when it is over, `late` is who counts late. The targets
    are its own from then on."""

    __slots__ = (
        "_is_over",
        "_is_taken",
        "_late",
        "_over",
        "_read_ms",
        "_reads",
        "_targets",
        "_topics",
        "kind",
        "waits",
    )

    def __init__(
        self,
        targets: Sequence[ReadTarget[Request]],
        kind: ReadKind,
        late: dict[LateCounts, None],
        over: Callable[[], None],
    ) -> None:
        self._targets = targets
        self.kind = kind
        self._late = late
        self._over = over
        self.waits: dict[QuietWait, None] = {}
        self._is_over = self._is_taken = False
        self._reads = 0  # that the partitions have not counted yet
        self._read_ms = -1  # when a follower read last
        self._topics: dict[Traffic, int] = {}  # with how many of the partitions
        for target in targets:
            partition = target.partition
            self._topics[partition.traffic] = self._topics.get(partition.traffic, 0) + 1
            partition.watch(self)
            target.result = UNREAD

    def read(self) -> None:
        """All partitions are read once more."""
        if not self._reads:
            self._late[self] = None
        self._reads += 1
        if self.kind.replica_id >= 0:
            self._read_ms = self._targets[0].partition.now_ms()

    def count(self) -> None:
        """See LateCounts."""
        self._late.pop(self, None)
        reads, self._reads = self._reads, 0
        for traffic, partitions in self._topics.items():
            traffic.fetch_requests += partitions * reads

    def disturbed(self) -> None:
        """See LogWatcher."""
        if self._is_over:
            return
        self._is_over = True
        for target in self._targets:
            target.partition.unwatch(self)
        self.count()
        if self._read_ms >= 0:
            self._follower_read()
        self._over()
        waits, self.waits = self.waits, {}
        for wait in waits:
            wait.go_on()

    def follower_fetched(self, replica_id: int) -> None:
        """See LogWatcher."""
        if replica_id == self.kind.replica_id:
            self.disturbed()

    def _follower_read(self) -> None:
        """The follower had everything when it read last. It is in sync, so nothing follows."""
        _, replica_id, replica_epoch, _ = self.kind
        for target in self._targets:
            request = target.request
            event = FollowerFetched(
                replica_id, replica_epoch, request.fetch_offset, request.log_start_offset
            )
            target.partition.state.step(event, self._read_ms)

    def targets(self) -> list[ReadTarget[Request]]:
        """What a read that waits has found: nothing, before anything moves. Nearly always it is
        one, and gets what this one had."""
        found = list(self._targets)
        if self._is_taken:
            found = [ReadTarget(target.partition, target.request) for target in found]
        self._is_taken = True
        if self.kind.isolation is COMMITTED:  # no other read asks what was found
            for target in found:
                log = target.partition.log
                if log is not None:
                    target.result = nothing_read(log, COMMITTED)
        return found
