"""The simulated world itself: time, order, streams, crashes, and that one seed is one history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kwire import testing
from kwire.testing import simulation
from kwire.testing.simulation import SimulatedHost, Simulation
from kwire.testing.simulation.network import POISON


class Echo(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


async def talk(host: SimulatedHost, port: int, rounds: int) -> list[bytes]:
    reader, writer = await asyncio.open_connection("server", port)
    answers = []
    for number in range(rounds):
        message = f"message {number}".encode()
        writer.write(message)
        answers.append(await reader.readexactly(len(message)))
        host.simulation.record(host.name, answers[-1].decode())
        await asyncio.sleep(0.01 * host.random.below(10))
    writer.close()
    await writer.wait_closed()
    return answers


def history(seed: int) -> Simulation:
    simulation = Simulation(seed)
    server = simulation.host("server")
    simulation.run(server, server.loop.create_server(Echo, port=9092))
    clients = [simulation.host(f"client-{number}") for number in range(3)]
    tasks = [client.loop.create_task(talk(client, 9092, 20)) for client in clients]
    simulation.run_until(lambda: all(task.done() for task in tasks))
    for task in tasks:
        assert task.result() == [f"message {number}".encode() for number in range(20)]
    return simulation


def test_one_seed_gives_one_history_and_another_seed_another() -> None:
    assert history(7).transcript == history(7).transcript
    assert history(7).fingerprint() != history(8).fingerprint()


def test_time_passes_only_in_the_simulation() -> None:
    simulation = Simulation(1)
    host = simulation.host("a")
    simulation.run(host, asyncio.sleep(3000))
    assert 3000 <= simulation.now < 3001
    assert host.clock.wall_ms() - simulation.host("b", clock_skew_ms=-500).clock.wall_ms() == 500


def test_a_blocked_direction_holds_bytes_back_until_it_heals() -> None:
    simulation = Simulation(3)
    server, client = simulation.host("server"), simulation.host("client")
    simulation.run(server, server.loop.create_server(Echo, port=1))

    async def connected() -> tuple[Any, Any]:
        return await asyncio.open_connection("server", 1)

    reader, writer = simulation.run(client, connected())
    simulation.network.block("server", "client")
    writer.write(b"hello")
    answer = client.loop.create_task(reader.readexactly(5))
    simulation.run_for(5)
    assert not answer.done()
    simulation.network.heal()
    simulation.run_until(answer.done)
    assert answer.result() == b"hello"
    writer.close()
    simulation.run_for(1)


def test_a_crashed_host_runs_nothing_more_and_a_killed_one_resets_its_peers() -> None:
    simulation = Simulation(4)
    server, client = simulation.host("server"), simulation.host("client")
    ticks: list[float] = []

    def tick() -> None:
        ticks.append(simulation.now)
        server.loop.call_later(1, tick)

    server.loop.call_soon(tick)
    simulation.run(server, server.loop.create_server(Echo, port=1))

    async def wait_for_end() -> bytes:
        reader, writer = await asyncio.open_connection("server", 1)
        try:
            return await reader.read()
        finally:
            writer.close()

    waiting = client.loop.create_task(wait_for_end())
    simulation.run_for(5)
    server.crash(power_loss=False)
    simulation.run_until(waiting.done)
    with pytest.raises(ConnectionResetError):
        waiting.result()
    seen = len(ticks)
    simulation.run_for(10)
    assert len(ticks) == seen


class KeepsAView(asyncio.BufferedProtocol):
    """Breaks the memory seam: it keeps a view of a buffer that it offers again."""

    def __init__(self) -> None:
        self.buffer = bytearray(1024)
        self.kept: list[memoryview] = []

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.kept.append(memoryview(self.buffer)[:nbytes])


def test_a_view_kept_beyond_buffer_updated_turns_to_poison() -> None:
    simulation = Simulation(5)
    server, client = simulation.host("server"), simulation.host("client")
    made: list[KeepsAView] = []

    def factory() -> KeepsAView:
        made.append(KeepsAView())
        return made[-1]

    simulation.run(server, server.loop.create_server(factory, port=1))

    async def send() -> None:
        _, writer = await asyncio.open_connection("server", 1)
        writer.write(b"x" * 100)
        writer.close()

    simulation.run(client, send())
    simulation.run_for(1)
    assert bytes(made[0].kept[0]) == POISON * len(made[0].kept[0])


def test_executor_jobs_take_effect_between_submit_and_completion_in_order() -> None:
    simulation = Simulation(6)
    host = simulation.host("a")
    executor = object()
    effects: list[tuple[int, float]] = []

    def job(number: int) -> int:
        effects.append((number, simulation.now))
        return number

    async def submit() -> list[int]:
        loop = asyncio.get_running_loop()
        started = loop.time()
        results = await asyncio.gather(
            *(loop.run_in_executor(executor, job, number) for number in range(10))  # type: ignore[arg-type]
        )
        assert all(started <= at <= loop.time() for _, at in effects)
        return results

    assert simulation.run(host, submit()) == list(range(10))
    assert [number for number, _ in effects] == list(range(10))


def test_a_closed_connection_is_lost_at_once_also_to_a_peer_that_is_gone() -> None:
    simulation = Simulation(11)
    server, client = simulation.host("server"), simulation.host("client")
    lost: list[str] = []

    class Quiet(asyncio.Protocol):
        def __init__(self, name: str) -> None:
            self.name = name

        def connection_lost(self, exc: Exception | None) -> None:
            lost.append(self.name)

    simulation.run(server, server.loop.create_server(lambda: Quiet("server"), port=1))
    transport, _ = simulation.run(
        client, client.loop.create_connection(lambda: Quiet("client"), "server", 1)
    )
    simulation.run_for(1)
    server.crash(power_loss=True)
    simulation.run_for(1)
    transport.close()
    simulation.run_for(1)
    assert lost == ["client"]


def test_a_frozen_process_runs_nothing_and_catches_up() -> None:
    simulation = Simulation(12)
    host = simulation.host("a")
    ticks: list[float] = []

    async def tick() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            ticks.append(simulation.now)

    task = host.loop.create_task(tick())
    simulation.run_for(1.5)
    host.freeze()
    simulation.run_for(10)
    assert len(ticks) == 1
    host.thaw()
    simulation.run_until(task.done)
    assert ticks[1] == simulation.now - 1
    assert ticks[1] >= 11.5


def test_a_blocked_port_holds_back_that_port_only() -> None:
    simulation = Simulation(13)
    server, client = simulation.host("server"), simulation.host("client")

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        writer.close()

    async def ask(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("server", port)
        writer.write(b"x")
        found = await reader.readexactly(1)
        writer.close()
        return found

    async def serve() -> None:
        await asyncio.start_server(echo, port=1)
        await asyncio.start_server(echo, port=2)

    simulation.run(server, serve())
    simulation.network.block("client", "server", 1)
    held = client.loop.create_task(ask(1))
    assert simulation.run(client, ask(2), limit_s=1) == b"x"
    assert not held.done()
    simulation.network.heal("client", "server", 1)
    simulation.run_until(held.done, limit_s=1)


def test_nothing_of_two_connections_arrives_at_one_instant_where_they_are_apart() -> None:
    """Which of two roads of a broker had been taken decided which came first otherwise."""

    def instants(apart_s: float) -> list[float]:
        simulation = Simulation(3)
        simulation.uniform = lambda low, high: (low + high) / 2  # type: ignore[method-assign]
        server, client = simulation.host("server"), simulation.host("client")
        simulation.network.links.slow("client", "server", 0.01, 0.01)
        simulation.network.links.apart_s = apart_s
        arrived: list[float] = []

        class Noting(asyncio.Protocol):
            def data_received(self, data: bytes) -> None:
                arrived.append(simulation.now)

        async def talk() -> None:
            writers = [(await asyncio.open_connection("server", 1))[1] for _ in range(3)]
            for writer in writers:
                writer.write(b"x")
            await asyncio.sleep(0.1)
            for writer in writers:
                writer.close()

        simulation.run(server, server.loop.create_server(Noting, port=1))
        simulation.run(client, talk())
        return arrived

    assert len(set(instants(0.0))) == 1
    assert len(set(instants(1e-6))) == 3


def test_what_tests_of_an_application_use_is_found_beside_brokers() -> None:
    for name in ("simulate", "simulated_cluster", "watch", "NothingLost", "ExactlyOnce"):
        assert getattr(testing, name) is getattr(simulation, name)


def test_timers_are_due_while_a_program_spins() -> None:
    """`await asyncio.sleep(0)` until something comes kept the answer from coming, for ever."""

    async def spin() -> int:
        async with testing.simulated_cluster(seed=1, minutes=0, brokers=1) as cluster:

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                writer.write(await reader.readexactly(1))

            async def server() -> None:
                await (await asyncio.start_server(serve, port=80)).serve_forever()

            cluster.process(server)
            await asyncio.sleep(1)
            reader, writer = await asyncio.open_connection("server", 80)
            writer.write(b"a")
            answer = asyncio.create_task(reader.readexactly(1))
            turns = 0
            while not answer.done():
                turns += 1
                await asyncio.sleep(0)
            writer.close()
            return turns

    assert asyncio.run(spin()) < 100_000
