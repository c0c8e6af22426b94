"""What seeing traffic costs: us of CPU a request, of a broker as it is, with `--trace`, of a proxy.

    bench/tracing.py [--requests N] [--rounds N]

The rounds alternate; the least of each is told. Requests are heartbeats of a member that nobody
knows (two strings in, an error code out) and Produce of one record of 1 KB, one at a time each.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from kwire.client.address import parse_address
from kwire.client.connection import open_connection
from kwire.client.settings import ConnectionSettings
from kwire.network.buffers import BufferPool
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from kwire.protocol.structs import Message, Request
from kwire.testing.cluster import Broker

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")
TOPIC = "bench-tracing"


def heartbeat() -> Request[Message]:
    return m.HeartbeatRequest(group_id="nobody", generation_id=1, member_id="nobody")


def produce() -> Request[Message]:
    kind = m.ProduceRequest
    batch = bytes(build_batch([Record(value=b"x" * 1024, timestamp=1)]))
    partition = kind.PartitionProduceData(index=0, records=batch)
    topic = kind.TopicProduceData(name=TOPIC, partition_data=[partition])
    return kind(acks=-1, timeout_ms=5000, topic_data=[topic])


KINDS: dict[str, Callable[[], Request[Message]]] = {"heartbeat": heartbeat, "produce": produce}


def spent_us(pid: int) -> float:
    """CPU of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_US


async def ask(address: str, kind: str, count: int) -> None:
    """So many requests, one after the other."""
    loop = asyncio.get_running_loop()
    host, port = parse_address(address)
    connection = await open_connection(loop, BufferPool(), ConnectionSettings(address), host, port)
    topics = [m.MetadataRequest.MetadataRequestTopic(name=TOPIC)]
    while True:
        metadata = await connection.call(m.MetadataRequest(topics=topics), 9)
        if metadata.topics[0].partitions and not metadata.topics[0].error_code:
            break
        await asyncio.sleep(0.05)
    version = 12 if kind == "produce" else 4
    request = KINDS[kind]()
    for _ in range(count):
        await connection.call(request, version)
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="kwire-bench-"))
    trace = ["--trace", str(directory / "serve.trace")]
    with Broker() as plain, Broker(arguments=trace) as traced:
        command = [sys.executable, "-m", "kwire", "proxy", "127.0.0.1:0", plain.bootstrap]
        proxy = subprocess.Popen(
            [*command, "--trace", str(directory / "proxy.trace")],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert proxy.stderr is not None
        behind = proxy.stderr.readline().split()[-1]
        places = {
            "broker": (plain.bootstrap, plain.process.pid),
            "broker --trace": (traced.bootstrap, traced.process.pid),
            "proxy": (behind, proxy.pid),
        }
        least: dict[tuple[str, str], float] = {}
        for _ in range(options.rounds):
            for kind in KINDS:
                for name, (address, pid) in places.items():
                    before = spent_us(pid)
                    asyncio.run(ask(address, kind, options.requests))
                    each = (spent_us(pid) - before) / options.requests
                    least[kind, name] = min(each, least.get((kind, name), each))
        for (kind, name), each in least.items():
            print(f"{kind:10} {name:16} {each:7.1f} us")
        proxy.terminate()
        proxy.wait()


if __name__ == "__main__":
    main()
