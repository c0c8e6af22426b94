"""DeleteRecords, versions 0-2: move the start of a partition's log (KIP-107).

Offset -1 is the high watermark; one above it, or below -1, is OFFSET_OUT_OF_RANGE. A topic whose
cleanup.policy is `compact` alone gives POLICY_VIOLATION. The answer comes when every live replica
has followed, or after timeout_ms with REQUEST_TIMED_OUT. Its low watermark is the smallest log
start of the live replicas; -1 with an error. Source: KIP-107; measured on Apache Kafka 4.4. Unlike
there, where up to a minute passes, the new log start is durable on the leader before it answers.
"""

from __future__ import annotations

from typing import TypeAlias

from kwire.log.scheduling import Timer
from kwire.pending import Answer, Pending, after, gather
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.security.acl import Operation, ResourceType
from kwire.security.requirements import Denied, Requires
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.context import DISCONNECT, Disconnect, RequestContext
from kwire.server.leader_hints import missing_partition_error

VERSIONS = (0, 2)
DELETE_TOPIC = Requires(Operation.DELETE, ResourceType.TOPIC, "topics[].name", denied=Denied.ENTRY)
AUTHORIZATION = (DELETE_TOPIC,)

Asked: TypeAlias = "m.DeleteRecordsRequest.DeleteRecordsPartition"
Result: TypeAlias = "m.DeleteRecordsResponse.DeleteRecordsPartitionResult"

HIGH_WATERMARK = -1


def handle(
    context: RequestContext, request: m.DeleteRecordsRequest
) -> Answer[m.DeleteRecordsResponse]:
    """See the module."""
    response = m.DeleteRecordsResponse()
    response.topics = []
    deletions = _Deletions(context)
    for name, partitions in _asked(request).items():
        entry = m.DeleteRecordsResponse.DeleteRecordsTopicResult()
        entry.name = name
        entry.partitions = []
        for asked in partitions.values():
            answer = m.DeleteRecordsResponse.DeleteRecordsPartitionResult()
            answer.partition_index = asked.partition_index
            try:
                partition, offset = _delete(context, name, asked)
                deletions.add(answer, partition, offset)
            except KafkaError as error:
                answer.low_watermark = -1
                answer.error_code = int(error.code)
            entry.partitions.append(answer)
        response.topics.append(entry)
    followed = deletions.followed(request.timeout_ms)
    if not deletions.moved:
        return response
    saved = context.parts.logs.checkpoint_log_starts(deletions.moved)
    return after(gather([followed, saved]), lambda _: _durable(response, saved.error()))


def error_response(context: RequestContext, error: KafkaError) -> Disconnect:
    """Nothing in the response can carry an error of the whole request."""
    return DISCONNECT


def _asked(
    request: m.DeleteRecordsRequest,
) -> dict[str, dict[int, Asked]]:
    """The partitions by topic and index: the last of those named twice, topics without none."""
    asked: dict[str, dict[int, Asked]] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            asked.setdefault(topic.name, {})[partition.partition_index] = partition
    return asked


def _durable(response: m.DeleteRecordsResponse, error: Exception | None) -> m.DeleteRecordsResponse:
    """The response, once the log starts are saved or could not be."""
    if error is not None:
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code == ErrorCode.NONE:
                    answer.low_watermark = -1
                    answer.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    return response


class _Deletions:
    """The deletions of a request, and those of them that followers have not followed yet.

    `moved` are the partitions (topic, index) whose log has a new start.
    """

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._open: list[tuple[Result, Partition, int]] = []
        self._awaited: list[Partition] = []
        self._followed: Pending[None] = Pending()
        self._deadline: Timer | None = None
        self.moved: list[tuple[str, int]] = []

    def add(
        self,
        answer: Result,
        partition: Partition,
        offset: int,
    ) -> None:
        self.moved.append((partition.topic, partition.index))
        if not self._is_followed(answer, partition, offset):
            self._open.append((answer, partition, offset))

    def followed(self, timeout_ms: int) -> Pending[None]:
        """Done once every answer is filled: followed, failed, or after the time-out."""
        if not self._open:
            self._followed.complete(None)
            return self._followed
        self._followed.set_on_cancel(self._stop_waiting)
        self._awaited = [partition for _, partition, _ in self._open]
        for partition in self._awaited:
            partition.on_low_watermark[self._low_watermark_moved] = None
            partition.positions_changed()
        if self._open:
            deadlines = self._context.parts.deadlines
            self._deadline = deadlines.add(max(0, timeout_ms), self._timed_out)
        return self._followed

    @staticmethod
    def _is_followed(
        answer: Result,
        partition: Partition,
        offset: int,
    ) -> bool:
        """Whether there is nothing to wait for; fills the answer then."""
        if not partition.is_leader or partition.log is None:
            answer.low_watermark = -1
            answer.error_code = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        if partition.low_watermark < offset:
            return False
        answer.low_watermark = partition.low_watermark
        return True

    def _low_watermark_moved(self, _: Partition) -> None:
        self._open = [entry for entry in self._open if not self._is_followed(*entry)]
        if not self._open:
            self._stop_waiting()
            self._followed.complete(None)

    def _timed_out(self) -> None:
        self._deadline = None
        for answer, _, _ in self._open:
            answer.low_watermark = -1
            answer.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
        self._open = []
        self._stop_waiting()
        self._followed.complete(None)

    def _stop_waiting(self) -> None:
        for partition in self._awaited:
            partition.on_low_watermark.pop(self._low_watermark_moved, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _delete(context: RequestContext, topic: str, asked: Asked) -> tuple[Partition, int]:
    parts = context.parts
    if not context.allows(DELETE_TOPIC, topic):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if parts.metadata.image.topics.partition(topic, asked.partition_index) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    partition = parts.replicas.partition(topic, asked.partition_index)
    if partition is None:
        raise KafkaError(
            missing_partition_error(parts.metadata.image.topics, topic, asked.partition_index)
        )
    log = partition.leader_log()
    if log.config.compacts and not log.config.deletes:
        raise KafkaError(ErrorCode.POLICY_VIOLATION)
    offset = log.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
    if offset < 0 or offset > log.high_watermark:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_records_before(offset)
    partition.wake_readers(0)
    return partition, offset
