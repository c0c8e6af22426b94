"""No request keeps anything once it is answered, refused or given up: the collector has nothing
to do.

A refused request of transactions kept the buffer that it was received into: its error held the
frames that it was raised in, one of which held the pending reply, which held the error. Two
thousand of them on one connection took 120 MB.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.api import fetch, produce
from kwire.config.broker_config import BrokerConfig
from kwire.network.loop import new_event_loop
from kwire.node.node import Node
from kwire.protocol import messages as m
from kwire.protocol.api_keys import API_KEYS, is_supported
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec
from kwire.testing.simulation.client import SimulatedClient, batch_of
from tests.sim.client import RoutingClient
from tests.sim.faults import Plan
from tests.sim.history import START_LIMIT_S, History
from tests.sim.workload import create_topics
from tests.support import admin_scenario
from tests.support.effort import seeds
from tests.support.leftovers import Leftovers
from tests.support.vectors import message_of, rows

ANSWER_S = 0.05  # what takes longer is hung up on
SETTLE_S = 0.01


class DenyAll:
    """Whatever a request asks for, it may not."""

    def authorize(self, *_: object) -> bool:
        return False


def made(name: str, **values: Any) -> Any:
    """A request from plain data, as the vectors describe them."""
    return message_of({"message": f"{name}Request", "value": values})


def records(*values: bytes, **options: Any) -> str:
    return base64.b64encode(bytes(batch_of(list(values), **options))).decode()


class Served:
    """A node on this loop, and connections to it."""

    def __init__(self, node: Node, leftovers: Leftovers) -> None:
        self.node = node
        self.leftovers = leftovers
        self.client: SimulatedClient | None = None

    async def connect(self) -> SimulatedClient:
        return await SimulatedClient.connect(*self.node.ready_address())

    async def ask(self, request: Any, version: int) -> Any:
        """The answer; None for a request that is hung up on, hangs up, or has none."""
        client = self.client = self.client or await self.connect()
        client.send(client.encoded(request, version))
        if getattr(request, "acks", 1) == 0:
            return None
        return await self._answer(client, type(request).API_KEY, version)

    async def _answer(self, client: SimulatedClient, api_key: int, version: int) -> Any:
        try:
            return await asyncio.wait_for(client.receive(api_key, version), ANSWER_S)
        except (TimeoutError, asyncio.IncompleteReadError, OSError):
            client.close()
            self.client = None
            return None

    async def until(self, request: Any, version: int, is_so: Callable[[Any], bool]) -> Any:
        """The first answer that `is_so`."""
        for _ in range(500):
            answer = await self.ask(request, version)
            if answer is not None and is_so(answer):
                return answer
            await asyncio.sleep(SETTLE_S)
        raise AssertionError(f"{answer} to {request}")

    async def warm_up(self) -> None:
        """Both coordinators are loaded."""
        for kind in (0, 1):
            request = made("FindCoordinator", keyType=kind, coordinatorKeys=["any"])
            await self.until(request, 4, lambda answer: not answer.coordinators[0].error_code)

    async def create(self, topic: str, **configs: str) -> None:
        listed = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
        one = {"name": topic, "numPartitions": 1, "replicationFactor": 1, "configs": listed}
        await self.ask(made("CreateTopics", topics=[one], timeoutMs=9000), 7)
        request = made("Metadata", topics=[{"name": topic}], allowAutoTopicCreation=False)
        await self.until(request, 9, lambda answer: not answer.topics[0].error_code)

    async def left(self) -> dict[str, int]:
        """What was left behind since the last time."""
        for _ in range(3):
            await asyncio.sleep(SETTLE_S)
        return self.leftovers.look()


Play = Callable[[Served], Awaitable[None]]


@contextlib.asynccontextmanager
async def serving(directory: Path, settings: dict[str, str]) -> AsyncIterator[Served]:
    overrides = {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "group.min.session.timeout.ms": "10",
        **settings,
    }
    config = BrokerConfig.load(properties={}, environment={}, overrides=overrides, developer=True)
    node = Node(config, asyncio.get_running_loop())
    await node.start()
    try:
        with Leftovers() as leftovers:
            served = Served(node, leftovers)
            try:
                yield served
            finally:
                if served.client is not None:
                    served.client.close()
    finally:
        await node.stop()


def run(directory: Path, play: Play, settings: dict[str, str] | None = None) -> None:
    async def main() -> None:
        async with serving(directory, settings or {}) as served:
            await play(served)

    loop = new_event_loop(use_uvloop=False)  # whose handles must not be resurrected
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


def requests_of_every_api() -> Iterator[tuple[str, list[tuple[Any, int]]]]:
    """By API: recorded requests, their fields drawn at random, of its first and its last version
    (of all versions with KWIRE_EFFORT)."""
    found: dict[str, list[tuple[Any, int]]] = {}
    for row in rows("wire"):
        if row["message"].endswith("Request"):
            key, version = m.by_name(row["message"]).API_KEY, row["version"]
            if not is_supported(key, version, "broker"):
                continue
            info = API_KEYS[key]
            if version in (info.min, info.max) or len(seeds(1)) > 1:
                found.setdefault(info.name, []).append((message_of(row), version))
    yield from found.items()


@pytest.mark.parametrize("authorizer", [None, DenyAll()], ids=["refused", "denied"])
def test_recorded_requests_of_every_api(tmp_path: Path, authorizer: Any) -> None:
    """Most of them are refused, some are hung up on."""

    async def play(served: Served) -> None:
        await served.warm_up()
        served.node.parts.authorizer = authorizer
        left, count = {}, 0
        for name, requests in requests_of_every_api():
            for request, version in requests:
                await served.ask(request, version)
            count += len(requests)
            left[name] = served.leftovers.look()  # of those that were hung up on, maybe later
        left["the last"] = await served.left()
        assert count > 300
        assert len(left) > 60
        assert not {name: found for name, found in left.items() if found}

    run(tmp_path, play)


def test_requests_of_administrators(tmp_path: Path) -> None:
    """Granted and refused ones, as Kafka's own tools send them."""

    async def play(served: Served) -> None:
        left = {}
        dialogue = admin_scenario.scenario()
        version, request = next(dialogue)
        with contextlib.suppress(StopIteration):
            while True:
                answer = await served.until(request, version, lambda answer: True)
                name = type(request).NAME
                if name == "CreateTopicsRequest" and not request.validate_only:
                    names = {topic.name for topic in answer.topics if not topic.error_code}
                    await served.until(
                        made("Metadata", topics=None, allowAutoTopicCreation=False),
                        9,
                        lambda known, names=names: names <= {t.name for t in known.topics},
                    )
                left[name] = await served.left()
                if name == "DeleteTopicsRequest":
                    left[name] = {x: n for x, n in left[name].items() if not x.startswith(OF_A_LOG)}
                version, request = dialogue.send(answer)
        assert len(left) > 20
        assert not {name: found for name, found in left.items() if found}

    run(tmp_path, play)


