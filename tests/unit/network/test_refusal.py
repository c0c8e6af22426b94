"""Who is taken for gone: only a process whose machine refuses a connection to it."""

from __future__ import annotations

import asyncio
import socket

import pytest

from kwire.network.refusal import Outcome, RefusedDials, dial
from kwire.testing.simulation import SimulatedHost, Simulation

PORT = 9092


class World:
    """A node looks at a server; `gone` counts how often the server was said to be gone."""

    def __init__(self, seed: int = 1) -> None:
        self.simulation = Simulation(seed)
        self.node = self.simulation.host("node")
        self.server = self.simulation.host("server")
        self.gone = 0
        self.silent = True
        self.listen(self.server)
        self.dials = RefusedDials(self.node.loop)

    def listen(self, host: SimulatedHost) -> None:
        self.simulation.run(host, host.loop.create_server(asyncio.Protocol, port=PORT))

    def _gone(self) -> None:
        self.gone += 1

    def suspect(self) -> None:
        self.dials.suspect(2, ("server", PORT), lambda: self.silent, self._gone)

    def look(self) -> int:
        """Suspect it, and wait until nothing is looked at any more."""
        self.suspect()
        self.simulation.run_until(lambda: not self.dials._tasks)
        return self.gone

    def dial(self) -> Outcome:
        return self.simulation.run(self.node, dial(self.node.loop, ("server", PORT)))


def test_a_killed_process_is_gone() -> None:
    world = World()
    assert world.dial() is Outcome.ACCEPTED
    world.server.crash(power_loss=False)
    assert world.dial() is Outcome.REFUSED
    assert world.look() == 1


def test_a_machine_without_power_is_not_known_to_be_gone() -> None:
    world = World()
    world.server.crash(power_loss=True)
    assert world.dial() is Outcome.UNKNOWN
    assert world.look() == 0


def test_a_blocked_network_says_nothing() -> None:
    world = World()
    world.server.crash(power_loss=False)
    world.simulation.network.block("node", "server")
    assert world.look() == 0


def test_a_process_that_accepts_lives_and_so_does_one_that_is_stopped() -> None:
    world = World()
    assert world.look() == 0
    world.server.freeze()
    assert world.look() == 0


def test_a_process_that_is_ending_may_still_accept_at_first() -> None:
    world = World()
    world.suspect()
    world.node.loop.call_later(0.02, lambda: world.server.crash(power_loss=False))
    world.simulation.run_until(lambda: not world.dials._tasks)
    assert world.gone == 1


def test_a_process_that_was_heard_of_meanwhile_is_not_gone() -> None:
    world = World()
    world.server.crash(power_loss=False)
    world.suspect()
    world.silent = False
    world.simulation.run_until(lambda: not world.dials._tasks)
    assert world.gone == 0


def test_one_dial_at_a_time_and_the_newest_suspicion_is_looked_at() -> None:
    world = World()
    for _ in range(20):
        world.suspect()
    assert len(world.dials._tasks) == 1
    world.simulation.run_until(lambda: not world.dials._tasks)
    assert world.gone == 0
    world.server.crash(power_loss=False)
    for _ in range(20):
        world.suspect()
    world.simulation.run_until(lambda: not world.dials._tasks)
    assert 1 <= world.gone <= 2


def test_nothing_is_dialled_after_the_end() -> None:
    world = World()
    world.server.crash(power_loss=False)
    world.suspect()
    world.dials.close()
    world.suspect()
    world.simulation.run_for(1)
    assert not world.dials._tasks
    assert world.gone == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_real_sockets(host: str) -> None:
    """`localhost` may be two addresses: all must refuse."""

    async def look(port: int) -> Outcome:
        return await dial(asyncio.get_running_loop(), (host, port))

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert asyncio.run(look(port)) is Outcome.REFUSED, "bound, and nobody listens"
        taken.listen()
        assert asyncio.run(look(port)) is Outcome.ACCEPTED
    assert asyncio.run(look(port)) is Outcome.REFUSED


def test_a_name_that_nobody_knows_refuses_nothing() -> None:
    async def look() -> Outcome:
        return await dial(asyncio.get_running_loop(), ("nobody.invalid", PORT))

    assert asyncio.run(look()) is Outcome.UNKNOWN
