"""A small blocking Kafka client for the command line: sockets, framing, versions, retries.

It speaks kwire's own protocol package and needs no third-party client. One connection a node, one
request at a time. `ClientError` is one line for the user. `kwire.client` is for programs that do
more than one thing: its event loop alone would double the time of a command (ADR 29).
"""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from kwire.client.address import parse_address
from kwire.client.errors import ClientError, Closed, RequestFailed, Unanswered, check
from kwire.network.login import AUTHENTICATE_VERSION, HANDSHAKE_VERSION
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.protocol.errors import EncodeError, ErrorCode, KafkaError, MalformedError, is_retriable
from kwire.protocol.frame import decode_response, encode_request
from kwire.protocol.structs import Message, Request

if TYPE_CHECKING:
    import ssl

    from kwire.security.client_settings import ClientSecurity
    from kwire.security.sasl.client_settings import MakeLogin

Response = TypeVar("Response", bound=Message)
Topic: TypeAlias = "m.MetadataResponse.MetadataResponseTopic"

CLIENT_ID = "kwire-cli"
RETRY_TIMEOUT_S = 20.0
HTTP_TIMEOUT_S = 1.0
RETRY_PAUSE_S = 0.1
FRAME_BYTES_MAX = 256 << 20
BOOTSTRAP = -1


class Timeouts(NamedTuple):
    """Seconds for a connection, for its first answer (the versions: a busy broker knows them
    without looking anything up), and for each later one."""

    connect_s: float = 5.0
    first_s: float = 15.0
    later_s: float = 40.0


DEFAULT_TIMEOUTS = Timeouts()


