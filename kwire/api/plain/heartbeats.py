"""Heartbeats of a member that is current."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kwire.clock import ticks_ns
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import Connection
from kwire.server.parts import Parts
from kwire.server.request_counts import PLAIN, RequestCounts

if TYPE_CHECKING:
    from kwire.coordinator.group.current_member import CurrentMember


class PlainHeartbeats:
    """Heartbeats of one connection: the member that sent the last one is remembered by all that
    it says behind the correlation id."""

    __slots__ = ("_asked", "_counts", "_frame", "_member", "_numbers", "_parts", "_version")

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        self._parts = parts
        self._counts = counts
        self._numbers = counts.numbers
        self._version = version
        self._frame = _frame(version)
        self._asked = b""
        self._member: CurrentMember | None = None

    def __call__(self, connection: Connection, body: memoryview) -> bytes | None:
        """See `PlainRoad`."""
        turn_s = connection.turn_s
        started_ns = ticks_ns() if turn_s >= self._counts.due_s else 0
        asked = body[8:].tobytes()
        if asked != self._asked:
            self._remember(body, asked)
        member = self._member
        if member is None or not member.is_alive(int(turn_s * 1000)):
            self._asked = b""
            return None
        numbers = self._numbers
        numbers[self._version] += 1
        numbers[PLAIN] += 1
        if started_ns:
            self._counts.answered_at_once(turn_s, started_ns, len(body))
        before, behind = self._frame
        return b"".join((before, body[4:8], behind))

    def _remember(self, body: memoryview, asked: bytes) -> None:
        self._asked, self._member = asked, None
        try:
            *_, position = parse_request_header(body)
            request, _ = m.HeartbeatRequest.decode_from(body, position, self._version)
        except MalformedError:
            return
        if request.group_id and request.group_instance_id is None:
            self._member = self._parts.coordinators.groups.current_member(
                request.group_id, request.member_id, request.generation_id
            )


@cache
def _frame(version: int) -> tuple[bytes, bytes]:
    """The answer NONE: what is in front of its correlation id, and what is behind it."""
    frame = b"".join(encode_response(12, version, 0, m.HeartbeatResponse()))
    return frame[:4], frame[8:]
