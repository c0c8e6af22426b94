"""The command line's view of `kwire.client`: one call after the other, each until it is answered.

Here is what people at a terminal want beside it: what cannot be reached is said at once, and what
answers something else than a Kafka broker is named. Commands that ask no broker do not import the
client, nor asyncio for it (ADR 29).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kwire.client.address import shown
from kwire.client.errors import ClientError, Closed, Unanswered
from kwire.client.strangers import IS_HTTP
from kwire.protocol import messages as m
from kwire.protocol.structs import Message, Request

if TYPE_CHECKING:
    from asyncio import Task

    from kwire.client.admin import Admin
    from kwire.client.cluster import Cluster
    from kwire.client.connection import Connection
    from kwire.client.settings import ConnectionSettings

Response = TypeVar("Response", bound=Message)
T = TypeVar("T")
Topic: TypeAlias = "m.MetadataResponse.MetadataResponseTopic"

CLIENT_ID = "kwire-cli"
RETRY_TIMEOUT_S = 20.0
RETRY_PAUSE_S = 0.1
FIRST_TIMEOUT_S = 15.0
"""For the first answer of a connection, the versions: a busy broker knows them without looking
anything up."""
HTTP_TIMEOUT_S = 1.0
BOOTSTRAP = -1
"""Whichever node of the bootstrap addresses answers first."""

_MAYBE_TLS = "if it wants TLS, say so in a file of client properties (--command-config)"


def connection_settings(
    bootstrap: str, timeout_s: float | None, path: str | None
) -> ConnectionSettings:
    """How to connect; ClientError, one line, for a file that says what cannot be used."""
    from kwire.client.properties import settings_of
    from kwire.clock import SystemClock, SystemRandom
    from kwire.config.errors import ConfigError
    from kwire.config.properties import read_properties

    try:
        properties = {} if path is None else read_properties(path)
        settings = settings_of(properties, SystemRandom(), SystemClock().wall_ms, bootstrap)
    except (ConfigError, ClientError) as error:
        known = path is None or path in str(error)
        raise ClientError(str(error) if known else f"{path}: {error}") from None
    settings = settings._replace(
        client_id=CLIENT_ID, retry_timeout_s=RETRY_TIMEOUT_S, first_timeout_s=FIRST_TIMEOUT_S
    )
    if timeout_s is not None:
        settings = settings._replace(
            connect_timeout_s=timeout_s, first_timeout_s=timeout_s, request_timeout_s=timeout_s
        )
    return settings


def _answers_http(host: str, port: int, timeout_s: float) -> bool:
    """Whether a server that a Kafka request did not move to an answer knows HTTP's: most wait
    for the end of a line."""
    try:
        with socket.create_connection((host, port), timeout_s) as probe:
            probe.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return probe.recv(4) == b"HTTP"
    except OSError:
        return False


async def _ended(task: Task[T]) -> None:
    """Nothing is left of it; whatever it raises."""
    from asyncio import wait

    await wait([task])


class Client:
    """A cluster as seen from `bootstrap` (`host:port[,host:port]`); a context manager.

    `timeout_s` is for the connection and for each answer, in the place of what is usual.
    `command_config` is a file of Kafka's client properties that say how to connect (TLS) and to
    log in (SASL). ClientError is one line for the user.
    """

    def __init__(
        self,
        bootstrap: str,
        timeout_s: float | None = None,
        command_config: str | None = None,
    ) -> None:
        import asyncio

        from kwire.client.address import parse_addresses
        from kwire.client.cluster import Cluster

        self._settings = connection_settings(bootstrap, timeout_s, command_config)
        self._bootstrap = parse_addresses(bootstrap)
        self._is_plain = command_config is None
        self._connections: dict[int, Connection] = {}
        self._loop = asyncio.new_event_loop()
        self._cluster = Cluster(self._settings, loop=self._loop)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.run(self._cluster.close())
        finally:
            self._loop.close()

    def run(self, work: Coroutine[object, None, T]) -> T:
        """What a coroutine of `kwire.client` gives. An interrupt ends it."""
        task = self._loop.create_task(work)
        try:
            return self._loop.run_until_complete(task)
        finally:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(_ended(task))

    def ask(self, work: Callable[[Admin], Coroutine[object, None, T]]) -> T:
        """What the administration of the cluster gives, such as `lambda admin:
        admin.groups.listed()`. ClientError, at once where nobody can be reached."""
        from kwire.client.admin import Admin

        return self.drive(lambda cluster: work(Admin(cluster)))

    def drive(self, work: Callable[[Cluster], Coroutine[object, None, T]]) -> T:
        """The same of the cluster itself, for work of many calls."""
        self.connection()
        return self.run(work(self._cluster))

    def connection(self, node_id: int = BOOTSTRAP) -> Connection:
        """The connection to a node, or to whichever bootstrap address answers first."""
        connection = self._connections.get(node_id)
        if connection is None or connection.is_closed:
            if node_id == BOOTSTRAP:
                connection = self._first_reachable()
            else:
                if not self._cluster.knows(node_id):
                    self.metadata([])
                connection = self._connected(*self._cluster.address_of(node_id))
            self._connections[node_id] = connection
        return connection

    def _first_reachable(self) -> Connection:
        errors: list[str] = []
        for host, port in self._bootstrap:
            try:
                return self._connected(host, port)
            except ClientError as error:
                errors.append(str(error))
                last = error
        if len(errors) == 1:
            raise last
        raise ClientError("; ".join(errors))

    def _connected(self, host: str, port: int) -> Connection:
        try:
            return self.run(self._cluster.connect(host, port))
        except (Unanswered, Closed) as error:
            timeout_s = min(HTTP_TIMEOUT_S, self._settings.connect_timeout_s)
            if _answers_http(host, port, timeout_s):
                raise ClientError(f"{shown(host, port)} {IS_HTTP}") from None
            if isinstance(error, Closed) and self._is_plain:
                raise Closed(f"{error}; {_MAYBE_TLS}") from None
            raise

    def call(
        self,
        request: Request[Response],
        node_id: int = BOOTSTRAP,
        version_max: int | None = None,
    ) -> Response:
        """Send `request` to a node (default: the bootstrap one); a lost connection is retried."""
        is_old = node_id in self._connections
        try:
            return self.run(self.connection(node_id).call(request, version_max))
        except Closed:
            if not is_old:
                raise
        return self.run(self.connection(node_id).call(request, version_max))

    def metadata(self, topics: list[str] | None, *, create: bool = False) -> m.MetadataResponse:
        """Of these topics (None: all); remembers the brokers."""
        request = m.MetadataRequest(allow_auto_topic_creation=create)
        request.topics = (
            None
            if topics is None
            else [m.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        response = self.call(request)
        self._cluster.learn(response)
        return response

    def topic(self, name: str, *, create: bool = False) -> Topic:
        """The metadata of one topic with a leader for every partition; waits for it a while."""
        self.connection()
        self._cluster.forget_topic(name)
        return self.run(self._cluster.topic(name, create=create))

    def coordinator(self, group: str) -> int:
        """The node id of a group's coordinator; waits while there is none."""
        from kwire.client.cluster import Coordinator

        self.connection()
        self._cluster.forget_coordinator(Coordinator.GROUP, group)
        return self.run(self._cluster.coordinator(Coordinator.GROUP, group))
