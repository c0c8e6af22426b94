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

UNREAD = ReadResult(-1, -1, -1)
"""The result of what has not been read; nobody changes it."""

SLICE_PARTITIONS = 200
"""A slice is about 2 ms."""


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
    targets a turn of the loop, each as it is then.
    """

    __slots__ = (
        "_at",
        "_bytes_left",
        "_done",
        "_limits",
        "_open",
        "_quota",
        "_selector",
        "_slices",
        "_targets",
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
    ) -> None:
        self._targets = targets
        self._limits = limits
        self._done = done
        self._selector = selector
        self._quota = quota
        self._slices = slices
        self._at = 0
        self._bytes_left = limits.bytes_max
        self._open: Pending[ReadResult] | Pending[None] | None = None
        self.total_bytes = 0
        self.ends_wait = False

    def run(self) -> None:
        """Read until a read leaves the loop, or the end."""
        if self._slices is not None:
            self._open = work = self._slices.run(self._in_slices(), _nothing)
            work.add_done_callback(raise_error)
        elif self._read_until(len(self._targets)):
            self._done(self)

    def _in_slices(self) -> Iterator[None]:
        count = len(self._targets)
        while self._at < count:
            begin = self._at
            if not self._read_until(min(begin + SLICE_PARTITIONS, count)):
                return  # `_continue` begins anew
            self._take_bytes(begin)
            yield
        self._open = None
        self._done(self)

    def _read_until(self, end: int) -> bool:
        """Read the targets in front of `end`; False when a read has left the loop."""
        targets, limits = self._targets, self._limits
        selector, quota = self._selector, self._quota
        while self._at < end:
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
                        self._take_bytes(0)
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
        try:
            found = pending.result()
        except KafkaError as error:
            target.partition.traffic.fetch_failed(error.code)
            found = ReadResult.failed(error.code)
        self._take(target, found)
        self.run()

    def _take_bytes(self, begin: int) -> None:
        """What was found since `begin` is not sent in this turn of the loop."""
        for target in self._targets[begin : self._at]:
            buffers = target.result.buffers
            if buffers and type(buffers[0]) is FileSlice:
                try:
                    target.result.buffers = [buffers[0].read()]
                except OSError:
                    target.result = ReadResult.failed(ErrorCode.KAFKA_STORAGE_ERROR)
                    self.ends_wait = True


def _nothing() -> None:
    """The result of work that has none."""


def raise_error(work: Pending[None]) -> None:
    """A fault within work in slices ends up where one within a callback of the loop does."""
    work.result()
