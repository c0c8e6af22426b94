"""Produce of one usual batch to a partition that is led here, without a transaction."""

from __future__ import annotations

from struct import error as StructError

from kwire.api.plain.said_heads import SaidHeads
from kwire.api.shared.acknowledgements import (
    ACKS_ALL,
    WRITTEN,
    Acknowledgements,
    Outcome,
    not_written,
)
from kwire.clock import ticks_ns
from kwire.pending import Pending, after, as_pending
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import ErrorCode
from kwire.protocol.produce_frames import BODY_BYTES_MAX, TOPIC_IDS_FROM, ProduceHead, head_of
from kwire.protocol.records import BatchHeader
from kwire.protocol.request_frames import CORRELATION_ID, SAID_START
from kwire.replica.partition import Partition
from kwire.server.authorization import INTERNAL_TOPICS
from kwire.server.context import NO_REPLY, Response
from kwire.server.parts import Parts
from kwire.server.plain_requests import NOTHING, LaterAnswer, PlainConnection
from kwire.server.request_counts import PLAIN, RequestCounts

HEADS_MAX = 64
"""Topics that a connection remembers."""


class PlainProduces:
    """Produce requests of one connection, which remembers what stands in front of the batch."""

    __slots__ = ("_counts", "_heads", "_parts", "_version")

    answers_later = True

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        self._parts = parts
        self._counts = counts
        self._version = version
        self._heads: SaidHeads[ProduceHead] = SaidHeads(HEADS_MAX)

    def __call__(self, connection: PlainConnection, body: memoryview) -> bytes | None:
        """See `PlainRoad`."""
        counts = self._counts
        started_ns = ticks_ns() if connection.turn_s >= counts.due_s else 0
        parts, heads = self._parts, self._heads
        if heads.changes != parts.described_topics.changes:
            heads.clear(parts.described_topics.changes)
        is_new = False
        head = heads.known.get(body[SAID_START : heads.end].tobytes())
        if head is None and (head := heads.found(body)) is None:
            if (head := self._head(body)) is None:
                return None
            is_new = True
        try:
            place = head.batch_place(body)
        except StructError:
            return None
        if place is None:
            return None
        index, start, end = place
        if head.topic:
            partition = parts.replicas.partition(head.topic, index)
        else:
            partition = parts.replicas.partition_by_id(head.topic_id, index)
        if partition is None or partition.topic in parts.schema_checks.topics:
            return None
        batch = partition.append_usual(body[start:end], head.acks, parts.clock.wall_ms())
        if batch is None:
            return None
        if is_new:
            heads.keep(body[SAID_START : head.size_bytes].tobytes(), head)
        connection.bytes_stored += end - start
        if head.acks == 0:
            self._unanswered(connection, partition, started_ns, len(body))
            return NOTHING
        answer = ProduceAnswer(connection, counts, head, parts, partition, batch, body)
        if started_ns:
            answer.timed = counts.begun_at(connection.turn_s, started_ns, len(body))
        connection.take_place(answer)
        partition.share_write(answer)
        return NOTHING

    def _unanswered(
        self, connection: PlainConnection, partition: Partition, started_ns: int, size_bytes: int
    ) -> None:
        """Later requests of the connection may have to wait for the write."""
        written, writes = partition.write_under_way, connection.unreplied_writes
        if written is not None and (not writes or writes[-1] is not written):
            writes.append(written)
        counts = self._counts
        counts.count_any(self._version, NO_REPLY)
        counts.numbers[PLAIN] += 1
        if started_ns:
            counts.answered_at_once(connection.turn_s, started_ns, size_bytes)

    def _head(self, body: memoryview) -> ProduceHead | None:
        """The head of a request that begins as no other that is remembered."""
        if len(body) > BODY_BYTES_MAX or not self._heads.asks():
            return None
        head = head_of(body)
        if head is None or head.acks not in (-1, 0, 1):
            return None
        topic = head.topic
        if self._version >= TOPIC_IDS_FROM:
            known = self._parts.metadata.image.topics.by_id.get(head.topic_id)
            topic = "" if known is None else known.name
        return None if not topic or topic in INTERNAL_TOPICS else head


class ProduceAnswer(LaterAnswer):
    """The answer to one Produce, which leaves when its batch is written; a `WriteWaiter`."""

    __slots__ = (
        "_batch",
        "_head",
        "_log_start_offset",
        "_partition",
        "_parts",
        "commit_end",
    )

    def __init__(
        self,
        connection: PlainConnection,
        counts: RequestCounts,
        head: ProduceHead,
        parts: Parts,
        partition: Partition,
        batch: BatchHeader,
        body: memoryview,
    ) -> None:
        assert partition.log is not None
        base_offset, log_start_offset = batch.base_offset, partition.log.log_start_offset
        correlation_id = body[CORRELATION_ID].tobytes()
        frame = head.answer(correlation_id, partition.index, base_offset, log_start_offset)
        super().__init__(connection, counts, head.version, frame)
        self._head = head
        self._parts = parts
        self._partition = partition
        self._batch = batch
        self._log_start_offset = log_start_offset
        self.commit_end = -1
        if head.acks == ACKS_ALL:
            self.commit_end = base_offset + batch.last_offset_delta + 1

    written = LaterAnswer.send

    def ended(self, code: ErrorCode) -> None:
        self._go_on(code)

    def uncommitted(self) -> None:
        self._go_on(ErrorCode.NONE)

    def _go_on(self, code: ErrorCode) -> None:
        """As the general way does from here on."""
        head, partition = self._head, self._partition
        context = self.general_context(self._parts, ApiKey.PRODUCE, head.client_id)
        context.effects_done = True
        response = head.response(partition.index, self._batch.base_offset, self._log_start_offset)
        result = response.responses[0].partition_responses[0]
        waiting = Acknowledgements(context, response)
        if code == ErrorCode.KAFKA_STORAGE_ERROR:
            not_written(result)
            waiting.has_failed = True
        elif code:
            result.error_code = int(code)
            waiting.has_failed = True
        else:
            waiting.wait_for_commit(result, partition, self.commit_end, WRITTEN)
        outcome: Pending[Outcome] = as_pending(waiting.outcome(head.acks, head.timeout_ms))
        self.send_generally(context, after(outcome, _result))


def _result(done: Pending[Outcome]) -> Response:
    return done.result()
