"""One history of producers on two brokers, of which one takes plain roads (see `two_roads.py`).

Producers send what clients send, and what they should not: sequences out of order, repeated ones,
epochs that are over, transactions that nobody has begun, several batches, other codecs, damaged
bytes, to topics of all kinds of configs; topics are deleted, and made again with what is under
way, configs and quotas change, disks refuse. What the logs hold in the end has to be the same,
byte by byte. `python -m tests.sim.two_roads_of_produces SEED`.
"""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwire.node.node import Node
from kwire.protocol import frame
from kwire.protocol import messages as m
from kwire.protocol.records import Codec
from kwire.testing.simulation.client import batch_of
from tests.sim.two_roads import STEPS, Peer, Road, difference

TOPICS = {
    "usual": {},
    "other": {"segment.bytes": "1048576", "index.interval.bytes": "600"},
    "compacted": {"cleanup.policy": "compact"},
    "small": {"max.message.bytes": "180"},
    "timed": {"message.timestamp.type": "LogAppendTime"},
    "flushed": {"flush.messages": "3"},
    "recent": {"message.timestamp.before.max.ms": "1000000000000"},
    "compressed": {"compression.type": "lz4"},
}
"""Name -> configs. Two thirds of all requests are to the first."""
PARTITIONS = 2
VERSIONS = (3, 5, 7, 8, 9, 10, 11, 12, 13)
WORDS = (b"", b"k", b"w", b"x" * 70, b"y" * 200)


@dataclass
class Producer:
    """What one producer thinks of one partition."""

    producer_id: int
    epoch: int = 0
    sequence: int = 0
    sent: list[tuple[int, int]] = field(default_factory=list)
    """(sequence, records) of what it has sent."""


