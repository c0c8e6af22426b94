"""A broker's own work on share groups' requests, without sockets: us of CPU each.

    bench/one_share.py [bulk|small|acknowledge|empty|heartbeats ...] [--connections N] [--rounds N]
                       [--profile]

As `one_request.py`: a node runs in this process, and each round hands every connection its next
request. Every connection is the one member of a group of its own, and all of them read the same
partition. ShareFetch is version 2, with what Kafka's Java consumer asks for.

    bulk         a fetch of a batch of 1 MB (1,000 records), which accepts the batch before it
    small        the same with 500 records in batches of 10, 100 bytes a record
    acknowledge  a fetch of a batch of 1,000 small records, and its ShareAcknowledge: two requests
    empty        a fetch of 8 partitions without anything to acquire, which does not wait
    heartbeats   ShareGroupHeartbeat of CONNECTIONS members of one group, 12 partitions
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
from bench.one_record import _answer, _profile
from bench.one_request import Bench
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop, tune_malloc
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch

TOPIC = "bench-share"
PARTITIONS, MEMBERS_PARTITIONS = 8, 12
VERSION = 2
ACCEPT = 1
WARM_ROUNDS = 10
PATIENCE = 200


def _batch(records: int, value_bytes: int) -> bytes:
    now_ms = int(time.time() * 1000)
    value = b"x" * value_bytes
    return bytes(build_batch([Record(i, now_ms, None, value, []) for i in range(records)]))


class Members:
    """Each connection's member and the group that is its own."""

    def __init__(self, bench: Bench, topic_id: bytes, partitions: int = 1) -> None:
        self.bench = bench
        self.topic_id = topic_id
        self.partitions = partitions
        self.epochs = [0] * len(bench.clients)
        self.acquired: list[tuple[int, int] | None] = [None] * len(bench.clients)

    def heartbeat(self, i: int) -> Any:
        return m.ShareGroupHeartbeatRequest(
            group_id=f"share-{i}",
            member_id=f"member-{i}",
            member_epoch=0,
            subscribed_topic_names=[TOPIC],
        )

    async def join(self) -> None:
        """Until the states of the partitions are initialized."""
        await self.bench.ask(self.heartbeat, 1, lambda x: int(x.error_code))
        for _ in range(PATIENCE):
            answers = await self.bench.ask(self.heartbeat, 1, lambda x: int(x.error_code))
            if all(x.assignment and x.assignment.topic_partitions for x in answers):
                return
            await asyncio.sleep(0.05)
        raise SystemExit(f"bench: not every member has partitions: {answers[0]}")

    def fetch(self, i: int, wait_ms: int = 0, records_max: int = 500) -> bytes:
        """The next fetch of a session, with the acknowledgement of what was acquired last."""
        shape = m.ShareFetchRequest
        epoch, self.epochs[i] = self.epochs[i], self.epochs[i] + 1
        said, self.acquired[i] = self.acquired[i], None
        batches = []
        if said is not None:
            batches = [
                shape.AcknowledgementBatch(
                    first_offset=said[0], last_offset=said[1], acknowledge_types=[ACCEPT]
                )
            ]
        count = self.partitions if not epoch else (1 if said else 0)
        partitions = [
            shape.FetchPartition(partition_index=index, acknowledgement_batches=batches)
            for index in range(count)
        ]
        topics = [shape.FetchTopic(topic_id=self.topic_id, partitions=partitions)]
        return encoded(
            shape(
                group_id=f"share-{i}",
                member_id=f"member-{i}",
                share_session_epoch=epoch,
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=50 << 20,
                max_records=records_max,
                batch_size=records_max,
                topics=topics if count else [],
            ),
            VERSION,
        )

    def acknowledge(self, i: int) -> bytes:
        shape = m.ShareAcknowledgeRequest
        epoch, self.epochs[i] = self.epochs[i], self.epochs[i] + 1
        said, self.acquired[i] = self.acquired[i], None
        assert said is not None
        batch = shape.AcknowledgementBatch(
            first_offset=said[0], last_offset=said[1], acknowledge_types=[ACCEPT]
        )
        partition = shape.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        topic = shape.AcknowledgeTopic(topic_id=self.topic_id, partitions=[partition])
        return encoded(
            shape(
                group_id=f"share-{i}",
                member_id=f"member-{i}",
                share_session_epoch=epoch,
                topics=[topic],
            ),
            VERSION,
        )

    def take(self, must_acquire: bool = True) -> None:
        """Note what came of a round of fetches."""
        for i, client in enumerate(self.bench.clients):
            for answer in client.take(m.ShareFetchRequest.API_KEY, VERSION):
                if answer.error_code:
                    raise SystemExit(f"bench: refused: {answer}")
                for topic in answer.responses:
                    for said in topic.partitions:
                        if said.error_code or said.acknowledge_error_code:
                            raise SystemExit(f"bench: refused: {said}")
                        if said.acquired_records:
                            first = said.acquired_records[0].first_offset
                            self.acquired[i] = first, said.acquired_records[-1].last_offset
            if must_acquire and self.acquired[i] is None:
                raise SystemExit("bench: nothing was acquired")

    async def open(self) -> None:
        """Sessions, until the share partitions are open."""
        for _ in range(PATIENCE):
            await self.bench.turn({i: self.fetch(i) for i in range(len(self.bench.clients))})
            self.take(must_acquire=False)
            if all(self.acquired):
                return
            await asyncio.sleep(0.02)
        raise SystemExit("bench: not every member acquired something")


