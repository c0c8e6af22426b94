"""The dead letter topic of a group: where its letters are, and reads of one of its partitions."""

from __future__ import annotations

from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.configs import Configs, Resource
from kwire.client.dead_letters.letters import DeadLetter, read_letter
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.fetching import Fetcher
from kwire.client.offsets import EARLIEST, LATEST, Offsets
from kwire.protocol.errors import ErrorCode

TOPIC_CONFIG = "errors.deadletterqueue.topic.name"
ROUND_RECORDS_MAX = 200
FETCH_BYTES_MAX = 1 << 20
ANSWERLESS_S = 20.0


class Stranger(NamedTuple):
    """A record of the topic that is no dead letter, and why."""

    offset: int
    reason: str


class Letters(NamedTuple):
    """What a partition of the topic has from one offset to below `end`: the group's letters and
    what is no letter of anybody. Letters of other groups are left out."""

    letters: list[DeadLetter]
    strangers: list[Stranger]
    end: int


async def topic_of(cluster: Cluster, group: str) -> str:
    """The dead letter topic of a share group, by its config. ClientError where it has none."""
    try:
        found = await Configs(cluster).describe(Resource.GROUP, group, [TOPIC_CONFIG])
    except RequestFailed as error:
        told = str(error).rstrip(".")
        raise ClientError(
            f"{told}; it is asked for its {TOPIC_CONFIG}, --topic says it as well"
        ) from None
    names = [config.value for config in found if config.name == TOPIC_CONFIG]
    if not names or not names[0]:
        raise ClientError(
            f"group {group} has no dead letter topic: set {TOPIC_CONFIG}, or give --topic"
        )
    return names[0]


class Source:
    """One dead letter topic, as one group sees it. ClientError from all of it."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self.topic = topic
        self.group = group
        self._cluster = cluster
        self._offsets = Offsets(cluster)
        self._fetcher = Fetcher(cluster, committed_only=True, bytes_max=FETCH_BYTES_MAX)

    async def partitions(self) -> list[int]:
        """Those that the topic has."""
        try:
            known = await self._cluster.topic(self.topic)
        except RequestFailed as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise ClientError(
                f"the dead letter topic {self.topic} of group {self.group} does not exist"
            ) from None
        return sorted(entry.partition_index for entry in known.partitions)

    async def bounds(self, partition: int) -> tuple[int, int]:
        """Its first offset, and the one behind the last that is stable."""
        name = (self.topic, partition)
        first = await self._offsets.at([name], EARLIEST)
        last = await self._offsets.at([name], LATEST, committed=True)
        return first[name], last[name]

    async def read(self, partition: int, offset: int, end: int) -> Letters:
        """What is there from `offset` on, at most ROUND_RECORDS_MAX records, to below `end`."""
        name = (self.topic, partition)
        end_s = self._cluster.loop.time() + ANSWERLESS_S
        while True:
            fetched = (await self._fetcher.fetch({name: offset}, wait_ms=0)).get(name)
            if fetched is not None and fetched.next_offset > offset:
                break
            if self._cluster.loop.time() > end_s:
                raise ClientError(
                    f"{self.topic}-{partition} offset {offset}: it is not read for "
                    f"{ANSWERLESS_S:.0f} s"
                )
        records = [record for record in fetched.records if record.offset < end]
        end = min(end, fetched.next_offset)
        if len(records) > ROUND_RECORDS_MAX:
            end = records[ROUND_RECORDS_MAX].offset
        letters: list[DeadLetter] = []
        strangers: list[Stranger] = []
        for record in records[:ROUND_RECORDS_MAX]:
            letter = read_letter(record)
            if isinstance(letter, str):
                strangers.append(Stranger(record.offset, letter))
            elif letter.group == self.group:
                letters.append(letter)
        return Letters(letters, strangers, end)
