"""Heartbeats of a member that is current."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from kwire.api.plain.remembered import Frame, RememberedRequest
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import Connection
from kwire.server.parts import Parts
from kwire.server.request_counts import RequestCounts

if TYPE_CHECKING:
    from kwire.coordinator.group.current_member import CurrentMember


class PlainHeartbeats(RememberedRequest):
    """Heartbeats of one connection, which remembers the member."""

    __slots__ = ("_frame", "_member", "_parts")

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        super().__init__(counts, version)
        self._parts = parts
        self._frame = _frame(version)
        self._member: CurrentMember | None = None

    def answer(self, connection: Connection, body: memoryview) -> Frame | None:
        member = self._member
        if member is None or not member.is_alive(int(connection.turn_s * 1000)):
            return None
        return self._frame

    def remember(self, connection: Connection, body: memoryview) -> None:
        self._member = None
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
def _frame(version: int) -> Frame:
    """The answer NONE."""
    response = m.HeartbeatResponse()
    frame = b"".join(encode_response(response.API_KEY, version, 0, response))
    return frame[:4], frame[8:]
