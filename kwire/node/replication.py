"""Replication between brokers: the parts of `kwire/replica` bound to a node's network and clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from kwire.clock import Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.config.values import Value
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.membership.asking import AskController
from kwire.network.buffers import BufferPool
from kwire.network.login import MakeAuthentication
from kwire.network.peer import PeerNetwork, Resolver, Wrap
from kwire.node.publishing import moved_brokers
from kwire.pending import Pending
from kwire.protocol.structs import Message, Request
from kwire.replica.fetcher import FetchSettings
from kwire.replica.fetchers import Fetchers
from kwire.replica.isr_changes import IsrChangeSender
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.replica.quota import ReplicationQuota, is_throttled

Response = TypeVar("Response", bound=Message)

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
    """What fetches for followers and asks for ISRs; also `kwire.replica.fetcher.FetcherHost`.

    `resolve(broker id)` is where a leader is reached, `own_epoch()` this broker's epoch,
    `authentication()` a login there, `wrap` protects the connections.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        random: Random,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        *,
        replicas: ReplicaManager,
        resolve: Resolver,
        own_epoch: Callable[[], int],
        ask: AskController,
        wrap: Wrap,
        authentication: MakeAuthentication | None = None,
    ) -> None:
        self._loop = loop
        self._dynamic_config = dynamic_config
        self._replicas = replicas
        self._own_epoch = own_epoch
        self.broker_id = config.node_id
        self.settings = FetchSettings(
            wait_max_ms=config["replica.fetch.wait.max.ms"],
            min_bytes=config["replica.fetch.min.bytes"],
            max_bytes=config["replica.fetch.max.bytes"],
            response_max_bytes=config["replica.fetch.response.max.bytes"],
            backoff_ms=config["replica.fetch.backoff.ms"],
            timeout_ms=config["replica.socket.timeout.ms"],
            settles=config["kwire.plain.requests.enable"],
        )
        self._peers = PeerNetwork(
            loop,
            pool,
            random,
            resolve=resolve,
            controller=lambda: None,
            client_id=f"broker-{self.broker_id}-fetcher-0",
            backoff_ms=10,
            backoff_max_ms=min(self.settings.backoff_ms, 1000),
            authentication=authentication,
            wrap=wrap,
        )
        self.fetchers = Fetchers(self)
        self.isr_changes = IsrChangeSender(self.broker_id, self.broker_epoch, ask, self.call_later)
        replicas.followers = self.fetchers
        replicas.isr_changes = self.isr_changes
        windows = (
            config["replication.quota.window.num"],
            config["replication.quota.window.size.seconds"] * 1000,
        )
        self.leader_quota = ReplicationQuota(config[LEADER_RATE], *windows)
        self.follower_quota = ReplicationQuota(config[FOLLOWER_RATE], *windows)
        self._throttled: dict[str, tuple[list[str], list[str]]] = {}
        dynamic_config.add_listener(self._configured)
        self._tick_ms = max(1, config["replica.lag.time.max.ms"] // TICKS_PER_LAG_TIME)
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to check for followers that lag."""
        self._timer = self._loop.call_later(self._tick_ms / 1000, self._tick)

    def _tick(self) -> None:
        self._go_on(self._replicas.tick())
        self.start()

    def _go_on(self, slices: Iterator[None]) -> None:
        if self._timer is not None and next(slices, True) is None:
            self._loop.call_soon(self._go_on, slices)

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The replicas have followed a change of the metadata."""
        for broker_id in moved_brokers(delta):
            self._peers.disconnect(broker_id)
        if delta.configs or delta.topics_deleted:
            self._throttled.clear()
        self.fetchers.settle()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.isr_changes.close()
        self.fetchers.close()
        self._peers.close()

    # -- what fetchers need

    def broker_epoch(self) -> int:
        return self._own_epoch()

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_ms / 1000, callback)

    def send(
        self, node_id: int, api_key: int, request: Request[Response], timeout_ms: int
    ) -> Pending[Response]:
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
            values = self._dynamic_config.topic_values_of(partition.topic)
            entries = self._throttled[partition.topic] = (
                _as_list(values.get(LEADER_REPLICAS)),
                _as_list(values.get(FOLLOWER_REPLICAS)),
            )
        if not (entries[0] or entries[1]):
            return False, False
        return (
            is_throttled(entries[0], partition.index, self.broker_id),
            is_throttled(entries[1], partition.index, self.broker_id),
        )

    def _configured(self, changed: Mapping[str, Value]) -> None:
        config = self._dynamic_config
        self.leader_quota.rate = config[LEADER_RATE]
        self.follower_quota.rate = config[FOLLOWER_RATE]


def _as_list(value: Value) -> list[str]:
    return value if isinstance(value, list) else []
