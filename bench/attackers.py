"""What attackers cost others: round trips of two clients, one with TLS, beside those who do harm.

    python bench/attackers.py [--rounds N] [--seconds S]

    half-open   2,000 TLS handshakes that were begun and never end
    many        10,000 connections from one address that say nothing
    opening     connections from one address, opened and closed as fast as one process can
    garbage     the same, with bytes on the TLS port that are no handshake

Each is measured between two measurements without it; p50 and p99 in ms, and their ratio to the
mean of both.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import multiprocessing.synchronize
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kwire.testing.cluster import Broker, free_ports
from tests.support.certificates import Authority

RATE = 500
VERSIONS = bytes.fromhex("000000110012000000000001000762797374616e64")
HELLO = bytes.fromhex("16030100c8010000c40303")  # the first bytes of a ClientHello
HALF_OPEN, MANY = 2_000, 10_000

Event = multiprocessing.synchronize.Event


def hold(port: int, count: int, data: bytes, ready: Event, end: Event) -> None:
    held = []
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port))
        if data:
            one.sendall(data)
        held.append(one)
    ready.set()
    end.wait()


def open_and_close(port: int, count: int, data: bytes, ready: Event, end: Event) -> None:
    ready.set()
    while not end.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as one:
            if data:
                one.sendall(data)


@contextlib.contextmanager
def attacker(
    act: Callable[[int, int, bytes, Event, Event], None], port: int, count: int, data: bytes
) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    ready, end = context.Event(), context.Event()
    process = context.Process(target=act, args=(port, count, data, ready, end))
    process.start()
    try:
        if not ready.wait(120):
            raise SystemExit("bench: the attackers are not connected")
        yield
    finally:
        end.set()
        process.join(10)
        process.kill()


class Client:
    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname="127.0.0.1")

    def round_trip_ms(self) -> float:
        started = time.perf_counter()
        self._socket.sendall(VERSIONS)
        left = int.from_bytes(self._read(4), "big")
        self._read(left)
        return (time.perf_counter() - started) * 1000

    def _read(self, wanted: int) -> bytes:
        data = b""
        while len(data) < wanted:
            piece = self._socket.recv(wanted - len(data))
            if not piece:
                raise SystemExit("bench: a bystander was disconnected")
            data += piece
        return data


def measured(clients: list[Client], seconds: float) -> list[tuple[float, float]]:
    """(p50, p99) of each client."""
    found: list[list[float]] = [[] for _ in clients]
    following_s = time.perf_counter()
    ends_s = following_s + seconds
    while following_s < ends_s:
        for client, times in zip(clients, found, strict=True):
            times.append(client.round_trip_ms())
        following_s += 1 / RATE
        time.sleep(max(0.0, following_s - time.perf_counter()))
    return [(statistics.median(times), statistics.quantiles(times, n=100)[98]) for times in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    authority = Authority()
    plain, secure = free_ports(2)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{secure}"
    with tempfile.TemporaryDirectory() as folder:
        certificate = authority.sign("node").write(Path(folder), "node")
        settings = {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate),
        }
        kinds = {
            "half-open": (hold, secure, HALF_OPEN, HELLO),
            "many": (hold, plain, MANY, b""),
            "opening": (open_and_close, plain, 0, b""),
            "garbage": (open_and_close, secure, 0, b"GET / HTTP/1.0\r\n\r\n"),
        }
        rows: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in kinds}
        with Broker(port=plain, options=settings) as broker:
            context = ssl.create_default_context(cadata=authority.pem)
            clients = [Client(plain, None), Client(secure, context)]
            measured(clients, 1)
            before = measured(clients, options.seconds)
            for _ in range(options.rounds):
                for name, (act, port, count, data) in kinds.items():
                    with attacker(act, port, count, data):
                        during = measured(clients, options.seconds)
                    time.sleep(1)
                    after = measured(clients, options.seconds)
                    rows[name].append(
                        [
                            (mine[p], (mine[p] / ((one[p] + two[p]) / 2)))
                            for one, mine, two in zip(before, during, after, strict=True)
                            for p in (0, 1)
                        ]
                    )
                    before = after
            assert broker.process.is_running
    print("            plain: p50       p99        TLS: p50       p99")
    for name, found in rows.items():
        columns = zip(*found, strict=True)
        medians = [
            tuple(statistics.median(one[part] for one in column) for part in (0, 1))
            for column in columns
        ]
        shown = "  ".join(f"{ms:6.3f} ({ratio:4.2f})" for ms, ratio in medians)
        print(f"{name:10}  {shown}")


if __name__ == "__main__":
    main()
