"""Replication between brokers: the parts of `kwire/replica` bound to a node's network and clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.network.peer import PeerNetwork
from kwire.pending import Pending
from kwire.replica.fetcher import FetchSettings
from kwire.replica.fetchers import Fetchers
from kwire.replica.isr_changes import IsrChangeSender
from kwire.replica.partition import Partition
from kwire.replica.quota import ReplicationQuota, is_throttled

if TYPE_CHECKING:
    from kwire.node.node import Node

TICKS_PER_LAG_TIME = 2
LEADER_RATE, FOLLOWER_RATE = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)
LEADER_REPLICAS, FOLLOWER_REPLICAS = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


class Replication:
    """What fetches for followers and asks for ISRs; also `kwire.replica.fetcher.FetcherHost`."""

    def __init__(self, node: Node) -> None:
        config = node.config
        self._node = node
        self.broker_id = node.broker_id
        self.settings = FetchSettings(
            wait_max_ms=config["replica.fetch.wait.max.ms"],
            min_bytes=config["replica.fetch.min.bytes"],
            max_bytes=config["replica.fetch.max.bytes"],
            response_max_bytes=config["replica.fetch.response.max.bytes"],
            backoff_ms=config["replica.fetch.backoff.ms"],
            timeout_ms=config["replica.socket.timeout.ms"],
        )
        self._peers = PeerNetwork(
            node.loop,
            node.buffer_pool,
            node.random,
            resolve=node.address_of,
            controller=lambda: None,
            client_id=f"broker-{node.broker_id}-fetcher-0",
            backoff_ms=10,
            backoff_max_ms=min(self.settings.backoff_ms, 1000),
        )
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChangeSender(
            node.broker_id, self.broker_epoch, node.controller_channel.ask, self.call_later
        )
        node.replicas.followers = self.fetchers
        node.replicas.isr_changes = self.isr_changes
        windows = (
            config["replication.quota.window.num"],
            config["replication.quota.window.size.seconds"] * 1000,
        )
        self.leader_quota = ReplicationQuota(config[LEADER_RATE], *windows)
        self.follower_quota = ReplicationQuota(config[FOLLOWER_RATE], *windows)
        self._throttled: dict[str, tuple[list[str], list[str]]] = {}
        node.dynamic_config.add_listener(self._configured)
        self._tick_ms = max(1, config["replica.lag.time.max.ms"] // TICKS_PER_LAG_TIME)
        self._timer: Any = None

    def start(self) -> None:
        """Begin to look for followers that lag."""
        self._timer = self._node.loop.call_later(self._tick_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._node.replicas.tick()
        self.start()

    def applied(self, delta: Any) -> None:
        """The replicas have followed a change of the metadata."""
        for broker_id, (old, new) in delta.brokers.items():
            if old is not None and (new is None or new.endpoints != old.endpoints):
                self._peers.disconnect(broker_id)
        if delta.configs or delta.topics_deleted:
            self._throttled.clear()
        self.fetchers.settle()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.isr_changes.close()
        self.fetchers.close()
        self._peers.close()

    # -- what fetchers need

    def broker_epoch(self) -> int:
        return self._node.lifecycle.epoch

    def now_ms(self) -> int:
        return int(self._node.loop.time() * 1000)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Any:
        return self._node.loop.call_later(delay_ms / 1000, callback)

    def send(self, node_id: int, api_key: int, request: Any, timeout_ms: int) -> Pending[Any]:
        return self._peers.send(node_id, api_key, request, timeout_ms=timeout_ms)

    def reconnect(self, node_id: int) -> None:
        self._peers.disconnect(node_id)

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        """`size_bytes` arrived for a partition."""
        if self._names(partition)[1]:
            self.follower_quota.record(size_bytes, self.now_ms())

    def is_held_back(self, partition: Partition) -> bool:
        """Whether the follower's quota says not to fetch this partition now."""
        return self._names(partition)[1] and self.follower_quota.is_exceeded(self.now_ms())

    # -- quotas

    def sent(self, partition: Partition, size_bytes: int) -> None:
        """A follower's fetch is answered with `size_bytes` of this partition."""
        if size_bytes and self._names(partition)[0]:
            self.leader_quota.record(size_bytes, self.now_ms())

    def holds_back(self, partition: Partition, replica_id: int) -> bool:
        """Whether the leader's quota says not to send to this follower now: never to one that is
        in sync."""
        return (
            replica_id not in partition.state.isr
            and self._names(partition)[0]
            and self.leader_quota.is_exceeded(self.now_ms())
        )

    def _names(self, partition: Partition) -> tuple[bool, bool]:
        """Whether the topic's configs throttle this replica as a leader's, as a follower's."""
        entries = self._throttled.get(partition.topic)
        if entries is None:
            values: Any = self._node.dynamic_config.topic_values_of(partition.topic)
            entries = self._throttled[partition.topic] = (
                list(values.get(LEADER_REPLICAS) or ()),
                list(values.get(FOLLOWER_REPLICAS) or ()),
            )
        if not (entries[0] or entries[1]):
            return False, False
        return (
            is_throttled(entries[0], partition.index, self.broker_id),
            is_throttled(entries[1], partition.index, self.broker_id),
        )

    def _configured(self, changed: Any) -> None:
        config = self._node.dynamic_config
        self.leader_quota.rate = config[LEADER_RATE]
        self.follower_quota.rate = config[FOLLOWER_RATE]
