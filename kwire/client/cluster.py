"""A cluster as a client sees it: connections by node, and who leads or coordinates what.

What is known of the cluster is asked again when it is old, and when an answer says that it has
changed. A node that cannot be reached is not tried again before its back-off is over; others are.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Iterable
from types import TracebackType
from typing import TypeAlias, TypeVar

from kwire.client.address import parse_addresses, shown
from kwire.client.connection import Connection, open_connection
from kwire.client.errors import ClientError, RequestFailed, Unreachable, check
from kwire.client.retries import Backoff, retrying
from kwire.client.settings import ConnectionSettings
from kwire.clock import Clock, Random, SystemClock, SystemRandom
from kwire.network.buffers import BufferPool
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, is_retriable
from kwire.protocol.structs import Message, Request

Response = TypeVar("Response", bound=Message)
T = TypeVar("T")
Topic: TypeAlias = "m.MetadataResponse.MetadataResponseTopic"

ANY = -1
"""Whichever node answers: a bootstrap address first, then any that is known."""
COORDINATOR_VERSION_MAX = 3
"""Of FindCoordinator: one key each."""


class Coordinator(enum.IntEnum):
    """What is coordinated, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1


class _Node:
    """One broker's connection, and its failures."""

    def __init__(self, backoff: Backoff) -> None:
        self.connection: Connection | None = None
        self.opening: asyncio.Task[Connection] | None = None
        self.backoff = backoff
        self.retry_at_s = 0.0
        self.failure = ""
        """Why the last attempt failed: who asks before the next one is told."""


