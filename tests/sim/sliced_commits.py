"""The history of groups that commit many partitions in slices, while topics and connections go.

Each group has one client, which sends commits at once, by name or by id, of all topics or of one,
and ends its connection now and then before they are answered. Topics are deleted and made anew
between two slices (ADR 52).

- an answer has each partition that was asked for, once,
- a commit is stored whole: partitions of a topic that nobody changes have the same offset,
- what a connection sends is stored in its order; what was answered is there,
- what was committed for a topic by its id is not told of another one that has its name.

`python -m tests.sim.sliced_commits SEED` prints what came between slices.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from unittest.mock import patch

from kwire.coordinator.group import made_offsets
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from tests.sim import slices
from tests.sim.slices import END_LIMIT_S, FOLLOWED_S, IDS, PARTITIONS, TOPICS, Fault, SlicedHistory
from tests.sim.two_roads import Peer

STABLE = TOPICS[0]
"""Nobody changes it."""
GROUPS = ("g0", "g1")
CHANGES = 10
BY_ID = 10
GONE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass
class Sent:
    """A commit. Its number is what it commits everywhere."""

    number: int
    version: int
    ids: dict[str, bytes]
    """Of the topics that it is for, as they were when it was sent."""


class CommitHistory(SlicedHistory):
    """One seed's history."""

    def __init__(self, seed: int) -> None:
        own = {"offsets.topic.replication.factor": "2", "offsets.topic.num.partitions": "2"}
        with patch.dict(slices.SETTINGS, own):
            super().__init__(seed)
        self.commits: dict[int, Sent] = {}

    def run(self) -> None:
        """Fault where a promise is broken."""
        with patch.object(made_offsets, "SLICE_PARTITIONS", 1 + self.draw(3)):
            super().run()

    async def _history(self) -> None:
        admin = await self._connected(1)
        for name in TOPICS:
            await self._create(admin, name)
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(self._commit(group)) for group in GROUPS]
        change = loop.create_task(self._change(admin))
        await self._until(change.done, 10 * END_LIMIT_S, tasks, "changes")
        change.result()
        self.stops = True
        await self._until(lambda: all(x.done() for x in tasks), END_LIMIT_S, tasks, "clients")
        for task in tasks:
            task.result()

    async def _change(self, admin: Peer) -> None:
        for _ in range(CHANGES):
            await asyncio.sleep(self.draw(250) / 1000)
            await self._anew(admin)
            # What was under way then stays the newest commit.
            self.rests = True
            await asyncio.sleep(3 * FOLLOWED_S)  # until what is left of it is forgotten
            for group in GROUPS:
                peer = await self._connected(await self._coordinator(group))
                await self._look(peer, group, set(TOPICS))
                self._closed(peer)
            self.rests = False

    async def _coordinator(self, group: str) -> int:
        peer = await self._connected(IDS[0])
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        while (found := (await self._asked(peer, find, 4)).coordinators[0]).error_code:
            await asyncio.sleep(0.1)
        self._closed(peer)
        return int(found.node_id)

    async def _commit(self, group: str) -> None:
        node_id = await self._coordinator(group)
        while not self.stops:
            peer = await self._connected(node_id)
            if await self._burst_of(peer, group):
                await self._look(peer, group, set())
            else:  # what was sent is committed all the same, or is not
                await asyncio.sleep(FOLLOWED_S)
            self._closed(peer)
            while self.rests and not self.stops:
                await asyncio.sleep(0.05)

    async def _burst_of(self, peer: Peer, group: str) -> bool:
        """Some commits at once; whether they were answered. Then what they said is there."""
        burst = [self._next(peer.number) for _ in range(1 + self.draw(3))]
        requests = [(self._request_of(group, sent), sent.version) for sent in burst]
        peer.writer.write(b"".join(peer.encoded(*each) for each in requests))
        if self.draw(4) == 0:
            await asyncio.sleep(self.draw(10) / 1000)
            self.happened["connections"] += 1
            peer.writer.transport.abort()
            return False
        newest: dict[tuple[str, int], int] = {}
        for sent in burst:
            answer = await self._answer(peer, m.OffsetCommitRequest, sent.version)
            newest.update(dict.fromkeys(self._answered(sent, answer), sent.number))
        found = await self._offsets_of(peer, group)
        for (name, index), number in newest.items():
            is_there = found.get((name, index), -1) == number
            if not is_there and name == STABLE:
                raise Fault(f"{group} has {found} where {newest} was answered")
        return True

    def _next(self, connection: int) -> Sent:
        number = len(self.commits) + 1
        names = [x for x in TOPICS if x in self.ids]
        if self.draw(3) == 0:
            names = [STABLE]
        version = BY_ID if self.draw(2) else BY_ID - 1
        sent = Sent(number, version, {name: self.ids[name] for name in names})
        self.commits[number] = sent
        return sent

    def _request_of(self, group: str, sent: Sent) -> m.OffsetCommitRequest:
        shape = m.OffsetCommitRequest
        topics = []
        for name, topic_id in sent.ids.items():
            parts = [
                shape.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=sent.number
                )
                for index in range(PARTITIONS)
            ]
            topic = shape.OffsetCommitRequestTopic(partitions=parts)
            if sent.version >= BY_ID:
                topic.topic_id = topic_id
            else:
                topic.name = name
            topics.append(topic)
        return shape(group_id=group, generation_id_or_member_epoch=-1, topics=topics)

    def _answered(self, sent: Sent, answer: m.OffsetCommitResponse | None) -> list[tuple[str, int]]:
        """What it says was committed."""
        if answer is None:
            raise Fault(f"a connection ends after {sent}")
        names = {topic_id: name for name, topic_id in sent.ids.items()}
        codes = {
            (names[x.topic_id] if sent.version >= BY_ID else x.name, part.partition_index): (
                part.error_code
            )
            for x in answer.topics
            for part in x.partitions
        }
        count = sum(len(x.partitions) for x in answer.topics)
        asked = {(name, index) for name in sent.ids for index in range(PARTITIONS)}
        if set(codes) != asked or count != len(asked):
            raise Fault(f"{sent} is answered {answer}")
        for (name, index), code in codes.items():
            if code and (name == STABLE or code not in GONE):
                raise Fault(f"{name}-{index} of {sent}: {code}")
        return [place for place, code in codes.items() if code == 0]

    async def _offsets_of(self, peer: Peer, group: str) -> dict[tuple[str, int], int]:
        shape = m.OffsetFetchRequest
        asked = shape.OffsetFetchRequestGroup(group_id=group, topics=None)
        (found,) = (await self._asked(peer, shape(groups=[asked]), BY_ID - 1)).groups
        if found.error_code:
            raise Fault(f"offsets of {group}: {found.error_code}")
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in found.topics
            for part in topic.partitions
        }

    async def _look(self, peer: Peer, group: str, settled: set[str]) -> None:
        """Of topics that are settled nothing old is told."""
        found = await self._offsets_of(peer, group)
        for name in {STABLE, *settled}:
            told = {found.get((name, index)) for index in range(PARTITIONS)}
            if len(told) != 1:
                raise Fault(f"a part of a commit of {group} is stored: {found}")
            number = told.pop()
            sent = None if number is None else self.commits[number]
            if sent is not None and sent.version >= BY_ID and sent.ids[name] != self.ids[name]:
                raise Fault(f"{name} of {group} has what was committed for another topic: {sent}")


def main() -> None:
    history = CommitHistory(int(sys.argv[1]))
    history.run()
    print(f"{len(history.commits)} commits; between slices: {dict(history.between)}")


if __name__ == "__main__":
    main()
