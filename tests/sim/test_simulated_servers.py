"""An HTTP server and client of one's own, on asyncio's streams, between two processes."""

from __future__ import annotations

import asyncio
import os

import pytest

from kwire.testing.simulation import NothingLost, simulate, simulated_cluster, watch

aiokafka = pytest.importorskip("aiokafka")
from aiokafka.errors import KafkaError  # noqa: E402

EFFORT = int(os.environ.get("KWIRE_EFFORT", "1"))
PORT = 8080
LINE = b"0123456789abcde\n"


async def read_message(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The first line of a request or a reply, and its body."""
    first, *fields = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    lengths = [int(one.split(":")[1]) for one in fields if one.lower().startswith("content-length")]
    return first, await reader.readexactly(lengths[0] if lengths else 0)


def message(first: str, body: bytes = b"") -> bytes:
    return f"{first}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def serve(answer) -> None:
    """`answer(path, body)` gives status and body; a connection serves many requests."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, body = await read_message(reader)
                status, found = await answer(first.split()[1], body)
                writer.write(message(f"HTTP/1.1 {status}", found))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, port=PORT)
    async with server:
        await server.serve_forever()


class Http:
    """A client that keeps its connection and opens it anew after an error."""

    def __init__(self, host: str, timeout_s: float = 5.0) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes = b"") -> tuple[str, bytes]:
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(self._host, PORT)
                reader, writer = self._streams
                writer.write(message(f"POST {path} HTTP/1.1", body))
                await writer.drain()
                return await read_message(reader)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def test_requests_reach_a_process_by_its_name_until_it_is_killed_paused_or_cut_off() -> None:
    async def api() -> None:
        async def answer(path: str, body: bytes) -> tuple[str, bytes]:
            if path == "/slow":
                await asyncio.sleep(2)
            return "200 OK", body.upper()

        await serve(answer)

    async def error_of(call) -> str:
        try:
            await call
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            return type(error).__name__
        return "none"

    async def work(cluster, server, told: list[object]) -> None:
        client = Http("api")
        told.append(await client.post("/", b"a"))
        big = LINE * 64 * 1024  # a megabyte: more than either side may have on its way
        told.append(await client.post("/", big) == ("HTTP/1.1 200 OK", big.upper()))
        told.append(await error_of(Http("nobody").post("/")))
        slow = asyncio.create_task(error_of(client.post("/slow")))
        await asyncio.sleep(1)
        server.kill(restart_after_s=3.0)
        told.append(await slow)
        told.append(await error_of(client.post("/")))
        await asyncio.sleep(4)
        told.append(await client.post("/", b"anew"))
        server.pause()
        told.append(await error_of(client.post("/")))
        server.resume()
        told.append(await client.post("/", b"resumed"))
        cluster.partition("work", "api", one_way=True)
        told.append(await error_of(client.post("/")))
        cluster.heal()
        told.append(await client.post("/", b"healed"))
        server.kill(power_loss=True, restart_after_s=20.0)
        told.append(await error_of(client.post("/")))
        client.close()

    async def run() -> list[object]:
        told: list[object] = []
        async with simulated_cluster(1, minutes=0, brokers=1) as cluster:
            server = cluster.process(api)
            await asyncio.sleep(1)
            await cluster.process(work, cluster, server, told, restart_after_s=None).finished()
        return told

    assert asyncio.run(run()) == [
        ("HTTP/1.1 200 OK", b"A"),
        True,
        "gaierror",
        "ConnectionResetError",
        "ConnectionRefusedError",
        ("HTTP/1.1 200 OK", b"ANEW"),
        "TimeoutError",
        ("HTTP/1.1 200 OK", b"RESUMED"),
        "TimeoutError",
        ("HTTP/1.1 200 OK", b"HEALED"),
        "TimeoutError",
    ]


@simulate(seeds=2 * EFFORT, minutes=0.5, processes=1)
async def orders_by_http(cluster) -> None:
    await cluster.create_topic("orders", 2)
    answered, acknowledged = NothingLost(), NothingLost()
    numbers = cluster.operations(30)

    async def api() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, enable_idempotence=True
        )
        watch(producer, acknowledged)

        async def answer(path: str, body: bytes) -> tuple[str, bytes]:
            try:
                await producer.send_and_wait("orders", body)
            except KafkaError:  # a server that stops has closed its producer
                return "503 Service Unavailable", b""
            return "201 Created", b""

        async with producer:
            await serve(answer)

    async def shop() -> None:
        client = Http("api")
        for number in numbers:
            order = b"order-%d" % number
            while True:
                try:
                    status, _ = await client.post("/orders", order)
                    if status == "HTTP/1.1 201 Created":
                        break
                    assert status == "HTTP/1.1 503 Service Unavailable"
                except (OSError, asyncio.IncompleteReadError, TimeoutError):
                    pass
                await asyncio.sleep(0.5)
            answered.sent(order)
            await asyncio.sleep(0.5)
        client.close()

    cluster.process(api)
    await cluster.process(shop).finished()
    await cluster.faults_over()
    for check in (answered, acknowledged):
        await check.read(cluster, "orders")
        check.verify()


def test_orders_that_a_server_has_answered_are_in_the_topic() -> None:
    orders_by_http()