class Cluster:
    """See the module; an asynchronous context manager. `loop` is the one that runs by default."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        random: Random | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self.loop = loop or asyncio.get_running_loop()
        self.random: Random = random or SystemRandom()
        self.clock: Clock = clock or SystemClock()
        self._bootstrap = parse_addresses(settings.bootstrap)
        self._pool = BufferPool()
        self._nodes: dict[tuple[str, int], _Node] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._topics: dict[str, tuple[float, Topic]] = {}
        self._names: dict[bytes, str] = {}
        self._coordinators: dict[tuple[Coordinator, str], int] = {}
        self._is_closed = False

    async def __aenter__(self) -> Cluster:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def another(self) -> Cluster:
        """The same cluster over connections of their own."""
        return Cluster(self.settings, loop=self.loop, random=self.random, clock=self.clock)

    async def close(self) -> None:
        """End all connections."""
        self._is_closed = True
        opening = [node.opening for node in self._nodes.values() if node.opening is not None]
        for task in opening:
            task.cancel()
        for node in self._nodes.values():
            if node.connection is not None:
                node.connection.close()
        self._nodes.clear()
        await asyncio.gather(*opening, return_exceptions=True)
        await asyncio.sleep(0)  # transports end in a turn of the loop

    # -- connections

    def leave_connections(self) -> None:
        """End those that are open; what waits for an answer fails by Closed, and what is asked from
        here on goes over new ones."""
        for node in self._nodes.values():
            if node.connection is not None:
                node.connection.close()

    async def connection(self, node_id: int = ANY) -> Connection:
        """The open connection to a node; ClientError."""
        if self._is_closed:
            raise ClientError("the client is closed")
        if node_id != ANY:
            if not self.knows(node_id):
                await self.metadata([])
            return await self._connected(self.address_of(node_id))
        for address in self._known():
            node = self._nodes.get(address)
            if node is not None and node.connection is not None and not node.connection.is_closed:
                return node.connection
        errors: list[str] = []
        for address in self._known():
            try:
                return await self._connected(address)
            except ClientError as error:
                if not error.is_retriable:
                    raise
                errors.append(str(error))
        raise Unreachable("; ".join(errors))

    async def connect(self, host: str, port: int) -> Connection:
        """The open connection to an address; ClientError."""
        if self._is_closed:
            raise ClientError("the client is closed")
        return await self._connected((host, port))

    def knows(self, node_id: int) -> bool:
        """Whether a node's address is known."""
        return node_id in self._addresses

    def address_of(self, node_id: int) -> tuple[str, int]:
        """Where a node is reached, as it was last heard; Unreachable."""
        if node_id not in self._addresses:
            raise Unreachable(f"node {node_id} is not among the brokers")
        return self._addresses[node_id]

    def _known(self) -> Iterable[tuple[str, int]]:
        return dict.fromkeys([*self._bootstrap, *self._addresses.values()])

    async def _connected(self, address: tuple[str, int]) -> Connection:
        node = self._nodes.get(address)
        if node is None:
            settings = self.settings
            backoff = Backoff(settings.backoff_min_s, settings.backoff_max_s, self.random)
            node = self._nodes[address] = _Node(backoff)
        if node.connection is not None and not node.connection.is_closed:
            return node.connection
        if self.loop.time() < node.retry_at_s:
            raise Unreachable(node.failure or f"{shown(*address)}: tried a moment ago")
        if node.opening is None:
            node.opening = self.loop.create_task(
                open_connection(self.loop, self._pool, self.settings, *address)
            )
            node.opening.add_done_callback(lambda done: self._opened(node, done))
        return await asyncio.shield(node.opening)

    def _opened(self, node: _Node, done: asyncio.Task[Connection]) -> None:
        node.opening = None
        error = None if done.cancelled() else done.exception()
        node.failure = "" if error is None else str(error)
        if not done.cancelled() and error is None:
            node.backoff.reset()
            node.connection = done.result()
            if self._is_closed:
                node.connection.close()
        else:
            node.retry_at_s = self.loop.time() + node.backoff.next_s()

    async def call(
        self,
        request: Request[Response],
        node_id: int = ANY,
        *,
        version_max: int | None = None,
        timeout_s: float | None = None,
    ) -> Response:
        """Ask a node once; ClientError. A connection that ends with the request on its way is an
        error: only the caller knows whether the request may be sent twice."""
        connection = await self.connection(node_id)
        return await connection.call(request, version_max, timeout_s)

    async def retrying(self, work: Callable[[], Awaitable[T]], timeout_s: float | None = None) -> T:
        """What `work` gives, called again while that may help: see `retries.retrying`."""
        settings = self.settings
        backoff = Backoff(settings.backoff_min_s, settings.backoff_max_s, self.random)
        wait_s = settings.retry_timeout_s if timeout_s is None else timeout_s
        return await retrying(self.loop, work, backoff, wait_s)

    # -- metadata

    async def metadata(
        self, topics: list[str] | None, *, create: bool = False
    ) -> m.MetadataResponse:
        """Of these topics (None: all), asked now, while nobody answers again and again."""
        request = m.MetadataRequest(allow_auto_topic_creation=create)
        request.topics = (
            None
            if topics is None
            else [m.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        )
        response = await self.retrying(lambda: self.call(request))
        self.learn(response)
        return response

    def learn(self, response: m.MetadataResponse) -> None:
        """Keep what an answer says of brokers and topics."""
        self._addresses = {node.node_id: (node.host, node.port) for node in response.brokers}
        now_s = self.loop.time()
        for topic in response.topics:
            if topic.name is not None and topic.error_code == ErrorCode.NONE:
                self._topics[topic.name] = now_s, topic
                self._names[topic.topic_id] = topic.name

    async def topic(
        self,
        name: str,
        *,
        create: bool = False,
        is_new: bool = False,
        partition: int = -1,
        timeout_s: float | None = None,
    ) -> Topic:
        """The metadata of a topic with a leader for every partition; waits for it a while.

        RequestFailed UNKNOWN_TOPIC_OR_PARTITION where there is none, at once; with `is_new` the
        broker that is asked may not have heard of it yet. One that is not known to have
        `partition` is asked anew: it may have grown.
        """
        known = self._topics.get(name)
        if (
            known is not None
            and partition < len(known[1].partitions)
            and self.loop.time() - known[0] < self.settings.metadata_max_age_s
        ):
            return known[1]
        return await self.retrying(
            lambda: self._asked_topic(name, create, is_new or create), timeout_s
        )

    async def _asked_topic(self, name: str, create: bool, is_awaited: bool) -> Topic:
        response = await self.metadata([name], create=create)
        topic = response.topics[0]
        code = topic.error_code
        if code == ErrorCode.NONE:
            leaderless = [one for one in topic.partitions if one.error_code or one.leader_id < 0]
            if topic.partitions and not leaderless:
                return topic
            self.forget_topic(name)
            raise _NotYet(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name}")
        if code == ErrorCode.LEADER_NOT_AVAILABLE or (is_awaited and is_retriable(code)):
            raise _NotYet(code, f"topic {name}")
        raise _Final(code, f"topic {name}")

    def forget_topic(self, name: str) -> None:
        """What is known of it is not true any more."""
        known = self._topics.pop(name, None)
        if known is not None:
            self._names.pop(known[1].topic_id, None)

    async def leader(self, name: str, partition: int) -> int:
        """The node that leads a partition; ClientError where there is no such."""
        topic = await self.topic(name, partition=partition)
        for entry in topic.partitions:
            if entry.partition_index == partition:
                return entry.leader_id
        raise ClientError(f"topic {name} has no partition {partition}")

    async def name_of(self, topic_id: bytes) -> str:
        """The name of a topic that an answer gives by its id; RequestFailed UNKNOWN_TOPIC_ID."""
        name = self._names.get(topic_id)
        if name is None:
            await self.metadata(None)
            name = self._names.get(topic_id)
        if name is None:
            raise RequestFailed(ErrorCode.UNKNOWN_TOPIC_ID, "topic")
        return name

    # -- coordinators

    async def coordinator(self, kind: Coordinator, key: str) -> int:
        """The node that coordinates a group or a transactional id; waits while there is none."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        return await self.retrying(lambda: self._found_coordinator(kind, key))

    async def _found_coordinator(self, kind: Coordinator, key: str) -> int:
        request = m.FindCoordinatorRequest(key=key, key_type=int(kind))
        response = await self.call(request, version_max=COORDINATOR_VERSION_MAX)
        check(response.error_code, f"coordinator of {key}", response.error_message)
        self._addresses[response.node_id] = (response.host, response.port)
        self._coordinators[kind, key] = response.node_id
        return response.node_id

    def forget_coordinator(self, kind: Coordinator, key: str) -> None:
        """It has moved, or does not answer."""
        self._coordinators.pop((kind, key), None)

    async def ask_coordinator(
        self,
        kind: Coordinator,
        key: str,
        ask: Callable[[int], Awaitable[T]],
        timeout_s: float | None = None,
    ) -> T:
        """What `ask(node)` gives of the coordinator; it is asked again, of whoever coordinates
        then, while its error is retriable."""

        async def once() -> T:
            node_id = await self.coordinator(kind, key)
            try:
                return await ask(node_id)
            except ClientError as error:
                if error.is_retriable:
                    self.forget_coordinator(kind, key)
                raise

        return await self.retrying(once, timeout_s)


class _NotYet(RequestFailed):
    """It may be there in a moment, whatever the code says."""

    @property
    def is_retriable(self) -> bool:
        return True


class _Final(RequestFailed):
    """It is not there, whatever the code says of other requests."""

    @property
    def is_retriable(self) -> bool:
        return False
