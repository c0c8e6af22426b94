"""Heartbeats of consumer groups' members that say nothing new, where nothing is new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.clock import ticks_ns
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import Connection
from kwire.server.parts import Parts
from kwire.server.request_counts import PLAIN, RequestCounts

if TYPE_CHECKING:
    from kwire.coordinator.group.current_consumer import CurrentConsumer


class PlainConsumerHeartbeats:
    """ConsumerGroupHeartbeats of one connection: the member that sent the last one is remembered
    by all that it says behind the correlation id."""

    __slots__ = (
        "_asked",
        "_counts",
        "_frame",
        "_interval_ms",
        "_is_served",
        "_member",
        "_numbers",
        "_parts",
        "_request",
        "_version",
    )

    def __init__(self, parts: Parts, counts: RequestCounts, version: int) -> None:
        self._parts = parts
        self._counts = counts
        self._numbers = counts.numbers
        self._version = version
        self._is_served = "consumer" in parts.config["group.coordinator.rebalance.protocols"]
        self._asked = b""
        self._request = m.ConsumerGroupHeartbeatRequest()
        self._member: CurrentConsumer | None = None
        self._interval_ms = -1
        self._frame = (b"", b"")

    def __call__(self, connection: Connection, body: memoryview) -> bytes | None:
        """See `PlainRoad`."""
        turn_s = connection.turn_s
        started_ns = ticks_ns() if turn_s >= self._counts.due_s else 0
        asked = body[8:].tobytes()
        if asked != self._asked:
            self._remember(connection, body, asked)
        member = self._member
        interval_ms = None if member is None else member.alive(int(turn_s * 1000))
        if interval_ms is None:
            self._asked = b""
            return None
        if interval_ms != self._interval_ms:
            self._answer(interval_ms)
        numbers = self._numbers
        numbers[self._version] += 1
        numbers[PLAIN] += 1
        if started_ns:
            self._counts.answered_at_once(turn_s, started_ns, len(body))
        before, behind = self._frame
        return b"".join((before, body[4:8], behind))

    def _remember(self, connection: Connection, body: memoryview, asked: bytes) -> None:
        self._asked, self._member, self._interval_ms = asked, None, -1
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

    def _answer(self, interval_ms: int) -> None:
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
