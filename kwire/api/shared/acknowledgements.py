"""What the response of a Produce still waits for: the writes and commits of its partitions.

A partition whose batch is in the log already when it is appended is never in here. When the last
acknowledgement has come, or the time is over, the response is given, with the current leader of
every partition that we do not lead any more (KIP-951). A partition whose batch cannot be written
says nothing but its error, as measured on Apache Kafka 4.4, whose append is the write.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.pending import Answer, Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.replica.traffic import Traffic
from kwire.replica.waiting import CommitCallback
from kwire.server.context import Disconnect, NoReply, RequestContext
from kwire.server.deadlines import Deadline
from kwire.server.leader_hints import HINTED_ERRORS, LeaderHints

LEADER_HINTS_FROM = 10
ACKS_ALL = -1
WRITTEN: Pending[None] = Pending.completed(None)

Outcome: TypeAlias = "m.ProduceResponse | NoReply | Disconnect"
Result: TypeAlias = "m.ProduceResponse.PartitionProduceResponse"


class Acknowledgements(Pending[Outcome]):
    """See the module. It is the Pending of the response; `has_failed` says that a partition has an
    error."""

    __slots__ = (
        "_context",
        "_count",
        "_deadline",
        "_open",
        "_response",
        "_timeout_ms",
        "_unwritten",
        "_waits",
        "_writes",
        "has_failed",
    )

    def __init__(self, context: RequestContext, response: m.ProduceResponse) -> None:
        super().__init__()
        self._context = context
        self._response = response
        # What still waits, with where it counts when its time is over.
        self._open: dict[int, tuple[Result, CommitCallback | None, Traffic | None]] = {}
        self._writes: dict[int, Pending[None]] = {}  # of those that wait for their commit as well
        self._count = 0
        self._waits = False
        self._unwritten = 0
        self._timeout_ms: int | None = None
        self._deadline: Deadline | None = None
        self.has_failed = False

    def wait_for_commit(
        self, result: Result, partition: Partition, end: int, written: Pending[None]
    ) -> None:
        """The high watermark has to reach `end`. The request's time begins when this log has what
        is `written`, as with Apache Kafka: a slow disk makes an answer late, and no error."""
        self._count += 1
        key = self._count
        try:
            waiter = partition.wait_for_commit(
                end, lambda code: self._committed(key, partition, code)
            )
        except KafkaError as error:  # appended, and not led here any more
            result.error_code = int(error.code)
            self.has_failed = True
            return
        if waiter is not None:
            self._open[key] = result, waiter, partition.traffic
            if not written.done:
                self._unwritten += 1
                self._writes[key] = written
                written.add_done_callback(self._has_been_written)

    def wait_for_write(self, result: Result, written: Pending[None]) -> None:
        """The bytes have to be in the file."""
        self._count += 1
        key = self._count
        self._open[key] = result, None, None
        written.add_done_callback(lambda done: self._written(key, done))

    def outcome(self, acks: int, timeout_ms: int) -> Answer[Outcome]:
        """The response, or this; everything is appended that can be."""
        if not self._open:
            return self._finished()
        self._waits = True
        self.set_on_cancel(self._forget)
        if acks == ACKS_ALL:
            self._timeout_ms = max(0, timeout_ms)
            self._begin_time()
        return self

    def _has_been_written(self, _: Pending[None]) -> None:
        self._unwritten -= 1
        self._begin_time()

    def _begin_time(self) -> None:
        if self._timeout_ms is not None and self._open and not self._unwritten:
            deadlines = self._context.parts.deadlines
            self._deadline = deadlines.add(self._timeout_ms, self._timed_out)

    def _written(self, key: int, done: Pending[None]) -> None:
        entry = self._open.get(key)
        if entry is not None and done.error() is not None:
            not_written(entry[0])
        self._settled(key)

    def _committed(self, key: int, partition: Partition, code: ErrorCode) -> None:
        if code == ErrorCode.NONE and not partition.enough_replicas():
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        entry = self._open.get(key)
        if entry is not None and code != ErrorCode.NONE:
            written = self._writes.get(key, WRITTEN)
            if code == ErrorCode.KAFKA_STORAGE_ERROR and not _is_written(written):
                not_written(entry[0])
            else:
                entry[0].error_code = int(code)
            self.has_failed = True
        self._settled(key)

    def _settled(self, key: int) -> None:
        self._writes.pop(key, None)
        if self._open.pop(key, None) is not None and not self._open:
            self._answer()

    def _answer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        if self._waits:
            self.complete(self._finished())

    def _timed_out(self) -> None:
        self._deadline = None
        for result, _, traffic in self._open.values():
            result.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            if traffic is not None:
                traffic.expired_produces += 1
        self._forget()
        self._answer()

    def _forget(self) -> None:
        """Nobody waits for the acknowledgements any more."""
        for _, waiter, _ in self._open.values():
            if waiter is not None:
                waiter.cancel()
        self._open.clear()
        if self._deadline is not None:
            self._deadline.cancel()

    def _finished(self) -> m.ProduceResponse:
        if self.has_failed and self._context.api_version >= LEADER_HINTS_FROM:
            self._hint_leaders()
        return self._response

    def _hint_leaders(self) -> None:
        image = self._context.parts.metadata.image
        hints = LeaderHints(image, self._context.listener_name)
        topics = image.topics
        for topic in self._response.responses:
            for result in topic.partition_responses:
                if result.error_code in HINTED_ERRORS:
                    known = topics.by_id.get(topic.topic_id) or topics.by_name.get(topic.name)
                    if known is not None:
                        leader_id, epoch = hints.leader_of(known.name, result.index)
                        result.current_leader = m.ProduceResponse.LeaderIdAndEpoch(
                            leader_id=leader_id, leader_epoch=epoch
                        )
        self._response.node_endpoints = hints.endpoints(m.ProduceResponse.NodeEndpoint)


def not_written(result: Result) -> None:
    """The partition's batch cannot be written: its error is all there is to say."""
    result.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    result.base_offset = result.log_append_time_ms = result.log_start_offset = -1


def _is_written(written: Pending[None]) -> bool:
    return written.done and written.error() is None
