"""Usual small requests, answered from their bytes in front of the general way.

Nearly all requests of some APIs are the same again and again: a member that is alive, a fetch of a
session where nothing happened. Decoding, dispatching and encoding cost far more than what they do.
An API that has a shorter way for its usual request says so by `plain_road(parts, counts, version)`
in its module: a connection asks for one of its own, which may remember what the client said last.

A road answers a request or leaves it untouched: then it takes the general way, which stays the
reference for everything (ADR 55). A road is asked only where nobody wants to look at requests
(`plain_allowed`; quotas of others do not count, see `unbound_client.py`); it counts and times what
it answers as the general way does. One whose answers leave at once is not asked while a request in
front is without its answer. One whose answers leave later, with a write that many share, takes a
place in the connection's order for them (`LaterAnswer`). A road that fails closes the connection,
with a line in the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kwire.protocol.request_frames import CORRELATION_ID
from kwire.server.context import Connection, RequestContext, Response
from kwire.server.request_counts import RequestCounts, Timed
from kwire.server.slots import Buffers, Slot

if TYPE_CHECKING:
    from kwire.pending import Pending
    from kwire.server.parts import Parts

PLACES_MAX = 1000
"""Requests of a connection that wait for their answers before another one takes a plain road."""
logger = logging.getLogger(__name__)

NOTHING = b""
"""The request is executed, and nothing is sent now."""


class PlainConnection(Connection, Protocol):
    """A connection as a road that answers later sees it."""

    def close(self, reason: str, level: int = logging.INFO) -> None:
        """Close it from our side; what was answered before is still sent."""
        ...

    def take_place(self, place: LaterAnswer) -> None:
        """The answer of the newest request will leave behind all that were in front of it."""
        ...

    def block_with(self, place: LaterAnswer) -> None:
        """As `take_place`, and the next request starts when this one is answered."""
        ...

    def answered(self, place: LaterAnswer) -> bool:
        """What a place has in its `parts` may leave; whether anybody gets it."""
        ...

    def answer_generally(
        self, place: LaterAnswer, timed: Timed | None, answer: Pending[Response]
    ) -> None:
        """A place, which has its `context` by now, gets another answer."""
        ...


class PlainRoad(Protocol):
    """What a road is for its connection."""

    @property
    def answers_later(self) -> bool:
        """Whether it may be asked behind requests whose effects are in place."""
        ...

    def __call__(self, connection: PlainConnection, body: memoryview, /) -> bytes | None:
        """Request without its size -> the frame of the answer, `NOTHING`, or None."""
        ...


PlainRoads: TypeAlias = "Callable[[Parts, RequestCounts, int], PlainRoad]"
"""(parts, counts of the API, version) -> a road for one connection."""

_KEY_AND_VERSION = Struct(">I").unpack_from


class PlainRoute(Protocol):
    """What is asked of a route."""

    @property
    def counts(self) -> RequestCounts: ...

    @property
    def plain_road(self) -> PlainRoads | None: ...

    @property
    def version_min(self) -> int: ...

    @property
    def version_max(self) -> int: ...


class PlainRequests:
    """The roads of one connection, by API key and version, each made for its first request.

    `known_route(api_key)` is the route of an API that was asked for before.
    """

    __slots__ = ("_known_route", "_parts", "_roads")

    def __init__(self, parts: Parts, known_route: Callable[[int], PlainRoute | None]) -> None:
        self._parts = parts
        self._known_route = known_route
        self._roads: dict[int, PlainRoad | None] = {}

    def answer(
        self, connection: PlainConnection, body: memoryview, waiting: int = 0
    ) -> bytes | None:
        """The frame of the answer, or `NOTHING`; None for a request that takes the general way.

        `waiting` is how many requests in front only wait for their answers.
        """
        try:
            (head,) = _KEY_AND_VERSION(body)
            road = self._roads[head]
        except KeyError:
            road, _ = self.road(head)
        except StructError:
            return None
        if road is None or (waiting and (waiting >= PLACES_MAX or not road.answers_later)):
            return None
        try:
            return road(connection, body)
        except Exception:
            return failed(connection, body)

    def road(self, head: int) -> tuple[PlainRoad | None, bool]:
        """The road of an API and a version, and whether that may be kept."""
        if head in self._roads:
            return self._roads[head], True
        route = self._known_route(head >> 16)
        if route is None or not route.version_min <= head & 0xFFFF <= route.version_max:
            return None, False  # not kept: a client may say what it likes
        make = route.plain_road
        road = None if make is None else make(self._parts, route.counts, head & 0xFFFF)
        self._roads[head] = road
        return road, True


def failed(connection: PlainConnection, body: memoryview) -> bytes:
    """A road has raised: `NOTHING`. How far it came is not known: no answer would be true, and the
    client asks anew."""
    (head,) = _KEY_AND_VERSION(body)
    logger.exception("a plain road failed, API key %d version %d", head >> 16, head & 0xFFFF)
    connection.close("its request failed")
    return NOTHING


class LaterAnswer(Slot):
    """The place of a request that a plain road has executed, and whose answer is still to leave.

    It holds the frame of that answer, which `send` lets go in its turn, and counts. `codes` is how
    many more error codes, all NONE, the answer has than is usual for its API.
    """

    __slots__ = ("codes", "connection", "timed", "version")

    def __init__(
        self, connection: PlainConnection, counts: RequestCounts, version: int, frame: bytes
    ) -> None:
        # As `Slot` does, without another call.
        self.context: RequestContext | None = None
        self.counts: RequestCounts = counts
        self.timed: Timed | None = None
        self.pending: Pending[Response] | None = None
        self.parts: Buffers | None = (frame,)
        self.done = False
        self.disconnect: str | None = None
        self.connection = connection
        self.version = version
        self.codes = 0

    def send(self) -> None:
        """All that the answer says has happened."""
        if self.connection.answered(self):
            self.counts.answered_plainly(self.version, self.codes, self.timed)

    def general_context(self, parts: Parts, api_key: int, client_id: str | None) -> RequestContext:
        """As the general way has it, of the request that this answers."""
        assert self.parts is not None
        (frame,) = self.parts
        correlation_id = int.from_bytes(frame[CORRELATION_ID], "big", signed=True)
        return RequestContext(
            parts, self.connection, api_key, self.version, correlation_id, client_id
        )

    def send_generally(self, context: RequestContext, answer: Pending[Response]) -> None:
        """Something is unusual in the end."""
        self.context, self.parts = context, None
        self.connection.answer_generally(self, self.timed, answer)
