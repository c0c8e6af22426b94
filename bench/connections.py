"""Many connections to one broker: accepting them, their memory, and what they cost when idle.

    bench/connections.py [--connections 15000] [--idle-s 10] [--broker kwire|kafka]

Each connection asks for ApiVersions as a client does, and then is idle. Told are the time until all
are answered and the broker's CPU for one, memory for one, CPU of the broker while all are idle, and
round trips of one busy connection (ApiVersions, one after another) before, with all the others idle
beside it, and while they were being opened. `ulimit -Hn` bounds client and broker alike, and a
broker keeps a quarter of it, 4,096 at most, for its files.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import selectors
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.brokers import Broker
from bench.run import commands
from kwire.protocol import frame
from kwire.protocol import messages as m

ASKED = b"".join(frame.encode_request(18, 0, 1, "bench", m.ApiVersionsRequest()))
AT_ONCE = 200
PATIENCE_S = 120.0
IP_BIND_ADDRESS_NO_PORT = 24  # Linux; the module has no name for it before Python 3.12
PORTS_OF_AN_ADDRESS = 4000


class Busy(threading.Thread):
    """One connection that asks all the time, once a millisecond at most."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times_s: list[float] = []
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            began = time.perf_counter()
            self._socket.sendall(ASKED)
            if not self._socket.recv(65536):
                raise SystemExit("bench: the broker closed the busy connection")
            self.times_s.append(time.perf_counter() - began)
            time.sleep(0.001)

    def told(self) -> str:
        """Of the times since it was asked last."""
        times, self.times_s = sorted(self.times_s), []
        if not times:
            return "none"
        p50, p99 = (times[min(len(times) - 1, int(len(times) * x))] for x in (0.5, 0.99))
        return f"p50 {p50 * 1e3:.2f}, p99 {p99 * 1e3:.2f}, longest {times[-1] * 1e3:.1f} ms"


def opened(port: int, count: int) -> list[socket.socket]:
    """`count` connections, AT_ONCE of them on their way; each has had its first answer."""
    selector = selectors.DefaultSelector()
    found: list[socket.socket] = []
    under_way = begun = 0
    give_up_at = time.monotonic() + PATIENCE_S
    while len(found) < count:
        while under_way < AT_ONCE and begun < count:
            one = socket.socket()
            one.setblocking(False)
            # From several addresses: the kernel looks for a port that is free for each.
            one.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            one.bind((f"127.0.0.{2 + begun // PORTS_OF_AN_ADDRESS}", 0))
            one.connect_ex(("127.0.0.1", port))
            selector.register(one, selectors.EVENT_WRITE)
            under_way, begun = under_way + 1, begun + 1
        for key, events in selector.select(1):
            one = key.fileobj
            assert isinstance(one, socket.socket)
            if events & selectors.EVENT_WRITE:
                one.send(ASKED)
                selector.modify(one, selectors.EVENT_READ)
                continue
            if not one.recv(65536):
                raise SystemExit(f"bench: refused behind {len(found)} connections (ulimit -n)")
            selector.unregister(one)
            found.append(one)
            under_way -= 1
        if time.monotonic() > give_up_at:
            raise SystemExit(f"bench: {len(found)} connections in {PATIENCE_S} s")
    return found


def measure(name: str, command: str, count: int, idle_s: float) -> None:
    broker = Broker(name, command, pathlib.Path(tempfile.gettempdir()) / f"bench-{name}.log")
    try:
        busy = Busy(broker.port)
        busy.start()
        for one in opened(broker.port, AT_ONCE):  # what the first connections bring
            one.close()
        time.sleep(idle_s / 2)
        busy.told()
        cpu_s = broker.cpu_s()
        time.sleep(idle_s)
        alone, alone_cpu_s = busy.told(), broker.cpu_s() - cpu_s
        before_mb, cpu_s = broker.rss_mb(), broker.cpu_s()
        began = time.perf_counter()
        held = opened(broker.port, count)
        took_s, cpu_s = time.perf_counter() - began, broker.cpu_s() - cpu_s
        meanwhile = busy.told()
        mb = broker.rss_mb() - before_mb
        cpu_before_s = broker.cpu_s()
        time.sleep(idle_s)
        beside, beside_cpu_s = busy.told(), broker.cpu_s() - cpu_before_s
        busy.is_over = True
        busy.join()
        cpu_before_s = broker.cpu_s()
        time.sleep(idle_s)
        idle_cpu_s = broker.cpu_s() - cpu_before_s
        began = time.perf_counter()
        for one in held:
            one.close()
        print(
            f"{name}: {count:,} connections in {took_s:.1f} s, {cpu_s / count * 1e6:.0f} us of CPU "
            f"each; {mb:.0f} MB, {mb / count * 1024:.1f} KB each; CPU with all idle "
            f"{idle_cpu_s / idle_s:.1%}\n"
            f"  the busy one alone: {alone} ({alone_cpu_s / idle_s:.1%} of a core)\n"
            f"  while they open: {meanwhile}\n"
            f"  beside them: {beside} ({beside_cpu_s / idle_s:.1%} of a core)",
            flush=True,
        )
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", type=int, default=15_000)
    parser.add_argument("--idle-s", type=float, default=10.0)
    parser.add_argument("--broker", choices=("kwire", "kafka"), action="append")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    with tempfile.TemporaryDirectory(prefix="bench-connections-") as scratch:
        for name, command in commands(cache, pathlib.Path(scratch)).items():
            if not options.broker or name in options.broker:
                measure(name, command, options.connections, options.idle_s)


if __name__ == "__main__":
    main()
