"""Writes the records that share groups gave up to their dead letter topics (KIP-1191).

A missing topic is created where the cluster allows it. What the same broker leads goes out in one
Produce at a time, several groups' records together. A broker that does not lead, or does not
answer, is asked again after a pause, at most ATTEMPTS_MAX times; whatever else the topic refuses
ends the attempt: the records are given up all the same, since who waits for it archives them
whether it succeeds or not. Measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from kwire.clock import Clock
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from kwire.share.backoff import ATTEMPTS_MAX, pause_ms
from kwire.share.codes import known_code
from kwire.share.dead_letters import (
    DeadLetters,
    DeadLetterTopic,
    Original,
    Settings,
    made_records,
    refusal,
    size_of,
)

ACKS_ALL = -1
PRODUCE_TIMEOUT_MS = 30_000
# How much of the original log is read at a time.
READ_BYTES_MAX = 1 << 20

_PASSING_FAILURES = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})
# A leader may hear later than we do that the topic is there, or that it leads.
_UNAWARE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
_PASSING_CREATIONS = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.NOT_CONTROLLER,
        # A broker may be away for a moment.
        ErrorCode.INVALID_REPLICATION_FACTOR,
    }
)


class Timer(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    """The part of an event loop that the queue uses."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer: ...


class Originals(NamedTuple):
    """Keys and values by offset, as far as they are there; `resolved_to` is the last offset that
    was looked for: what is not among `records` up to there is gone, or too large."""

    records: Mapping[int, Original]
    resolved_to: int


class Effects(Protocol):
    """What the queue has others do."""

    def find(self, topic: str) -> DeadLetterTopic | None:
        """A topic by the published metadata."""
        ...

    def create(self, topic: str) -> Pending[int]:
        """Create it with `dead_letters.TOPIC_CONFIGS`; its error code."""
        ...

    def read(self, letters: DeadLetters, first_offset: int, bytes_max: int) -> Pending[Originals]:
        """The original records from an offset on, at most so many bytes and those in doubt left
        for the next time."""
        ...

    def produce(self, node_id: int, request: m.ProduceRequest) -> Pending[m.ProduceResponse]:
        """Let a broker append, this one included."""
        ...


class _Job:
    """One `DeadLetters` on its way."""

    __slots__ = (
        "creations", "done", "letters", "name", "next_offset", "originals", "productions",
        "resolved_to", "sent", "timer", "topic",
    )  # fmt: skip

    def __init__(self, letters: DeadLetters, done: Pending[None]) -> None:
        self.letters = letters
        self.done = done
        self.next_offset = letters.first_offset
        self.originals: Mapping[int, Original] = {}
        self.resolved_to = letters.last_offset
        self.sent = 0
        self.name = ""  # that of `topic`
        self.topic: DeadLetterTopic | None = None
        self.creations = 0
        self.productions = 0
        self.timer: Timer | None = None

    def partition(self) -> int:
        assert self.topic is not None
        return self.letters.partition % len(self.topic.leaders)


# (topic id, partition) of a Produce.
_Place = tuple[bytes, int]


