"""Requests to other nodes, on a simulated network: versions, failures, back-off, time-outs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.peer import CONTROLLER, PeerNetwork
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.testing.simulation import SimulatedHost, Simulation

PORT = 9092
FIND_COORDINATOR = 10


class Server:
    """A node that answers ApiVersions with `ranges` and FindCoordinator with what `answer` says."""

    def __init__(self, host: SimulatedHost, ranges: dict[int, tuple[int, int]]) -> None:
        self.host = host
        self.ranges = {18: (0, 4), **ranges}
        self.answer: Callable[[Any], Any] = lambda request: m.FindCoordinatorResponse(
            coordinators=[m.FindCoordinatorResponse.Coordinator(key=request.coordinator_keys[0])]
        )
        self.versions: list[int] = []
        self.connections: list[ServerConnection] = []
        self.serve()

    def serve(self) -> None:
        self.host.simulation.run(
            self.host, self.host.loop.create_server(lambda: ServerConnection(self), port=PORT)
        )


class ServerConnection(FrameConnection):
    def __init__(self, server: Server) -> None:
        super().__init__(BufferPool(), 1 << 20)
        self.server = server
        server.connections.append(self)

    def frame_received(self, body: memoryview) -> None:
        header = frame.parse_request_header(body)
        request, _ = m.request_class(header.api_key).decode_from(
            body, header.body_offset, header.api_version
        )
        if header.api_key == 18:
            shape = m.ApiVersionsResponse
            response = shape(
                api_keys=[
                    shape.ApiVersion(api_key=key, min_version=low, max_version=high)
                    for key, (low, high) in self.server.ranges.items()
                ]
            )
        else:
            self.server.versions.append(header.api_version)
            response = self.server.answer(request)
        if response is not None:
            parts = (
                [response]
                if isinstance(response, bytes)
                else frame.encode_response(
                    header.api_key, header.api_version, header.correlation_id, response
                )
            )
            self.write_frames(parts)


class World:
    """Node 1 asks node 2; nobody leads unless `controller_id` says so."""

    def __init__(self, ranges: dict[int, tuple[int, int]] | None = None) -> None:
        self.simulation = Simulation(5)
        self.client = self.simulation.host("client")
        self.server = Server(self.simulation.host("server"), ranges or {FIND_COORDINATOR: (0, 6)})
        self.addresses: dict[int, tuple[str, int]] = {2: ("server", PORT)}
        self.controller_id: int | None = None
        self.peers = PeerNetwork(
            self.client.loop,
            BufferPool(),
            self.client.random,
            resolve=self.addresses.get,
            controller=lambda: self.controller_id,
            request_timeout_ms=1000,
        )

    def ask(self, key: str = "k", node: int | str = 2, **options: Any) -> Pending[Any]:
        request = m.FindCoordinatorRequest(coordinator_keys=[key])
        return self.peers.send(node, FIND_COORDINATOR, request, **options)

    def settled(self, pending: Pending[Any]) -> Any:
        """Run until it is done: the response, or the error's code."""
        self.simulation.run_until(lambda: pending.done)
        error = pending.error()
        if error is None:
            return pending.result()
        assert isinstance(error, KafkaError)
        return error.code


def test_requests_and_answers_are_matched_over_one_connection() -> None:
    world = World()
    pendings = [world.ask(f"key {number}") for number in range(20)]
    answers = [world.settled(pending) for pending in pendings]
    assert [a.coordinators[0].key for a in answers] == [f"key {number}" for number in range(20)]
    assert len(world.server.connections) == 1


@pytest.mark.parametrize(
    ("theirs", "asked", "expected"), [((0, 6), None, 6), ((4, 5), None, 5), ((0, 99), None, 6),
                                      ((0, 6), 4, 4)]
)  # fmt: skip
def test_the_highest_common_version_or_the_one_asked_for(
    theirs: tuple[int, int], asked: int | None, expected: int
) -> None:
    world = World({FIND_COORDINATOR: theirs})
    world.settled(world.ask(version=asked))
    assert world.server.versions == [expected]


@pytest.mark.parametrize("ranges", [{FIND_COORDINATOR: (50, 60)}, {3: (0, 1)}])
def test_without_a_common_version_the_request_fails(ranges: dict[int, tuple[int, int]]) -> None:
    world = World(ranges)
    assert world.settled(world.ask()) == ErrorCode.UNSUPPORTED_VERSION


def test_a_node_without_an_address_fails_at_once_with_a_network_error() -> None:
    world = World()
    assert world.settled(world.ask(node=7)) == ErrorCode.NETWORK_EXCEPTION


