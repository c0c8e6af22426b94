"""What client quotas cost, and whether those who are over theirs leave others alone.

    bench/quotas.py cost [--rounds N] [--only Produce] [--limit US]
        us of CPU a request, without sockets: without quotas, with such as others have, and with
        such as do not bite
    bench/quotas.py beside [--rounds N] [--seconds S] [--limit FACTOR]
        p99 of a producer of one record every 2 ms: alone, beside ten that a quota holds back, and
        beside ten without a quota

`cost` toggles the quotas of one node between rounds of bursts. Of a client with a
request_percentage one request in `SAMPLE_MAX` is measured, so that a round is as many requests.
What is told is the mean of the least that each of its bursts took in all rounds, more than without
quotas. `none` is without quotas once more: how exact that is. All of these go the general way
(`kwire.plain.requests.enable=false`). While anybody has a quota no request takes a plain road:
what that costs is told behind, of the requests that have one (`Heartbeat, plain`).
`beside` runs one broker and its clients in processes of their own, and tells the median of the
rounds. With `--limit` it fails when the dearest costs more us, or when throttled neighbours make
p99 worse by more than the factor.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from bench.frames import TIMESTAMP_MS, value
from bench.one_record import Sink, _answer
from bench.one_request import Bench
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.frame import encode_request
from kwire.protocol.records import Record, build_batch
from kwire.quota.client_quotas import ClientQuotas
from kwire.server.watched_requests import SAMPLE_MAX
from kwire.testing.cluster import Broker
from tests.support.wire import WireClient

TOPIC = "quotas"
GREEDY = 10
LIMIT_BYTES = 1_000_000
LOAD_BYTES = 200_000
PAUSE_S = 0.002
CONNECTIONS = 5
BURSTS = -(-SAMPLE_MAX // CONNECTIONS)
MUCH = 10.0**12
WITHOUT = "without quotas"
PLAIN_ROADS = ("Heartbeat",)
QUOTAS: dict[str, Mapping[str, dict[str, float]] | None] = {
    WITHOUT: None,
    "none": None,
    "of others": {"other": {"producer_byte_rate": MUCH, "request_percentage": MUCH}},
    "producer_byte_rate": {"x": {"producer_byte_rate": MUCH}},
    "request_percentage": {"x": {"request_percentage": MUCH}},
    "consumer_byte_rate": {"x": {"consumer_byte_rate": MUCH}},
    "all three": {
        "x": {"producer_byte_rate": MUCH, "consumer_byte_rate": MUCH, "request_percentage": MUCH}
    },
}


def produce(size_bytes: int) -> m.ProduceRequest:
    batch = build_batch([Record(0, TIMESTAMP_MS, None, value(size_bytes), [])])
    data = m.ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    return m.ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[topic])


def fetch() -> m.FetchRequest:
    """Of one record, without a session."""
    shape = m.FetchRequest
    partition = shape.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    topic = shape.FetchTopic(topic=TOPIC, partitions=[partition])
    return shape(replica_id=-1, max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=[topic])


async def frames(node: Node) -> dict[str, bytes]:
    """A request by its name; the heartbeat is one of a member that is alive."""
    options = argparse.Namespace(connections=1)
    bench = Bench(node, options)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[TOPIC])
    await bench.ask(lambda i: find, 4, lambda x: int(x.coordinators[0].error_code))
    shape = m.JoinGroupRequest
    join = shape(
        group_id=TOPIC, session_timeout_ms=300_000, rebalance_timeout_ms=60_000,
        protocol_type="bench", protocols=[shape.JoinGroupRequestProtocol(name="range")],
    )  # fmt: skip
    (joined,) = await bench.ask(lambda i: join, 3, lambda x: int(x.error_code))
    bench.clients[0].connection.connection_lost(None)
    heartbeat = m.HeartbeatRequest(
        group_id=TOPIC, generation_id=joined.generation_id, member_id=joined.member_id
    )
    return {
        "Produce": b"".join(encode_request(0, 9, 1, "x", produce(100))),
        "Fetch": b"".join(encode_request(1, 11, 1, "x", fetch())),
        "Heartbeat": b"".join(encode_request(12, 3, 1, "x", heartbeat)),
    }


async def cost(rounds: int, only: str, plain: bool, directory: str) -> float:
    """us of the dearest; of plain roads 0, since the general way is not what quotas cost."""
    overrides = {
        "log.dirs": directory,
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "kwire.plain.requests.enable": str(plain).lower(),
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    topic = m.CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    await _answer(node.controller_channel.forward(m.CreateTopicsRequest(topics=[topic]), None))
    listener = next(iter(node.listeners.bound.values()))
    connections = []
    for _ in range(CONNECTIONS):
        connection = listener.new_connection()
        connection.connection_made(Sink())  # type: ignore[arg-type]
        connections.append(connection)

    async def one_round(frame: bytes) -> float:
        started = time.process_time()
        for connection in connections:
            connection.get_buffer(-1)[: len(frame)] = frame
            connection.buffer_updated(len(frame))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return (time.process_time() - started) / len(connections)

    asked = await frames(node)
    await one_round(asked["Produce"])  # there is something to fetch
    dearest = 0.0
    for name, frame in asked.items():
        if only not in name or (plain and name not in PLAIN_ROADS):
            continue
        best = {kind: [float("inf")] * BURSTS for kind in QUOTAS}
        for number in range(rounds):
            kinds = list(QUOTAS.items())
            for kind, entities in kinds if number % 2 else reversed(kinds):
                node.request_steps.set_throttles(_quotas(entities))
                await one_round(frame)
                least = best[kind]
                for at in range(BURSTS):
                    least[at] = min(least[at], await one_round(frame))
        seconds = {kind: statistics.fmean(least) for kind, least in best.items()}
        without = seconds.pop(WITHOUT)
        print(f"{name}{', plain' if plain else ''}: {without * 1e6:.2f} us")
        for kind, with_quotas in seconds.items():
            more = (with_quotas - without) * 1e6
            if not plain:
                dearest = max(dearest, more)
            print(f"    {kind}: {more:+.2f}")
    for connection in connections:
        connection.connection_lost(None)
    await node.stop()
    return dearest


def _quotas(entities: Mapping[str, dict[str, float]] | None) -> ClientQuotas | None:
    if entities is None:
        return None
    quotas = ClientQuotas()
    for client_id, values in entities.items():
        quotas.changed((("client-id", client_id),), values)
    return quotas


# -- one beside others


def greedy(bootstrap: str, client_id: str, end_s: float) -> None:
    """Produces as much as it is let."""
    request = b"".join(encode_request(0, 9, 1, client_id, produce(LOAD_BYTES)))
    with WireClient(bootstrap, 60) as client:
        client.socket.settimeout(0.2)
        while time.time() < end_s:
            client.socket.sendall(request)
            while time.time() < end_s:
                try:
                    if client.socket.recv(65536):
                        break
                except TimeoutError:
                    continue


def modest(bootstrap: str, end_s: float) -> list[float]:
    """Seconds until each of its records was acknowledged."""
    request = b"".join(encode_request(0, 9, 1, "modest", produce(100)))
    found = []
    with WireClient(bootstrap, 60) as client:
        while time.time() < end_s:
            started = time.perf_counter()
            client.socket.sendall(request)
            client.socket.recv(65536)
            found.append(time.perf_counter() - started)
            time.sleep(PAUSE_S)
    return found


def p99_ms(bootstrap: str, seconds: float, neighbours: str | None) -> float:
    """`neighbours` is the client id of those beside it."""
    end_s = time.time() + seconds
    others = [
        multiprocessing.Process(target=greedy, args=(bootstrap, neighbours, end_s))
        for _ in range(GREEDY if neighbours else 0)
    ]
    for other in others:
        other.start()
    taken = sorted(modest(bootstrap, end_s)[100:])
    for other in others:
        other.join()
    return taken[len(taken) * 99 // 100] * 1000


def beside(options: argparse.Namespace) -> int:
    found: dict[str, list[float]] = {"alone": [], "beside throttled": [], "beside others": []}
    with Broker() as broker, WireClient(broker.bootstrap) as client:
        client.create_topic(TOPIC)
        alter = m.AlterClientQuotasRequest
        entity = [alter.EntityData(entity_type="client-id", entity_name="greedy")]
        ops = [alter.OpData(key="producer_byte_rate", value=LIMIT_BYTES)]
        client.call(alter(entries=[alter.EntryData(entity=entity, ops=ops)]), 1)
        time.sleep(1)
        p99_ms(broker.bootstrap, 11, "greedy")  # what the first windows allow is used up
        for _ in range(options.rounds):
            found["alone"].append(p99_ms(broker.bootstrap, options.seconds, None))
            found["beside throttled"].append(p99_ms(broker.bootstrap, options.seconds, "greedy"))
        found["beside others"].append(p99_ms(broker.bootstrap, 5, "unbound"))
    for name, values in found.items():
        print(f"{name}: p99 {statistics.median(values):.2f} ms of {[round(x, 2) for x in values]}")
    factor = statistics.median(found["beside throttled"]) / statistics.median(found["alone"])
    print(f"beside throttled producers p99 is {factor:.2f} of alone")
    return int(options.limit is not None and factor > options.limit)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["cost", "beside"])
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--only", default="", help="`cost` of these requests alone")
    options: Any = parser.parse_args()
    if options.what == "beside":
        options.rounds = options.rounds or 5
        return beside(options)
    tune_malloc()
    loop = new_event_loop()
    dearest = 0.0
    for plain in (False, True):
        with tempfile.TemporaryDirectory(prefix="bench-quotas-") as directory:
            found = cost(options.rounds or 200, options.only, plain, directory)
            dearest = max(dearest, loop.run_until_complete(found))
    return int(options.limit is not None and dearest > options.limit)


if __name__ == "__main__":
    sys.exit(main())