def produced(topic: str, batch: str, acks: int = -1, transactional_id: str | None = None) -> Any:
    data = [{"name": topic, "partitionData": [{"index": 0, "records": batch}]}]
    return made(
        "Produce", transactionalId=transactional_id, acks=acks, timeoutMs=1000, topicData=data
    )


def fetched(topic: str, offset: int, wait_ms: int = 0, **values: Any) -> Any:
    one = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [one]}]
    return made("Fetch", maxWaitMs=wait_ms, minBytes=1, maxBytes=1 << 20, topics=topics, **values)


async def check_each(served: Served, requests: list[tuple[Any, int]]) -> None:
    """Send them one after the other; nothing is left of any."""
    for request, version in requests:
        answer = await served.ask(request, version)
        found = await served.left()
        assert not found, (request, answer, found)


LARGE = bytes(300_000)
OF_A_LOG = ("kwire.log.", "kwire.protocol.records.")
"""The log of a partition refers to itself: what is left when it is deleted is not a request."""


def test_writes_and_reads(tmp_path: Path) -> None:
    """Of all acks; small, large, empty, damaged, and one that is unpacked beside the loop."""

    async def play(served: Served) -> None:
        await served.create("t")
        await served.create("synced", flush_messages="1")
        await served.create("small", max_message_bytes="1000")
        await served.create("zipped", compression_type="gzip")
        bomb = records(bytes(3_000_000), codec=Codec.GZIP)
        damaged = base64.b64encode(base64.b64decode(records(b"v"))[:-1] + b"x").decode()
        for topic in ("t", "synced", "small", "zipped", "unknown"):
            for acks in (-1, 1, 0, 7):
                for batch in (records(b"v"), records(LARGE), bomb, damaged, ""):
                    await served.ask(produced(topic, batch, acks), 9)
            assert not await served.left(), topic
        await check_each(
            served,
            [
                (fetched("t", 0), 12),
                (fetched("t", 1 << 40), 12),
                (fetched("t", 8, wait_ms=10), 12),
                (fetched("unknown", 0, wait_ms=10), 12),
                (fetched("t", 0, sessionEpoch=0), 12),
                (fetched("t", 0, sessionId=1, sessionEpoch=1), 12),
                (fetched("t", 0, isolationLevel=1), 12),
                (fetched("t", 0, isolationLevel=9), 12),
            ],
        )

    run(tmp_path, play)


