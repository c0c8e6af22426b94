"""Heartbeats of consumer groups' members that say nothing new, where nothing is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.api.plain.remembered import Frame, RememberedRequest
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import Connection
from kwire.server.parts import Parts
from kwire.server.request_counts import RequestCounts

if TYPE_CHECKING:
    from kwire.coordinator.group.current_consumer import CurrentConsumer


class PlainConsumerHeartbeats(RememberedRequest):
    """ConsumerGroupHeartbeats of one connection, which remembers the member."""

    __slots__ = ("_frame", "_interval_ms", "_is_served", "_member", "_parts", "_request")

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        super().__init__(counts, version)
        self._parts = parts
        self._is_served = "consumer" in parts.config["group.coordinator.rebalance.protocols"]
        self._request = m.ConsumerGroupHeartbeatRequest()
        self._member: CurrentConsumer | None = None
        self._interval_ms = -1
        self._frame = (b"", b"")

    def answer(self, connection: Connection, body: memoryview) -> Frame | None:
        member = self._member
        interval_ms = None if member is None else member.alive(int(connection.turn_s * 1000))
        if interval_ms is None:
            return None
        if interval_ms != self._interval_ms:
            self._tell(interval_ms)
        return self._frame

    def remember(self, connection: Connection, body: memoryview) -> None:
        self._member, self._interval_ms = None, -1
        if not self._is_served:
            return
        try:
            *_, client_id, position = parse_request_header(body)
            request, _ = m.ConsumerGroupHeartbeatRequest.decode_from(body, position, self._version)
        except MalformedError:
            return
        if not _says_nothing_new(request):
            return
        found = self._parts.coordinators.groups.current_consumer(
            request.group_id, request.member_id, request.member_epoch
        )
        if found is None:
            return
        current, member = found
        if (member.client_id, member.client_host) == (client_id or "", connection.client_host):
            self._request, self._member = request, current

    def _tell(self, interval_ms: int) -> None:
        request = self._request
        response = m.ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=interval_ms,
        )
        frame = b"".join(encode_response(request.API_KEY, self._version, 0, response))
        self._frame = frame[:4], frame[8:]
        self._interval_ms = interval_ms


def _says_nothing_new(request: m.ConsumerGroupHeartbeatRequest) -> bool:
    """Whether a member that is there only says that it is."""
    return bool(
        request.member_epoch > 0
        and request.group_id.strip()
        and request.member_id.strip()
        and request.instance_id is None
        and request.rack_id is None
        and request.rebalance_timeout_ms == -1
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.server_assignor is None
        and request.topic_partitions is None
    )
