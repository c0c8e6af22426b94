"""Usual small requests, answered from their bytes in front of the general way.

Nearly all requests of some APIs are the same again and again: a member that is alive, a fetch of a
session where nothing happened. Decoding, dispatching and encoding cost far more than what they do.
An API that has a shorter way for its usual request says so by `plain_road(parts, counts, version)`
in its module: a connection asks for one of its own, which may remember what the client said last.

A road answers a request or leaves it untouched: then it takes the general way, which stays the
reference for everything (ADR 55). A road is asked only where nobody wants to look at requests
(`plain_allowed`; quotas of others do not count, see `unbound_client.py`) and no request in front is
without its answer; it counts and times what it answers as the general way does.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from kwire.server.context import Connection
    from kwire.server.parts import Parts
    from kwire.server.request_counts import RequestCounts

PlainRoad: TypeAlias = "Callable[[Connection, memoryview], bytes | None]"
"""(its connection, request without its size) -> the frame of the answer, or None."""
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

    def answer(self, connection: Connection, body: memoryview) -> bytes | None:
        """The frame of the answer; None for a request that takes the general way."""
        try:
            (head,) = _KEY_AND_VERSION(body)
            road = self._roads[head]
        except KeyError:
            road = self._begun(head)
        except StructError:
            return None
        return None if road is None else road(connection, body)

    def _begun(self, head: int) -> PlainRoad | None:
        route = self._known_route(head >> 16)
        if route is None or not route.version_min <= head & 0xFFFF <= route.version_max:
            return None  # not kept: a client may say what it likes
        make = route.plain_road
        road = None if make is None else make(self._parts, route.counts, head & 0xFFFF)
        self._roads[head] = road
        return road
