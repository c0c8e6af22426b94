"""Groups and transactions over the wire: `python bench/groups.py HOST:PORT [--pid PID]`.

    commits         OffsetCommit of one partition, 200 groups, CONNECTIONS connections
    heartbeats      classic members heartbeating, 2,000 in 200 groups
    transactions    InitProducerId once, then per transaction: Produce of one record (which adds the
                    partition), EndTxn; PRODUCERS producers beside each other

Requests are encoded before the clock starts. A connection has one request on its way in
transactions and PIPELINE of them otherwise. With --pid the CPU time of that process is told per
request. Runs against Apache Kafka as well. The broker needs group.initial.rebalance.delay.ms=3000
(Kafka's default), so that the members of a group come into one generation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch

CONNECTIONS, PIPELINE, PRODUCERS = 8, 16, 64
GROUPS, MEMBERS_OF_A_GROUP = 200, 10
TOPIC = "bench-groups"
CONCURRENT_TRANSACTIONS = 51
PASSING = (3, 14, 15, 16)
PATIENCE_S = 60


class Connection:
    """One connection; answers come in the order of the requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str) -> Connection:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 20))

    def close(self) -> None:
        self._writer.close()

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def receive(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(size)

    async def ask(self, request: Any, version: int) -> Any:
        self.send(encoded(request, version))
        data = await self.receive()
        return frame.decode_response(type(request).API_KEY, version, memoryview(data))[1]

    async def until(self, request: Any, version: int, code: Callable[[Any], int]) -> Any:
        """Ask until the error code is not one that passes; SystemExit after PATIENCE_S."""
        give_up_at = time.monotonic() + PATIENCE_S
        while True:
            response = await self.ask(request, version)
            if code(response) not in (*PASSING, CONCURRENT_TRANSACTIONS):
                return response
            if time.monotonic() > give_up_at:
                raise SystemExit(f"bench: {response} for {PATIENCE_S} s")
            await asyncio.sleep(0.02)


def encoded(request: Any, version: int) -> bytes:
    parts = frame.encode_request(type(request).API_KEY, version, 1, "bench", request)
    return b"".join(bytes(part) for part in parts)


def cpu_s(pid: int | None) -> float:
    """CPU seconds of a process (Linux)."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def pump(connection: Connection, requests: list[bytes], ends_at: float) -> int:
    """Send `requests` round and round with PIPELINE on their way; how many were answered."""
    sent = done = 0
    while time.monotonic() < ends_at:
        while sent - done < PIPELINE:
            connection.send(requests[sent % len(requests)])
            sent += 1
        await connection.receive()
        done += 1
    while done < sent:
        await connection.receive()
        done += 1
    return done


def commit(group: str, offset: int) -> Any:
    shape = m.OffsetCommitRequest
    partition = shape.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topic = shape.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return shape(group_id=group, topics=[topic])


async def commits(address: str, seconds: float) -> int:
    first = await Connection.open(address)
    for i in range(GROUPS):
        await first.until(
            commit(f"bench-{i}", 1), 8, lambda x: int(x.topics[0].partitions[0].error_code)
        )
    ends_at = time.monotonic() + seconds
    pumps = []
    for n in range(CONNECTIONS):
        requests = [encoded(commit(f"bench-{i}", i), 8) for i in range(n, GROUPS, CONNECTIONS)]
        pumps.append(pump(await Connection.open(address), requests, ends_at))
    return sum(await asyncio.gather(*pumps))


async def members_of(address: str, group: str) -> list[bytes]:
    """A group of MEMBERS_OF_A_GROUP members in a stable generation; their heartbeats."""
    shape = m.JoinGroupRequest
    protocols = [shape.JoinGroupRequestProtocol(name="range", metadata=b"")]
    connections = [await Connection.open(address) for _ in range(MEMBERS_OF_A_GROUP)]
    request = shape(
        group_id=group, session_timeout_ms=300_000, rebalance_timeout_ms=60_000,
        protocol_type="bench", protocols=protocols,
    )  # fmt: skip
    joined = await asyncio.gather(
        *[x.until(request, 3, lambda answer: int(answer.error_code)) for x in connections]
    )
    found = []
    for answer in joined:
        beat = m.HeartbeatRequest(
            group_id=group, generation_id=answer.generation_id, member_id=answer.member_id
        )
        found.append(encoded(beat, 3))
    for connection in connections:
        connection._writer.close()
    return found


async def heartbeats(address: str, seconds: float) -> int:
    requests: list[bytes] = []
    name = f"bench-beat-{time.time():.3f}"  # members of before would be waited for
    for start in range(0, GROUPS, 50):
        groups = [members_of(address, f"{name}-{i}") for i in range(start, start + 50)]
        for beats in await asyncio.gather(*groups):
            requests += beats
    ends_at = time.monotonic() + seconds
    pumps = [
        pump(await Connection.open(address), requests[n::CONNECTIONS], ends_at)
        for n in range(CONNECTIONS)
    ]
    return sum(await asyncio.gather(*pumps))


def produce(transactional_id: str, partition: int, owner: Any) -> Any:
    """A record of a transaction; `owner` has the producer's id and epoch."""
    shape = m.ProduceRequest
    batch = build_batch(
        [Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=b"x" * 100,
                headers=[])],
        producer_id=owner.producer_id, producer_epoch=owner.producer_epoch, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    data = shape.PartitionProduceData(index=partition, records=bytes(batch))
    return shape(
        transactional_id=transactional_id, acks=-1, timeout_ms=9000,
        topic_data=[shape.TopicProduceData(name=TOPIC, partition_data=[data])],
    )  # fmt: skip


def end_transaction(transactional_id: str, owner: Any) -> Any:
    return m.EndTxnRequest(
        transactional_id=transactional_id, producer_id=owner.producer_id,
        producer_epoch=owner.producer_epoch, committed=True,
    )  # fmt: skip


async def producer(address: str, number: int, ends_at: float) -> int:
    connection = await Connection.open(address)
    transactional_id, partition = f"bench-{number}", number % 8
    request = m.InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=60_000
    )
    owner = await connection.until(request, 4, lambda x: int(x.error_code))
    done = 0
    while time.monotonic() < ends_at:
        await connection.until(
            produce(transactional_id, partition, owner),
            12,
            lambda x: int(x.responses[0].partition_responses[0].error_code),
        )
        answer = await connection.until(
            end_transaction(transactional_id, owner), 5, lambda x: int(x.error_code)
        )
        assert answer.error_code == 0, answer
        owner, done = answer, done + 1
    return done