def test_a_fetch_that_is_woken_and_one_whose_topic_is_deleted(tmp_path: Path) -> None:
    async def play(served: Served) -> None:
        await served.create("t")
        waiting = await served.connect()
        task = asyncio.ensure_future(waiting.ask(fetched("t", 0, wait_ms=20_000), 12))
        await served.ask(produced("t", records(b"v")), 9)
        assert (await task).responses[0].partitions[0].high_watermark == 1
        task = asyncio.ensure_future(waiting.ask(fetched("t", 1, wait_ms=20_000), 12))
        await asyncio.sleep(SETTLE_S)
        await served.ask(made("DeleteTopics", topicNames=["t"], timeoutMs=9000), 4)
        assert (await task).responses[0].partitions[0].error_code == 3
        waiting.close()
        del task
        found = await served.left()
        assert not [name for name in found if not name.startswith(OF_A_LOG)], found

    run(tmp_path, play)


def test_transactions(tmp_path: Path) -> None:
    """Committed and aborted, of either version of the protocol, by one who was fenced as well."""

    async def play(served: Served) -> None:
        await served.create("t")
        await served.warm_up()
        init = made("InitProducerId", transactionalId="tx", transactionTimeoutMs=60_000)
        answer = await served.until(init, 4, lambda answer: not answer.error_code)
        owner = {"producerId": answer.producer_id, "producerEpoch": answer.producer_epoch}

        def batch(sequence: int = 0, **owner: int) -> str:
            return records(
                b"v",
                producer_id=owner["producerId"],
                producer_epoch=owner["producerEpoch"],
                base_sequence=sequence,
                transactional=True,
            )

        named = {"transactionalId": "tx", **owner}
        old = {"v3AndBelow" + key[0].upper() + key[1:]: value for key, value in named.items()}
        topics = [{"name": "t", "partitions": [0]}]
        listed = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
        commit = {"groupId": "g", "topics": listed, **named}
        await check_each(
            served,
            [
                (made("AddPartitionsToTxn", v3AndBelowTopics=topics, **old), 3),
                (produced("t", batch(**owner), transactional_id="tx"), 11),
                (produced("t", batch(**owner), transactional_id="tx"), 11),
                (produced("t", batch(5, **owner), transactional_id="tx"), 11),
                (produced("t", batch(**owner), transactional_id="other"), 11),
                (made("AddOffsetsToTxn", groupId="g", **named), 3),
                (made("TxnOffsetCommit", **commit), 3),
                (made("DescribeTransactions", transactionalIds=["tx", "none"]), 0),
                (made("ListTransactions", stateFilters=[], producerIdFilters=[]), 0),
                (made("EndTxn", committed=True, **named), 3),
                (made("EndTxn", committed=False, **named), 3),
            ],
        )
        for committed in (True, False):
            answer = await served.until(init, 4, lambda answer: not answer.error_code)
            fenced = dict(named)
            owner["producerEpoch"] = named["producerEpoch"] = answer.producer_epoch
            await check_each(
                served,
                [
                    (produced("t", batch(**owner), transactional_id="tx"), 12),
                    (produced("t", batch(1, **owner), acks=0, transactional_id="tx"), 12),
                    (made("TxnOffsetCommit", **{**commit, **named}), 5),
                    (made("TxnOffsetCommit", **{**commit, **fenced}), 5),
                    (made("EndTxn", committed=committed, **fenced), 5),
                    (made("EndTxn", committed=committed, **named), 5),
                    (produced("t", batch(2, **owner), transactional_id="tx"), 12),
                ],
            )

    run(tmp_path, play)


