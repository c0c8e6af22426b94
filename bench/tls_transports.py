"""TLS on the loop: CPU seconds a GB and memory a connection, by what encrypts (ADR 28).

    python bench/tls_transports.py

One server process a row receives and sends frames of 1 MB and of 1 KB, a client in another process
talks TLS 1.3 with it. `ours` is kwire/network/tls_connection.py, `loop's` what the loop does itself
with `ssl=`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import resource
import socket
import ssl
import struct
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.loop import new_event_loop
from kwire.network.tls_connection import TlsConnection
from tests.support.certificates import Authority

LARGE, SMALL = 1 << 20, 1 << 10
CONNECTIONS = 500


class Server(FrameConnection):
    """Counts frames; one of 8 bytes asks for something."""

    def frame_received(self, frame: memoryview) -> None:
        if len(frame) != 8:
            return
        size, count = struct.unpack(">ii", frame)
        if count == 0:
            usage = resource.getrusage(resource.RUSAGE_SELF)
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            answer = json.dumps([usage.ru_utime + usage.ru_stime, pages * 4096]).encode()
            self.write_frames([struct.pack(">i", len(answer)), answer])
            return
        self.left = count
        self.size = size
        self.paused = False
        self._send()

    def _send(self) -> None:
        frame = struct.pack(">i", self.size)
        while self.left and not self.paused:
            self.left -= 1
            self.write_frames([frame, bytes(self.size)])

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._send()


def serve(use_uvloop: bool, is_ours: bool, path: str, port: int) -> None:
    loop = new_event_loop(use_uvloop)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    pool = BufferPool()

    def made() -> asyncio.BaseProtocol:
        application = Server(pool, 1 << 30)
        return (
            TlsConnection(loop, application, context, server_side=True) if is_ours else application
        )

    ssl_of_loop = None if is_ours else context
    asyncio.set_event_loop(loop)
    loop.run_until_complete(loop.create_server(made, "127.0.0.1", port, ssl=ssl_of_loop))
    loop.run_forever()


class Client:
    def __init__(self, port: int, trusted: str) -> None:
        context = ssl.create_default_context(cadata=trusted)
        for _ in range(200):
            try:
                plain = socket.create_connection(("127.0.0.1", port))
                break
            except OSError:
                time.sleep(0.05)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def usage(self) -> tuple[float, int]:
        self.socket.sendall(struct.pack(">iii", 8, 0, 0))
        size = struct.unpack(">i", self.socket.recv(4))[0]
        seconds, memory = json.loads(self.socket.recv(size))
        return seconds, memory

    def read(self, wanted: int) -> None:
        buffer = bytearray(1 << 20)
        while wanted:
            wanted -= self.socket.recv_into(buffer, min(wanted, len(buffer)))


def measure(
    use_uvloop: bool, is_ours: bool, path: str, trusted: str, megabytes: int
) -> list[float]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = multiprocessing.Process(target=serve, args=(use_uvloop, is_ours, path, port))
    process.start()
    try:
        client = Client(port, trusted)
        before = client.usage()[1]
        others = [Client(port, trusted) for _ in range(CONNECTIONS)]
        for other in others:
            other.socket.sendall(struct.pack(">i", SMALL) + bytes(SMALL))
            other.usage()
        memory = (client.usage()[1] - before) / CONNECTIONS / 1024
        row = []
        for size in (LARGE, SMALL):
            count = (megabytes << 20) // size
            block = struct.pack(">i", size) + bytes(size)
            block *= max(1, LARGE // size)
            before = client.usage()[0]
            for _ in range(megabytes):
                client.socket.sendall(block)
            row.append(client.usage()[0] - before)
            before = client.usage()[0]
            client.socket.sendall(struct.pack(">iii", 8, size, count))
            client.read(count * (size + 4))
            row.append(client.usage()[0] - before)
        return [seconds * 1024 / megabytes for seconds in row] + [memory]
    finally:
        process.kill()
        process.join()


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--megabytes", type=int, default=400)
    megabytes = arguments.parse_args().megabytes
    authority = Authority()
    with tempfile.TemporaryDirectory() as directory:
        path = str(authority.sign("node").write(Path(directory), "node"))
        print("loop     TLS     in 1 MB  out 1 MB  in 1 KB  out 1 KB   KB a connection")
        for use_uvloop in (True, False):
            for is_ours in (False, True):
                names = "uvloop" if use_uvloop else "asyncio", "ours" if is_ours else "loop's"
                try:
                    row = measure(use_uvloop, is_ours, path, authority.pem, megabytes)
                except (OSError, struct.error) as error:
                    print(f"{names[0]:8} {names[1]:7} fails: {error}", flush=True)
                    continue
                figures = "  ".join(f"{figure:7.2f}" for figure in row)
                print(f"{names[0]:8} {names[1]:7} {figures}", flush=True)


if __name__ == "__main__":
    main()
