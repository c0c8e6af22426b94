"""One connection's authentication, the server's side: frames in, replies and an identity out.

`SaslServer.receive(frame, wall_ms)` is given every frame until the client is authenticated, and
again the frames of a re-authentication (KIP-368). What may come when is the table of `states.py`.

ApiVersions is not answered here: `Step.executes` has the caller execute it as any other request.
Answers and closings are those of Apache Kafka 4.4 (measured): what is out of place before a
mechanism is agreed on closes the connection without a word, an unknown mechanism, a request in the
place of a token, or a refused token is answered first, which the caller delays
(`connection.failed.authentication.delay.ms`). Raw tokens (SaslHandshake version 0) have no answer
that could tell an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kwire.protocol import api_versions, frame
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError, MalformedError
from kwire.protocol.structs import Message, Parts
from kwire.security.sasl.mechanisms import (
    Answer,
    AuthenticationFailed,
    Identity,
    MakeMechanism,
    ServerMechanism,
)
from kwire.security.sasl.states import Event, State, following

ErrorAnswer = Callable[[int, int, memoryview, KafkaError], Message | None]
"""(API key, version, body, error) -> the API's shape of an error, None where there is none."""


class AuthenticationCounts:
    """How often clients of a node have authenticated, or not; `expired` connections were closed
    because their session had ended."""

    __slots__ = ("expired", "failed", "failed_again", "successful", "successful_again")

    def __init__(self) -> None:
        self.successful = self.failed = self.expired = 0
        self.successful_again = self.failed_again = 0

    def count(self, is_again: bool, is_successful: bool) -> None:
        """One authentication, or re-authentication, has ended."""
        if is_again:
            self.successful_again += is_successful
            self.failed_again += not is_successful
        else:
            self.successful += is_successful
            self.failed += not is_successful


class SaslSettings(NamedTuple):
    """What all connections of a listener have in common.

    `mechanisms` by name, in the order in which they are told to clients. `session_ms` is how long
    a client may go on before it has to authenticate anew, by mechanism; 0: for ever.
    `receive_bytes_max` bounds the frames of who is not authenticated, `failure_delay_ms` is how
    long a refused client waits for its answer. `counts` counts what comes of it.
    """

    mechanisms: Mapping[str, MakeMechanism]
    session_ms: Mapping[str, int]
    receive_bytes_max: int = 524_288
    failure_delay_ms: int = 100
    counts: AuthenticationCounts = AuthenticationCounts()

    def __repr__(self) -> str:
        return f"SaslSettings({', '.join(self.mechanisms)})"


MakeSasl: TypeAlias = Callable[[], SaslSettings]
"""The settings for a new connection: they may change while a node runs."""


class Step(NamedTuple):
    """What to do about a frame.

    `reply` is sent, framed; with `failure` the connection is closed, for that reason, and where
    `is_delayed` both happen later. `identity` is who the client is from now on. `executes`: the
    frame is a request to be executed as any other.
    """

    reply: Sequence[bytes | bytearray | memoryview] = ()
    executes: bool = False
    identity: Identity | None = None
    failure: str | None = None
    is_delayed: bool = False


