"""Whether quotas hold back the usual small requests of a client (`plain_requests.py`).

What plain roads answer uses time, and a Produce bytes. Who has no request_percentage is not held to
one, and a producer_byte_rate that is far from its bound only counts: so that such requests may go
past the arrival and the response step while there are quotas. A connection's requests are nearly
all of one client id: it is told by its bytes in the header, and what binds it by the table that the
general way fills (`KnownClients`). Who is not in there, or is measured, goes the general way.
"""

from __future__ import annotations

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


class UnboundClient:
    """The client of one connection's newest request that was looked at."""

    __slots__ = ("_client_id", "_end", "_known", "_producer", "_shown")

    def __init__(self, known: KnownClients) -> None:
        self._known = known
        self._shown = b""  # its client id as it stands in a header, with its size
        self._end = SAID_START
        self._client_id: str | None = None
        self._producer: Sensor | None = None
        """What counts the request that was looked at last, if it takes its road."""

    def asks(self, connection: Connection, body: memoryview) -> bool:
        """Whether a request may take a plain road: it is one of `PLAIN_KEYS`, of a client whose
        time is not measured, and no other's is now. `used` tells that it took it."""
        if len(body) <= SAID_START or body[API_KEY] not in PLAIN_KEYS or connection.is_measured:
            return False
        if not self._shown or body[SAID_START : self._end] != self._shown:
            self._look_at(body)
        try:
            rates = self._known[self._client_id]
        except KeyError:
            return False
        if not self._shown:
            return False
        self._producer = None
        if rates is None:
            return True
        if rates.request is not None:
            return False
        if body[API_KEY] == FETCH_KEY:
            return rates.consumer is None
        producer = rates.producer
        if producer is None or body[API_KEY] != PRODUCE_KEY:
            return True
        self._producer = producer
        # As `Sensor.count` asks.
        is_within = producer.pending + len(body) <= producer.room
        return is_within and connection.turn_s < producer.quiet_until_s

    def used(self, size_bytes: int, now_s: float) -> None:
        """The request is executed, in the turn in which `asks` was True."""
        producer = self._producer
        if producer is not None:
            producer.pending += size_bytes
            producer.counted_s = now_s

    def _look_at(self, body: memoryview) -> None:
        try:
            self._client_id = parse_request_header(body).client_id
        except MalformedError:
            self._shown = b""
            return
        self._end = client_id_end(body)
        self._shown = body[SAID_START : self._end].tobytes()
