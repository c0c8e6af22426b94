"""The plain roads of clients that quotas do not hold back (`plain_requests.py`).

What plain roads answer uses time, and a Produce bytes. Who has no request_percentage is not held to
one, and a producer_byte_rate that is far from its bound only counts: so that such requests may go
past the arrival and the response step while there are quotas. A client is told by its bytes in the
header, by which its roads are found together with what binds it; that is looked up in the table
that the general way fills (`KnownClients`). Who is not in there, or is measured, goes the general
way.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import parse_request_header
from kwire.protocol.request_frames import SAID_START, client_id_end
from kwire.server.plain_requests import (
    PLACES_MAX,
    PlainConnection,
    PlainRequests,
    PlainRoad,
    failed,
)

if TYPE_CHECKING:
    from kwire.quota.client_quotas import ClientRates, KnownClients
    from kwire.quota.sensor import Sensor

PRODUCE_KEY = int(ApiKey.PRODUCE)
FETCH_KEY = int(ApiKey.FETCH)
KNOWN_MAX = 100
"""Roads that are kept of all clients of a connection."""
_KEY_AND_VERSION = Struct(">I4x0s").unpack_from


class UnboundClients:
    """The clients of one connection; `plain` has its roads."""

    __slots__ = ("_head_of", "_known", "_plain", "_roads")

    def __init__(self, plain: PlainRequests, known: KnownClients) -> None:
        self._plain = plain
        self._known = known
        self._head_of = _KEY_AND_VERSION
        """Takes API key and version of a request, and as many bytes as the client id of the one
        that was looked at has with its size."""
        self._roads: dict[tuple[int, bytes], tuple[PlainRoad | None, Sensor | None]] = {}
        """Road, None for the general way, and what the request's bytes count for."""

    def answer(
        self, connection: PlainConnection, body: memoryview, waiting: int = 0
    ) -> bytes | None:
        """See `PlainRequests.answer`."""
        try:
            road, producer = self._roads[self._head_of(body)]
        except (KeyError, StructError):
            road, producer = self._found(body)
        if road is None or connection.is_measured:
            return None
        if waiting and (waiting >= PLACES_MAX or not road.answers_later):
            return None
        if producer is not None:
            # As `Sensor.count`, once it is answered.
            size_bytes, turn_s = len(body), connection.turn_s
            if producer.pending + size_bytes > producer.room or turn_s >= producer.quiet_until_s:
                return None
        try:
            answer = road(connection, body)
        except Exception:
            return failed(connection, body)
        if producer is not None and answer is not None:
            producer.pending += size_bytes
            producer.counted_s = turn_s
        return answer

    def forget_client(self) -> None:
        """See KeepsRates."""
        self._roads.clear()

    def _found(self, body: memoryview) -> tuple[PlainRoad | None, Sensor | None]:
        """What there is for a request that is not among the known ones."""
        known = self._known
        try:
            rates = known[parse_request_header(body).client_id]
        except (MalformedError, KeyError):
            return None, None
        said_bytes = client_id_end(body) - SAID_START
        self._head_of = Struct(f">I4x{said_bytes}s").unpack_from
        head, shown = self._head_of(body)
        road, is_kept = self._plain.road(head)
        found = _allowed(head >> 16, road, rates)
        if is_kept:
            if len(self._roads) >= KNOWN_MAX:
                self._roads.clear()
            self._roads[head, shown] = found
            known.keepers[self] = None
        return found


def _allowed(
    api_key: int, road: PlainRoad | None, rates: ClientRates | None
) -> tuple[PlainRoad | None, Sensor | None]:
    """The road of a client, and what its requests count for; none where that is to be measured."""
    if rates is None or road is None:
        return road, None
    if rates.request is not None or (api_key == FETCH_KEY and rates.consumer is not None):
        return None, None
    return road, rates.producer if api_key == PRODUCE_KEY else None
