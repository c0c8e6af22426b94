"""The small requests of `bench/small.py`: what each sends, and what is aimed at.

A `SmallRequests` makes their frames at one broker, once it has what they need there: topics, groups
with members, fetch sessions, ids of producers.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from bench.coordinators import commit_frames, heartbeat_frames
from bench.frames import one_record_frame
from bench.groups import TOPIC, Connection, encoded, prepare
from bench.one_fetch import VERSION as FETCH_VERSION
from bench.one_fetch import fetch
from bench.one_request import PARTITIONS
from kwire.protocol import messages as m
from kwire.protocol.fetch_frames import QuietFetches
from kwire.protocol.produce_frames import head_of

PRODUCED = "small"
"""The topic that is produced to; nothing is in `TOPIC`, which is fetched."""
RECORD_BYTES = 100
SIZE_BYTES = 4
SEQUENCE_AT = 53
"""Of a record batch."""
CONSUMERS_OF_A_GROUP = 10
METADATA_VERSION, CONSUMER_VERSION = 12, 1
SETTLE_S, SETTLE_ROUNDS_MAX = 1.2, 30
FINAL_EPOCH = -1


@dataclasses.dataclass(frozen=True)
class Frames:
    """One frame for each connection, or for some in turn; and what `blast` does with them."""

    frames: list[bytes]
    options: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Load:
    """`kind` is blast's, `api` as metrics name it; `goal_us` of broker CPU a request. `is_anew`:
    the frames are good for one run."""

    kind: str
    api: str
    make: Callable[[SmallRequests, int], Awaitable[Frames]]
    goal_us: float | None
    connections: int = 100
    depth: int = 1
    is_anew: bool = False


class SmallRequests:
    """See the module. `open` comes first."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._beats: list[bytes] = []
        self._commits: list[bytes] = []
        self._sessions: list[int] = []

    async def open(self) -> None:
        """Make the topics."""
        await prepare(self._address)
        connection = await Connection.open(self._address)
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=PRODUCED, num_partitions=1, replication_factor=1
        )
        await connection.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=9000), 5)
        asked = _metadata(PRODUCED)
        await connection.until(asked, METADATA_VERSION, lambda x: int(x.topics[0].error_code))
        connection.close()

    async def produce(self, connections: int) -> Frames:
        return Frames([one_record_frame(PRODUCED, 1, RECORD_BYTES)])

    async def idempotent(self, connections: int) -> Frames:
        """A producer each, which sends its first batch first."""
        connection = await Connection.open(self._address)
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        made = [
            await connection.until(request, 4, lambda x: int(x.error_code))
            for _ in range(connections)
        ]
        connection.close()
        frames = [one_record_frame(PRODUCED, -1, RECORD_BYTES, 0, x.producer_id) for x in made]
        body = memoryview(frames[0])[SIZE_BYTES:]
        head = head_of(body)
        place = None if head is None else head.batch_place(body)
        assert place is not None
        batch_at = SIZE_BYTES + place[1]
        return Frames(frames, ("-b", str(batch_at), "-c", str(batch_at + SEQUENCE_AT)))

    async def heartbeat(self, connections: int) -> Frames:
        self._beats = self._beats or await heartbeat_frames(self._address)
        return Frames(self._beats[:connections])

    async def commit(self, connections: int) -> Frames:
        self._commits = self._commits or await commit_frames(self._address)
        return Frames(self._commits)

    async def fetch(self, connections: int) -> Frames:
        """A session each of all partitions, at their ends; those of the last time are closed."""
        connection = await Connection.open(self._address)
        for session_id in self._sessions:
            await connection.ask(_next_fetch(session_id, FINAL_EPOCH), FETCH_VERSION)
        request = fetch(0, 0, count=PARTITIONS, epoch=0)
        opened = [
            await connection.until(request, FETCH_VERSION, _fetch_code) for _ in range(connections)
        ]
        connection.close()
        self._sessions = [x.session_id for x in opened]
        if not all(self._sessions):
            raise SystemExit("bench: the broker has no more fetch sessions")
        frames = [encoded(_next_fetch(x, 1), FETCH_VERSION) for x in self._sessions]
        epoch_at = QuietFetches(FETCH_VERSION).epoch_start(memoryview(frames[0])[SIZE_BYTES:])
        assert epoch_at is not None
        return Frames(frames, ("-c", str(SIZE_BYTES + epoch_at)))

    async def metadata(self, connections: int) -> Frames:
        return Frames([encoded(_metadata(TOPIC), METADATA_VERSION)])

    async def consumer(self, connections: int) -> Frames:
        """Heartbeats of members that have the newest epoch, and say nothing new."""
        connection = await Connection.open(self._address)
        epochs = [0] * connections
        joined = False
        for _ in range(SETTLE_ROUNDS_MAX):
            before = list(epochs)
            for i in range(connections):
                request = _consumer(i, connections, epochs[i])
                request.topic_partitions = []
                if not joined:
                    request.rebalance_timeout_ms = 60_000
                    request.subscribed_topic_names = [TOPIC]
                heard = await connection.until(
                    request, CONSUMER_VERSION, lambda x: int(x.error_code)
                )
                if heard.error_code:
                    raise SystemExit(f"bench: refused: {heard}")
                epochs[i] = heard.member_epoch
            joined = True
            if epochs == before:
                break
            await asyncio.sleep(SETTLE_S)
        else:
            raise SystemExit("bench: consumer groups do not come to rest")
        connection.close()
        return Frames(
            [
                encoded(_consumer(i, connections, epoch), CONSUMER_VERSION)
                for i, epoch in enumerate(epochs)
            ]
        )