class ProduceRoad(Road):
    """See the module."""

    plain_apis = ("Produce",)

    def __init__(self, seed: int, plain: bool, steps: int = STEPS) -> None:
        super().__init__(seed, plain, steps)
        self.producers: dict[tuple[int, str, int], Producer] = {}

    async def _history(self) -> None:
        peers = [await self._connected(number) for number in range(3)]
        for name in TOPICS:
            await self._create(peers[0], "create", name)
        await asyncio.sleep(1)
        for step in range(self.steps):
            number = self.draw(len(peers))
            peer = peers[number]
            kind = self.draw(60)
            if kind == 0:
                await self._deleted(peers, step)
            elif kind == 1:
                await self._configured(peer, step)
            elif kind == 2:
                await self._bound(peers, step)
            elif kind == 3:
                await asyncio.sleep(self.draw(200) / 1000)
            elif kind == 4:
                self._refuse()
            elif not await self._produced(peer, f"{step} produce"):
                peers[number] = await self._connected(number, peer)
            if kind == 4 or self.simulation.host("broker").disk.fault is not None:
                await self._recovered(peers, step)
        for peer in peers:
            peer.writer.close()

    # -- producers

    async def _produced(self, peer: Peer, what: str) -> bool:
        """Some requests at once; whether the connection still stands."""
        requests = [self._request(peer) for _ in range(1 + self.draw(5))]
        data = b"".join(encoded for encoded, _ in requests)
        if self.draw(12) == 0:
            changed = bytearray(data)
            changed[4 + self.draw(len(changed) - 4)] ^= 1 << self.draw(8)
            data = bytes(changed)
            peer.writer.write(data)
            await self._heard_until_silence(peer, what)
            return False  # who knows where its frames begin
        peer.writer.write(data)
        for _, is_answered in requests:
            if is_answered:
                answer = await peer.answer()
                self.transcript.append((what, answer))
                if answer is None:
                    return False
        return (
            await self._ask(peer, f"{what} end", peer.encoded(m.ApiVersionsRequest(), 0))
            is not None
        )

    async def _heard_until_silence(self, peer: Peer, what: str) -> None:
        try:
            while True:
                answer = await asyncio.wait_for(peer.answer(), 1.5)
                self.transcript.append((what, answer))
                if answer is None:
                    return
        except TimeoutError:
            return

    def _request(self, peer: Peer) -> tuple[bytes, bool]:
        """(frame, whether it is answered)."""
        version = VERSIONS[self.draw(len(VERSIONS))] if self.draw(3) == 0 else 9 + peer.number * 2
        acks = (1, 1, 1, -1, -1, -1, 0, 2)[self.draw(8 if self.draw(4) == 0 else 6)]
        topics = [self._topic_data(peer, version)]
        if self.draw(15) == 0:
            topics.append(self._topic_data(peer, version))
        request = m.ProduceRequest(
            acks=acks, timeout_ms=0 if self.draw(20) == 0 else 1500, topic_data=topics
        )
        if self.draw(40) == 0:
            request.transactional_id = "nobody"
        return peer.encoded(request, version), acks != 0

    def _topic_data(self, peer: Peer, version: int) -> m.ProduceRequest.TopicProduceData:
        shape = m.ProduceRequest
        names = (*TOPICS, "absent", "__consumer_offsets")
        name = "usual" if self.draw(3) else names[self.draw(len(names))]
        index = self.draw(PARTITIONS + (1 if self.draw(8) == 0 else 0))
        parts = [shape.PartitionProduceData(index=index, records=self._records(peer, name, index))]
        if self.draw(15) == 0:
            again = self._records(peer, name, index)
            parts.append(shape.PartitionProduceData(index=self.draw(PARTITIONS), records=again))
        topic = shape.TopicProduceData(partition_data=parts)
        if version >= 13:
            topic.topic_id = self.topic_ids.get(name, bytes(15) + b"\x01")
        else:
            topic.name = name
        return topic

    def _records(self, peer: Peer, topic: str, index: int) -> bytes | None:
        odd = self.draw(40)
        values = [WORDS[self.draw(len(WORDS))] for _ in range(1 + self.draw(3))]
        if odd == 7:
            values.append(b"z" * 17000)
        options: dict[str, int | bool | Codec] = {}
        if odd == 0:
            return None
        if odd < 3:
            options["codec"] = Codec(1 + self.draw(4))
        if odd == 3:
            options["transactional"] = True
        if self.draw(2) == 0:
            options |= self._sequenced(peer, topic, index, len(values))
        data = batch_of(values, **options)
        if odd == 4:
            data += batch_of(values)
        if odd == 5:
            data[self.draw(len(data))] ^= 1 << self.draw(8)
        if odd == 6:
            data = data[: self.draw(len(data))]
        return bytes(data)

    def _sequenced(self, peer: Peer, topic: str, index: int, count: int) -> dict[str, int]:
        """The producer's part of a batch; now and then not the next one."""
        key = peer.number, topic, index
        producer = self.producers.setdefault(key, Producer(1000 + len(self.producers)))
        odd = self.draw(14)
        if producer.sequence and self.draw(6) == 0:
            producer.epoch, producer.sequence = producer.epoch + 1, 0  # as after an error
        if odd == 0 and producer.sent:
            sequence, _ = producer.sent[-1 - self.draw(min(7, len(producer.sent)))]
            return self._fields(producer, sequence, producer.epoch)
        if odd == 1:
            return self._fields(producer, producer.sequence + 1 + self.draw(3), producer.epoch)
        if odd == 2 and producer.epoch:
            return self._fields(producer, producer.sequence, producer.epoch - 1)
        if odd == 3:
            producer.epoch, producer.sequence = producer.epoch + 1, self.draw(2)
        sequence = producer.sequence
        producer.sent.append((sequence, count))
        producer.sequence += count
        return self._fields(producer, sequence, producer.epoch)

    @staticmethod
    def _fields(producer: Producer, sequence: int, epoch: int) -> dict[str, int]:
        return {
            "producer_id": producer.producer_id, "producer_epoch": epoch, "base_sequence": sequence
        }  # fmt: skip

    # -- what happens to topics

    async def _create(self, peer: Peer, what: str, name: str) -> None:
        shape = m.CreateTopicsRequest
        configs = [shape.CreatableTopicConfig(name=k, value=v) for k, v in TOPICS[name].items()]
        topic = shape.CreatableTopic(
            name=name, num_partitions=PARTITIONS, replication_factor=1, configs=configs
        )
        answer = await self._ask(
            peer, what, peer.encoded(shape(topics=[topic], timeout_ms=5000), 7)
        )
        assert answer is not None
        _, made = frame.decode_response(shape.API_KEY, 7, memoryview(answer))
        self.topic_ids[name] = made.topics[0].topic_id

    async def _deleted(self, peers: list[Peer], step: int) -> None:
        """A topic goes while others write to it, and comes again."""
        name = tuple(TOPICS)[self.draw(3)]
        shape = m.DeleteTopicsRequest
        request = shape(topics=[shape.DeleteTopicState(name=name)], timeout_ms=5000)
        peers[0].writer.write(peers[0].encoded(request, 6))
        for _ in range(6):
            await asyncio.sleep(0.0003)
            for number in (1, 2):
                if not await self._produced(peers[number], f"{step} meanwhile"):
                    peers[number] = await self._connected(number, peers[number])
        self.transcript.append((f"{step} delete", await peers[0].answer()))
        await self._create(peers[0], f"{step} again", name)
        await asyncio.sleep(0.3)

    async def _configured(self, peer: Peer, step: int) -> None:
        shape = m.IncrementalAlterConfigsRequest
        config = shape.AlterableConfig(
            name="max.message.bytes", config_operation=0, value=str(150 + self.draw(3) * 500)
        )
        resource = shape.AlterConfigsResource(
            resource_type=2, resource_name="usual", configs=[config]
        )
        request = shape(resources=[resource])
        await self._ask(peer, f"{step} configs", peer.encoded(request, 1))

    async def _bound(self, peers: list[Peer], step: int) -> None:
        """A quota comes, and goes."""
        shape = m.AlterClientQuotasRequest
        for removed in (False, True):
            entry = shape.EntryData(
                entity=[shape.EntityData(entity_type="client-id", entity_name=None)],
                ops=[shape.OpData(key="producer_byte_rate", value=1e9, remove=removed)],
            )
            await self._ask(peers[0], f"{step} quota", peers[0].encoded(shape(entries=[entry]), 1))
            for number in range(len(peers)):
                if not await self._produced(peers[number], f"{step} bound"):
                    peers[number] = await self._connected(number, peers[number])

    def _refuse(self) -> None:
        """The disk has no room for what is written to one partition."""
        place = f"usual-{self.draw(PARTITIONS)}/"

        def fault(operation: str, path: str) -> OSError | None:
            if operation == "pwritev" and place in path:
                return OSError(errno.ENOSPC, "no room")
            return None

        self.simulation.host("broker").disk.fault = fault

    async def _recovered(self, peers: list[Peer], step: int) -> None:
        for number, peer in enumerate(peers):
            if not await self._produced(peer, f"{step} refused"):
                peers[number] = await self._connected(number, peer)
        self.simulation.host("broker").disk.fault = None
        await asyncio.sleep(3)

    # -- what is kept

    def kept(self, node: Node) -> Iterator[tuple[str, str]]:
        for partition in sorted(node.parts.replicas, key=lambda x: (x.topic, x.index)):
            log, name = partition.log, f"{partition.topic}-{partition.index}"
            if log is None or partition.topic.startswith("__"):
                continue
            ends = log.log_start_offset, log.log_end_offset, log.high_watermark
            yield f"{name} ends", str(ends)
            for x in log.active_producers():
                known = x.epoch, x.batches, x.last_timestamp
                yield f"{name} producer {x.producer_id}", str(known)
            yield from self.records_of(partition)
            traffic = partition.traffic
            yield f"{name} traffic", str([(x, getattr(traffic, x)) for x in traffic.__slots__])


def main() -> None:
    seed = int(sys.argv[1])
    road = ProduceRoad(seed, True)
    road.run()
    print(f"{road.taken} of {road.of_plain_apis} requests took a plain road")
    print(difference(seed, road=ProduceRoad) or "the same")


if __name__ == "__main__":
    main()
