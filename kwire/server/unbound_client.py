"""Whether quotas hold back the usual small requests of a client (`plain_requests.py`).

What plain roads answer uses time, and a Produce bytes. Who has no request_percentage is not held to
one, and a producer_byte_rate that is far from its bound only counts: so that such requests may go
past the arrival and the response step while there are quotas. A connection's requests are nearly
all of one client id: it is told by its bytes in the header, and what binds it by the table that the
general way fills (`KnownClients`). Who is not in there, or is measured, goes the general way.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import TYPE_CHECKING

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import parse_request_header
from kwire.protocol.request_frames import API_KEY, SAID_START, client_id_end

if TYPE_CHECKING:
    from kwire.quota.client_quotas import KnownClients
    from kwire.quota.sensor import Sensor
    from kwire.server.context import Connection

PRODUCE_KEY = int(ApiKey.PRODUCE)
FETCH_KEY = int(ApiKey.FETCH)
PLAIN_KEYS = bytes(
    (
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.METADATA,
        ApiKey.OFFSET_COMMIT,
        ApiKey.HEARTBEAT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
    )
)
"""The APIs that have plain roads: all others go on without being looked at."""
_NOTHING = Struct("0s").unpack_from


class UnboundClient:
    """The client of one connection's newest request that was looked at.

    `producer` counts the size of that request, if it takes its road.
    """

    __slots__ = ("_client_id", "_known", "_shown", "_shown_in", "producer")

    def __init__(self, known: KnownClients) -> None:
        self._known = known
        self._shown: bytes | None = None  # its client id as it stands in a header, with its size
        self._shown_in = _NOTHING  # takes as many bytes from there
        self._client_id: str | None = None
        self.producer: Sensor | None = None

    def asks(self, connection: Connection, body: memoryview) -> bool:
        """Whether a request may take a plain road: it is one of `PLAIN_KEYS`, of a client whose
        time is not measured, and no other's is now."""
        try:
            if body[API_KEY] not in PLAIN_KEYS or connection.is_measured:
                return False
            (shown,) = self._shown_in(body, SAID_START)
        except IndexError:
            return False
        except StructError:
            shown = b""
        if shown != self._shown and not self._look_at(body):
            return False
        try:
            rates = self._known[self._client_id]
        except KeyError:
            return False
        self.producer = None
        if rates is None:
            return True
        if rates.request is not None:
            return False
        if body[API_KEY] == FETCH_KEY:
            return rates.consumer is None
        producer = rates.producer
        if producer is None or body[API_KEY] != PRODUCE_KEY:
            return True
        self.producer = producer
        # As `Sensor.count` asks.
        is_within = producer.pending + len(body) <= producer.room
        return is_within and connection.turn_s < producer.quiet_until_s

    def _look_at(self, body: memoryview) -> bool:
        """Whether the request has a whole header, and so a client id."""
        try:
            self._client_id = parse_request_header(body).client_id
        except MalformedError:
            self._shown, self._shown_in = None, _NOTHING
            return False
        self._shown = shown = body[SAID_START : client_id_end(body)].tobytes()
        self._shown_in = Struct(f"{len(shown)}s").unpack_from
        return True
