"""The history of one broker from a seed: create, produce, fetch, commit, power loss, restart.

`python -m tests.sim.one_broker SEED` prints the transcript's fingerprint, so that a test can
compare processes with different hash seeds.
"""

from __future__ import annotations

import sys
from typing import Any

from kwire.config import BrokerConfig
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.testing.simulation import SimulatedHost, Simulation
from kwire.testing.simulation.client import SimulatedClient, batch_of, values_of

PORT = 9092
TOPIC = "history"
SETTINGS = {
    "log.dirs": "/data",
    "listeners": f"PLAINTEXT://broker:{PORT}",
    "offsets.topic.num.partitions": "3",
    "log.flush.interval.messages": "5",
}


def start_broker(host: SimulatedHost) -> Node:
    """A node on `host`, serving."""
    config = BrokerConfig.load(
        properties={}, environment={}, overrides=dict(SETTINGS), developer=True
    )
    node = Node(config, host.loop, clock=host.clock, random=host.random, files=host.disk)
    host.simulation.run(host, node.start())
    host.simulation.record(host.name, f"serves, cluster {node.cluster_id}")
    return node


async def produce(client: SimulatedClient, values: list[bytes]) -> int:
    request = m.ProduceRequest
    response = await client.ask(
        request(
            acks=-1,
            timeout_ms=5000,
            topic_data=[
                request.TopicProduceData(
                    name=TOPIC,
                    partition_data=[
                        request.PartitionProduceData(index=0, records=batch_of(values))
                    ],
                )
            ],
        ),
        9,
    )
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == 0, answer
    return int(answer.base_offset)


async def fetch_everything(client: SimulatedClient) -> list[tuple[int, bytes | None]]:
    request = m.FetchRequest
    found: list[tuple[int, bytes | None]] = []
    while True:
        offset = found[-1][0] + 1 if found else 0
        response = await client.ask(
            request(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=[
                    request.FetchTopic(
                        topic=TOPIC,
                        partitions=[
                            request.FetchPartition(
                                partition=0, fetch_offset=offset, partition_max_bytes=200
                            )
                        ],
                    )
                ],
            ),
            11,
        )
        records = values_of(response.responses[0].partitions[0].records)
        if not records:
            return found
        found += [record for record in records if record[0] >= offset]


async def commit(client: SimulatedClient, offset: int) -> None:
    request = m.OffsetCommitRequest
    while True:
        found = await client.ask(m.FindCoordinatorRequest(key="group"), 0)
        if found.error_code == 0:
            response = await client.ask(
                request(
                    group_id="group",
                    generation_id_or_member_epoch=-1,
                    topics=[
                        request.OffsetCommitRequestTopic(
                            name=TOPIC,
                            partitions=[
                                request.OffsetCommitRequestPartition(
                                    partition_index=0, committed_offset=offset
                                )
                            ],
                        )
                    ],
                ),
                8,
            )
            if response.topics[0].partitions[0].error_code == 0:
                return


async def committed(client: SimulatedClient) -> int:
    request = m.OffsetFetchRequest
    while True:
        response = await client.ask(
            request(
                group_id="group",
                topics=[request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])],
            ),
            5,
        )
        if response.error_code == 0:
            return int(response.topics[0].partitions[0].committed_offset)


async def create_topic(client: SimulatedClient, flush_messages: int) -> None:
    request = m.CreateTopicsRequest
    response = await client.ask(
        request(
            topics=[
                request.CreatableTopic(
                    name=TOPIC,
                    num_partitions=1,
                    replication_factor=1,
                    configs=[
                        request.CreatableTopicConfig(
                            name="flush.messages", value=str(flush_messages)
                        )
                    ],
                )
            ],
            timeout_ms=5000,
        ),
        5,
    )
    assert response.topics[0].error_code == 0, response


class History:
    """One seed's history; `simulation` holds the transcript afterwards."""

    def __init__(self, seed: int, flush_messages: int = 1) -> None:
        self.flush_messages = flush_messages
        self.simulation = Simulation(seed)
        self.broker = self.simulation.host("broker")
        self.client = self.simulation.host("client")
        self.clients: list[SimulatedClient] = []
        self.acknowledged: list[tuple[int, bytes | None]] = []

    def run(self) -> None:
        try:
            self._run()
        finally:
            for client in self.clients:
                client.close()

    def _run(self) -> None:
        start_broker(self.broker)
        self.simulation.run(self.client, self._before())
        self.broker.crash(power_loss=True)
        self.simulation.run_for(1)
        self.broker.restart()
        node = start_broker(self.broker)
        self.simulation.run(self.client, self._after())
        self.simulation.run(self.broker, node.stop())

    def note(self, what: Any) -> None:
        self.simulation.record("client", str(what))

    async def _before(self) -> None:
        client = await SimulatedClient.connect("broker", PORT)
        self.clients.append(client)
        await create_topic(client, self.flush_messages)
        draw = self.simulation.random.below
        for number in range(20):
            values = [b"%d-%d" % (number, i) + b"x" * draw(300) for i in range(1 + draw(4))]
            base = await produce(client, values)
            self.acknowledged += [(base + i, value) for i, value in enumerate(values)]
            self.note(f"produced {base}+{len(values)}")
            if number % 5 == 0:
                await commit(client, base)
                self.note(f"committed {base}")
        self.note(await fetch_everything(client))

    async def _after(self) -> None:
        client = await SimulatedClient.connect("broker", PORT)
        self.clients.append(client)
        found = await fetch_everything(client)
        self.note(found)
        assert found == self.acknowledged, "flush.messages=1: what was acknowledged was synced"
        self.note(await committed(client))
        self.acknowledged.append((await produce(client, [b"after"]), b"after"))
        assert await fetch_everything(client) == self.acknowledged


def main() -> None:
    history = History(int(sys.argv[1]))
    history.run()
    print(history.simulation.fingerprint(), history.simulation.events)


if __name__ == "__main__":
    main()