def test_groups(tmp_path: Path) -> None:
    """Classic and KIP-848 ones: joined, committed, left; a member that is hung up on, and one whose
    session ends."""

    async def play(served: Served) -> None:
        await served.create("t")
        await served.warm_up()
        protocols = [{"name": "range", "metadata": ""}]
        session = {"sessionTimeoutMs": 50, "rebalanceTimeoutMs": 50}
        join = {"groupId": "g", "protocolType": "consumer", "protocols": protocols, **session}
        # On a busy machine the first answer may come too late.
        joined = await served.until(
            made("JoinGroup", memberId="", **join), 3, lambda answer: not answer.error_code
        )
        generation = joined.generation_id
        member = {"groupId": "g", "generationId": generation, "memberId": joined.member_id}
        offsets = [{"name": "t", "partitions": [{"partitionIndex": 0, "committedOffset": 1}]}]
        commit = {"groupId": "g", "memberId": joined.member_id, "topics": offsets}
        named = {"groupId": "new", "rebalanceTimeoutMs": 5000}
        consumer = {"subscribedTopicNames": ["t"], "topicPartitions": [], **named}
        shape = [{"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]}]
        await check_each(
            served,
            [
                (made("SyncGroup", assignments=[], **member), 3),
                (made("Heartbeat", **member), 3),
                (made("OffsetCommit", generationIdOrMemberEpoch=generation, **commit), 8),
                (made("OffsetCommit", generationIdOrMemberEpoch=generation + 8, **commit), 8),
                (made("OffsetFetch", groups=shape), 8),
                (made("DescribeGroups", groups=["g", "none"]), 5),
                (made("JoinGroup", memberId="", **join), 3),  # hung up on
                (made("SyncGroup", assignments=[], **member), 3),
                (made("LeaveGroup", groupId="g", memberId=joined.member_id), 2),
                (made("OffsetDelete", groupId="g", topics=[]), 0),
                (made("DeleteGroups", groupsNames=["g"]), 2),
                (made("ConsumerGroupHeartbeat", memberId="m", memberEpoch=0, **consumer), 1),
                (made("ConsumerGroupDescribe", groupIds=["new", "none"]), 1),
                (made("ConsumerGroupHeartbeat", memberId="m", memberEpoch=9, **named), 1),
                (made("ConsumerGroupHeartbeat", memberId="m", memberEpoch=-1, **named), 1),
                (made("ListGroups"), 5),
            ],
        )
        listed = made("DescribeGroups", groups=["g"])
        await served.until(listed, 5, lambda answer: answer.groups[0].group_state != "Stable")
        assert not await served.left()

    run(tmp_path, play)


def hang_up(client: SimulatedClient) -> None:
    """So that the broker hears it at once, and not that everything was sent."""
    linger = struct.pack("ii", 1, 0)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    client.close()


def test_writes_and_reads_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one without acks ends the connection, and the next, in slices, is not begun."""
    monkeypatch.setattr(produce, "SLICE_PARTITIONS", 0)
    monkeypatch.setattr(fetch._Fetch, "_is_long", lambda _: True)

    async def play(served: Served) -> None:
        await served.create("t")
        damaged = base64.b64encode(base64.b64decode(records(b"v"))[:-1] + b"x").decode()
        for topic in ("t", "unknown"):
            for acks in (-1, 1, 0, 7):
                for batch in (records(b"v"), damaged):
                    await served.ask(produced(topic, batch, acks), 9)
            assert not await served.left(), topic
        await check_each(
            served,
            [
                (fetched("t", 0), 12),
                (fetched("t", 0, sessionId=0, sessionEpoch=0), 12),
                (fetched("unknown", 0, wait_ms=50), 12),
                (fetched("t", 99), 12),
                (fetched("t", 0, isolationLevel=9), 12),
            ],
        )
        for end in (hang_up, SimulatedClient.close):
            client = await served.connect()
            client.send(client.encoded(fetched("t", 9, wait_ms=20_000), 12))
            end(client)
            del client
            assert not await served.left()

    run(tmp_path, play)


def test_clients_that_hang_up_in_the_middle(tmp_path: Path) -> None:
    """Of a frame, of a wait, of what is queued behind it, and of a batch that is being unpacked."""

    async def play(served: Served) -> None:
        await served.create("t")
        await served.warm_up()
        bomb = records(bytes(3_000_000), codec=Codec.GZIP)
        join = made(
            "JoinGroup", groupId="g", memberId="", protocolType="consumer",
            protocols=[{"name": "range", "metadata": ""}],
            sessionTimeoutMs=6000, rebalanceTimeoutMs=6000,
        )  # fmt: skip
        waits = [
            [(fetched("t", 0, wait_ms=20_000), 12)],
            [(fetched("t", 0, wait_ms=20_000), 12), (produced("t", records(LARGE), 0), 9)],
            [(produced("t", bomb), 9), (fetched("t", 0), 12), (produced("t", bomb, 0), 9)],
            [(produced("t", records(b"v")), 9), (made("ListOffsets", replicaId=-1, topics=[]), 7)],
            [(join, 3), (made("Heartbeat", groupId="g", generationId=1, memberId="m"), 3)],
            [(join, 3), (join, 3)],
        ]
        for requests in waits:
            for cut_bytes, end in ((0, hang_up), (1, hang_up), (0, SimulatedClient.close)):
                client = await served.connect()
                data = b"".join(client.encoded(request, version) for request, version in requests)
                client.send(data[: len(data) - cut_bytes])
                await asyncio.sleep(SETTLE_S)
                end(client)
                del client
                found = await served.left()
                assert not found, (requests, found)

    run(tmp_path, play)


@pytest.fixture
def quiet() -> Iterator[None]:
    """Connections that end in the middle are told in the log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("quiet")
def test_what_replicas_do_not_follow() -> None:
    """Writes of acks=-1 and deletions, answered by the clock, hung up on, or with a request behind
    them; three simulated nodes, and two of them hear nothing of the leader."""
    history = History(1, Plan())
    simulation = history.simulation
    loop = simulation.host("clients").loop

    def answer(coroutine: Any) -> Any:
        task = loop.create_task(coroutine)
        history.until(task.done, START_LIMIT_S, "there is no answer")
        return task.result()

    deletion = {"name": "t", "partitions": [{"partitionIndex": 0, "offset": 1}]}
    delete = made("DeleteRecords", topics=[deletion], timeoutMs=300)
    produce = produced("t", records(b"x:0:v"))
    latest = [{"name": "t", "partitions": [{"partitionIndex": 0, "timestamp": -1}]}]
    listed = made("ListOffsets", replicaId=-1, topics=latest)
    with history.checkers.watch():
        history.begin()
        router = RoutingClient(simulation.host("clients"), "creator")
        answer(create_topics(router, {"t": 1}))
        history.until(history.cluster.is_in_sync, START_LIMIT_S, "not everything is in sync")
        address, _ = answer(router.leader("t", 0))
        client = answer(SimulatedClient.connect(*address))
        produce.timeout_ms = 30_000
        assert not answer(client.ask(produce, 9)).responses[0].partition_responses[0].error_code
        produce.timeout_ms = 300
        for other in (1, 2, 3):
            if f"n{other}" != address[0]:
                simulation.network.block(f"n{other}", address[0], address[1])
        with Leftovers() as leftovers:
            refused = answer(client.ask(produce, 9)).responses[0].partition_responses[0]
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert not leftovers.look()
            refused = answer(client.ask(delete, 2)).topics[0].partitions[0]
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            assert not leftovers.look()
            for requests in ([(produce, 9)], [(delete, 2)], [(produce, 9), (listed, 7)]):
                client.send(b"".join(client.encoded(*request) for request in requests))
                answer(asyncio.sleep(0.05))
                client.close()
                answer(asyncio.sleep(0.5))
                assert not leftovers.look(), requests
                client = answer(SimulatedClient.connect(*address))
        client.close()
        router.close()
    history.close()
