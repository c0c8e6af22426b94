"""A broker's own work on groups' and transactions' requests, without sockets: us of CPU each.

    bench/one_request.py [commits|transactions|heartbeats|consumers|metadata]
                         [--connections N] [--pipeline N] [--rounds N] [--profile] [-o NAME=VALUE]

A node runs in this process. Each round hands every connection its next request (or PIPELINE of
them at once), as the event loop would, and turns the loop until all are answered. `commits` and
`heartbeats` count requests of one partition or member, `consumers` heartbeats of consumer groups,
`metadata` requests for one topic; `transactions` counts transactions: Produce
12 of one record, which adds the partition, EndTxn 5, and all that follows (markers, their
completion). The client's part, which is in this process as well, is told and not counted. The least
of the rounds is told: what other processes take from the caches does not count. So is the share of
all requests that took a plain road (`-o kwire.plain.requests.enable=false`: none).
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

from bench.groups import commit, encoded, end_transaction, produce
from bench.node_here import node_with_topic
from bench.one_record import Sink, _profile, plain_of
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m

TOPIC = "bench-groups"
GROUPS = 200
PARTITIONS = 8
TURNS_MAX = 1_000_000


class Answers(Sink):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def write(self, data: Any) -> None:
        self.data += data

    def writelines(self, parts: Any) -> None:
        for part in parts:
            self.data += part

    def take(self) -> list[bytes]:
        """The frames that have arrived whole."""
        found, position, data = [], 0, self.data
        while len(data) - position >= 4:
            size = int.from_bytes(data[position : position + 4], "big")
            if len(data) - position - 4 < size:
                break
            found.append(bytes(data[position + 4 : position + 4 + size]))
            position += 4 + size
        del data[:position]
        return found


class Client:
    """One connection to the node, and what it has been answered."""

    def __init__(self, listener: Any) -> None:
        self.transport = Answers()
        self.connection = listener.new_connection()
        self.connection.connection_made(self.transport)  # type: ignore[arg-type]
        self.received: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def answered(self, count: int) -> bool:
        self.received += self.transport.take()
        return len(self.received) >= count

    def take(self, api_key: int, version: int) -> list[Any]:
        received, self.received = self.received, []
        return [frame.decode_response(api_key, version, memoryview(x))[1] for x in received]


class Bench:
    """The node with its clients."""

    def __init__(self, node: Node, options: argparse.Namespace) -> None:
        self.node = node
        self.options = options
        listener = next(iter(node.listeners.bound.values()))
        self.clients = [Client(listener) for _ in range(options.connections)]
        self.cpu_s = 0.0
        self.passing = 0  # answers that made a client ask again

    async def turn(self, feed: dict[int, bytes], count: int = 1) -> None:
        """Hand clients their bytes, until each has `count` answers; only this is counted."""
        asked = [self.clients[i] for i in feed]
        started = time.process_time()
        for client, data in zip(asked, feed.values(), strict=True):
            client.feed(data)
        for _ in range(TURNS_MAX):
            if all(client.answered(count) for client in asked):
                break
            await asyncio.sleep(0)
        else:
            raise SystemExit("bench: not every request was answered")
        self.cpu_s += time.process_time() - started

    async def ask(
        self, make: Callable[[int], Any], version: int, code: Callable[[Any], int]
    ) -> list[Any]:
        """The answers to make(number of the client), once none of them is an error that passes."""
        answers: dict[int, Any] = {}
        while len(answers) < len(self.clients):
            open_ones = [i for i in range(len(self.clients)) if i not in answers]
            requests = {i: make(i) for i in open_ones}
            api_key = type(requests[open_ones[0]]).API_KEY
            await self.turn({i: encoded(x, version) for i, x in requests.items()})
            for i in open_ones:
                (answer,) = self.clients[i].take(api_key, version)
                if code(answer) not in (0, 3, 14, 15, 16, 51):
                    raise SystemExit(f"bench: refused: {answer}")
                if code(answer) == 0:
                    answers[i] = answer
                else:
                    self.passing += 1
            if len(answers) < len(self.clients):
                await asyncio.sleep(0.02)
        return [answers[i] for i in range(len(self.clients))]


async def commits(bench: Bench) -> Callable[[], Any]:
    pipeline = bench.options.pipeline

    def code(answer: Any) -> int:
        return int(answer.topics[0].partitions[0].error_code)

    for first in range(0, GROUPS, len(bench.clients)):
        await bench.ask(lambda i, first=first: commit(f"bench-{first + i}", 1), 8, code)  # type: ignore[misc]
    frames = {
        i: b"".join(
            encoded(commit(f"bench-{(i * pipeline + k) % GROUPS}", i), 8) for k in range(pipeline)
        )
        for i in range(len(bench.clients))
    }

    async def one_round() -> int:
        await bench.turn(frames, pipeline)
        for client in bench.clients:
            client.received.clear()
        return len(frames) * pipeline

    return one_round


async def heartbeats(bench: Bench) -> Callable[[], Any]:
    shape = m.JoinGroupRequest
    protocols = [shape.JoinGroupRequestProtocol(name="range", metadata=b"")]

    def join(i: int) -> Any:
        return shape(
            group_id=f"beat-{i % (len(bench.clients) // 10)}", session_timeout_ms=300_000,
            rebalance_timeout_ms=60_000, protocol_type="bench", protocols=protocols,
        )  # fmt: skip

    joined = await bench.ask(join, 3, lambda x: int(x.error_code))
    frames = {
        i: encoded(
            m.HeartbeatRequest(
                group_id=join(i).group_id,
                generation_id=x.generation_id,
                member_id=x.member_id,
            ),
            3,
        )
        for i, x in enumerate(joined)
    }

    return repeated(bench, frames)


async def transactions(bench: Bench) -> Callable[[], Any]:
    def begin(i: int) -> Any:
        return m.InitProducerIdRequest(transactional_id=f"bench-{i}", transaction_timeout_ms=60_000)

    owners = await bench.ask(begin, 4, lambda x: int(x.error_code))

    def produced(answer: Any) -> int:
        return int(answer.responses[0].partition_responses[0].error_code)

    async def one_round() -> int:
        def record(i: int) -> Any:
            return produce(f"bench-{i}", i % PARTITIONS, owners[i])

        def end(i: int) -> Any:
            return end_transaction(f"bench-{i}", owners[i])

        await bench.ask(record, 12, produced)
        owners[:] = await bench.ask(end, 5, lambda x: int(x.error_code))
        return len(owners)

    return one_round


def repeated(bench: Bench, frames: dict[int, bytes]) -> Callable[[], Any]:
    """The same request of each client in each round."""

    async def one_round() -> int:
        await bench.turn(frames)
        for client in bench.clients:
            client.received.clear()
        return len(frames)

    return one_round


async def consumers(bench: Bench) -> Callable[[], Any]:
    shape = m.ConsumerGroupHeartbeatRequest

    def group_of(i: int) -> str:
        return f"consumers-{i % (len(bench.clients) // 10)}"

    def join(i: int) -> Any:
        return shape(
            group_id=group_of(i), member_id=f"member-{i}", rebalance_timeout_ms=60_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[],
        )  # fmt: skip

    def beat(i: int, owned: list[Any] | None = None) -> Any:
        return shape(
            group_id=group_of(i), member_id=f"member-{i}", member_epoch=epochs[i],
            topic_partitions=owned,
        )  # fmt: skip

    def code(answer: Any) -> int:
        return int(answer.error_code)

    epochs = [x.member_epoch for x in await bench.ask(join, 1, code)]
    for _ in range(5):  # until nobody has to move any more
        heard = await bench.ask(lambda i: beat(i, []), 1, code)
        epochs = [x.member_epoch for x in heard]
        await asyncio.sleep(0.5)
    return repeated(bench, {i: encoded(beat(i), 1) for i in range(len(bench.clients))})


async def metadata(bench: Bench) -> Callable[[], Any]:
    topic = m.MetadataRequest.MetadataRequestTopic(name=TOPIC)
    request = m.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
    await bench.ask(lambda i: request, 12, lambda x: int(x.topics[0].error_code))
    return repeated(bench, {i: encoded(request, 12) for i in range(len(bench.clients))})


SCENARIOS = {
    "commits": commits,
    "heartbeats": heartbeats,
    "transactions": transactions,
    "consumers": consumers,
    "metadata": metadata,
}


async def measure(options: argparse.Namespace, directory: str) -> float:
    """CPU seconds of one, the best of the rounds."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    node = await node_with_topic(directory, TOPIC, PARTITIONS, settings, options.option)
    bench = Bench(node, options)
    for kind in (0, 1):

        def find(i: int, kind: int = kind) -> Any:
            return m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["bench"])

        await bench.ask(find, 4, lambda x: int(x.coordinators[0].error_code))
    one_round = await SCENARIOS[options.scenario](bench)

    async def counted() -> float:
        bench.cpu_s = 0.0
        done = await one_round()
        return bench.cpu_s / done

    for _ in range(10):
        await counted()
    if options.profile:
        await _profile(options.rounds, counted)
    bench.passing = 0
    before = plain_of(node)
    best = min([await counted() for _ in range(options.rounds)])
    if bench.passing:
        print(f"{bench.passing} answers in {options.rounds} rounds asked to come again")
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
    parser.add_argument("scenario", choices=list(SCENARIOS), nargs="?", default="commits")
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--pipeline", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("-o", "--option", action="append", help="a broker config, name=value")
    options = parser.parse_args()
    tune_malloc()
    loop = new_event_loop()
    with tempfile.TemporaryDirectory(prefix="bench-one-") as directory:
        seconds = loop.run_until_complete(measure(options, directory))
    print(f"{options.scenario}: {seconds * 1e6:.2f} us of CPU each")
    return 0


if __name__ == "__main__":
    sys.exit(main())