async def _fill(bench: Bench, batch: bytes, batches: int, partition: int = 0) -> None:
    shape = m.ProduceRequest
    data = shape.PartitionProduceData(index=partition, records=batch)
    topic = shape.TopicProduceData(name=TOPIC, partition_data=[data])
    request = shape(acks=-1, timeout_ms=9000, topic_data=[topic])
    clients, bench.clients = bench.clients, bench.clients[:1]
    for _ in range(batches):
        await bench.ask(
            lambda i: request, 12, lambda x: int(x.responses[0].partition_responses[0].error_code)
        )
    bench.clients = clients


async def _consumed(
    bench: Bench, topic_id: bytes, batch: bytes, batches_a_fetch: int, records_max: int
) -> Callable[[], Any]:
    rounds = WARM_ROUNDS + 3 + bench.options.rounds * (2 if bench.options.profile else 1)
    await _fill(bench, batch, rounds * batches_a_fetch)
    members = Members(bench, topic_id)
    await members.join()
    await members.open()

    async def one_round() -> int:
        await bench.turn(
            {i: members.fetch(i, records_max=records_max) for i in range(len(bench.clients))}
        )
        members.take()
        return len(bench.clients)

    return one_round


async def bulk(bench: Bench, topic_id: bytes) -> Callable[[], Any]:
    return await _consumed(bench, topic_id, _batch(1000, 1000), 1, 500)


async def small(bench: Bench, topic_id: bytes) -> Callable[[], Any]:
    return await _consumed(bench, topic_id, _batch(10, 100), 50, 500)


async def acknowledge(bench: Bench, topic_id: bytes) -> Callable[[], Any]:
    rounds = WARM_ROUNDS + 3 + bench.options.rounds * (2 if bench.options.profile else 1)
    await _fill(bench, _batch(1000, 10), rounds)
    members = Members(bench, topic_id)
    await members.join()
    await members.open()

    async def one_round() -> int:
        clients = range(len(bench.clients))
        await bench.turn({i: members.acknowledge(i) for i in clients})
        for client in bench.clients:
            for answer in client.take(m.ShareAcknowledgeRequest.API_KEY, VERSION):
                (said,) = answer.responses[0].partitions
                if said.error_code:
                    raise SystemExit(f"bench: refused: {answer}")
        await bench.turn({i: members.fetch(i) for i in clients})
        members.take()
        return len(bench.clients)

    return one_round


