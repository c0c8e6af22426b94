"""Metadata of all topics: what it costs a broker, and how long everybody else waits meanwhile.

    bench/all_topics.py [--topics 2000] [--partitions 5] [--requests 20] [--broker kwire|kafka]

Told are the first answer's time, the median of the others', CPU of the broker a request, and the
longest round trip of an ApiVersions request on another connection while metadata was asked for,
beside the longest one when nobody asked.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.brokers import Broker
from bench.run import commands
from kwire.protocol import frame
from kwire.protocol import messages as m

METADATA, API_VERSIONS = 3, 18
VERSION = 12
CREATED_AT_ONCE = 200
QUIET_S = 2.0


class Client:
    """One connection that asks one thing after another."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            found = self._socket.recv(1 << 20 if count - len(data) > 1 << 20 else count - len(data))
            if not found:
                raise SystemExit("bench: the broker closed the connection")
            data += found
        return bytes(data)


class Pinger(threading.Thread):
    """Asks for ApiVersions again and again; `longest_s` since it was last set to 0."""

    pause_s = 0.001

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client(port)
        self.longest_s = 0.0
        self.is_over = False

    def run(self) -> None:
        request = b"".join(frame.encode_request(18, 0, 1, "ping", m.ApiVersionsRequest()))
        while not self.is_over:
            began = time.perf_counter()
            self._client.ask(request)
            self.longest_s = max(self.longest_s, time.perf_counter() - began)
            time.sleep(self.pause_s)


def create(address: str, topics: int, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": address})
    for first in range(0, topics, CREATED_AT_ONCE):
        names = range(first, min(topics, first + CREATED_AT_ONCE))
        wanted = [NewTopic(f"many-topics-{n}", partitions, 1) for n in names]
        for done in admin.create_topics(wanted, operation_timeout=120).values():
            done.result(120)


def measure(name: str, command: str, topics: int, partitions: int, requests: int) -> None:
    broker = Broker(name, command, pathlib.Path(tempfile.gettempdir()) / f"bench-{name}.log")
    try:
        create(broker.address, topics, partitions)
        request = m.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        asked = b"".join(frame.encode_request(METADATA, VERSION, 1, "bench", request))
        client, pinger = Client(broker.port), Pinger(broker.port)
        pinger.start()
        time.sleep(QUIET_S)
        quiet_s, pinger.longest_s = pinger.longest_s, 0.0
        times: list[float] = []
        cpu_s = broker.cpu_s()
        for _ in range(requests):
            began = time.perf_counter()
            answer = client.ask(asked)
            times.append(time.perf_counter() - began)
        cpu_s = broker.cpu_s() - cpu_s
        pinger.is_over = True
        pinger.join()
        (_, response) = frame.decode_response(METADATA, VERSION, answer)
        found = sum(len(topic.partitions) for topic in response.topics)
        print(
            f"{name}: {found:,} partitions, {len(answer):,} bytes: first {times[0] * 1e3:.1f} ms, "
            f"then {statistics.median(times[1:]) * 1e3:.1f} ms; CPU {cpu_s / requests * 1e3:.1f} "
            f"ms a request; others wait {pinger.longest_s * 1e3:.1f} ms at most "
            f"({quiet_s * 1e3:.1f} when nobody asks)"
        )
    finally:
        broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--broker", choices=("kwire", "kafka"), action="append")
    options = parser.parse_args()
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    with tempfile.TemporaryDirectory(prefix="bench-topics-") as scratch:
        for name, command in commands(cache, pathlib.Path(scratch)).items():
            if not options.broker or name in options.broker:
                measure(name, command, options.topics, options.partitions, options.requests)


if __name__ == "__main__":
    main()
