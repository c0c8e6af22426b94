"""A broker's own work on Fetch requests, without sockets: us of CPU each.

    bench/one_fetch.py [one|session|quiet|waits|bulk ...] [--connections N] [--partitions N]
                       [--rounds N] [--profile] [-o NAME=VALUE]

As `one_request.py`: a node runs in this process, and each round hands every connection its next
request. All are versions 12.

    one      a full fetch of one partition, which has one record
    session  an incremental fetch of 8 partitions (PARTITIONS) in which nothing is new
    quiet    the same, which waits for 20 ms
    waits    a full fetch at the end of a partition, which waits until a record comes; the produce
             of that record is counted as well, once for all that wait
    bulk     a full fetch of 8 partitions with 1 MB in each

The share of all requests of the rounds that took a plain road is told as well
(`-o kwire.plain.requests.enable=false`: none).
"""

from __future__ import annotations

import argparse
import asyncio
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.groups import encoded
from bench.node_here import node_with_topic
from bench.one_record import _profile, plain_of
from bench.one_request import PARTITIONS, TOPIC, Bench
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch

VERSION = 12
BATCH_BYTES, BATCHES = 100_000, 10
QUIET_MS = 20
COMES_AGAIN = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def produce(partition: int, value_bytes: int) -> Any:
    shape = m.ProduceRequest
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"x" * value_bytes, [])])
    data = shape.PartitionProduceData(index=partition, records=bytes(batch))
    topic = shape.TopicProduceData(name=TOPIC, partition_data=[data])
    return shape(acks=-1, timeout_ms=9000, topic_data=[topic])


def fetch(first: int, offset: int, wait_ms: int = 0, count: int = 1, epoch: int = -1) -> Any:
    """A full fetch of `count` partitions from `first` on."""
    shape = m.FetchRequest
    partitions = [
        shape.FetchPartition(partition=first + i, fetch_offset=offset, partition_max_bytes=1 << 20)
        for i in range(count)
    ]
    return shape(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=epoch,
        topics=[shape.FetchTopic(topic=TOPIC, partitions=partitions)],
    )


async def _fill(bench: Bench, value_bytes: int = 100) -> None:
    """A record in every partition: the topic's leaders are known from then on."""

    def produced(answer: Any) -> int:
        return int(answer.responses[0].partition_responses[0].error_code)

    clients, bench.clients = bench.clients, bench.clients[:PARTITIONS]
    await bench.ask(lambda i: produce(i, value_bytes), 12, produced)
    bench.clients = clients


def _round(bench: Bench, frames: Callable[[], dict[int, bytes]]) -> Callable[[], Any]:
    async def one_round() -> int:
        asked = frames()
        await bench.turn(asked)
        for client in bench.clients:
            client.received.clear()
        return len(asked)

    return one_round


async def one(bench: Bench) -> Callable[[], Any]:
    await _fill(bench)
    frames = {i: encoded(fetch(i % PARTITIONS, 0), VERSION) for i in range(len(bench.clients))}
    return _round(bench, lambda: frames)


async def _session(bench: Bench, wait_ms: int) -> Callable[[], dict[int, bytes]]:
    """What asks the next time for nothing new, of all clients."""

    def code(answer: Any) -> int:
        codes = [int(x.error_code) for topic in answer.responses for x in topic.partitions]
        return COMES_AGAIN if any(codes) else 0  # not all of them are led yet

    count = bench.options.partitions
    opened = await bench.ask(lambda i: fetch(0, 0, count=count, epoch=0), VERSION, code)
    epoch = 0

    def frames() -> dict[int, bytes]:
        nonlocal epoch
        epoch += 1
        return {
            i: encoded(
                m.FetchRequest(
                    max_wait_ms=wait_ms,
                    min_bytes=1,
                    max_bytes=50 << 20,
                    session_id=x.session_id,
                    session_epoch=epoch,
                ),
                VERSION,
            )
            for i, x in enumerate(opened)
        }

    return frames


async def session(bench: Bench) -> Callable[[], Any]:
    return _round(bench, await _session(bench, 0))


async def quiet(bench: Bench) -> Callable[[], Any]:
    frames = await _session(bench, QUIET_MS)

    async def one_round() -> int:
        asked = frames()
        started = time.process_time()
        for client, data in zip(bench.clients, asked.values(), strict=True):
            client.feed(data)
        while sum(client.answered(1) for client in bench.clients) < len(bench.clients):
            await asyncio.sleep(QUIET_MS / 1000)  # it takes nothing of the processor
        bench.cpu_s += time.process_time() - started
        for client in bench.clients:
            client.received.clear()
        return len(asked)

    return one_round


async def waits(bench: Bench) -> Callable[[], Any]:
    await _fill(bench)
    writer = len(bench.clients) - 1
    offset = 0

    async def one_round() -> int:
        nonlocal offset
        offset += 1
        asked = {i: encoded(fetch(0, offset, wait_ms=5000), VERSION) for i in range(writer)}
        last = encoded(produce(0, 100), 12)
        await bench.turn({**asked, writer: last})
        for client in bench.clients:
            client.received.clear()
        return writer

    return one_round


async def bulk(bench: Bench) -> Callable[[], Any]:
    for _ in range(BATCHES):
        await _fill(bench, BATCH_BYTES)
    frames = {i: encoded(fetch(0, 0, count=PARTITIONS), VERSION) for i in range(4)}
    return _round(bench, lambda: frames)


SCENARIOS = {"one": one, "session": session, "quiet": quiet, "waits": waits, "bulk": bulk}


async def measure(options: argparse.Namespace, scenario: str, directory: str) -> float:
    """CPU seconds of one, the best of the rounds."""
    node = await node_with_topic(directory, TOPIC, options.partitions, options=options.option)
    bench = Bench(node, options)
    one_round = await SCENARIOS[scenario](bench)

    async def counted() -> float:
        bench.cpu_s = 0.0
        done = await one_round()
        return bench.cpu_s / done

    for _ in range(10):
        await counted()
    if options.profile:
        await _profile(options.rounds, counted)
    before = plain_of(node)
    best = min([await counted() for _ in range(options.rounds)])
    taken, all_of_them = (now - then for now, then in zip(plain_of(node), before, strict=True))
    print(f"{taken / all_of_them:.1%} of the requests took a plain road")
    for client in bench.clients:
        client.connection.connection_lost(None)
    await node.stop()
    return best


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="*", help=" ".join(SCENARIOS))
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("-o", "--option", action="append", help="a broker config, name=value")
    options = parser.parse_args()
    tune_malloc()
    loop = new_event_loop()
    for scenario in options.scenarios or list(SCENARIOS):
        with tempfile.TemporaryDirectory(prefix="bench-one-") as directory:
            seconds = loop.run_until_complete(measure(options, scenario, directory))
        print(f"{scenario}: {seconds * 1e6:.2f} us of CPU each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
