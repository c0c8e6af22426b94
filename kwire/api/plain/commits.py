"""OffsetCommit of a consumer that commits the same partitions again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.api.plain.said_heads import SaidHeads
from kwire.clock import ticks_ns
from kwire.coordinator.errors import refusal
from kwire.coordinator.group.refusals import offset_commit_error
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.commit_frames import CommitShape, shape_of
from kwire.protocol.errors import KafkaError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.protocol.request_frames import CORRELATION_ID, SAID_START
from kwire.server.context import Response
from kwire.server.parts import Parts
from kwire.server.plain_requests import NOTHING, LaterAnswer, PlainConnection
from kwire.server.request_counts import RequestCounts, unusual_codes

if TYPE_CHECKING:
    from kwire.coordinator.group.usual_commit import UsualCommit

SHAPES_MAX = 32
"""Groups, or sets of partitions, that a connection remembers."""
KEYS_BYTES_MAX = 16 * 1024
"""Of the records of one of them: a key has the group's and the topic's name."""
TOPIC_IDS_FROM = 10


class KnownCommit:
    """What a client says, what is made of it, and the answer to it: what is in front of its
    correlation id, and what is behind it."""

    __slots__ = ("before", "behind", "client_id", "codes", "commit", "shape")

    def __init__(
        self, shape: CommitShape, commit: UsualCommit, version: int, client_id: str | None
    ) -> None:
        self.shape = shape
        self.commit = commit
        self.client_id = client_id
        response = _answer(commit.request)
        frame = b"".join(encode_response(response.API_KEY, version, 0, response))
        self.before, self.behind = frame[:4], frame[8:]
        self.codes = unusual_codes(response) or 0


class PlainCommits:
    """OffsetCommits of one connection, which remembers them without their numbers."""

    __slots__ = ("_counts", "_heads", "_parts", "_version")

    answers_later = True

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        self._parts = parts
        self._counts = counts
        self._version = version
        self._heads: SaidHeads[KnownCommit] = SaidHeads(SHAPES_MAX)

    def __call__(self, connection: PlainConnection, body: memoryview) -> bytes | None:
        """See `PlainRoad`."""
        counts, parts, heads = self._counts, self._parts, self._heads
        started_ns = ticks_ns() if connection.turn_s >= counts.due_s else 0
        if heads.changes != parts.described_topics.changes:
            heads.clear(parts.described_topics.changes)
        is_new = False
        known = heads.known.get(body[SAID_START : heads.end].tobytes())
        if known is None and (known := heads.found(body)) is None:
            if not heads.asks() or (known := self._known(body)) is None:
                return None
            is_new = True
        found = known.shape.numbers(body)
        if found is None:
            return None
        groups = parts.coordinators.groups
        current = groups.takes_commit(known.commit, int(connection.turn_s * 1000))
        if current is None:
            return None
        if is_new:
            heads.keep(known.shape.head, known)
        frame = b"".join((known.before, body[CORRELATION_ID], known.behind))
        answer = CommitAnswer(connection, counts, self._version, frame, known, parts)
        if started_ns:
            answer.timed = counts.begun_at(connection.turn_s, started_ns, len(body))
        connection.take_place(answer)
        if not groups.takes_in(current, known.commit, found, answer):
            groups.commit_usual(known.commit, found, CommitReply(answer))
        return NOTHING

    def _known(self, body: memoryview) -> KnownCommit | None:
        """What is to be known of a request that begins as no other that is remembered."""
        shape = shape_of(body)
        if shape is None or not self._is_resolved(shape.request):
            return None
        *_, client_id, _ = parse_request_header(body)
        groups = self._parts.coordinators.groups
        commit = groups.usual_commit(shape.request, self._version)
        if commit is None or commit.keys_bytes > KEYS_BYTES_MAX:
            return None
        return KnownCommit(shape, commit, self._version, client_id)

    def _is_resolved(self, request: m.OffsetCommitRequest) -> bool:
        """Whether its topics are there with their partitions, at least one each, and each topic
        once; they have name and id then."""
        image = self._parts.metadata.image.topics
        for topic in request.topics:
            by_id = self._version >= TOPIC_IDS_FROM
            known = image.by_id.get(topic.topic_id) if by_id else image.by_name.get(topic.name)
            if known is None or not topic.partitions:
                return False  # what names no partition of a topic is not answered for it
            if any(x.partition_index not in known.partitions for x in topic.partitions):
                return False
            topic.name, topic.topic_id = known.name, known.topic_id
        return len({topic.topic_id for topic in request.topics}) == len(request.topics)


class CommitAnswer(LaterAnswer):
    """The place of a commit, which its coordinator holds until it is committed (`HeldReply`): the
    answer leaves, or says why not."""

    __slots__ = ("deadline_ms", "known", "node_parts", "offset")

    def __init__(
        self,
        connection: PlainConnection,
        counts: RequestCounts,
        version: int,
        frame: bytes,
        known: KnownCommit,
        parts: Parts,
    ) -> None:
        # As `LaterAnswer` does, without another call.
        self.context = self.timed = self.pending = self.disconnect = None
        self.counts = counts
        self.parts = (frame,)
        self.done = False
        self.connection = connection
        self.version = version
        self.codes = known.codes
        self.known = known
        self.node_parts = parts
        self.offset = self.deadline_ms = 0

    def release(self) -> None:
        """It is committed."""
        if self.connection.answered(self):
            self.counts.answered_plainly(self.version, self.codes, self.timed)

    def fail(self, error: Exception) -> None:
        """It is not, or nobody knows."""
        known = self.known
        context = self.general_context(self.node_parts, ApiKey.OFFSET_COMMIT, known.client_id)
        context.effects_done = True
        told: Pending[Response]
        if isinstance(error, KafkaError):
            response = offset_commit_error(known.commit.request, refusal(error))
            told = Pending.completed(response)
        else:
            told = Pending.failed(error)
        self.send_generally(context, told)


class CommitReply(Pending[None]):
    """What the coordinator completes where it does not hold the answer itself."""

    __slots__ = ("_answer",)

    def __init__(self, answer: CommitAnswer) -> None:
        super().__init__()
        self._answer = answer

    def complete(self, result: None) -> bool:
        if self.done:
            return False
        self.done = True
        self._answer.release()
        return True

    def fail(self, error: Exception) -> bool:
        if self.done:
            return False
        self.done = True
        self._answer.fail(error)
        return True


def _answer(request: m.OffsetCommitRequest) -> m.OffsetCommitResponse:
    """Everything is committed."""
    shape = m.OffsetCommitResponse
    return shape(
        topics=[
            shape.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    shape.OffsetCommitResponsePartition(partition_index=x.partition_index)
                    for x in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
