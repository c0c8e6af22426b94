"""A consumer group of a test's broker, in the words of a test; its methods block."""

from __future__ import annotations

from collections.abc import Mapping

from kwire.client.admin import Admin
from kwire.client.cluster import Cluster
from kwire.client.errors import RequestFailed
from kwire.client.fetching import Partition
from kwire.client.offsets import EARLIEST, Offsets
from kwire.protocol.errors import ErrorCode
from kwire.testing.blocking import BlockingClient

DEAD = "Dead"


class Group:
    """The group of this id, whether it exists or not; ClientError from all that asks the broker."""

    def __init__(self, group_id: str, client: BlockingClient) -> None:
        self.group_id = group_id
        self._client = client

    def __repr__(self) -> str:
        return f"Group({self.group_id!r})"

    def committed(self, topic: str | None = None) -> dict[Partition, int]:
        """The offsets it has committed, by (topic, partition)."""

        async def read(cluster: Cluster) -> dict[Partition, int]:
            return await Offsets(cluster).committed(self.group_id)

        found = self._client.run(read)
        return {name: offset for name, offset in found.items() if topic in (None, name[0])}

    def lag(self, topic: str | None = None) -> int:
        """How many records it has not committed yet; see `lags`."""
        return sum(self.lags(topic).values())

    def lags(self, topic: str | None = None) -> dict[Partition, int]:
        """Records that are not committed, by partition of `topic`; where none is named, of the
        topics in which it has committed. Of a group that has committed nowhere: of all topics."""

        async def read(cluster: Cluster) -> dict[Partition, int]:
            return await _lags(cluster, self.group_id, topic)

        return self._client.run(read)

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Set its offsets, by (topic, partition); it must not have members."""

        for one in offsets:
            if not isinstance(one, tuple) or len(one) != 2:
                raise TypeError(f"{one!r}: offsets are by (topic, partition)")

        async def commit(cluster: Cluster) -> None:
            await Offsets(cluster).commit(self.group_id, offsets)

        self._client.run(commit)

    @property
    def state(self) -> str:
        """Kafka's name of its state (Stable, Empty, …); Dead where there is none."""

        async def read(cluster: Cluster) -> str:
            for group in await Admin(cluster).groups.listed():
                if group.group_id == self.group_id:
                    return group.group_state
            return DEAD

        return self._client.run(read)

    def delete(self) -> None:
        """Delete it; it must not have members. Nothing where there is none."""

        async def delete(cluster: Cluster) -> None:
            try:
                await Admin(cluster).groups.delete(self.group_id)
            except RequestFailed as error:
                if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                    raise

        self._client.run(delete)


async def _lags(cluster: Cluster, group_id: str, topic: str | None) -> dict[Partition, int]:
    offsets = Offsets(cluster)
    committed = await offsets.committed(group_id)
    metadata = await cluster.metadata(None)
    names = {
        name: [(name, one.partition_index) for one in each.partitions]
        for each in metadata.topics
        if (name := each.name) is not None and not each.is_internal
    }
    if topic is not None:
        names = {topic: names.get(topic, [])}
    elif committed:
        topics = {name for name, _ in committed}
        names = {name: rows for name, rows in names.items() if name in topics}
    partitions = sorted(one for rows in names.values() for one in rows)
    ends = await offsets.at(partitions)
    starts = await offsets.at(partitions, EARLIEST)
    return {one: max(0, ends[one] - committed.get(one, starts[one])) for one in partitions}
