"""Where the session's epoch lies in a Fetch that names no topics (KIP-227).

Fetches of a session in which nothing happens differ in their correlation ids and in the epoch, from
version 7 on:

| type              | field                                                              |
|-------------------|--------------------------------------------------------------------|
| header            | `request_frames.py`; from version 12 on with a byte for no tags    |
| int32             | replica id, up to version 14                                       |
| int32 * 3, int8   | max wait, min bytes, max bytes, isolation level                    |
| int32             | session id                                                         |
| int32             | session epoch                                                      |
| int32 * 2         | no topics, none forgotten; from version 12 on a byte for each of them |
| bytes             | rack id from version 11 on, tagged fields from version 12 on       |
"""

from __future__ import annotations

from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import parse_request_header
from kwire.protocol.request_frames import SAID_START, client_id_end

SESSIONS_FROM, TOPIC_IDS_FROM = 7, 13
_FLEXIBLE_FROM, _REPLICA_STATE_FROM = 12, 15
_LIMITS_BYTES, _INT_BYTES = 13, 4


class QuietFetches:
    """Where things lie in such requests of a version; it has sessions."""

    __slots__ = ("_nothing", "_tags", "_version", "_width")

    def __init__(self, version: int) -> None:
        is_flexible = version >= _FLEXIBLE_FROM
        self._version = version
        self._tags = b"\0" if is_flexible else b""
        self._nothing = b"\1\1" if is_flexible else bytes(2 * _INT_BYTES)
        replica_bytes = _INT_BYTES if version < _REPLICA_STATE_FROM else 0
        self._width = len(self._tags) + replica_bytes + _LIMITS_BYTES + _INT_BYTES

    def epoch_start(self, body: memoryview) -> int | None:
        """Where the epoch of the session begins, its id stands in front of it; None where topics
        are named, or where that cannot be told."""
        if len(body) <= SAID_START + 1:
            return None
        tags = client_id_end(body)
        start = tags + self._width
        behind = start + _INT_BYTES
        if (
            body[tags : tags + len(self._tags)] != self._tags
            or body[behind : behind + len(self._nothing)] != self._nothing
        ):
            return None
        return start

    def decoded(self, body: memoryview) -> tuple[str | None, m.FetchRequest] | None:
        """(client id, request) of one that names nothing; None for one that is malformed."""
        try:
            *_, client_id, position = parse_request_header(body)
            request, _ = m.FetchRequest.decode_from(body, position, self._version)
        except MalformedError:
            return None
        if request.topics or request.forgotten_topics_data:
            return None
        return client_id, request