async def transactions(address: str, seconds: float) -> int:
    ends_at = time.monotonic() + seconds
    return sum(await asyncio.gather(*[producer(address, i, ends_at) for i in range(PRODUCERS)]))


SCENARIOS: dict[str, Callable[[str, float], Awaitable[int]]] = {
    "commits": commits,
    "heartbeats": heartbeats,
    "transactions": transactions,
}


async def prepare(address: str) -> None:
    """Make the topic, and the coordinators'."""
    admin = await Connection.open(address)
    topic = m.CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=8, replication_factor=1)
    await admin.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=9000), 5)
    for kind in (0, 1):
        asked = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["bench"])
        await admin.until(asked, 4, lambda x: int(x.coordinators[0].error_code))
    admin.close()


async def run(address: str, seconds: float, pid: int | None, names: list[str]) -> dict[str, Any]:
    await prepare(address)
    results = {}
    for name in names:
        await SCENARIOS[name](address, 1.0)  # warm up, and make what is needed
        before, started = cpu_s(pid), time.monotonic()
        done = await SCENARIOS[name](address, seconds)
        spent = time.monotonic() - started
        results[name] = {"per_s": round(done / min(spent, seconds + 1))}
        if pid is not None:
            results[name]["cpu_us"] = round((cpu_s(pid) - before) / done * 1e6, 1)
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--pid", type=int)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=list(SCENARIOS), action="append")
    given = parser.parse_args()
    names = given.only or list(SCENARIOS)
    results = asyncio.run(run(given.address, given.seconds, given.pid, names))
    for name, figures in results.items():
        print(name, figures)
    if given.json is not None:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
