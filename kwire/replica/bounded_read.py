"""Reading partitions in order, within one limit of bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from kwire.log.types import FileSlice
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import LeaderQuota, Partition, ReplicaSelector
from kwire.replica.reading import ReadLimits, ReadRequest, ReadResult
from kwire.slices import Slices

Request = TypeVar("Request", bound=ReadRequest)

ANY_BYTES = 1 << 62

UNREAD = ReadResult(-1, -1, -1)
"""The result of what has not been read; nobody changes it."""

SLICE_PARTITIONS = 200
SLICE_BYTES = 1 << 20
"""A slice ends with whichever comes first. Of what is found it is one partition's more at most."""


class ReadTarget(Generic[Request]):
    """One partition of a read: what is asked, and what was found there."""

    __slots__ = ("is_other_topic", "partition", "request", "result")

    def __init__(
        self, partition: Partition, request: Request, is_other_topic: bool = False
    ) -> None:
        """`is_other_topic`: the partition is of a topic that came after the one asked for."""
        self.partition = partition
        self.request = request
        self.is_other_topic = is_other_topic
        self.result = UNREAD


class BoundedRead(Generic[Request]):
    """Reads targets in order. `run()`; then `done(self)` is called, maybe before it returns.

    Every target has its result then. `total_bytes` is what was found (a batch that a limit cuts off
    counts with its part, as it is in Apache Kafka's answers), `ends_wait` whether something must be
    answered at once: an error, a diverging epoch, a preferred replica. With `slices` it reads some
    targets a turn of the loop, each as it is then. `taken(begin, end)` is called then in the turn
    that has read these targets, `failed(error)` instead of `done` for an error of no partition
    (without it, that is raised wherever the read goes on).
    """

    __slots__ = (
        "_at",
        "_bytes_left",
        "_done",
        "_failed",
        "_limits",
        "_open",
        "_quota",
        "_selector",
        "_slices",
        "_taken",
        "_targets",
        "_told",
        "ends_wait",
        "total_bytes",
    )

    def __init__(
        self,
        targets: Sequence[ReadTarget[Request]],
        limits: ReadLimits,
        done: Callable[[BoundedRead[Request]], None],
        selector: ReplicaSelector | None = None,
        quota: LeaderQuota | None = None,
        slices: Slices | None = None,
        *,
        failed: Callable[[Exception], None] | None = None,
        taken: Callable[[int, int], None] | None = None,
    ) -> None:
        self._targets = targets
        self._limits = limits
        self._done = done
        self._selector = selector
        self._quota = quota
        self._slices = slices
        self._failed = failed
        self._taken = taken
        self._at = 0
        self._told = 0  # how many of the targets have left their turn
        self._bytes_left = limits.bytes_max
        self._open: Pending[ReadResult] | Pending[None] | None = None
        self.total_bytes = 0
        self.ends_wait = False

    def run(self) -> None:
        """Read until a read leaves the loop, or the end."""
        if self._slices is not None:
            self._open = work = self._slices.run(self._in_slices(), nothing)
            work.add_done_callback(self._ended)
            return
        try:
            if self._read_until(len(self._targets), ANY_BYTES):
                self._done(self)
            else:
                self._end_turn()
        except Exception as error:
            self._fail(error)

    def _in_slices(self) -> Iterator[None]:
        count = len(self._targets)
        while self._at < count:
            end = min(self._at + SLICE_PARTITIONS, count)
            is_read = self._read_until(end, self.total_bytes + SLICE_BYTES)
            self._end_turn()
            if not is_read:
                return  # `_continue` begins anew
            yield
        self._open = None
        self._done(self)

    def _ended(self, work: Pending[None]) -> None:
        error = work.error()
        if error is not None:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._open = None
        if self._failed is None:
            raise error
        self._failed(error)

    def _read_until(self, end: int, bytes_end: int) -> bool:
        """Read the targets in front of `end`, until `total_bytes` is `bytes_end`; False when a read
        has left the loop."""
        targets, limits = self._targets, self._limits
        selector, quota = self._selector, self._quota
        while self._at < end and self.total_bytes < bytes_end:
            target = targets[self._at]
            try:
                if target.is_other_topic:
                    raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
                found = target.partition.read(
                    target.request,
                    limits,
                    self._bytes_left,
                    self.total_bytes == 0,
                    selector,
                    quota,
                )
                if isinstance(found, Pending):
                    if not found.done:
                        self._open = found
                        found.add_done_callback(self._continue)
                        return False
                    found = found.result()
            except KafkaError as error:
                target.partition.traffic.fetch_failed(error.code)
                found = ReadResult.failed(error.code)
            self._take(target, found)
        return True

    def cancel(self) -> None:
        """Forget a read that is under way."""
        if self._open is not None:
            self._open.cancel()

    def _take(self, target: ReadTarget[Request], found: ReadResult) -> None:
        target.result = found
        self.total_bytes += found.counted_bytes
        self._bytes_left -= found.counted_bytes
        if self._bytes_left < 0:
            # A negative limit is one of the first partition only (measured on Kafka 4.4).
            self._bytes_left = 0
        if found.error_code or found.diverging_epoch is not None or found.preferred_replica >= 0:
            self.ends_wait = True
        self._at += 1

    def _continue(self, pending: Pending[ReadResult]) -> None:
        self._open = None
        target = self._targets[self._at]
        error = pending.error()
        if error is None:
            found = pending.result()
        elif isinstance(error, KafkaError):
            target.partition.traffic.fetch_failed(error.code)
            found = ReadResult.failed(error.code)
        else:
            self._fail(error)
            return
        self._take(target, found)
        if self._slices is not None:
            self._end_turn()
        self.run()

    def _end_turn(self) -> None:
        """What was found since the last turn is not sent in this one."""
        begin, self._told = self._told, self._at
        for target in self._targets[begin : self._at]:
            buffers = target.result.buffers
            if buffers and type(buffers[0]) is FileSlice:
                try:
                    target.result.buffers = [buffers[0].read()]
                except OSError:
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                    target.partition.traffic.fetch_failed(code)
                    target.result = ReadResult.failed(code)
                    self.ends_wait = True
        if self._taken is not None:
            self._taken(begin, self._at)


def nothing() -> None:
    """The result of work in slices that has none."""