class DeadLetterQueue:
    """`draw()` gives a number from 0 to 1, for pauses that are not all the same."""

    def __init__(
        self,
        *,
        settings: Settings,
        effects: Effects,
        loop: Loop,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._effects = effects
        self._loop = loop
        self._clock = clock
        self._draw = draw
        self._queued: dict[int, list[_Job]] = {}
        self._under_way: dict[int, None] = {}
        self._open: dict[_Job, None] = {}
        self._closed = False

    def write(self, letters: DeadLetters) -> Pending[None]:
        """Write them; completes when all are written, and fails with a KafkaError when they are
        not: INVALID_CONFIG for a topic that may not be written to, the code of the topic's leader,
        or that of the last attempt."""
        if self._closed:
            return Pending.failed(_closed_error())
        refused = self._refusal(letters)
        if refused is not None:
            return Pending.failed(refused)
        done: Pending[None] = Pending()
        job = _Job(letters, done)
        self._open[job] = None
        if self._settings.copies_records(letters.group_id):
            self._resolve(job)
        else:
            self._route(job)
        return done

    def close(self) -> None:
        """Fail all that is open with COORDINATOR_NOT_AVAILABLE."""
        self._closed = True
        left, self._open = list(self._open), {}
        self._queued.clear()
        for job in left:
            if job.timer is not None:
                job.timer.cancel()
            job.done.fail(_closed_error())

    # ------------------------------------------------------------------

    def _refusal(self, letters: DeadLetters) -> KafkaError | None:
        group_id = letters.group_id
        name = self._settings.topic_of(group_id)
        return refusal(self._settings, group_id, self._effects.find(name) if name else None)

    def _fail(self, job: _Job, error: KafkaError) -> None:
        self._open.pop(job, None)
        job.done.fail(error)

    def _pause(self, job: _Job, attempts: int, error: KafkaError) -> None:
        if attempts >= ATTEMPTS_MAX:
            self._fail(job, error)
            return
        job.timer = self._loop.call_at(
            self._loop.time() + pause_ms(attempts, self._draw()) / 1000, partial(self._route, job)
        )

    # --- the original records

    def _resolve(self, job: _Job) -> None:
        """Read the originals of the next round; without them the headers have to do."""
        topic = self._effects.find(self._settings.topic_of(job.letters.group_id))
        bytes_max = READ_BYTES_MAX if topic is None else topic.max_message_bytes
        found = self._effects.read(job.letters, job.next_offset, min(bytes_max, READ_BYTES_MAX))
        found.add_done_callback(partial(self._resolved, job))

    def _resolved(self, job: _Job, done: Pending[Originals]) -> None:
        if self._closed:
            return
        if done.error() is None:
            originals = done.result()
            job.originals = originals.records
            job.resolved_to = originals.resolved_to
        else:
            job.originals = {}
            job.resolved_to = job.letters.last_offset
        self._route(job)

    # --- to the leader of the topic's partition

    def _route(self, job: _Job) -> None:
        job.timer = None
        refused = self._refusal(job.letters)
        if refused is not None:
            self._fail(job, refused)
            return
        name = self._settings.topic_of(job.letters.group_id)
        topic = self._effects.find(name)
        if topic is None:
            self._effects.create(name).add_done_callback(partial(self._created, job))
            return
        job.name, job.topic = name, topic
        leader = topic.leaders[job.partition()]
        if leader is None:
            job.creations += 1
            self._pause(job, job.creations, KafkaError(ErrorCode.LEADER_NOT_AVAILABLE))
            return
        job.creations = 0
        self._queued.setdefault(leader, []).append(job)
        self._send_next(leader)

    def _created(self, job: _Job, done: Pending[int]) -> None:
        if self._closed:
            return
        error = done.error()
        code = known_code(done.result()) if error is None else _code_of(error)
        job.creations += 1
        if code in _PASSING_CREATIONS or code in _PASSING_FAILURES:
            self._pause(job, job.creations, KafkaError(ErrorCode(code)))
        elif code:
            self._fail(job, KafkaError(ErrorCode(code)))
        elif self._effects.find(self._settings.topic_of(job.letters.group_id)) is None:
            error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self._pause(job, job.creations, error)
        else:
            self._route(job)

    def _send_next(self, node_id: int) -> None:
        if self._closed or node_id in self._under_way or node_id not in self._queued:
            return
        sent, left, request = self._request(self._queued.pop(node_id))
        if left:
            self._queued[node_id] = left
        self._under_way[node_id] = None
        answered = self._effects.produce(node_id, request)
        answered.add_done_callback(partial(self._answered, node_id, sent))

    def _request(self, jobs: list[_Job]) -> tuple[list[_Job], list[_Job], m.ProduceRequest]:
        """What fits into one batch for each partition, the jobs that are left, and the request."""
        shape = m.ProduceRequest
        batches: dict[_Place, list[Record]] = {}
        sizes: dict[_Place, int] = {}
        names: dict[bytes, str] = {}
        sent: list[_Job] = []
        left: list[_Job] = []
        for job in jobs:
            topic = job.topic
            assert topic is not None
            place = (topic.topic_id, job.partition())
            records = made_records(
                job.letters,
                job.next_offset,
                max(job.next_offset, min(job.letters.last_offset, job.resolved_to)),
                job.originals,
                self._clock.wall_ms(),
                topic.max_message_bytes,
            )
            size = sum(size_of(record, i) for i, record in enumerate(records))
            if place in batches and sizes[place] + size > topic.max_message_bytes:
                left.append(job)
                continue
            batches.setdefault(place, []).extend(records)
            sizes[place] = sizes.get(place, 0) + size
            names[topic.topic_id] = job.name
            job.sent = len(records)
            sent.append(job)
        topics: dict[bytes, list[m.ProduceRequest.PartitionProduceData]] = {}
        for (topic_id, index), records in batches.items():
            data = shape.PartitionProduceData(index=index, records=build_batch(records))
            topics.setdefault(topic_id, []).append(data)
        request = shape(
            acks=ACKS_ALL,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[
                shape.TopicProduceData(
                    name=names[topic_id], topic_id=topic_id, partition_data=partitions
                )
                for topic_id, partitions in topics.items()
            ],
        )
        return sent, left, request

    def _answered(self, node_id: int, sent: list[_Job], done: Pending[m.ProduceResponse]) -> None:
        self._under_way.pop(node_id, None)
        if self._closed:
            return
        error = done.error()
        codes: dict[tuple[bytes | str, int], int] = {}
        if error is None:
            for topic in done.result().responses:
                for partition in topic.partition_responses:
                    # A name up to version 12, an id from 13 on.
                    codes[topic.name, partition.index] = partition.error_code
                    codes[topic.topic_id, partition.index] = partition.error_code
        for job in sent:
            assert job.topic is not None
            if error is not None:
                code = _code_of(error)
            else:
                index = job.partition()
                unknown = int(ErrorCode.UNKNOWN_SERVER_ERROR)
                code = codes.get((job.topic.topic_id, index), codes.get((job.name, index), unknown))
            self._settle(job, known_code(code))
        self._send_next(node_id)

    def _settle(self, job: _Job, code: int) -> None:
        if code in _PASSING_FAILURES or code in _UNAWARE:
            job.productions += 1
            self._pause(job, job.productions, KafkaError(ErrorCode(code)))
        elif code:
            self._fail(job, KafkaError(ErrorCode(code)))
        else:
            job.productions = 0
            job.next_offset += job.sent
            if job.next_offset > job.letters.last_offset:
                self._open.pop(job, None)
                job.done.complete(None)
            elif self._settings.copies_records(job.letters.group_id):
                self._resolve(job)
            else:
                self._route(job)


def _code_of(error: Exception) -> int:
    return error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR


def _closed_error() -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is stopping")
