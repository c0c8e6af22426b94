"""Reports processes that are gone to raft and the controller, before a time-out does.

What counts as proof is in `kwire/network/refusal.py`. Both decide by themselves: raft asks for
pre-votes, the controller fences by records of the usual way, and either first checks whether
anything was heard since.

    the process of          is suspected when                           and dialled at
    the quorum's leader     this voter's connection to it closes        the same address
    a broker                its heartbeats' connection closes here,     its inter-broker listener,
                            or this controller becomes active           as it is registered

A broker's listener counts only once it was seen to accept: a firewall that always refuses says
nothing about a process. So every controller dials a broker once after it was unfenced.
A broker that stops in order is fenced before it closes its listener. Connections that were closed
because they were idle, too many or too slow belong to processes that accept the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kwire.network.peer import PeerNetwork
from kwire.network.refusal import Address, Outcome, RefusedDials, dial

if TYPE_CHECKING:
    from kwire.kraft.images.cluster import BrokerImage
    from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
    from kwire.kraft.raft_driver import RaftDriver

logger = logging.getLogger(__name__)

PROBE_DELAYS_S = (0.1, 0.5, 2.0, 5.0)
"""When a listener is dialled after its broker was unfenced, until it accepts: it opens late."""
SILENCE_S = 0.2
"""So long a new controller waits for heartbeats before it dials the brokers that send none."""


class Connection(Protocol):
    """One by which a broker sends heartbeats."""

    @property
    def transport(self) -> asyncio.Transport: ...

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback()` once when the connection closes."""
        ...


class DeadProcesses:
    """What one controller sees. `listener_name` is that of the brokers between themselves."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        driver: RaftDriver,
        peers: PeerNetwork,
        listener_name: str,
    ) -> None:
        self._loop = loop
        self._driver = driver
        self._peers = peers
        self._listener_name = listener_name
        self._leader_dials = RefusedDials(loop)
        self._broker_dials = RefusedDials(loop)
        self._accepted: dict[int, int] = {}  # broker -> epoch at which its listener accepted
        self._probes: dict[int, asyncio.Task[None]] = {}
        self._heard_by: dict[int, tuple[int, Connection]] = {}  # broker -> epoch, connection
        self._connections: dict[Connection, dict[int, int]] = {}  # connection -> broker -> epoch
        self._gone_leader = -1
        self._timer: asyncio.TimerHandle | None = None
        peers.on_lost = self._peer_lost
        driver.on_leader_change(self._leader_changed)

    # -- the quorum's leader

    def _peer_lost(self, node_id: int) -> None:
        raft, driver = self._driver.raft, self._driver
        address = driver.address_of(node_id)
        if node_id != raft.leader_id or address is None or not driver.is_running:
            return
        epoch, since_ms = raft.epoch, driver.now_ms
        self._leader_dials.suspect(
            node_id,
            address,
            lambda: driver.is_running and not self._peers.is_connected(node_id),
            lambda: self._leader_refused(node_id, epoch, since_ms),
        )

    def _leader_refused(self, node_id: int, epoch: int, since_ms: int) -> None:
        from kwire.kraft.raft.messages import LeaderRefused

        logger.info("the controller of node %d is gone: it refuses connections", node_id)
        self._gone_leader = node_id
        self._driver.step(LeaderRefused(node_id, epoch, since_ms))

    # -- brokers

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata: listeners of brokers that have begun to serve are dialled."""
        for broker_id, (_, broker) in delta.brokers.items():
            if broker is None:
                self._accepted.pop(broker_id, None)
            elif (
                not broker.fenced
                and self._accepted.get(broker_id) != broker.epoch
                and broker_id != self._driver.config.node_id
            ):
                before = self._probes.get(broker_id)
                if before is not None:
                    before.cancel()
                self._probes[broker_id] = self._loop.create_task(self._probe(broker))

    async def _probe(self, broker: BrokerImage) -> None:
        for wait_s in PROBE_DELAYS_S:
            await asyncio.sleep(wait_s)
            address = self._address_of(broker)
            if address is None:
                break
            if await dial(self._loop, address) is Outcome.ACCEPTED:
                self._accepted[broker.broker_id] = broker.epoch
                logger.info("the listener of broker %d accepts connections", broker.broker_id)
                break
        # Its cancellation may have come when it had all that it waited for.
        if self._probes.get(broker.broker_id) is asyncio.current_task():
            del self._probes[broker.broker_id]

    def _address_of(self, broker: BrokerImage) -> Address | None:
        """Where other brokers reach it; where that listener is not known here, its first one."""
        endpoint = broker.endpoint(self._listener_name)
        if endpoint is None and broker.endpoints:
            endpoint = broker.endpoints[0]
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def heard(self, connection: Connection, broker_id: int, epoch: int) -> None:
        """A heartbeat of a broker was accepted that came in by this connection."""
        if connection.transport.is_closing():
            return
        self._heard_by[broker_id] = (epoch, connection)
        brokers = self._connections.get(connection)
        if brokers is None:
            brokers = self._connections[connection] = {}
            connection.add_close_callback(partial(self._connection_closed, connection))
        brokers[broker_id] = epoch

    def _connection_closed(self, connection: Connection) -> None:
        for broker_id, epoch in self._connections.pop(connection).items():
            if self._heard_by.get(broker_id) == (epoch, connection):
                del self._heard_by[broker_id]
                self._suspect(broker_id, epoch, self._driver.now_ms)

    def _suspect(self, broker_id: int, epoch: int, since_ms: int) -> None:
        runner = self._driver.runner
        if runner is None or not runner.is_active or not self._driver.is_running:
            return
        broker = runner.controller.image.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            return
        address = self._address_of(broker)
        if address is not None and self._accepted.get(broker_id) == epoch:
            self._broker_dials.suspect(
                broker_id,
                address,
                lambda: runner.is_active and broker_id not in self._heard_by,
                lambda: self._broker_refused(broker_id, epoch, since_ms),
            )

    def _broker_refused(self, broker_id: int, epoch: int, since_ms: int) -> None:
        runner = self._driver.runner
        if runner is not None and runner.broker_refused(broker_id, epoch, since_ms):
            logger.info("broker %d is gone: it refuses connections; it is fenced", broker_id)

    # -- this controller becomes active

    def _leader_changed(self, leader_id: int | None, epoch: int) -> None:
        if leader_id == self._driver.config.node_id:
            self._loop.call_soon(self._became_active)

    def _became_active(self) -> None:
        """Nobody has sent heartbeats to this controller yet; whose broker was that of the leader
        that is gone has nothing more to send."""
        gone, self._gone_leader = self._gone_leader, -1
        self._suspect_silent(self._driver.now_ms, lambda broker_id: broker_id == gone)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(
            SILENCE_S, self._suspect_silent, self._driver.now_ms, lambda broker_id: True
        )

    def _suspect_silent(self, since_ms: int, among: Callable[[int], bool]) -> None:
        runner = self._driver.runner
        if runner is None or not runner.is_active:
            return
        brokers: dict[int, BrokerImage] = runner.controller.image.brokers
        for broker in list(brokers.values()):
            if (
                not broker.fenced
                and broker.broker_id not in self._heard_by
                and among(broker.broker_id)
            ):
                self._suspect(broker.broker_id, broker.epoch, since_ms)

    def close(self) -> None:
        """No more dials."""
        self._leader_dials.close()
        self._broker_dials.close()
        if self._timer is not None:
            self._timer.cancel()
        probes, self._probes = self._probes, {}
        for task in probes.values():
            task.cancel()
