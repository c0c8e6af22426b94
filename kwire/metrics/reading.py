"""All that a node counts, as blocks, in slices: what the HTTP process is told at a scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from kwire.clock import Clock, busy_ns, ticks_ns
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.directories.manager import LogManager
from kwire.membership.lifecycle import BrokerLifecycle
from kwire.membership.replica_directories import ReplicaDirectories
from kwire.metrics.blocks import encoded, single
from kwire.metrics.client_pushes import read_client_pushes
from kwire.metrics.cluster import read_broker, read_controller, read_quorum
from kwire.metrics.held_back import read_held_back
from kwire.metrics.partitions import read_logs, read_partitions, read_traffic
from kwire.metrics.replication import read_replication
from kwire.metrics.requests import read_connections, read_requests
from kwire.metrics.storage import read_storage
from kwire.replica.delayed_read import ReadContext
from kwire.replica.fetchers import Fetchers
from kwire.replica.isr_changes import IsrChangeSender
from kwire.replica.manager import ReplicaManager
from kwire.server.deadlines import DeadlineHeap
from kwire.server.fetch_sessions import FetchSessionCache
from kwire.server.listener import Listener

if TYPE_CHECKING:
    from kwire.coordinator.group.coordinator import GroupCoordinator
    from kwire.coordinator.share.service import ShareCoordinator
    from kwire.coordinator.transaction.service import TransactionCoordinator
    from kwire.coordinator.transaction.verifier import TransactionVerifier
    from kwire.metrics.groups import Ages
    from kwire.quota.client_quotas import ClientQuotas
    from kwire.share.manager import SharePartitionManager
    from kwire.telemetry.instances import ClientInstances
    from kwire.telemetry.kept_pushes import KeptPushes

HANDLERS = "kafka_server_kafkarequesthandlerpool_"
LATE_TRANSACTION_MS = 5 * 60 * 1000
"""A transaction is late so long after `transaction.max.timeout.ms`, as in Apache Kafka."""
PURGATORY = "kafka_server_delayedoperationpurgatory_"
SESSIONS = "kafka_server_fetchsessioncache_"


class Shares(Protocol):
    """The share partitions that this node leads; None before the first was asked for."""

    @property
    def made_partitions(self) -> SharePartitionManager | None: ...


class Coordinators(Protocol):
    """The coordinators that this node has made so far."""

    @property
    def made_groups(self) -> GroupCoordinator | None: ...

    @property
    def made_transactions(self) -> TransactionCoordinator | None: ...

    @property
    def shares(self) -> Shares: ...

    @property
    def made_share(self) -> ShareCoordinator | None: ...

    @property
    def made_verifier(self) -> TransactionVerifier | None: ...


class Telemetry(Protocol):
    """What clients push of themselves; None before the first has asked."""

    @property
    def made_instances(self) -> ClientInstances | None: ...

    @property
    def made_pushes(self) -> KeptPushes | None: ...


class Parts(Protocol):
    """What of the parts that handlers use is read here."""

    clock: Clock
    deadlines: DeadlineHeap
    fetch_sessions: FetchSessionCache
    read_context: ReadContext


class NodeMetrics:
    """See the module. `is_broker` is False for a controller alone, which has no broker half."""

    def __init__(
        self,
        *,
        is_broker: bool,
        parts: Parts,
        listeners: Callable[[], Iterable[Listener]],
        driver: Callable[[], RaftDriver | None],
        image: Callable[[], MetadataImage],
        lifecycle: BrokerLifecycle,
        logs: LogManager,
        replicas: ReplicaManager,
        isr_changes: IsrChangeSender,
        fetchers: Fetchers,
        directories: ReplicaDirectories,
        publisher: ImagePublisher,
        transaction_timeout_ms_max: int,
        coordinators: Coordinators,
        quotas: Callable[[], ClientQuotas | None],
        telemetry: Telemetry,
    ) -> None:
        self._is_broker = is_broker
        self._clock = parts.clock
        self._listeners = listeners
        self._driver = driver
        self._image = image
        self._lifecycle = lifecycle
        self._logs = logs
        self._replicas = replicas
        self._isr_changes = isr_changes
        self._fetchers = fetchers
        self._directories = directories
        self._publisher = publisher
        self._late_ms = transaction_timeout_ms_max + LATE_TRANSACTION_MS
        self._role = "broker" if is_broker else "controller"
        self._coordinators = coordinators
        self._deadlines = parts.deadlines
        self._reads = parts.read_context
        self._fetch_sessions = parts.fetch_sessions
        self._quotas = quotas
        self._telemetry = telemetry
        self._seen_ns = ticks_ns(), busy_ns()
        self._idle = 1.0

    def answer(self, arguments: Mapping[str, str]) -> Iterator[bytes]:
        """All blocks, one after the other; empty pieces only let the loop do other work."""
        driver, image = self._driver(), self._image()
        yield from self._read_loop()
        yield from read_requests(self._listeners())
        yield from read_connections(self._listeners())
        published_ms = self._publisher.last_timestamp_ms
        yield from read_quorum(driver, image, published_ms, self._clock.wall_ms())
        yield from read_controller(driver, image, self._publisher.elections, published_ms)
        if driver is not None:
            yield from read_logs([driver.metadata_log.log])
        if self._is_broker:
            yield from self._read_broker_half()

    def _read_broker_half(self) -> Iterator[bytes]:
        replicas, coordinators = self._replicas, self._coordinators
        yield from read_broker(self._lifecycle)
        yield from read_traffic(replicas)
        yield from read_partitions(replicas, self._logs, self._isr_changes)
        yield from read_storage(self._logs)
        yield from read_replication(
            self._fetchers, replicas, self._image().topics, self._directories.waiting
        )
        yield from self._read_waiting()
        quotas, driver = self._quotas(), self._driver()
        if quotas is not None and driver is not None:
            from kwire.metrics.quotas import read_quotas

            yield from read_quotas(quotas, driver.now_ms)
        if coordinators.made_groups is not None:
            from kwire.metrics.groups import read_groups

            yield from read_groups(coordinators.made_groups, replicas, self._ages())
        if coordinators.made_transactions is not None:
            from kwire.metrics.transactions import read_transactions, read_verifications

            yield from read_transactions(coordinators.made_transactions, self._clock.wall_ms())
            yield from read_verifications(coordinators.made_verifier)
        shares = coordinators.shares.made_partitions
        if coordinators.made_share is not None or shares is not None:
            from kwire.metrics.shares import read_shares

            yield from read_shares(shares, coordinators.made_share, self._ages())
        telemetry = self._telemetry
        now_ms = 0 if driver is None else driver.now_ms
        yield from read_client_pushes(telemetry.made_instances, telemetry.made_pushes, now_ms)
        yield from read_held_back(replicas, self._clock.wall_ms(), self._late_ms)

    def _ages(self) -> Ages:
        from kwire.metrics.groups import Ages

        return Ages(self._clock.wall_ms(), self._lifecycle.uptime_ms)

    def _read_waiting(self) -> Iterator[bytes]:
        """Requests that wait, and sessions of fetches."""
        fetches = self._reads.waiting
        others = max(0, len(self._deadlines) - fetches)
        rows = [("Fetch", fetches, fetches), ("Produce", others, others)]
        names = (f"{PURGATORY}numdelayedoperations", f"{PURGATORY}purgatorysize")
        yield encoded(("delayedOperation",), names, rows)
        yield encoded(
            ("fetcherType",),
            ("kafka_server_delayedfetchmetrics_expires_total",),
            [("consumer", self._reads.expired), ("follower", self._reads.expired_of_followers)],
        )
        sessions = self._fetch_sessions
        yield single(
            {
                f"{SESSIONS}numincrementalfetchsessions": len(sessions),
                f"{SESSIONS}numincrementalfetchpartitionscached": sessions.partitions,
                f"{SESSIONS}incrementalfetchsessionevictions_total": sessions.evictions,
            }
        )

    def _read_loop(self) -> Iterator[bytes]:
        """How much of the time since the last reading the loop had nothing to do."""
        before_ns, busy_before_ns = self._seen_ns
        now_ns, busy_now_ns = self._seen_ns = ticks_ns(), busy_ns()
        if now_ns > before_ns:
            busy = (busy_now_ns - busy_before_ns) / (now_ns - before_ns)
            self._idle = round(min(1.0, max(0.0, 1 - busy)), 4)
        yield single(
            {
                "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": self._idle,
                "kafka_network_socketserver_networkprocessoravgidlepercent": self._idle,
                f"{HANDLERS}{self._role}requesthandleravgidle_percent": self._idle,
            }
        )
        yield encoded(
            ("networkProcessor",), ("kafka_network_processor_idlepercent",), [("0", self._idle)]
        )
