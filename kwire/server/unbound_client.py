"""Whether quotas concern the usual small requests of a client (`plain_requests.py`).

Requests that a plain road answers at once use time and nothing else that a quota is of. Who has no
request_percentage is not held to one, so that what it asks may go past the arrival and the response
step while others have quotas. A connection's requests are nearly all of one client id: it is told
by its bytes in the header, and what binds it by the table that the general way fills
(`KnownClients`). Who is not in there, or is measured, goes the general way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import parse_request_header

if TYPE_CHECKING:
    from kwire.quota.client_quotas import KnownClients
    from kwire.server.context import Connection

PLAIN_KEYS = bytes((ApiKey.METADATA, ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT))
"""The APIs whose plain roads answer at once: all others go on without being looked at."""
CLIENT_ID = 8
"""Where the size of the client id stands in a request, behind its key, version and number."""
SIZE_BYTES = 2


class UnboundClient:
    """The client of one connection's newest request that was looked at."""

    __slots__ = ("_client_id", "_end", "_known", "_shown")

    def __init__(self, known: KnownClients) -> None:
        self._known = known
        self._shown = b""  # its client id as it stands in a header, with its size
        self._end = CLIENT_ID
        self._client_id: str | None = None

    def asks(self, connection: Connection, body: memoryview) -> bool:
        """Whether a request may take a plain road: it is one of `PLAIN_KEYS`, of a client whose
        time is not measured, and no other's is now."""
        if len(body) <= CLIENT_ID or body[1] not in PLAIN_KEYS or connection.is_measured:
            return False
        if not self._shown or body[CLIENT_ID : self._end] != self._shown:
            self._look_at(body)
        try:
            rates = self._known[self._client_id]
        except KeyError:
            return False
        return bool(self._shown) and (rates is None or rates.request is None)

    def _look_at(self, body: memoryview) -> None:
        try:
            self._client_id = parse_request_header(body).client_id
        except MalformedError:
            self._shown = b""
            return
        size_bytes = max(
            0, int.from_bytes(body[CLIENT_ID : CLIENT_ID + SIZE_BYTES], "big", signed=True)
        )
        self._end = CLIENT_ID + SIZE_BYTES + size_bytes
        self._shown = body[CLIENT_ID : self._end].tobytes()
