"""What a scrape costs: the broker's slices, and the work of the HTTP process.

    bench/scrape.py [--partitions N] [--rounds N]

A node runs in this process, with that many partitions, and with as many requests of three APIs as
times are kept of; the blocks are read as the link to the HTTP
process reads them. Told are the longest step of the reading (no turn of the loop is shorter), all
steps together, and making OpenMetrics of the blocks: all in CPU time, the least of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.one_record import _answer
from kwire.config.broker_config import BrokerConfig
from kwire.metrics.blocks import decoded
from kwire.metrics.exposition import Exposition
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.api_keys import ApiKey
from kwire.server.request_counts import RECENT_MAX, Timed

A_TOPIC = 500
ASKED = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.HEARTBEAT)


async def measure(options: argparse.Namespace, directory: str) -> None:
    overrides = {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0"}
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    for at in range(0, options.partitions, A_TOPIC):
        count = min(A_TOPIC, options.partitions - at)
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=f"topic-{at}", num_partitions=count, replication_factor=1
        )
        request = m.CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
        await _answer(node.controller_channel.forward(request, None))
    dispatcher = next(iter(node.listeners.bound.values())).dispatcher
    for key in ASKED:
        counts, response = dispatcher.route_local(key).counts, m.response_class(key)()
        for size_bytes in range(RECENT_MAX):
            counts.count(1, response)
            counts.ended(Timed(size_bytes))
    exposition = Exposition()
    longest, whole, made = [], [], []
    body = b""
    for _ in range(options.rounds):
        await asyncio.sleep(0)
        steps, pieces = [], []
        told = node._answer_metrics({})
        while True:
            started = time.thread_time()
            piece = next(told, None)
            steps.append(time.thread_time() - started)
            if piece is None:
                break
            pieces.append(piece)
        longest.append(max(steps))
        whole.append(sum(steps))
        started = time.thread_time()
        blocks = decoded(b"".join(pieces))
        body = exposition.text(blocks, 0.0, as_openmetrics=True).encode()
        made.append(time.thread_time() - started)
    print(
        f"{options.partitions} partitions, {len(body.splitlines())} lines, {len(body) >> 10} KB: "
        f"longest step {min(longest) * 1000:.2f} ms, reading {min(whole) * 1000:.1f} ms, "
        f"OpenMetrics {min(made) * 1000:.1f} ms"
    )
    await node.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    tune_malloc()
    loop = new_event_loop()
    with tempfile.TemporaryDirectory(prefix="bench-scrape-") as directory:
        loop.run_until_complete(measure(options, directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