def test_a_lost_connection_fails_what_was_on_it_and_the_next_request_opens_another() -> None:
    world = World()
    world.server.answer = lambda request: None
    first = world.ask()
    world.simulation.run_until(lambda: bool(world.server.versions))
    world.simulation.network.reset_connections("client", "server")
    assert world.settled(first) == ErrorCode.NETWORK_EXCEPTION
    world.server.answer = lambda request: m.FindCoordinatorResponse(coordinators=[])
    assert world.settled(world.ask()).coordinators == []
    assert len(world.server.connections) == 2


def test_no_answer_in_time() -> None:
    world = World()
    world.server.answer = lambda request: None
    pending = world.ask(timeout_ms=250)
    assert world.settled(pending) == ErrorCode.REQUEST_TIMED_OUT
    assert 0.25 <= world.simulation.now < 0.3


def test_back_off_doubles_up_to_its_bound() -> None:
    world = World()
    world.addresses[2] = ("server", 1)  # nobody listens there
    moments = []
    for _ in range(9):
        world.settled(world.ask())
        moments.append(world.simulation.now)
    waits = [later - earlier for earlier, later in pairwise(moments)]
    assert waits[0] < 0.1
    assert all(wait < 1.3 for wait in waits)
    assert waits[-1] >= 1.0
    world.addresses[2] = ("server", PORT)
    world.settled(world.ask())
    world.peers.disconnect(2)
    before = world.simulation.now
    world.settled(world.ask())
    assert world.simulation.now - before < 0.1, "a success forgets the failures"


@pytest.mark.parametrize(
    "answer",
    [
        b"\0\0\0\2\0\0",
        b"\0\0\0\x08\0\0\x30\x39\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x06\0\0\0\2\0\xff",
    ],
    ids=["too short", "of no request", "negative size", "malformed"],
)
def test_an_answer_that_cannot_be_read_ends_the_connection(answer: bytes) -> None:
    world = World()
    world.server.answer = lambda request: answer
    assert world.settled(world.ask()) == ErrorCode.NETWORK_EXCEPTION
    world.server.answer = lambda request: m.FindCoordinatorResponse(coordinators=[])
    assert world.settled(world.ask()).coordinators == []
    assert len(world.server.connections) == 2


def test_a_request_to_this_node_never_touches_the_network() -> None:
    world = World()
    asked: list[tuple[int, int, Any]] = []

    def here(api_key: int, version: int, request: Any) -> Pending[Any]:
        asked.append((api_key, version, request.coordinator_keys))
        return Pending.completed("answer")

    world.peers.bind_local(1, here)
    assert world.ask(node=1).result() == "answer"
    assert world.ask(node=1, version=4).result() == "answer"
    assert [entry[:2] for entry in asked] == [(FIND_COORDINATOR, 6), (FIND_COORDINATOR, 4)]
    assert world.server.connections == []


def test_the_controller_is_whoever_leads_now() -> None:
    world = World()
    assert world.settled(world.ask(node=CONTROLLER)) == ErrorCode.NOT_CONTROLLER
    world.controller_id = 2
    assert world.settled(world.ask(node=CONTROLLER)).coordinators[0].key == "k"


def test_closing_fails_everything_that_waits() -> None:
    world = World()
    world.server.answer = lambda request: None
    sent = world.ask()
    world.simulation.run_until(lambda: bool(world.server.versions))
    waiting = world.ask(node=2)
    world.peers.close()
    assert world.settled(sent) == ErrorCode.NETWORK_EXCEPTION
    assert world.settled(waiting) == ErrorCode.NETWORK_EXCEPTION
    assert world.settled(world.ask()) == ErrorCode.NETWORK_EXCEPTION


def test_a_restarted_node_is_found_again() -> None:
    world = World()
    world.settled(world.ask())
    host = world.simulation.host("server")
    host.crash(power_loss=False)
    host.restart()
    assert world.settled(world.ask()) == ErrorCode.NETWORK_EXCEPTION
    world.server.serve()
    assert world.settled(world.ask()).coordinators[0].key == "k"


def test_a_host_that_cannot_be_named_fails_as_one_that_is_not_there() -> None:
    """A label of it is too long for DNS, say; once it has another name it is reached."""
    world = World()
    wrap = world.peers.wrap

    def refuse(connection: FrameConnection, host: str) -> asyncio.BaseProtocol:
        raise ValueError("label too long")

    world.peers.wrap = refuse
    assert world.settled(world.ask()) == ErrorCode.NETWORK_EXCEPTION
    world.peers.wrap = wrap
    assert world.settled(world.ask()).coordinators[0].key == "k"
