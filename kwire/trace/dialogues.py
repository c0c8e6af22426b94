"""One connection's requests and their replies, as events and as messages.

Replies come in the order of requests; a Produce with acks=0 has none. What is not known here, an
API, a version, bytes that are no message, is passed over and told as bytes. After SaslHandshake at
version 0 the tokens of the login are frames without a header: they are counted and not looked at.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.errors import ErrorCode, MalformedError
from kwire.protocol.frame import decode_response, parse_request_header
from kwire.protocol.structs import Buffer, Message
from kwire.trace.error_counts import error_names
from kwire.trace.events import REQUEST, RESPONSE, Event
from kwire.trace.rendering import as_json

RAW_TOKENS = {"PLAIN": 1, "OAUTHBEARER": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2}
"""Mechanism -> tokens that each side sends, where SaslHandshake at version 0 has chosen it."""
UNANSWERED_MAX = 10_000
"""Requests of a connection that wait; a client that has more is not followed any further."""


class Asked(NamedTuple):
    """A request: `message` is None where it is not known; `event` is what a trace has of it."""

    api_key: int
    version: int
    message: Message | None
    event: Event


class Answered(NamedTuple):
    """A reply and its request; `version` is that of the reply."""

    asked: Asked | None
    version: int
    correlation_id: int
    message: Message | None
    event: Event


class Dialogue:
    """See the module. `kept_bytes` of keys and values are in events."""

    def __init__(self, connection: int, kept_bytes: int = 0) -> None:
        self.connection = connection
        self._kept_bytes = kept_bytes
        self._waiting: deque[Asked] = deque()
        self._raw_left = 0
        self.is_lost = False
        """Whether requests and replies cannot be told apart any more."""

    @property
    def unanswered(self) -> list[str]:
        """The APIs of the requests that still wait, the oldest first."""
        return [asked.event.api for asked in self._waiting]

    def asks(self, frame: Buffer, ms: float) -> Asked:
        """A request came, as a frame without its size."""
        if self._raw_left or self.is_lost:
            what = "a token of the login" if self._raw_left else "not followed"
            asked = _as_bytes(Event(REQUEST, ms, self.connection, size_bytes=len(frame)), what)
        else:
            asked = self.parsed(frame, ms)
        if not self.is_lost and not _has_no_reply(asked.message):
            self._waiting.append(asked)
            if len(self._waiting) > UNANSWERED_MAX:
                self.is_lost = True
                self._waiting.clear()
        return asked

    def parsed(self, frame: Buffer, ms: float) -> Asked:
        """A request that does not begin to wait for its reply here."""
        event = Event(REQUEST, ms, self.connection, size_bytes=len(frame))
        try:
            api_key, version, number, client_id, offset = parse_request_header(frame)
        except MalformedError as error:
            return _as_bytes(event, str(error))
        info = API_KEYS.get(api_key)
        event = event._replace(
            correlation_id=number,
            client_id=client_id,
            api="" if info is None else info.name,
            api_key=api_key,
            version=version,
        )
        if info is None:
            return _as_bytes(event, f"API {api_key} is not known")
        kind = m.request_class(api_key)
        if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
            return _as_bytes(event, f"version {version} of {info.name} is not known")
        try:
            message, _ = kind.decode_from(frame, offset, version)
        except MalformedError as error:
            return _as_bytes(event, str(error))
        body = as_json(message, version, self._kept_bytes)
        return Asked(api_key, version, message, event._replace(body=body))

    def answers(self, frame: Buffer, ms: float) -> Answered:
        """A reply came, as a frame without its size."""
        asked = self._waiting.popleft() if self._waiting else None
        number = int.from_bytes(frame[:4], "big", signed=True) if len(frame) >= 4 else 0
        if asked is None or (asked.message is not None and _number(asked) != number):
            self.is_lost = True
            self._waiting.clear()
            note = "passed through as bytes: no request of this connection has this id"
            event = Event(RESPONSE, ms, self.connection, size_bytes=len(frame), note=note)
            return Answered(None, -1, number, None, event)
        if self._raw_left:
            self._raw_left -= 1
        if asked.message is None:
            return self._answered(asked, asked.version, None, len(frame), ms, asked.event.note)
        version, message, note = asked.version, None, ""
        if asked.api_key == ApiKey.API_VERSIONS and _is_refusal(frame):
            version = 0
        try:
            _, message = decode_response(asked.api_key, version, frame)
        except MalformedError as error:
            note = f"passed through as bytes: {error}"
        if isinstance(message, m.SaslHandshakeResponse) and version == 0:
            self._raw_left = self._tokens(asked, message)
        return self._answered(asked, version, message, len(frame), ms, note)

    def _tokens(self, asked: Asked, response: m.SaslHandshakeResponse) -> int:
        request = asked.message
        assert isinstance(request, m.SaslHandshakeRequest)
        if response.error_code:
            return 0
        if request.mechanism not in RAW_TOKENS:
            self.is_lost = True
        return RAW_TOKENS.get(request.mechanism, 0)

    def _answered(
        self,
        asked: Asked,
        version: int,
        message: Message | None,
        size_bytes: int,
        ms: float,
        note: str,
    ) -> Answered:
        event = self.reply_event(asked, version, message, size_bytes, ms)._replace(note=note)
        return Answered(asked, version, _number(asked), message, event)

    def reply_event(
        self, asked: Asked, version: int, message: Message | None, size_bytes: int, ms: float
    ) -> Event:
        """What a trace has of a reply; None: of one that is not known."""
        return asked.event._replace(
            kind=RESPONSE,
            ms=ms,
            size_bytes=size_bytes,
            took_ms=ms - asked.event.ms,
            errors={} if message is None else error_names(message),
            body=None if message is None else as_json(message, version, self._kept_bytes),
            note="",
        )


def _as_bytes(event: Event, why: str) -> Asked:
    """A request that is not known."""
    event = event._replace(note=f"passed through as bytes: {why}")
    return Asked(event.api_key, event.version, None, event)


def _number(asked: Asked) -> int:
    return asked.event.correlation_id


def _has_no_reply(message: Message | None) -> bool:
    return isinstance(message, m.ProduceRequest) and message.acks == 0


def _is_refusal(frame: Buffer) -> bool:
    """ApiVersions at a version that is too high is answered in version 0."""
    code = int.from_bytes(frame[4:6], "big", signed=True)
    return len(frame) >= 6 and code == ErrorCode.UNSUPPORTED_VERSION
