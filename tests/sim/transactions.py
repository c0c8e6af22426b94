"""Histories of transactional producers on one broker that is killed at random moments.

Producers begin, write to two partitions and commit offsets of a group, commit or abort, and come
back with InitProducerId whenever an answer was lost. In the end every transaction is either there
as a whole, in both partitions and with its offset, or not at all; one that was answered is what the
answer said; and nothing open holds back the stable offset. `python -m tests.sim.transactions SEED`
tells of one history.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from kwire.config import BrokerConfig
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch, iterate_headers, read_batch
from kwire.testing.simulation import Simulation
from kwire.testing.simulation.client import SimulatedClient

PORT = 9092
TOPIC, GROUP = "ledger", "readers"
PRODUCERS, TRANSACTIONS, KILLS = 3, 12, 5
SETTINGS = {
    "log.dirs": "/data",
    "listeners": f"PLAINTEXT://broker:{PORT}",
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
}
COMMITTED, ABORTED, UNKNOWN = "committed", "aborted", "unknown"
LOST = (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError)


class Lost(Exception):
    """An answer that did not come, or that says to begin anew."""


class Ledger:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed)
        self.broker = self.simulation.host("broker")
        self.hosts = [self.simulation.host(f"producer-{i}") for i in range(PRODUCERS)]
        self.random = self.simulation.random
        # name of a transaction -> what its producer knows of it
        self.outcomes: dict[str, str] = {}
        self.offsets: dict[str, int] = {}
        self.stable: list[int] = []
        self.node = self.start()

    def start(self) -> Node:
        config = BrokerConfig.load(
            properties={}, environment={}, overrides=dict(SETTINGS), developer=True
        )
        host = self.broker
        node = Node(config, host.loop, clock=host.clock, random=host.random, files=host.disk)
        self.simulation.run(host, node.start())
        return node

    def run(self) -> None:
        first = self.hosts[0]
        self.simulation.run(first, self.prepare())
        tasks = [
            host.loop.create_task(self.produce(number)) for number, host in enumerate(self.hosts)
        ]
        for _ in range(KILLS):
            self.simulation.run_for(self.simulation.uniform(0.02, 0.4))
            self.broker.crash(power_loss=False)
            self.simulation.run_for(0.2)
            self.broker.restart()
            self.node = self.start()
        self.simulation.run_until(lambda: all(task.done() for task in tasks))
        for task in tasks:
            task.result()
        self.simulation.run(first, self.check())
        self.simulation.run(self.broker, self.node.stop())

    # --- the producers ---

    async def prepare(self) -> None:
        client = await SimulatedClient.connect("broker", PORT)
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=2, replication_factor=1
        )
        await client.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=5000), 5)
        for kind, key in ((0, GROUP), (1, "producer-0")):
            request = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            while (await client.ask(request, 4)).coordinators[0].error_code:
                await asyncio.sleep(0.05)
        client.close()

    async def produce(self, number: int) -> None:
        """One producer's transactions, over as many connections as it takes."""
        count = 0
        while count < TRANSACTIONS:
            client: SimulatedClient | None = None
            try:
                client = await asyncio.wait_for(SimulatedClient.connect("broker", PORT), 5)
                owner = await self.init(client, number)
                while count < TRANSACTIONS:
                    count += 1
                    owner = await self.transaction(client, number, owner, f"{number}-{count}")
            except (Lost, *LOST):
                await asyncio.sleep(0.05)
            finally:
                if client is not None:
                    client.close()

    async def until(self, client: SimulatedClient, request: Any, version: int, code: Any) -> Any:
        """Ask until the error passes; raises Lost for one that does not."""
        for _ in range(200):
            response = await asyncio.wait_for(client.ask(request, version), 10)
            error = code(response)
            if error == 0:
                return response
            if error not in (3, 5, 6, 7, 14, 15, 16, 51):
                raise Lost(error)
            await asyncio.sleep(0.02)
        raise Lost("never")

    async def init(self, client: SimulatedClient, number: int) -> tuple[int, int]:
        request = m.InitProducerIdRequest(
            transactional_id=f"producer-{number}", transaction_timeout_ms=60_000
        )
        answer = await self.until(client, request, 4, lambda x: x.error_code)
        return answer.producer_id, answer.producer_epoch

    async def transaction(
        self, client: SimulatedClient, number: int, owner: tuple[int, int], name: str
    ) -> tuple[int, int]:
        self.outcomes[name] = ABORTED  # as long as nobody has asked for a commit
        for partition in (0, 1):
            request = self.records(number, owner, partition, name)
            await self.until(
                client, request, 12, lambda x: x.responses[0].partition_responses[0].error_code
            )
            await asyncio.sleep(self.simulation.uniform(0, 0.05))
        self.offsets[name] = len(self.offsets) + 1
        request = self.offset(number, owner, self.offsets[name])
        await self.until(client, request, 5, lambda x: x.topics[0].partitions[0].error_code)
        commit = self.random.below(3) > 0
        end = m.EndTxnRequest(
            transactional_id=f"producer-{number}",
            producer_id=owner[0],
            producer_epoch=owner[1],
            committed=commit,
        )
        if commit:
            self.outcomes[name] = UNKNOWN
        answer = await self.until(client, end, 5, lambda x: x.error_code)
        self.outcomes[name] = COMMITTED if commit else ABORTED
        return answer.producer_id, answer.producer_epoch

    def records(self, number: int, owner: tuple[int, int], partition: int, name: str) -> Any:
        now_ms = self.broker.clock.wall_ms()
        batch = build_batch(
            [Record(offset=0, timestamp=now_ms, key=None, value=name.encode(), headers=[])],
            producer_id=owner[0],
            producer_epoch=owner[1],
            base_sequence=0,
            transactional=True,
        )
        shape = m.ProduceRequest
        data = shape.PartitionProduceData(index=partition, records=bytes(batch))
        return shape(
            transactional_id=f"producer-{number}",
            acks=-1,
            timeout_ms=5000,
            topic_data=[shape.TopicProduceData(name=TOPIC, partition_data=[data])],
        )

    def offset(self, number: int, owner: tuple[int, int], offset: int) -> Any:
        shape = m.TxnOffsetCommitRequest
        partition = shape.TxnOffsetCommitRequestPartition(
            partition_index=number % 2, committed_offset=offset, committed_metadata=""
        )
        topic = shape.TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
        return shape(
            transactional_id=f"producer-{number}",
            group_id=f"{GROUP}-{number}",
            producer_id=owner[0],
            producer_epoch=owner[1],
            topics=[topic],
        )

    # --- the end ---

    async def check(self) -> None:
        client = await SimulatedClient.connect("broker", PORT)
        for number in range(PRODUCERS):
            await self.init(client, number)  # ends what is open
        await asyncio.sleep(1)
        seen = [await self.visible(client, partition) for partition in (0, 1)]
        for name, outcome in self.outcomes.items():
            counts = [values.count(name) for values in seen]
            assert counts in ([0, 0], [1, 1]), (name, outcome, counts)
            if outcome != UNKNOWN:
                assert counts[0] == (outcome == COMMITTED), (name, outcome, counts)
        for number in range(PRODUCERS):
            mine = [x for x in self.outcomes if x.startswith(f"{number}-") and x in seen[0]]
            expected = self.offsets[mine[-1]] if mine else -1
            assert await self.committed(client, number) == expected, (number, mine)
        client.close()

    async def visible(self, client: SimulatedClient, partition: int) -> list[str]:
        """What a reader of committed records finds, in order; nothing holds it back."""
        shape = m.FetchRequest
        found: list[str] = []
        offset, end = 0, 1
        while offset < end:
            asked = shape.FetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
            )
            request = shape(
                max_wait_ms=100,
                min_bytes=1,
                max_bytes=1 << 20,
                isolation_level=1,
                topics=[shape.FetchTopic(topic=TOPIC, partitions=[asked])],
            )
            answer = (await client.ask(request, 11)).responses[0].partitions[0]
            assert answer.error_code == 0, answer
            assert answer.last_stable_offset == answer.high_watermark, answer
            end = answer.high_watermark
            aborted = {(x.producer_id, x.first_offset) for x in answer.aborted_transactions or ()}
            data = bytes(answer.records or b"")
            assert data, "there is more"
            open_aborts: dict[int, bool] = {}
            for position, header in iterate_headers(data):
                first = (header.producer_id, header.base_offset) in aborted
                if header.is_control:
                    open_aborts.pop(header.producer_id, None)
                elif first or open_aborts.get(header.producer_id):
                    open_aborts[header.producer_id] = True
                else:
                    found += [(x.value or b"").decode() for x in read_batch(data, position)]
                offset = header.next_offset
        return found

    async def committed(self, client: SimulatedClient, number: int) -> int:
        shape = m.OffsetFetchRequest
        topic = shape.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[number % 2])
        group = shape.OffsetFetchRequestGroup(group_id=f"{GROUP}-{number}", topics=[topic])
        request = shape(groups=[group], require_stable=True)
        answer = await self.until(
            client, request, 8, lambda x: x.groups[0].topics[0].partitions[0].error_code
        )
        return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def main() -> None:
    ledger = Ledger(int(sys.argv[1]))
    ledger.run()
    for name, outcome in ledger.outcomes.items():
        print(name, outcome)
    print(ledger.simulation.fingerprint())


if __name__ == "__main__":
    main()
