"""Logging in at another node, on a simulated network: once, again before the session ends, and
what becomes of requests meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.login import MakeAuthentication
from kwire.network.peer import PeerNetwork
from kwire.pending import Pending
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.security.sasl.client import PlainClient, SaslClient, failed
from kwire.security.sasl.plain import Passwords, PlainServer
from kwire.security.sasl.server import SaslServer, SaslSettings
from kwire.testing.simulation import SimulatedHost, Simulation

PORT = 9092
FIND_COORDINATOR = 10
RANGES = {10: (0, 6), 17: (0, 1), 18: (0, 4), 36: (0, 2)}
SESSION_MS = 2000


class Server:
    """A node whose one user is `node`; anybody else is refused."""

    def __init__(self, host: SimulatedHost, session_ms: int) -> None:
        self.host = host
        mechanisms = {"PLAIN": partial(PlainServer, Passwords({"node": "hunter2"}))}
        self.settings = SaslSettings(mechanisms, {"PLAIN": session_ms})
        self.is_silent = False
        self.unanswered = 0
        self.connections: list[ServerConnection] = []
        host.simulation.run(
            host, host.loop.create_server(lambda: ServerConnection(self), port=PORT)
        )


class ServerConnection(FrameConnection):
    """Serves as a broker does: what comes after the end of a session ends the connection."""

    def __init__(self, server: Server) -> None:
        super().__init__(BufferPool(), 1 << 20)
        self.sasl = SaslServer(server.settings, lambda *_: None)
        self.server = server
        self.logins = 0
        server.connections.append(self)

    def frame_received(self, body: memoryview) -> None:
        if self.server.is_silent:
            self.server.unanswered += 1
            return
        now_ms = int(self.server.host.loop.time() * 1000)
        header = frame.parse_request_header(body)
        sasl = self.sasl
        if sasl.is_complete and not sasl.begins_anew(header.api_key):
            if sasl.is_expired(now_ms):
                self.transport.abort()
            else:
                self._answer(header, m.FindCoordinatorResponse())
            return
        step = sasl.receive(body, now_ms)
        if step.executes:
            version = m.ApiVersionsResponse.ApiVersion
            keys = [
                version(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in RANGES.items()
            ]
            self._answer(header, m.ApiVersionsResponse(api_keys=keys))
            return
        self.logins += step.identity is not None
        self.write_frames(step.reply)
        if step.failure is not None:
            self.transport.close()

    def _answer(self, header: frame.RequestHeader, response: Any) -> None:
        self.write_frames(
            frame.encode_response(
                header.api_key, header.api_version, header.correlation_id, response
            )
        )


def plain(password: str) -> MakeAuthentication:
    return lambda: SaslClient(PlainClient("node", password))


class World:
    """Node 1 asks node 2."""

    def __init__(self, authentication: MakeAuthentication, session_ms: int = 0) -> None:
        self.simulation = Simulation(7)
        client = self.simulation.host("client")
        self.server = Server(self.simulation.host("server"), session_ms)
        self.peers = PeerNetwork(
            client.loop,
            BufferPool(),
            client.random,
            resolve=lambda node: ("server", PORT),
            controller=lambda: None,
            authentication=authentication,
        )
        self.loop = client.loop

    def ask(self) -> Pending[Any]:
        request = m.FindCoordinatorRequest(coordinator_keys=["k"])
        return self.peers.send(2, FIND_COORDINATOR, request)

    def code(self, pending: Pending[Any]) -> int:
        self.simulation.run_until(lambda: pending.done)
        error = pending.error()
        return int(error.code) if isinstance(error, KafkaError) else 0


def test_requests_go_out_when_the_login_is_done() -> None:
    world = World(plain("hunter2"))
    assert [world.code(world.ask()) for _ in range(3)] == [0, 0, 0]
    assert [each.logins for each in world.server.connections] == [1]
    assert world.peers.is_connected(2)


def test_a_session_is_renewed_before_it_ends() -> None:
    world = World(plain("hunter2"), SESSION_MS)
    end_s = world.loop.time() + 10 * SESSION_MS / 1000
    while world.loop.time() < end_s:
        assert world.code(world.ask()) == 0
        pause = world.loop.time() + 0.1
        world.simulation.run_until(lambda until=pause: world.loop.time() >= until)
    (connection,) = world.server.connections
    assert connection.logins >= 10


def test_a_node_that_is_lost_while_a_session_is_renewed_is_told_of() -> None:
    world = World(plain("hunter2"), SESSION_MS)
    lost: list[int] = []
    world.peers.on_lost = lost.append
    assert world.code(world.ask()) == 0
    world.server.is_silent = True
    world.simulation.run_until(lambda: world.server.unanswered > 0)
    assert world.peers.is_connected(2)
    world.server.connections[0].transport.abort()
    world.simulation.run_until(lambda: not world.peers.is_connected(2))
    assert lost == [2]


def test_who_is_refused_asks_nothing_and_says_why() -> None:
    world = World(plain("hunter3"))
    pending = world.ask()
    assert world.code(pending) == ErrorCode.NETWORK_EXCEPTION
    assert "Invalid username or password" in str(pending.error())
    assert "hunter" not in str(pending.error())
    assert not world.peers.is_connected(2)


def test_without_a_user_nothing_is_sent() -> None:
    def nothing() -> SaslClient:
        raise failed("there is nothing to log in with")

    world = World(nothing)
    pending = world.ask()
    assert world.code(pending) == ErrorCode.NETWORK_EXCEPTION
    assert "nothing to log in with" in str(pending.error())


def test_the_next_request_tries_again() -> None:
    passwords = iter(("wrong", "wrong", "hunter2"))
    world = World(lambda: plain(next(passwords))())
    codes = [world.code(world.ask()) for _ in range(3)]
    assert codes == [ErrorCode.NETWORK_EXCEPTION, ErrorCode.NETWORK_EXCEPTION, 0]
