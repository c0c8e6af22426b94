"""Reading for one Fetch request: within its limits, waiting until there is enough.

The first read goes through the partitions in order until max_bytes is used up. With less than
min_bytes the request is parked at every partition; each arrival of data is counted, and when
enough has arrived, or the time is over, everything is read anew and answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.log.types import FetchSlices, FileSlice, Isolation
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.server.context import RequestContext
from kwire.server.fetch_sessions import Key, SessionPartition

NO_RECORDS: tuple[Any, ...] = ()


ReplicaSelector = Callable[[Partition, int, str], int | None]
"""(partition, offset, rack) -> the replica to read from, None for this one."""


class FetchLimits:
    """What a request allows: bytes, time, how far it may see, and who asks."""

    __slots__ = (
        "as_files",
        "bytes_max",
        "bytes_min",
        "from_follower",
        "isolation",
        "rack",
        "replica_epoch",
        "replica_id",
        "wait_ms",
    )

    def __init__(
        self,
        bytes_min: int,
        bytes_max: int,
        wait_ms: int,
        isolation: Isolation,
        replica_id: int = -1,
        replica_epoch: int = -1,
        from_follower: bool = False,
        rack: str = "",
        as_files: bool = False,
    ) -> None:
        """`from_follower`: a consumer that may read from any replica (KIP-392), in its `rack`.

        `as_files`: what is read will be sent at once, by a connection that can send from files.
        """
        self.as_files = as_files
        self.from_follower = from_follower
        self.rack = rack
        self.bytes_min = bytes_min
        self.bytes_max = bytes_max
        self.wait_ms = wait_ms
        self.isolation = isolation
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchTarget:
    """One partition of a request: what is asked, what was found there.

    `answer` is made of what was `found` when it is first looked at: a fetch that waits needs none
    of its first read, and a session none of what has not changed.
    """

    __slots__ = (
        "_answer",
        "asked",
        "counted_bytes",
        "failed",
        "found",
        "is_other_topic",
        "key",
        "name",
        "partition",
        "records_bytes",
    )

    def __init__(self, key: Key, name: str | None, asked: SessionPartition) -> None:
        self.key = key
        self.name = name
        self.asked = asked
        self.partition: Partition | None = None
        self.found: FetchSlices | None = None
        self._answer: Any = None
        self.records_bytes = 0
        self.counted_bytes = 0  # towards min_bytes
        self.failed = False
        self.is_other_topic = False  # `partition` is of a topic that came after the one asked for

    @property
    def answer(self) -> Any:
        """The PartitionData; None before anything was found."""
        if self._answer is None and self.found is not None:
            self._answer = _answer_of(self.asked.index, self.found)
        return self._answer

    def take(self, found: FetchSlices | None) -> None:
        """Answer with what was found; None forgets it."""
        self.found = found
        self._answer = None
        if found is None:
            return
        self.records_bytes = found.size_bytes
        self.counted_bytes = found.counted_bytes

    @property
    def is_known(self) -> bool:
        """Whether the session's client was told all of this before."""
        found, asked = self.found, self.asked
        return (
            found is not None
            and self._answer is None
            and not self.records_bytes
            and found.high_watermark == asked.high_watermark
            and found.log_start_offset == asked.local_log_start_offset
        )

    def refuse(self, code: int, *, was_read: bool = False) -> None:
        """Answer with an error: every offset -1, no records; the aborted transactions are null
        only where the log was looked at (measured on Apache Kafka 4.4)."""
        answer = m.FetchResponse.PartitionData()
        answer.partition_index = self.asked.index
        answer.error_code = int(code)
        answer.high_watermark = -1
        answer.aborted_transactions = None if was_read else []
        answer.records = b""
        self.found, self._answer = None, answer
        self.records_bytes = self.counted_bytes = 0
        self.failed = True


def _answer_of(index: int, found: FetchSlices) -> Any:
    answer = m.FetchResponse.PartitionData()
    answer.partition_index = index
    answer.high_watermark = found.high_watermark
    answer.last_stable_offset = found.last_stable_offset
    answer.log_start_offset = found.log_start_offset
    answer.records = found.buffers or b""
    if found.aborted is None:
        answer.aborted_transactions = None
    else:
        transaction = m.FetchResponse.AbortedTransaction
        answer.aborted_transactions = [
            transaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in found.aborted
        ]
    return answer


