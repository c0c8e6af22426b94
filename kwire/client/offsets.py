"""Offsets: of partitions by time, of groups as committed, and how far a group is behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

EARLIEST = -2
LATEST = -1
COMMIT_VERSION_MAX = 9
FETCH_VERSION_MAX = 7
"""The last versions that name topics, and one group a request."""

Partition = tuple[str, int]


class Position(NamedTuple):
    """What a group has committed in one partition; `metadata` is whatever it likes to keep."""

    offset: int
    metadata: str = ""


class Member(NamedTuple):
    """On whose behalf offsets are committed: nobody's by default, which is accepted of a group
    without members."""

    member_id: str = ""
    epoch: int = -1


NOBODY = Member()


class Lag(NamedTuple):
    """How far a group is behind in one partition; `committed` is -1 where it has nothing."""

    committed: int
    end: int

    @property
    def records(self) -> int:
        """Between what it has committed and the end; all of them where it has nothing."""
        return max(0, self.end - max(0, self.committed))


class Offsets:
    """See the module; ClientError from all of them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def at(
        self, partitions: Iterable[Partition], timestamp: int = LATEST, *, committed: bool = False
    ) -> dict[Partition, int]:
        """The offsets at a time (ms) or at EARLIEST or LATEST; -1 where nothing is as late.

        With `committed`, LATEST is the last stable offset.
        """
        wanted = list(partitions)
        return await self._cluster.retrying(lambda: self._listed(wanted, timestamp, committed))

    async def _listed(
        self, partitions: list[Partition], timestamp: int, committed: bool
    ) -> dict[Partition, int]:
        by_leader: dict[int, list[Partition]] = {}
        for partition in partitions:
            by_leader.setdefault(await self._cluster.leader(*partition), []).append(partition)
        found: dict[Partition, int] = {}
        for leader, wanted in by_leader.items():
            request = _list_request(wanted, timestamp, committed)
            try:
                response = await self._cluster.call(request, leader)
                for topic in response.topics:
                    for one in topic.partitions:
                        check(one.error_code, f"{topic.name}-{one.partition_index}")
                        found[topic.name, one.partition_index] = one.offset
            except ClientError as error:
                if error.is_retriable:
                    for name, _ in wanted:
                        self._cluster.forget_topic(name)
                raise
        return found

    async def of_topic(self, topic_name: str, timestamp: int = LATEST) -> dict[int, int]:
        """The same of all partitions of a topic."""
        topic = await self._cluster.topic(topic_name)
        names = [(topic_name, entry.partition_index) for entry in topic.partitions]
        found = await self.at(names, timestamp)
        return {index: found[name, index] for name, index in sorted(found)}

    async def committed(self, group: str) -> dict[Partition, int]:
        """What a group has committed, of all of its partitions, sorted."""
        return {name: found.offset for name, found in (await self.positions(group)).items()}

    async def positions(self, group: str, *, stable: bool = False) -> dict[Partition, Position]:
        """The same with its metadata. With `stable` it waits for the end of transactions that
        commit offsets of the group (KIP-447)."""

        async def ask(node_id: int) -> m.OffsetFetchResponse:
            request = m.OffsetFetchRequest(group_id=group, topics=None, require_stable=stable)
            response = await self._cluster.call(request, node_id, version_max=FETCH_VERSION_MAX)
            check(response.error_code, f"group {group}")
            for topic in response.topics:
                for one in topic.partitions:
                    check(one.error_code, f"group {group}, {topic.name}-{one.partition_index}")
            return response

        response = await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)
        found: dict[Partition, Position] = {}
        for topic in response.topics:
            for one in topic.partitions:
                if one.committed_offset >= 0:
                    position = Position(one.committed_offset, one.metadata or "")
                    found[topic.name, one.partition_index] = position
        return dict(sorted(found.items()))

    async def commit(
        self, group: str, offsets: Mapping[Partition, int], member: Member = NOBODY
    ) -> None:
        """Commit offsets; the first partition's error where one is refused."""
        request = _commit_request(group, offsets, member)

        async def ask(node_id: int) -> None:
            response = await self._cluster.call(request, node_id, version_max=COMMIT_VERSION_MAX)
            for topic in response.topics:
                for one in topic.partitions:
                    check(one.error_code, f"group {group}, {topic.name}-{one.partition_index}")

        await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

    async def delete(self, group: str, partitions: Iterable[Partition]) -> None:
        """Forget what a group has committed there."""
        topics: dict[str, list[int]] = {}
        for topic, index in partitions:
            topics.setdefault(topic, []).append(index)
        kind = m.OffsetDeleteRequest
        request = kind(
            group_id=group,
            topics=[
                kind.OffsetDeleteRequestTopic(
                    name=name,
                    partitions=[
                        kind.OffsetDeleteRequestPartition(partition_index=index)
                        for index in indexes
                    ],
                )
                for name, indexes in topics.items()
            ],
        )

        async def ask(node_id: int) -> None:
            response = await self._cluster.call(request, node_id)
            check(response.error_code, f"group {group}")
            for topic in response.topics:
                for one in topic.partitions:
                    check(one.error_code, f"group {group}, {topic.name}-{one.partition_index}")

        await self._cluster.ask_coordinator(Coordinator.GROUP, group, ask)

    async def lag(self, group: str) -> dict[Partition, Lag]:
        """How far a group is behind, of every partition where it has committed.

        A partition that is gone since is left out.
        """
        committed = await self.committed(group)
        ends: dict[Partition, int] = {}
        for topic in dict.fromkeys(name for name, _ in committed):
            try:
                found = await self.of_topic(topic)
            except RequestFailed as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                continue
            ends.update({(topic, index): end for index, end in found.items()})
        return {name: Lag(offset, ends[name]) for name, offset in committed.items() if name in ends}


def _list_request(
    partitions: list[Partition], timestamp: int, committed: bool
) -> m.ListOffsetsRequest:
    kind = m.ListOffsetsRequest
    topics: dict[str, list[m.ListOffsetsRequest.ListOffsetsPartition]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(
            kind.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        )
    return kind(
        replica_id=-1,
        isolation_level=1 if committed else 0,
        topics=[
            kind.ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()
        ],
    )


def _commit_request(
    group: str, offsets: Mapping[Partition, int], member: Member
) -> m.OffsetCommitRequest:
    kind = m.OffsetCommitRequest
    topics: dict[str, list[m.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for (topic, index), offset in offsets.items():
        topics.setdefault(topic, []).append(
            kind.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=offset, committed_metadata=""
            )
        )
    return kind(
        group_id=group,
        generation_id_or_member_epoch=member.epoch,
        member_id=member.member_id,
        topics=[
            kind.OffsetCommitRequestTopic(name=name, partitions=asked)
            for name, asked in topics.items()
        ],
    )