class SaslServer:
    """See the module. `state` and `identity` are for reading; `settings` may be replaced by those
    of now before a client authenticates anew."""

    __slots__ = (
        "_error_answer",
        "_exchange",
        "identity",
        "mechanism",
        "session_end_ms",
        "settings",
        "state",
    )

    def __init__(self, settings: SaslSettings, error_answer: ErrorAnswer) -> None:
        self.settings = settings
        self._error_answer = error_answer
        self._exchange: ServerMechanism | None = None
        self.state = State.HANDSHAKE_OR_VERSIONS
        self.identity: Identity | None = None
        self.mechanism = ""
        self.session_end_ms: int | None = None
        """When (wall clock) the client has to have authenticated anew; None: never."""

    @property
    def is_complete(self) -> bool:
        """Whether requests other than those of authentication are executed."""
        return self.state is State.AUTHENTICATED

    def begins_anew(self, api_key: int) -> bool:
        """Whether an authenticated client's request is the first of a re-authentication.

        Where sessions have no end SaslHandshake is a request out of place, as any other.
        """
        return api_key == ApiKey.SASL_HANDSHAKE and self.session_end_ms is not None

    def is_expired(self, wall_ms: int) -> bool:
        """Whether an authenticated client had to authenticate anew, and has not."""
        return self.session_end_ms is not None and wall_ms >= self.session_end_ms

    def receive(self, body: memoryview, wall_ms: int) -> Step:
        """The frame `body`, without its size."""
        if self.state is State.FAILED:
            return Step(failure="the client was refused")
        if self.state in (State.TOKENS, State.RAW_TOKENS) and self._exchange is None:
            return self._fail("another SASL mechanism than before")
        if self.state is State.RAW_TOKENS:
            return self._raw_token(bytes(body), wall_ms)
        try:
            header = frame.parse_request_header(body)
        except MalformedError as error:
            return self._fail(f"no request of Kafka's protocol: {error}")
        if self.state is State.TOKENS:
            return self._token(header, body, wall_ms)
        if header.api_key == ApiKey.API_VERSIONS:
            return self._versions(header, body)
        if header.api_key == ApiKey.SASL_HANDSHAKE:
            return self._handshake(header, body)
        return self._fail(f"a request of API {header.api_key} before authentication")

    # -- before a mechanism is agreed on

    def _versions(self, header: frame.RequestHeader, body: memoryview) -> Step:
        if self.state is not State.HANDSHAKE_OR_VERSIONS:
            return self._fail("ApiVersions out of place")
        event = Event.VERSIONS_REFUSED
        info = API_KEYS[ApiKey.API_VERSIONS]
        if info.min <= header.api_version <= info.max:
            try:
                request = m.ApiVersionsRequest.decode(
                    body[header.body_offset :], header.api_version
                )
            except MalformedError as error:
                return self._fail(f"ApiVersions cannot be parsed: {error}")
            is_named = header.api_version < api_versions.SOFTWARE_FROM or (
                api_versions.is_well_formed(request.client_software_name)
                and api_versions.is_well_formed(request.client_software_version)
            )
            event = Event.VERSIONS if is_named else Event.VERSIONS_REFUSED
        self.state = following(self.state, event)
        return Step(executes=True)

    def _handshake(self, header: frame.RequestHeader, body: memoryview) -> Step:
        try:
            _check_version(header)
            request = m.SaslHandshakeRequest.decode(body[header.body_offset :], header.api_version)
        except MalformedError as error:
            return self._fail(f"SaslHandshake cannot be parsed: {error}")
        names = list(self.settings.mechanisms)
        make = self.settings.mechanisms.get(request.mechanism)
        if make is None:
            code = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            refusal = m.SaslHandshakeResponse(error_code=code, mechanisms=names)
            is_first = self.identity is None
            return self._fail(
                "an unknown SASL mechanism", _encoded(header, refusal) if is_first else ()
            )
        if self.identity is None:
            self.mechanism = request.mechanism
        # Another mechanism than before is agreed to, and nothing said by it is listened to.
        self._exchange = make() if request.mechanism == self.mechanism else None
        event = Event.HANDSHAKE if header.api_version else Event.RAW_HANDSHAKE
        self.state = following(self.state, event)
        return Step(_encoded(header, m.SaslHandshakeResponse(error_code=0, mechanisms=names)))

    # -- tokens

    def _raw_token(self, token: bytes, wall_ms: int) -> Step:
        try:
            answer = self._evaluate(token, wall_ms)
        except AuthenticationFailed as error:
            return self._fail(self._told(error))._replace(is_delayed=True)
        self._accept(answer, wall_ms)
        size = len(answer.token).to_bytes(4, "big")
        return Step([size + answer.token], identity=answer.identity)

    def _token(self, header: frame.RequestHeader, body: memoryview, wall_ms: int) -> Step:
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            return self._other_request(header, body)
        try:
            _check_version(header)
            request = m.SaslAuthenticateRequest.decode(
                body[header.body_offset :], header.api_version
            )
        except MalformedError as error:
            return self._fail(f"SaslAuthenticate cannot be parsed: {error}")
        try:
            answer = self._evaluate(bytes(request.auth_bytes), wall_ms)
        except AuthenticationFailed as error:
            told = self._told(error)
            code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
            refusal = m.SaslAuthenticateResponse(error_code=code, error_message=told)
            return self._fail(told, _encoded(header, refusal))
        session_ms = self._accept(answer, wall_ms)
        response = m.SaslAuthenticateResponse(
            auth_bytes=answer.token, session_lifetime_ms=session_ms
        )
        return Step(_encoded(header, response), identity=answer.identity)

    def _other_request(self, header: frame.RequestHeader, body: memoryview) -> Step:
        """A request in the place of a token: the error in its own shape, if it has one."""
        reason = f"a request of API {header.api_key} instead of a SASL token"
        info = API_KEYS.get(header.api_key)
        if info is None or not info.min <= header.api_version <= info.max:
            return self._fail(reason)
        error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE)
        rest = body[header.body_offset :]
        try:
            response = self._error_answer(header.api_key, header.api_version, rest, error)
        except MalformedError:
            response = None
        return self._fail(reason, () if response is None else _encoded(header, response))

    def _evaluate(self, token: bytes, wall_ms: int) -> Answer:
        assert self._exchange is not None
        answer = self._exchange.evaluate(token, wall_ms)
        before, now = self.identity, answer.identity
        if before is not None and now is not None and now.principal != before.principal:
            raise AuthenticationFailed(
                "Cannot change principals during re-authentication from "
                f"{_dotted(before)}: {_dotted(now)}"
            )
        return answer

    def _accept(self, answer: Answer, wall_ms: int) -> int:
        """Move on; for how many ms the client is authenticated from now on, 0: for ever."""
        event = Event.TOKEN if answer.identity is None else Event.LAST_TOKEN
        self.state = following(self.state, event)
        if answer.identity is None:
            return 0
        self._exchange = None
        self.identity = answer.identity
        session_ms = self.settings.session_ms.get(self.mechanism, 0)
        expires_ms = answer.identity.expires_ms
        if expires_ms is not None:
            left_ms = max(1, expires_ms - wall_ms)
            session_ms = min(session_ms, left_ms) if session_ms > 0 else left_ms
        self.session_end_ms = wall_ms + session_ms if session_ms > 0 else None
        return max(0, session_ms)

    def _told(self, error: AuthenticationFailed) -> str:
        """What the client is told."""
        kind = "authentication" if self.identity is None else "re-authentication"
        return error.message or (
            f"Authentication failed during {kind} due to invalid credentials with SASL mechanism "
            f"{self.mechanism}"
        )

    def _fail(self, reason: str, reply: Parts | tuple[()] = ()) -> Step:
        self.state = following(self.state, Event.REFUSED)
        self._exchange = None
        return Step(reply, failure=reason, is_delayed=bool(reply))


def _dotted(identity: Identity) -> str:
    """A principal as Kafka writes it there."""
    return identity.principal.replace(":", ".", 1)


def _check_version(header: frame.RequestHeader) -> None:
    info = API_KEYS[header.api_key]
    if not info.min <= header.api_version <= info.max:
        raise MalformedError(f"version {header.api_version} is not supported")


def _encoded(header: frame.RequestHeader, response: Message) -> Parts:
    return frame.encode_response(
        header.api_key, header.api_version, header.correlation_id, response
    )