class FetchRead:
    """Reads targets in order. `run()`; then `done(self)` is called, maybe before it returns.

    `total_bytes` is what was found (a batch that a limit cuts off counts with its part, as it is
    in Apache Kafka's answers), `ends_wait` whether something must be answered at once.
    """

    __slots__ = (
        "_at",
        "_done",
        "_left_bytes",
        "_limits",
        "_quota",
        "_select",
        "_targets",
        "_waiting",
        "ends_wait",
        "total_bytes",
    )

    def __init__(
        self,
        targets: list[FetchTarget],
        limits: FetchLimits,
        done: Callable[[FetchRead], None],
        select: ReplicaSelector | None = None,
        quota: Any = None,
    ) -> None:
        self._quota = quota
        self._select = select
        self._targets = targets
        self._limits = limits
        self._done = done
        self._at = 0
        self._left_bytes = limits.bytes_max
        self._waiting: Pending[Any] | None = None
        self.total_bytes = 0
        self.ends_wait = False

    def run(self) -> None:
        """Read until a read leaves the loop, or the end."""
        targets = self._targets
        while self._at < len(targets):
            target = targets[self._at]
            try:
                found = self._read(target)
                if found is not None:
                    if isinstance(found, Pending):
                        if not found.done:
                            self._waiting = found
                            self._take_bytes()
                            found.add_done_callback(self._continue)
                            return
                        found = found.result()
                    self._fill(target, found)
            except KafkaError as error:
                self._refuse(target, error)
            self._at += 1
            if self._left_bytes < 0:
                # A negative limit is one of the first partition only (measured on Kafka 4.4).
                self._left_bytes = 0
        self._done(self)

    def cancel(self) -> None:
        """Forget a read that is under way."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _take_bytes(self) -> None:
        """What was found so far is not sent in this turn of the loop."""
        for target in self._targets[: self._at]:
            found = target.found
            if found is not None and found.buffers and type(found.buffers[0]) is FileSlice:
                try:
                    found.buffers = [found.buffers[0].read()]
                except OSError:
                    target.refuse(ErrorCode.KAFKA_STORAGE_ERROR, was_read=True)
                    self.ends_wait = True

    def _continue(self, pending: Pending[Any]) -> None:
        self._waiting = None
        target = self._targets[self._at]
        try:
            self._fill(target, pending.result())
        except KafkaError as error:
            self._refuse(target, error)
        self._at += 1
        self._left_bytes = max(0, self._left_bytes)
        self.run()

    def _refuse(self, target: FetchTarget, error: KafkaError) -> None:
        target.refuse(error.code, was_read=True)
        self.ends_wait = True

    def _read(self, target: FetchTarget) -> Any:
        partition, asked = target.partition, target.asked
        assert partition is not None
        target.failed = False
        if target.is_other_topic:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        limits = self._limits
        if limits.from_follower:
            log = partition.readable_log(asked.current_leader_epoch)
            if limits.rack and self._is_read_elsewhere(target, log):
                return None
        else:
            log = partition.leader_log(asked.current_leader_epoch)
            if limits.replica_id >= 0:
                partition.check_follower(limits.replica_id, asked.current_leader_epoch)
        if asked.last_fetched_epoch >= 0 and self._diverges(target, log):
            return None
        isolation = limits.isolation
        quota = self._quota
        if quota is not None and quota.holds_back(partition, limits.replica_id):
            if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
            self._fill_empty(target, log, isolation)
            return None
        end = log.log_end_offset if isolation is Isolation.LOG_END else log.high_watermark
        if asked.fetch_offset == end:
            self._fill_empty(target, log, isolation)
            return None
        is_negative = asked.partition_bytes_max < 0 or self._left_bytes < 0
        if is_negative and log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Apache Kafka 4.4 answers it
        bytes_max = min(asked.partition_bytes_max, self._left_bytes)
        return log.read(
            asked.fetch_offset,
            max(0, bytes_max),
            isolation=isolation,
            may_wait=True,
            as_file=limits.as_files,
            min_one=self.total_bytes == 0,
        )

    def _fill_empty(self, target: FetchTarget, log: Any, isolation: Isolation) -> None:
        """At the end of what is shown there is nothing: usual, and answered without a file."""
        committed = isolation is Isolation.COMMITTED
        high_watermark = log.high_watermark
        nothing = FetchSlices(
            [],
            0,
            high_watermark,
            high_watermark,
            log.last_stable_offset,
            log.log_start_offset,
            [] if committed else None,
        )
        target.take(nothing)
        if self._limits.replica_id >= 0:
            self._follower_is_at(target, nothing)

    def _fill(self, target: FetchTarget, slices: FetchSlices) -> None:
        self._found(target, slices)
        if self._limits.replica_id >= 0:
            self._follower_is_at(target, slices)

    def _found(self, target: FetchTarget, slices: FetchSlices) -> None:
        target.take(slices)
        self.total_bytes += slices.counted_bytes
        self._left_bytes -= slices.counted_bytes

    def _follower_is_at(self, target: FetchTarget, slices: FetchSlices) -> None:
        """Our log holds what the follower asked for: it has everything before."""
        partition, asked, limits = target.partition, target.asked, self._limits
        assert partition is not None
        partition.follower_fetched(
            limits.replica_id, limits.replica_epoch, asked.fetch_offset, asked.log_start_offset
        )
        if partition.log is not None:
            slices.high_watermark = partition.log.high_watermark
        if slices.size_bytes and self._quota is not None:
            self._quota.sent(partition, slices.size_bytes)

    def _is_read_elsewhere(self, target: FetchTarget, log: Any) -> bool:
        """Whether another replica is in the consumer's rack: tell it which (KIP-392)."""
        partition, asked = target.partition, target.asked
        assert partition is not None
        if self._select is None or not partition.is_leader:
            return False
        replica = self._select(partition, asked.fetch_offset, self._limits.rack)
        if replica is None:
            return False
        self._fill_empty(target, log, self._limits.isolation)
        target.answer.preferred_read_replica = replica
        self.ends_wait = True
        return True

    def _diverges(self, target: FetchTarget, log: Any) -> bool:
        """Whether the asker's last epoch ends elsewhere in our log (KIP-595): tell it where."""
        asked = target.asked
        epoch, end_offset = log.end_offset_for_epoch(asked.last_fetched_epoch)
        if epoch < 0 or end_offset < 0:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch >= asked.last_fetched_epoch and end_offset >= asked.fetch_offset:
            return False
        self._found(
            target,
            FetchSlices(
                [],
                0,
                asked.fetch_offset,
                log.high_watermark,
                log.last_stable_offset,
                log.log_start_offset,
                [] if self._limits.isolation is Isolation.COMMITTED else None,
            ),
        )
        target.answer.diverging_epoch = m.FetchResponse.EpochEndOffset(
            epoch=epoch, end_offset=end_offset
        )
        self.ends_wait = True
        return True