class Connection:
    """One connection; knows the versions that its broker offers."""

    def __init__(
        self,
        host: str,
        port: int,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._timeouts = timeouts
        self._deadline = 0.0
        try:
            self._socket = socket.create_connection((host, port), timeouts.connect_s)
        except TimeoutError:
            late = f"{self.address}: no connection within {timeouts.connect_s:g} s"
            raise Unanswered(late) from None
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ClientError(f"{self.address}: {reason or error}") from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            self._shake_hands(tls, host)
        self._correlation_id = 0
        self.api_versions = m.ApiVersionsResponse()
        self.versions: dict[int, tuple[int, int]] = {}

    def _shake_hands(self, tls: ssl.SSLContext, host: str) -> None:
        from kwire.network.tls_connection import reason_of

        try:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        except TimeoutError:
            late = f"{self.address}: no TLS handshake within {self._timeouts.connect_s:g} s"
            raise Unanswered(late) from None
        except OSError as error:  # of TLS, too
            raise ClientError(f"{self.address}: TLS handshake: {reason_of(error)}") from None

    def negotiate(self) -> None:
        """Ask for the broker's versions; an old broker answers in version 0."""
        from kwire import __version__

        request = m.ApiVersionsRequest(
            client_software_name="kwire", client_software_version=__version__
        )
        response = self._send(request, 3, self._timeouts.first_s)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            response = self._send(m.ApiVersionsRequest(), 0, self._timeouts.first_s)
        check(response.error_code, "ApiVersions")
        self.api_versions = response
        self.versions = {
            entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys
        }

    def log_in(self, make_login: MakeLogin) -> None:
        """Authenticate by SASL; ClientError where the broker, or this side, refuses."""
        try:
            login = make_login()
            asked: m.SaslAuthenticateRequest | None = login.agreed(
                self._send(login.begin(), HANDSHAKE_VERSION, self._timeouts.first_s)
            )
            while asked is not None:
                answer = self._send(asked, AUTHENTICATE_VERSION, self._timeouts.first_s)
                asked = login.answered(answer)
        except KafkaError as error:
            raise ClientError(f"{self.address}: {error.message}") from None

    def call(self, request: Request[Response], version_max: int | None = None) -> Response:
        """Send at the highest version that both sides know, up to `version_max`."""
        kind = type(request)
        name = kind.NAME.removesuffix("Request")
        offered = self.versions.get(kind.API_KEY)
        if offered is None:
            raise ClientError(f"{self.address} does not offer {name}")
        low = max(offered[0], kind.MIN_VERSION)
        high = min(offered[1], kind.MAX_VERSION)
        if version_max is not None:
            high = min(high, version_max)
        if low > high:
            raise ClientError(f"{self.address} offers no version of {name} that is known here")
        return self._send(request, high, self._timeouts.later_s)

    def _send(self, request: Request[Response], version: int, timeout_s: float) -> Response:
        self._correlation_id += 1
        self._deadline = time.monotonic() + timeout_s
        key = type(request).API_KEY
        try:
            parts = encode_request(key, version, self._correlation_id, CLIENT_ID, request)
            self._socket.settimeout(timeout_s)
            self._socket.sendall(b"".join(parts))
            head = self._receive(4)
            size_bytes = struct.unpack(">i", head)[0]
            if not 0 < size_bytes <= FRAME_BYTES_MAX:
                raise ClientError(f"{self.address} {_other_protocol(head)}")
            frame = self._receive(size_bytes)
            if key == ApiKey.API_VERSIONS and version > 0 and _is_version_0_refusal(frame):
                version = 0
            correlation_id, decoded = decode_response(key, version, frame)
        except TimeoutError:
            raise Unanswered(
                f"{self.address}: no answer within {timeout_s:g} s; is it a Kafka broker?"
            ) from None
        except OSError as error:
            raise ClientError(f"{self.address}: {error.strerror or error}") from None
        except EncodeError as error:
            raise ClientError(str(error)) from None
        except MalformedError as error:
            raise ClientError(f"{self.address}: malformed response: {error}") from None
        if correlation_id != self._correlation_id:
            raise ClientError(f"{self.address}: response {correlation_id} out of order")
        response: Response = decoded
        return response

    def _receive(self, size_bytes: int) -> bytearray:
        data = bytearray(size_bytes)
        view = memoryview(data)
        while view:
            self._socket.settimeout(max(self._deadline - time.monotonic(), 0.001))
            received = self._socket.recv_into(view)
            if not received:
                raise Closed(f"{self.address} closed the connection")
            view = view[received:]
        return data

    def close(self) -> None:
        self._socket.close()


def _read_security(path: str) -> ClientSecurity:
    """What a file of client properties connects with."""
    from kwire.clock import SystemClock, SystemRandom
    from kwire.config.errors import ConfigError
    from kwire.config.properties import read_properties
    from kwire.security.client_settings import client_security

    try:
        return client_security(read_properties(path), SystemRandom(), SystemClock().wall_ms)
    except ConfigError as error:
        raise ClientError(f"{path}: {error}" if path not in str(error) else str(error)) from None


_MAYBE_TLS = "if it wants TLS, say so in a file of client properties (--command-config)"
_HTTP = "is an HTTP server, no Kafka broker; which port is the broker's?"


def _answers_http(host: str, port: int, timeout_s: float) -> bool:
    """Whether a server that a Kafka request did not move to an answer knows HTTP's: most wait
    for the end of a line."""
    try:
        with socket.create_connection((host, port), timeout_s) as probe:
            probe.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return probe.recv(4) == b"HTTP"
    except OSError:
        return False


def _other_protocol(head: bytes | bytearray) -> str:
    """What answers with these four bytes, in the place of a response's size."""
    if head.upper() in (b"HTTP", b"<!DO", b"<HTM"):
        return _HTTP
    if head[0] in (0x14, 0x15, 0x16) and head[1] == 3:
        return "speaks TLS: say how in a file of client properties (--command-config)"
    return f"is no Kafka broker: it answers with {bytes(head)!r}"


def _is_version_0_refusal(frame: bytearray) -> bool:
    """ApiVersions at a version that is too high is answered in version 0 with code 35."""
    return len(frame) >= 6 and int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION


class Client:
    """A cluster as seen from `bootstrap` (`host:port[,host:port]`); a context manager.

    `timeout_s` is for the connection and for each answer, in the place of DEFAULT_TIMEOUTS.
    `command_config` is a file of Kafka's client properties that say how to
    connect (TLS) and to log in (SASL).
    """

    def __init__(
        self,
        bootstrap: str,
        timeout_s: float | None = None,
        command_config: str | None = None,
    ) -> None:
        self._timeouts = (
            DEFAULT_TIMEOUTS if timeout_s is None else Timeouts(timeout_s, timeout_s, timeout_s)
        )
        self._bootstrap = [parse_address(part) for part in bootstrap.split(",") if part.strip()]
        self._security = None if command_config is None else _read_security(command_config)
        self._connections: dict[int, Connection] = {}
        self._nodes: dict[int, tuple[str, int]] = {}

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def connection(self, node_id: int = BOOTSTRAP) -> Connection:
        """The connection to a node, or to whichever bootstrap address answers first."""
        connection = self._connections.get(node_id)
        if connection is None:
            if node_id == BOOTSTRAP:
                connection = self._first_reachable()
            else:
                if node_id not in self._nodes:
                    self.metadata([])
                if node_id not in self._nodes:
                    raise ClientError(f"node {node_id} is not among the brokers")
                connection = self._connect(*self._nodes[node_id])
            self._connections[node_id] = connection
        return connection

    def _first_reachable(self) -> Connection:
        errors: list[str] = []
        for host, port in self._bootstrap:
            try:
                return self._connect(host, port)
            except ClientError as error:
                errors.append(str(error))
        raise ClientError("; ".join(errors) or "no bootstrap address")

    def _connect(self, host: str, port: int) -> Connection:
        tls = None if self._security is None else self._security.tls
        connection = Connection(host, port, self._timeouts, tls)
        try:
            connection.negotiate()
            if self._security is not None and self._security.login is not None:
                if self._security.tokens is not None:
                    self._security.tokens.renew()
                connection.log_in(self._security.login)
        except ClientError as error:
            connection.close()
            is_silent = isinstance(error, (Unanswered, Closed))
            if is_silent and _answers_http(
                host, port, min(HTTP_TIMEOUT_S, self._timeouts.connect_s)
            ):
                raise ClientError(f"{connection.address} {_HTTP}") from None
            if isinstance(error, Closed) and self._security is None:
                raise Closed(f"{error}; {_MAYBE_TLS}") from None
            raise
        return connection

    def call(
        self,
        request: Request[Response],
        node_id: int = BOOTSTRAP,
        version_max: int | None = None,
    ) -> Response:
        """Send `request` to a node (default: the bootstrap one); a lost connection is retried."""
        try:
            return self.connection(node_id).call(request, version_max)
        except (RequestFailed, Unanswered):
            raise
        except ClientError:
            lost = self._connections.pop(node_id, None)
            if lost is None:
                raise
            lost.close()
            return self.connection(node_id).call(request, version_max)

    def metadata(self, topics: list[str] | None, *, create: bool = False) -> m.MetadataResponse:
        """Of these topics (None: all); remembers the brokers."""
        request = m.MetadataRequest(allow_auto_topic_creation=create)
        request.topics = (
            None
            if topics is None
            else [m.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        response = self.call(request)
        self._nodes = {node.node_id: (node.host, node.port) for node in response.brokers}
        return response

    def topic(self, name: str, *, create: bool = False) -> Topic:
        """The metadata of one topic with a leader for every partition; waits for it a while."""
        deadline = time.monotonic() + RETRY_TIMEOUT_S
        while True:
            topic = self.metadata([name], create=create).topics[0]
            code = topic.error_code
            if code == ErrorCode.NONE:
                leaderless = [p for p in topic.partitions if p.error_code or p.leader_id < 0]
                if topic.partitions and not leaderless:
                    return topic
            elif not (create or code == ErrorCode.LEADER_NOT_AVAILABLE) or not is_retriable(code):
                raise RequestFailed(code, f"topic {name}")
            if time.monotonic() > deadline:
                raise RequestFailed(code or ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name}")
            time.sleep(RETRY_PAUSE_S)

    def coordinator(self, group: str) -> int:
        """The node id of a group's coordinator; waits while there is none."""
        deadline = time.monotonic() + RETRY_TIMEOUT_S
        while True:
            response = self.call(m.FindCoordinatorRequest(key=group, key_type=0), version_max=3)
            if response.error_code == ErrorCode.NONE:
                self._nodes[response.node_id] = (response.host, response.port)
                return response.node_id
            if not is_retriable(response.error_code) or time.monotonic() > deadline:
                raise RequestFailed(response.error_code, f"coordinator of {group}")
            time.sleep(RETRY_PAUSE_S)
