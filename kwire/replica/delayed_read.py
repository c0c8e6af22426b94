"""A read that waits until there is enough: for data, a change of a partition, or its deadline.

The first read goes through the partitions in order until `bytes_max` is used up. With less than
`bytes_min` it waits at every partition; each arrival of data is counted, and when enough has
arrived, or the time is over, everything is read anew. What read_committed may not see yet does not
count before the last stable offset has moved.

With `slices` a read of many partitions holds the loop for some of them at a time. Each is read as
it is in its turn, as Apache Kafka's threads read one partition after another while others write. So
it listens to each from the turn on in which it was read, while it seems that it has to wait: what
arrives before the wait counts as what arrives within it.

Partitions of a `QuietRead` are part of a read that is begun with it, but nobody looks at them
before they leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol

from kwire.log.scheduling import Timer
from kwire.log.types import COMMITTED
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import (
    SLICE_PARTITIONS,
    UNREAD,
    BoundedRead,
    ReadTarget,
    Request,
    nothing,
)
from kwire.replica.partition import LeaderQuota, Partition, ReplicaSelector
from kwire.replica.quiet_read import QuietRead
from kwire.replica.reading import ReadLimits, ReadResult
from kwire.slices import Slices


class Deadlines(Protocol):
    """Timers."""

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Timer: ...


class ReadContext:
    """What the reads of a node have in common.

    `exists(topic, index)` says whether the metadata has a partition, `selector` which replica a
    consumer in a rack reads from, `quota` what followers are sent.
    """

    __slots__ = (
        "deadlines",
        "exists",
        "expired",
        "expired_of_followers",
        "quota",
        "selector",
        "waited",
        "waiting",
    )

    def __init__(
        self,
        deadlines: Deadlines,
        exists: Callable[[str, int], bool],
        selector: ReplicaSelector | None = None,
        quota: LeaderQuota | None = None,
    ) -> None:
        self.deadlines = deadlines
        self.exists = exists
        self.selector = selector
        self.quota = quota
        self.waiting = self.expired = self.expired_of_followers = 0
        """How many reads wait, and for how many the time was over, of consumers and followers."""
        self.waited = 0

    def begin_wait(self) -> int:
        """One more read waits; how many have begun to."""
        self.waiting += 1
        self.waited += 1
        return self.waited


class DelayedRead(Generic[Request]):
    """A read from its beginning to its end. `start()`; then `done()` is called, maybe before it
    returns, and every target has its result. `failed(error)` is called instead where reading raises
    what is no error of a partition (without it, that is raised wherever the read goes on).

    What of `quiet` moves meanwhile is added to the targets. `regroup()` is called then before all
    of them are read once more; it may give slices for that.
    """

    __slots__ = (
        "_arrived_bytes",
        "_bytes_allowed",
        "_context",
        "_deadline",
        "_done",
        "_failed",
        "_is_due",
        "_left",
        "_limits",
        "_order",
        "_quiet",
        "_read",
        "_regroup",
        "_slices",
        "_targets",
        "_unstable",
        "_waits",
    )

    def __init__(
        self,
        context: ReadContext,
        targets: list[ReadTarget[Request]],
        limits: ReadLimits,
        done: Callable[[], None],
        slices: Slices | None = None,
        failed: Callable[[Exception], None] | None = None,
        quiet: QuietRead[Request] | None = None,
        regroup: Callable[[], Slices | None] | None = None,
    ) -> None:
        self._context = context
        self._slices = slices
        self._targets = targets
        self._limits = limits
        self._done = done
        self._failed = failed
        self._quiet = quiet
        self._regroup = regroup
        self._left: list[ReadTarget[Request]] = []  # what has left `quiet` since
        self._deadline: Timer | None = None
        self._read: BoundedRead[Request] | None = None
        self._waits = False  # it listens
        self._is_due = False  # there was enough before all was read
        self._order = 0
        self._arrived_bytes = 0
        # How much more of a partition counts.
        self._bytes_allowed: dict[Partition, int] | None = None
        # With read_committed: the last stable offset, and what has arrived behind it.
        self._unstable: dict[Partition, tuple[int, int]] | None = None

    def start(self) -> None:
        """Read once, and wait if that is not enough."""
        quiet = self._quiet
        if quiet is not None:
            quiet.waits[self] = None
            quiet.read()
        begins_wait = self._slices is not None and self._limits.wait_ms > 0
        self._begin_read(self._first_read, self._taken if begins_wait else None)

    def go_on(self, deadline: Timer, order: int) -> None:
        """As `start`, of a read that has found nothing, as its targets say, and has waited since:
        until `deadline`, which calls `expired`. `order` is what `begin_wait` said then."""
        self._deadline = deadline
        self._order = order
        if self._quiet is not None:
            self._quiet.waits[self] = None
        self._begin_listening()
        self._listen(self._targets, order)
        for target in self._targets:
            target.result = UNREAD
            target.partition.is_in_order = False

    def cancel(self) -> None:
        """Nobody wants the results any more; `done` will not be called."""
        self._leave_quiet()
        if self._waits:
            self._stop_waiting()
        if self._read is not None:
            self._read.cancel()
            self._read = None

    def _leave_quiet(self) -> bool:
        """Whether there was any."""
        quiet, self._quiet = self._quiet, None
        if quiet is None:
            return False
        quiet.waits.pop(self, None)
        return True

    def _begin_read(
        self,
        done: Callable[[BoundedRead[Request]], None],
        taken: Callable[[int, int], None] | None = None,
    ) -> None:
        limits, context = self._limits, self._context
        self._read = read = BoundedRead(
            self._targets,
            limits,
            done,
            context.selector if limits.rack else None,
            context.quota if limits.replica_id >= 0 else None,
            self._slices,
            failed=self._ended_by,
            taken=taken,
        )
        read.run()

    def _ended_by(self, error: Exception) -> None:
        self.cancel()
        if self._failed is None:
            raise error
        self._failed(error)

    def _first_read(self, read: BoundedRead[Request]) -> None:
        self._read = None
        limits = self._limits
        if self._slices is not None:
            self._find_deleted()
        if (
            limits.wait_ms <= 0
            or not (self._targets or self._quiet or self._left)
            or read.ends_wait
            or read.total_bytes >= limits.bytes_min
        ):
            self._leave_quiet()
            if self._waits:
                self._stop_waiting()
            self._done()
            return
        self._arrived_bytes += read.total_bytes
        if self._is_due or self._arrived_bytes >= limits.bytes_min:
            self._read_all_again()
            return
        self._deadline = self._context.deadlines.add(limits.wait_ms, self.expired)
        if self._slices is None:
            self._order = self._context.begin_wait()
            self._begin_listening()
            self._listen(self._targets, self._order)
            self._forget(self._targets)
        else:
            if not self._waits:  # there were no targets
                self._order = self._context.begin_wait()
                self._begin_listening()
            self._slices.run(self._forget_in_slices(), nothing)

    def _taken(self, begin: int, end: int) -> None:
        """In slices: these are read. A read that is enough already does not listen."""
        read, limits = self._read, self._limits
        assert read is not None
        if read.ends_wait or read.total_bytes >= limits.bytes_min:
            return
        if not self._waits:
            self._order = self._context.begin_wait()
            self._begin_listening()
        some = self._targets[begin:end]
        self._listen(some, self._order)
        for target in some:
            # Others have begun to wait since, who hear after it.
            target.partition.is_in_order = False

    def _begin_listening(self) -> None:
        limits = self._limits
        if limits.bytes_min > 1:
            self._bytes_allowed = {}
        if limits.isolation is COMMITTED:
            self._unstable = {}
        self._waits = True

    def _listen(self, targets: Sequence[ReadTarget[Request]], order: int) -> None:
        """Hear of what happens in these partitions, from now on, behind what was read of them."""
        for target in targets:
            partition, result = target.partition, target.result
            partition.data_listeners[self] = order
            if self._unstable is not None:
                self._unstable[partition] = result.last_stable_offset, 0
            if self._bytes_allowed is not None:
                allowed = max(0, target.request.partition_bytes_max - result.counted_bytes)
                self._bytes_allowed.setdefault(partition, allowed)

    @staticmethod
    def _forget(targets: Sequence[ReadTarget[Request]]) -> None:
        """What was read is of no use any more."""
        for target in targets:
            target.result = UNREAD

    def _forget_in_slices(self) -> Iterator[None]:
        targets = self._targets
        for begin in range(0, len(targets), SLICE_PARTITIONS):
            if not self._waits:
                return  # what there is then was read anew
            self._forget(targets[begin : begin + SLICE_PARTITIONS])
            yield

    # -- woken by a partition

    def left(self, target: ReadTarget[Request]) -> None:
        """See QuietWait."""
        self._left.append(target)
        if self._waits:
            self._listen((target,), self._order)
            target.partition.is_in_order = False
            target.result = UNREAD
        else:
            self._is_due = True  # what happens until it listens, it may have missed

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        """See DataListener. What the log counts as arrived is an estimate; the read decides."""
        if self._limits.replica_id >= 0:
            return  # followers read beyond the high watermark: log_extended
        if self._unstable is not None:
            size_bytes = self._stable(self._unstable, partition, size_bytes)
        self._arrived(partition, size_bytes)

    def log_extended(self, partition: Partition, size_bytes: int) -> None:
        """See DataListener. What a follower may not have now does not end its wait."""
        replica_id = self._limits.replica_id
        if replica_id < 0:
            return
        quota = self._context.quota
        if quota is None or not quota.holds_back(partition, replica_id):
            self._arrived(partition, size_bytes)

    def partition_changed(self, partition: Partition) -> None:
        """See DataListener."""
        self._read_again()

    def _arrived(self, partition: Partition, size_bytes: int) -> None:
        allowed = self._bytes_allowed
        if allowed is not None:
            # No partition counts for more than its own limit, however much arrives there.
            size_bytes = min(size_bytes, allowed[partition])
            allowed[partition] -= size_bytes
        self._arrived_bytes += size_bytes
        if self._arrived_bytes >= self._limits.bytes_min:
            self._read_again()

    @staticmethod
    def _stable(
        unstable: dict[Partition, tuple[int, int]], partition: Partition, size_bytes: int
    ) -> int:
        """What read_committed may see of what arrived: nothing while the last stable offset stands
        still behind an open transaction, all of it when that has ended."""
        assert partition.log is not None
        before, held_bytes = unstable[partition]
        stable = partition.log.last_stable_offset
        held_bytes += size_bytes
        moved = stable > before
        unstable[partition] = stable, 0 if moved else held_bytes
        return held_bytes if moved else 0

    def _stop_waiting(self) -> None:
        self._waits = False
        self._context.waiting -= 1
        for targets in (self._targets, self._left):
            for target in targets:
                target.partition.data_listeners.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def expired(self) -> None:
        """The time is over."""
        if self._limits.replica_id >= 0:
            self._context.expired_of_followers += 1
        else:
            self._context.expired += 1
        self._read_again()

    def _read_again(self) -> None:
        if self._read is not None:
            self._is_due = True  # it is read to its end first, as all at once would have been
        elif self._waits:
            self._read_all_again()

    def _read_all_again(self) -> None:
        if self._waits:
            self._stop_waiting()
        quiet = self._quiet
        if self._leave_quiet() and quiet is not None:
            quiet.read()
        if self._left:
            self._targets += self._left
            self._left = []
            if self._regroup is not None:
                self._slices = self._regroup() or self._slices
        self._begin_read(self._second_read)

    def _second_read(self, read: BoundedRead[Request]) -> None:
        self._read = None
        self._find_deleted()
        self._done()

    def _find_deleted(self) -> None:
        for target in self._targets:
            if target.result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                partition = target.partition
                if not self._context.exists(partition.topic, partition.index):
                    # Deleted meanwhile: nobody else leads it.
                    target.result = ReadResult.failed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
