"""A broker's own work on requests of one record, without sockets: us of CPU a request.

    bench/one_record.py [--acks N] [--size BYTES] [--connections N] [--rounds N] [--profile]
                         [-o NAME=VALUE]

A node runs in this process; each round hands one Produce frame to every connection, as the event
loop would, and then lets the loop's turn end. The minimum of the rounds is told: what other
processes take from the caches does not count. `--profile` prints where the time goes.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.frames import one_record_request
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.node.node import Node
from kwire.pending import Pending
from kwire.protocol import messages as m

TOPIC = "one"


class Sink:
    """A transport that counts what is written."""

    def __init__(self) -> None:
        self.writes = 0

    def writelines(self, parts: Any) -> None:
        self.writes += 1

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def is_closing(self) -> bool:
        return False


async def _answer(pending: Pending[Any]) -> Any:
    future = asyncio.get_running_loop().create_future()
    pending.add_done_callback(lambda done: future.set_result(done.result()))
    return await future


async def measure(options: argparse.Namespace, directory: str) -> float:
    """CPU seconds a request, the best of the rounds."""
    overrides = {
        "log.dirs": directory,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        **dict(x.split("=", 1) for x in options.option or ()),
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    topic = m.CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    await _answer(node.controller_channel.forward(request, None))
    frame = one_record_request(
        pathlib.Path(directory) / "frame", TOPIC, options.acks, options.size
    ).read_bytes()
    listener = next(iter(node.listeners.bound.values()))
    connections = []
    for _ in range(options.connections):
        connection = listener.new_connection()
        connection.connection_made(Sink())  # type: ignore[arg-type]
        connections.append(connection)

    async def one_round() -> float:
        started = time.process_time()
        for connection in connections:
            connection.get_buffer(-1)[: len(frame)] = frame
            connection.buffer_updated(len(frame))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return (time.process_time() - started) / len(connections)

    for _ in range(20):
        await one_round()
    if options.profile:
        await _profile(options.rounds, one_round)
    before = plain_of(node)
    best = min([await one_round() for _ in range(options.rounds)])
    writes = {connection.transport.writes for connection in connections}
    if len(writes) != 1 or (writes == {0}) != (options.acks == 0):
        raise SystemExit(f"bench: not every request was answered: {writes}")
    taken, all_of_them = (now - then for now, then in zip(plain_of(node), before, strict=True))
    print(f"{taken / all_of_them:.1%} of the requests took a plain road")
    for connection in connections:
        connection.connection_lost(None)
    await node.stop()
    return best


async def _profile(rounds: int, one_round: Any) -> None:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    for _ in range(rounds):
        await one_round()
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(70)


def plain_of(node: Node) -> tuple[int, int]:
    """How many requests took a plain road, and how many there were."""
    counts = [c for x in node.listeners.bound.values() for _, c in x.dispatcher.counts()]
    return sum(c.plain for c in counts), sum(c.total for c in counts)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--acks", type=int, default=1)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("-o", "--option", action="append", help="a broker config, name=value")
    options = parser.parse_args()
    tune_malloc()
    loop = new_event_loop()
    with tempfile.TemporaryDirectory(prefix="bench-one-") as directory:
        seconds = loop.run_until_complete(measure(options, directory))
    print(f"{seconds * 1e6:.2f} us of CPU a request of one record ({options.size} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