class DelayedFetch:
    """A request on its way from the first read to the answer; parked in between.

    `answer(targets)` makes the response. `start()` returns it, or a Pending of it.
    """

    __slots__ = (
        "_answer",
        "_arrived_bytes",
        "_context",
        "_deadline",
        "_limits",
        "_parked",
        "_pending",
        "_read",
        "_response",
        "_rooms",
        "_targets",
        "_unstable",
    )

    def __init__(
        self,
        context: RequestContext,
        targets: list[FetchTarget],
        limits: FetchLimits,
        answer: Callable[[], Any],
    ) -> None:
        self._context = context
        self._targets = targets
        self._limits = limits
        self._answer = answer
        self._pending: Pending[Any] | None = None
        self._response: Any = None
        self._deadline: Any = None
        self._read: FetchRead | None = None
        self._arrived_bytes = 0
        self._rooms: dict[Partition, int] = {}  # what may still arrive and count, per partition
        # With read_committed: the last stable offset, and what has arrived behind it.
        self._unstable: dict[Partition, tuple[int, int]] = {}
        self._parked = False

    def start(self) -> Any:
        """Read once; the response if that is enough, else a Pending of it."""
        self._read = self._new_read(self._first_read)
        self._read.run()
        if self._response is not None:
            return self._response
        self._pending = Pending(self._cancelled)
        return self._pending

    def _new_read(self, done: Callable[[FetchRead], None]) -> FetchRead:
        select = self._context.parts.replica_selector if self._limits.rack else None
        quota = self._context.parts.read_quota if self._limits.replica_id >= 0 else None
        return FetchRead(self._targets, self._limits, done, select, quota)

    def _first_read(self, read: FetchRead) -> None:
        self._read = None
        limits = self._limits
        self._arrived_bytes = read.total_bytes
        if (
            limits.wait_ms <= 0
            or not self._targets
            or read.ends_wait
            or read.total_bytes >= limits.bytes_min
        ):
            self._finish()
            return
        self._parked = True
        for target in self._targets:
            assert target.partition is not None
            target.partition.fetch_waiters[self] = None
            if limits.isolation is Isolation.COMMITTED:
                assert target.found is not None
                self._unstable[target.partition] = target.found.last_stable_offset, 0
            target.take(None)
        self._deadline = self._context.parts.deadlines.add(limits.wait_ms, self._read_again)

    # -- woken by a partition

    def data_arrived(self, partition: Partition, size_bytes: int) -> None:
        """See FetchWaiter. What the log counts as arrived is an estimate; the read decides."""
        if self._limits.replica_id >= 0:
            return  # followers read beyond the high watermark: log_extended
        if partition in self._unstable:
            size_bytes = self._stable(partition, size_bytes)
        self._arrived(partition, size_bytes)

    def log_extended(self, partition: Partition, size_bytes: int) -> None:
        """See FetchWaiter."""
        if self._limits.replica_id >= 0:
            self._arrived(partition, size_bytes)

    def _arrived(self, partition: Partition, size_bytes: int) -> None:
        if self._limits.bytes_min > 1:
            size_bytes = self._counted(partition, size_bytes)
        self._arrived_bytes += size_bytes
        if self._arrived_bytes >= self._limits.bytes_min:
            self._read_again()

    def _stable(self, partition: Partition, size_bytes: int) -> int:
        """What read_committed may see of what arrived: nothing while the last stable offset stands
        still behind an open transaction, all of it when that has ended."""
        assert partition.log is not None
        before, held_bytes = self._unstable[partition]
        stable = partition.log.last_stable_offset
        held_bytes += size_bytes
        moved = stable > before
        self._unstable[partition] = stable, 0 if moved else held_bytes
        return held_bytes if moved else 0

    def _counted(self, partition: Partition, size_bytes: int) -> int:
        """No partition counts for more than its own limit, however much arrives there."""
        room = self._rooms.get(partition)
        if room is None:
            target = next(t for t in self._targets if t.partition is partition)
            room = max(0, target.asked.partition_bytes_max - target.counted_bytes)
        counted = min(size_bytes, room)
        self._rooms[partition] = room - counted
        return counted

    def partition_changed(self, partition: Partition) -> None:
        """See FetchWaiter."""
        self._read_again()

    def _unpark(self) -> None:
        self._parked = False
        for target in self._targets:
            assert target.partition is not None
            target.partition.fetch_waiters.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _read_again(self) -> None:
        if self._parked:
            self._unpark()
            self._read = self._new_read(self._second_read)
            self._read.run()

    def _second_read(self, read: FetchRead) -> None:
        self._read = None
        for target in self._targets:
            if target.failed and target.answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._tell_why_gone(target)
        self._finish()

    def _tell_why_gone(self, target: FetchTarget) -> None:
        """A partition that has been deleted meanwhile does not exist: nobody else leads it."""
        parts, partition = self._context.parts, target.partition
        assert partition is not None
        if parts.metadata.image.topics.partition(partition.topic, partition.index) is None:
            target.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, was_read=True)

    def _finish(self) -> None:
        self._response = self._answer()
        if self._pending is not None:
            self._pending.complete(self._response)

    def _cancelled(self) -> None:
        """The connection is gone."""
        if self._parked:
            self._unpark()
        if self._read is not None:
            self._read.cancel()
            self._read = None