LOADS = {
    "Produce of one record, acks=1": Load("produce", "Produce", SmallRequests.produce, 13),
    "the same, idempotent, acks=all": Load(
        "produce", "Produce", SmallRequests.idempotent, 16, is_anew=True
    ),
    "Heartbeat": Load("heartbeat", "Heartbeat", SmallRequests.heartbeat, 13),
    "Heartbeat, 2,000 connections": Load(
        "heartbeat", "Heartbeat", SmallRequests.heartbeat, 18, connections=2000
    ),
    "OffsetCommit": Load("commit", "OffsetCommit", SmallRequests.commit, 25),
    "OffsetCommit, 8 connections, 16 on their way": Load(
        "commit", "OffsetCommit", SmallRequests.commit, 15, connections=8, depth=16
    ),
    "Fetch of a session, nothing new": Load(
        "fetch", "Fetch", SmallRequests.fetch, 12, is_anew=True
    ),
    "Metadata of one topic": Load("metadata", "Metadata", SmallRequests.metadata, 10),
    "ConsumerGroupHeartbeat": Load(
        "consumer", "ConsumerGroupHeartbeat", SmallRequests.consumer, None
    ),
}


def _metadata(topic: str) -> Any:
    asked = m.MetadataRequest.MetadataRequestTopic(name=topic)
    return m.MetadataRequest(topics=[asked], allow_auto_topic_creation=False)


def _next_fetch(session_id: int, epoch: int) -> Any:
    """One that names nothing."""
    return m.FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=50 << 20, session_id=session_id, session_epoch=epoch
    )


def _fetch_code(answer: Any) -> int:
    codes = [int(x.error_code) for topic in answer.responses for x in topic.partitions]
    return int(answer.error_code) or next((code for code in codes if code), 0)


def _consumer(i: int, count: int, epoch: int) -> Any:
    return m.ConsumerGroupHeartbeatRequest(
        group_id=f"small-{i % (count // CONSUMERS_OF_A_GROUP)}",
        member_id=f"member-{i}",
        member_epoch=epoch,
        topic_partitions=None,
    )
