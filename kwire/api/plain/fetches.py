"""Fetches of a session in which nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kwire.api.plain.looks import Looks
from kwire.clock import ticks_ns
from kwire.log.types import ISOLATION_LEVELS
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.fetch_frames import SESSIONS_FROM, TOPIC_IDS_FROM, QuietFetches
from kwire.protocol.frame import encode_response
from kwire.protocol.request_frames import CORRELATION_ID, SAID_START
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.quiet_read import QuietRead, kind_of
from kwire.replica.reading import ReadLimits
from kwire.server.context import RequestContext, Response
from kwire.server.fetch_sessions import FetchSession, SessionPartition
from kwire.server.parts import Parts
from kwire.server.plain_requests import NOTHING, LaterAnswer, PlainConnection
from kwire.server.request_counts import RequestCounts, unusual_codes
from kwire.server.sliced_response import SlicedResponse

if TYPE_CHECKING:
    from kwire.server.deadlines import Deadline

ASKED_BYTES_MAX = 1024
"""Of a request; one with more is not looked at."""
EPOCH_BYTES = 4


class GeneralFetch(Protocol):
    """A Fetch on the general way."""

    def limits(self, *, is_bound: bool) -> ReadLimits:
        """What it allows; and what binds the client of the connection's last general request."""
        ...

    def go_on(
        self,
        session: FetchSession,
        targets: list[ReadTarget[SessionPartition]],
        limits: ReadLimits,
        deadline: Deadline,
        order: int,
        quiet: QuietRead[SessionPartition],
        /,
    ) -> Pending[m.FetchResponse | SlicedResponse]:
        """It has begun, has found nothing, and has waited until now; `deadline` stands. `order` is
        its number among those that wait, `targets` what has left `quiet`."""
        ...


class GeneralFetches(Protocol):
    """Makes one of them."""

    def __call__(self, context: RequestContext, request: m.FetchRequest, /) -> GeneralFetch: ...


class KnownFetch:
    """What a client says but the epoch of its session, and the answer that there is nothing: what
    is in front of its correlation id, and what is behind it."""

    __slots__ = (
        "before",
        "behind",
        "client_id",
        "codes",
        "counts",
        "epoch_start",
        "head",
        "is_follower",
        "kind",
        "limits",
        "request",
        "session_id",
        "size_bytes",
        "tail",
        "waits",
    )

    def __init__(
        self,
        body: memoryview,
        epoch_start: int,
        request: m.FetchRequest,
        limits: ReadLimits,
        version: int,
        client_id: str | None,
        counts: RequestCounts,
    ) -> None:
        self.head = body[SAID_START:epoch_start].tobytes()
        self.epoch_start = epoch_start
        self.size_bytes = len(body)
        self.tail = body[epoch_start + EPOCH_BYTES :].tobytes()
        self.request = request
        self.limits = limits
        self.client_id = client_id
        self.session_id = request.session_id
        self.kind = kind_of(limits)
        self.waits = limits.wait_ms > 0 and limits.bytes_min > 0
        self.is_follower = limits.replica_id >= 0
        self.counts = counts.of_followers if self.is_follower else counts
        response = m.FetchResponse(session_id=request.session_id, responses=[])
        frame = b"".join(encode_response(response.API_KEY, version, 0, response))
        self.before, self.behind = frame[:4], frame[8:]
        self.codes = unusual_codes(response) or 0


