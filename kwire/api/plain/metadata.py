"""Metadata of topics that are there, as long as nothing about topics or brokers changes."""

from __future__ import annotations

from collections.abc import Callable

from kwire.api.plain.remembered import Frame, RememberedRequest
from kwire.protocol import messages as m
from kwire.protocol.errors import MalformedError
from kwire.protocol.frame import encode_response, parse_request_header
from kwire.server.context import Connection, RequestContext
from kwire.server.parts import Parts
from kwire.server.request_counts import RequestCounts, unusual_codes

TOPICS_MAX = 8
PARTITIONS_MAX = 64
"""Of the topics together: a connection remembers a frame of a few KB. Decided before the answer is
made, which would be made twice otherwise."""

Handle = Callable[[RequestContext, m.MetadataRequest], object]


class PlainMetadata(RememberedRequest):
    """Metadata requests of one connection; `handle` is what answers them on the general way.

    Of several brokers any may be named as the controller: it stays the same one here until
    something changes.
    """

    __slots__ = ("_changes", "_frame", "_handle", "_parts")

    def __init__(self, handle: Handle, parts: Parts, counts: RequestCounts, version: int) -> None:
        super().__init__(counts, version)
        self._handle = handle
        self._parts = parts
        self._changes = -1
        self._frame: Frame | None = None

    def answer(self, connection: Connection, body: memoryview) -> Frame | None:
        if self._changes != self._parts.described_topics.changes:
            self.remember(connection, body)
        return self._frame

    def remember(self, connection: Connection, body: memoryview) -> None:
        """The general way's answer, if it depends on nothing but topics and brokers."""
        self._frame = None
        self._changes = self._parts.described_topics.changes
        try:
            key, version, correlation_id, client_id, position = parse_request_header(body)
            request, _ = m.MetadataRequest.decode_from(body, position, version)
        except MalformedError:
            return
        if not self._is_known(request):
            return
        context = RequestContext(self._parts, connection, key, version, correlation_id, client_id)
        response = self._handle(context, request)
        if not isinstance(response, m.MetadataResponse):
            return
        codes = unusual_codes(response)
        if codes is not None:
            frame = b"".join(encode_response(key, version, 0, response))
            self._frame, self.codes = (frame[:4], frame[8:]), codes

    def _is_known(self, request: m.MetadataRequest) -> bool:
        """Whether these are a few topics by name, and all brokers are there."""
        image = self._parts.metadata.image
        asked = request.topics
        if not asked or len(asked) > TOPICS_MAX:
            return False
        topics = [image.topics.by_name.get(topic.name or "") for topic in asked]
        partitions = [len(topic.partitions) for topic in topics if topic is not None]
        return (
            len(partitions) == len(asked)
            and sum(partitions) <= PARTITIONS_MAX
            and not any(broker.fenced for broker in image.brokers.values())
        )
