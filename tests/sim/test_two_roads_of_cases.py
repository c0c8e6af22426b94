"""Dialogues in which one answer tells whether a plain road has looked (ADR 55)."""

from __future__ import annotations

import asyncio

from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.testing.simulation.client import batch_of
from tests.sim.two_roads import CONSUMER_GROUP, TOPICS, Member, Peer, Road, difference

GROUP_RESOURCE = 32


class Dialogue(Road):
    """One connection, and two topics."""

    async def _history(self) -> None:
        peer = await self._connected(0)
        for name in TOPICS:
            await self._create(peer, "create", name)
        await self._ask(peer, "find", self._found(peer))
        await asyncio.sleep(1)
        await self._dialogue(peer)
        peer.writer.close()

    async def _dialogue(self, peer: Peer) -> None:
        raise NotImplementedError

    async def _said(self, peer: Peer, what: str, *frames: bytes, answers: int) -> None:
        """Requests in one piece, of which so many are answered."""
        peer.writer.write(b"".join(frames))
        for _ in range(answers):
            self.transcript.append((what, await peer.answer()))

    def _written(self, peer: Peer, topic: str) -> bytes:
        """A record, without acks."""
        shape = m.ProduceRequest
        data = shape.PartitionProduceData(index=0, records=bytes(batch_of([b"v"])))
        topics = [shape.TopicProduceData(name=topic, partition_data=[data])]
        return peer.encoded(shape(acks=0, timeout_ms=1000, topic_data=topics), 9)

    async def _alive(self, peer: Peer, what: str, name: str | None = None) -> None:
        """A heartbeat of a member of the consumer group, which joins with the first one."""
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=CONSUMER_GROUP, member_id="member", member_epoch=peer.consumer_epoch,
            rebalance_timeout_ms=-1, topic_partitions=None,
        )  # fmt: skip
        if peer.consumer_epoch == 0:
            request.rebalance_timeout_ms = 1000
            request.subscribed_topic_names, request.topic_partitions = list(TOPICS), []
        data = peer.encoded(request, 1)
        if name is not None:
            data = data.replace(b"client-0", name.encode())
        answer = await self._ask(peer, what, data)
        assert answer is not None
        _, heard = frame.decode_response(request.API_KEY, 1, memoryview(answer))
        peer.consumer_epoch = heard.member_epoch


class ReadsBehindWrites(Dialogue):
    """What was written without acks is seen by who asks behind it on the same connection."""

    async def _dialogue(self, peer: Peer) -> None:
        shape = m.ListOffsetsRequest
        asked = [shape.ListOffsetsPartition(partition_index=0, timestamp=-1)]
        ends = shape(
            topics=[shape.ListOffsetsTopic(name=name, partitions=asked) for name in TOPICS]
        )
        for count in (1, 2, 3):
            written = [self._written(peer, TOPICS[number % 2]) for number in range(count)]
            await self._said(peer, f"{count}", *written, peer.encoded(ends, 5), answers=1)


class FetchesBehindWrites(Dialogue):
    """The same of a session in which nothing has happened so far."""

    async def _dialogue(self, peer: Peer) -> None:
        shape = m.FetchRequest
        wanted = [shape.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
        topics = [shape.FetchTopic(topic=TOPICS[0], partitions=wanted)]
        request = shape(
            max_wait_ms=0, min_bytes=1, max_bytes=1000, session_epoch=0, topics=topics
        )  # fmt: skip
        answer = await self._ask(peer, "session", peer.encoded(request, 12))
        assert answer is not None
        _, made = frame.decode_response(shape.API_KEY, 12, memoryview(answer))
        request.session_id, request.topics = made.session_id, []
        for epoch in range(1, 6):
            request.session_epoch = epoch
            await self._ask(peer, f"quiet {epoch}", peer.encoded(request, 12))
        request.session_epoch = 6
        written = self._written(peer, TOPICS[0])
        await self._said(peer, "written", written, peer.encoded(request, 12), answers=1)


class TopicsTwice(Dialogue):
    """A commit that names a topic twice, or a partition."""

    async def _dialogue(self, peer: Peer) -> None:
        while not peer.member.member_id:
            await self._join(peer, 0)
        for partitions in ([[0], [0]], [[0, 0]], [[0], [1]], [[0], [0]], [[0, 0]], [[0], [1]]):
            for version in (8, 10):
                request = self._commit_of(peer.member, partitions, version)
                await self._ask(peer, f"{partitions} {version}", peer.encoded(request, version))

    def _commit_of(
        self, member: Member, partitions: list[list[int]], version: int
    ) -> m.OffsetCommitRequest:
        shape = m.OffsetCommitRequest
        topics = [
            shape.OffsetCommitRequestTopic(
                partitions=[
                    shape.OffsetCommitRequestPartition(partition_index=x, committed_offset=number)
                    for number, x in enumerate(indexes)
                ]
            )
            for indexes in partitions
        ]
        for topic in topics:
            topic.name = TOPICS[0] if version < 10 else ""
            topic.topic_id = self.topic_ids[TOPICS[0]] if version >= 10 else bytes(16)
        return shape(
            group_id=member.group, generation_id_or_member_epoch=member.generation,
            member_id=member.member_id, topics=topics,
        )  # fmt: skip


class MembersOfOtherClients(Dialogue):
    """A member that comes by another client id is written anew, and described with it."""

    async def _dialogue(self, peer: Peer) -> None:
        await self._alive(peer, "join")
        for name in ("client-0", "client-0", "client-1", "client-1", "client-0"):
            await self._alive(peer, name, name)
            request = m.ConsumerGroupDescribeRequest(group_ids=[CONSUMER_GROUP])
            await self._ask(peer, f"{name} described", peer.encoded(request, 1))


class OtherIntervals(Dialogue):
    """A group gets another interval of heartbeats, and a shorter session; its member lives on."""

    async def _dialogue(self, peer: Peer) -> None:
        await self._alive(peer, "join")
        for name, value in (
            ("consumer.heartbeat.interval.ms", "300"),
            ("consumer.session.timeout.ms", "1400"),
            ("consumer.heartbeat.interval.ms", "150"),
            ("consumer.session.timeout.ms", "600"),
        ):
            for number in range(3):
                await self._alive(peer, f"before {name} {value} {number}")
            await self._ask(peer, "configs", self._configured(peer, name, value))
            for number in range(3):
                await self._alive(peer, f"{name} {value} {number}")
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.7)
        await self._alive(peer, "behind the end of its session")

    def _configured(self, peer: Peer, name: str, value: str) -> bytes:
        shape = m.IncrementalAlterConfigsRequest
        config = shape.AlterableConfig(name=name, config_operation=0, value=value)
        resource = shape.AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=CONSUMER_GROUP, configs=[config]
        )
        return peer.encoded(shape(resources=[resource]), 1)


def test_writes_without_acks_are_seen_behind_them_on_both_roads() -> None:
    assert difference(0, road=ReadsBehindWrites) is None


def test_a_fetch_behind_a_write_without_acks_sees_it_on_both_roads() -> None:
    assert difference(0, road=FetchesBehindWrites) is None


def test_topics_that_a_commit_names_twice_are_answered_on_both_roads() -> None:
    assert difference(0, road=TopicsTwice) is None


def test_members_of_other_clients_are_written_anew_on_both_roads() -> None:
    assert difference(0, road=MembersOfOtherClients) is None


def test_other_intervals_of_a_group_are_told_on_both_roads() -> None:
    assert difference(0, road=OtherIntervals) is None