class PlainFetches:
    """Fetches of one connection, which remembers the last that named no topics. A `general` one
    begins where the general way goes on."""

    __slots__ = ("_counts", "_frames", "_general", "_known", "_looks", "_parts", "_version")

    answers_later = False  # not all: one that does not wait would leave in front of others

    def __init__(
        self, general: GeneralFetches, parts: Parts, counts: RequestCounts, version: int
    ) -> None:
        self._general = general
        self._parts = parts
        self._counts = counts
        self._version = version
        self._frames = QuietFetches(version) if version >= SESSIONS_FROM else None
        self._known: KnownFetch | None = None
        self._looks = Looks()

    def __call__(self, connection: PlainConnection, body: memoryview) -> bytes | None:
        """See `PlainRoad`."""
        size_bytes, known = len(body), self._known
        turn_s, counts = connection.turn_s, self._counts
        started_ns = ticks_ns() if turn_s >= counts.due_s else 0
        if (
            known is None
            or size_bytes != known.size_bytes
            or body[SAID_START : known.epoch_start].tobytes() != known.head
            or body[known.epoch_start + EPOCH_BYTES :].tobytes() != known.tail
        ):
            if size_bytes > ASKED_BYTES_MAX or not self._looks.asks():
                return None
            if (known := self._found(connection, body)) is None:
                return None
        sessions, start = self._parts.fetch_sessions, known.epoch_start
        session = sessions.get(known.session_id)
        if session is None or connection.unreplied_writes:
            return None
        quiet = session.quiet
        if (
            quiet is None
            or session.moving
            or quiet.kind != known.kind
            or session.epoch != int.from_bytes(body[start : start + EPOCH_BYTES], "big")
            or session.uses_topic_ids != (self._version >= TOPIC_IDS_FROM)
        ):
            session.wants_quiet = True
            return None
        sessions.used(session, int(turn_s * 1000))
        connection.is_follower = known.is_follower
        quiet.read()
        frame = b"".join((known.before, body[CORRELATION_ID], known.behind))
        counts = known.counts
        timed = self._counts.begun_at(turn_s, started_ns, size_bytes) if started_ns else None
        if known.waits:
            answer = FetchAnswer(connection, counts, self._version, frame)
            answer.timed = timed
            answer.wait(known, session, quiet, self._parts, self._general)
            connection.block_with(answer)
            return NOTHING
        if timed is not None:
            timed.executed_ns = 0
        counts.answered_plainly(self._version, known.codes, timed)
        return frame

    def _found(self, connection: PlainConnection, body: memoryview) -> KnownFetch | None:
        """What is to be known of a request that is another one than the last."""
        if self._frames is None or (start := self._frames.epoch_start(body)) is None:
            return None
        session_id = int.from_bytes(body[start - EPOCH_BYTES : start], "big", signed=True)
        session = self._parts.fetch_sessions.get(session_id)
        if session is None:
            return None
        if not session.wants_quiet:
            session.wants_quiet = True
            self._looks.found_some()  # the next one may be known
        if session.quiet is None or session.moving:
            return None
        if (decoded := self._frames.decoded(body)) is None:
            return None
        client_id, request = decoded
        if request.isolation_level not in ISOLATION_LEVELS:
            return None
        context = RequestContext(self._parts, connection, ApiKey.FETCH, self._version, 0, client_id)
        limits = self._general(context, request).limits(is_bound=False)
        if limits.bytes_max < 0 or (limits.rack and self._parts.read_context.selector is not None):
            return None
        known = KnownFetch(body, start, request, limits, self._version, client_id, self._counts)
        self._known = known
        self._looks.found_some()
        return known


class FetchAnswer(LaterAnswer):
    """The answer to one Fetch that waits; a `QuietWait`."""

    __slots__ = ("_deadline", "_general", "_known", "_order", "_parts", "_quiet", "_session")

    def wait(
        self,
        known: KnownFetch,
        session: FetchSession,
        quiet: QuietRead[SessionPartition],
        parts: Parts,
        general: GeneralFetches,
    ) -> None:
        """Wait until the time is over, or what is `quiet` is so no more."""
        self._known = known
        self._session = session
        self._quiet = quiet
        self._parts = parts
        self._general = general
        self.codes = known.codes
        self.pending = Pending(self._cancelled)
        quiet.waits[self] = None
        self._order = parts.read_context.begin_wait()
        self._deadline = parts.deadlines.add(known.limits.wait_ms, self._expired)

    def _expired(self) -> None:
        """It is read once more: nothing."""
        context, quiet = self._parts.read_context, self._quiet
        context.waiting -= 1
        if self._known.is_follower:
            context.expired_of_followers += 1
        else:
            context.expired += 1
        del quiet.waits[self]
        quiet.read()
        self.send()

    def _cancelled(self) -> None:
        """The connection is gone."""
        self._parts.read_context.waiting -= 1
        self._deadline.cancel()
        del self._quiet.waits[self]

    def left(self, target: ReadTarget[SessionPartition]) -> None:
        """See QuietWait. It goes on in the general way, with what happens in that partition."""
        known, quiet = self._known, self._quiet
        del quiet.waits[self]
        context = self.general_context(self._parts, ApiKey.FETCH, known.client_id)
        fetch = self._general(context, known.request)
        answer: Pending[Response] = after(
            fetch.go_on(self._session, [target], known.limits, self._deadline, self._order, quiet),
            _result,
        )
        self.send_generally(context, answer)


def _result(done: Pending[m.FetchResponse | SlicedResponse]) -> Response:
    return done.result()