async def empty(bench: Bench, topic_id: bytes) -> Callable[[], Any]:
    members = Members(bench, topic_id, PARTITIONS)
    for partition in range(PARTITIONS):
        await _fill(bench, _batch(1, 10), 1, partition)
    await members.join()
    await members.open()
    for _ in range(20):
        await bench.turn({i: members.fetch(i) for i in range(len(bench.clients))})
        members.take(must_acquire=False)

    async def one_round() -> int:
        await bench.turn({i: members.fetch(i) for i in range(len(bench.clients))})
        members.take(must_acquire=False)
        return len(bench.clients)

    return one_round


async def heartbeats(bench: Bench, topic_id: bytes) -> Callable[[], Any]:
    epochs = [0] * len(bench.clients)

    def beat(i: int) -> Any:
        return m.ShareGroupHeartbeatRequest(
            group_id="many",
            member_id=f"member-{i}",
            member_epoch=epochs[i],
            subscribed_topic_names=[TOPIC] if not epochs[i] else None,
        )

    async def one_round() -> int:
        answers = await bench.ask(beat, 1, lambda x: int(x.error_code))
        epochs[:] = [x.member_epoch for x in answers]
        return len(bench.clients)

    await one_round()
    for _ in range(50):
        await one_round()
        await asyncio.sleep(0.01)
    return one_round


SCENARIOS = {
    "bulk": bulk,
    "small": small,
    "acknowledge": acknowledge,
    "empty": empty,
    "heartbeats": heartbeats,
}


async def measure(options: argparse.Namespace, scenario: str, directory: str) -> float:
    """CPU seconds of one, the best of the rounds."""
    config = BrokerConfig.load(
        properties={},
        environment={},
        overrides={
            "log.dirs": directory,
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "group.share.max.size": "1000",
        },
        developer=True,
    )
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    count = MEMBERS_PARTITIONS if scenario == "heartbeats" else PARTITIONS
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=TOPIC, num_partitions=count, replication_factor=1
    )
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    created: Any = await _answer(node.controller_channel.forward(request, None))  # type: ignore[arg-type]
    bench = Bench(node, options)
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["bench"])
    await bench.ask(lambda i: find, 4, lambda x: int(x.coordinators[0].error_code))
    if scenario != "heartbeats":
        await _earliest(bench)
    one_round = await SCENARIOS[scenario](bench, created.topics[0].topic_id)

    async def counted() -> float:
        bench.cpu_s = 0.0
        done = await one_round()
        return bench.cpu_s / done

    for _ in range(WARM_ROUNDS):
        await counted()
    if options.profile:
        await _profile(options.rounds, counted)
    best = min([await counted() for _ in range(options.rounds)])
    for client in bench.clients:
        client.connection.connection_lost(None)
    await node.stop()
    return best


async def _earliest(bench: Bench) -> None:
    """Groups begin at the first record."""
    shape = m.IncrementalAlterConfigsRequest

    def alter(i: int) -> Any:
        config = shape.AlterableConfig(
            name="share.auto.offset.reset", config_operation=0, value="earliest"
        )
        resource = shape.AlterConfigsResource(
            resource_type=32, resource_name=f"share-{i}", configs=[config]
        )
        return shape(resources=[resource])

    await bench.ask(alter, 1, lambda x: int(x.responses[0].error_code))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="*", help=" ".join(SCENARIOS))
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    tune_malloc()
    loop = new_event_loop()
    for scenario in options.scenarios or list(SCENARIOS):
        with tempfile.TemporaryDirectory(prefix="bench-one-") as directory:
            seconds = loop.run_until_complete(measure(options, scenario, directory))
        print(f"{scenario}: {seconds * 1e6:.2f} us of CPU each", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
