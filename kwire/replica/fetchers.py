"""The fetchers of a node, one for each broker that leads partitions which we follow."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.replica.fetcher import FetcherHost, FetchState, Followed, LeaderFetcher
from kwire.replica.partition import Partition

NO_LEADER = -1


class Fetchers:
    """`kwire.replica.manager.Followers`: who fetches what from whom."""

    def __init__(self, host: FetcherHost) -> None:
        self._host = host
        self._by_leader: dict[int, LeaderFetcher] = {}
        self._leaders: dict[tuple[bytes, int], int] = {}

    def __len__(self) -> int:
        return len(self._by_leader)

    def follow(self, partition: Partition, leader_id: int, leader_epoch: int) -> None:
        """Fetch a partition from its leader at this epoch; from nobody without one."""
        self.forget(partition)
        if leader_id == NO_LEADER or leader_id == self._host.broker_id or partition.log is None:
            return
        fetcher = self._by_leader.get(leader_id)
        if fetcher is None:
            fetcher = self._by_leader[leader_id] = LeaderFetcher(self._host, leader_id)
        self._leaders[partition.topic_id, partition.index] = leader_id
        fetcher.add(partition, leader_epoch)

    def forget(self, partition: Partition) -> None:
        """Fetch it no longer: it is led here, or gone."""
        key = (partition.topic_id, partition.index)
        leader_id = self._leaders.pop(key, None)
        if leader_id is not None:
            self._by_leader[leader_id].remove(key)

    def lag_max(self) -> int:
        """How far the furthest partition is behind its leader, in records, as the last answers
        have told; metrics read it, and `failed`."""
        return max((each.lag for each in self._followed()), default=0)

    def failed(self) -> int:
        """Partitions that are not fetched until their metadata change."""
        return sum(each.state is FetchState.FAILED for each in self._followed())

    def _followed(self) -> Iterator[Followed]:
        for fetcher in self._by_leader.values():
            yield from fetcher.followed.values()

    def settle(self) -> None:
        """A change of the metadata has been followed: fetchers that have nothing left are let go
        of, the others ask for what is new."""
        for leader_id, fetcher in list(self._by_leader.items()):
            if fetcher.followed:
                fetcher.changed()
            else:
                fetcher.close()
                del self._by_leader[leader_id]

    def close(self) -> None:
        for fetcher in self._by_leader.values():
            fetcher.close()
        self._by_leader.clear()
        self._leaders.clear()
