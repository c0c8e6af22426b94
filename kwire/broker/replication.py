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

if TYPE_CHECKING:
    from kwire.broker.node import Node

TICKS_PER_LAG_TIME = 2
UNLIMITED_BYTES = 1 << 62


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

    def quota_bytes(self) -> int:
        return UNLIMITED_BYTES

    def fetched(self, partition: Partition, size_bytes: int) -> None:
        """`size_bytes` arrived for a partition."""

    def is_throttled(self, partition: Partition) -> bool:
        return False
