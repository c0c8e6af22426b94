"""The composition root: everything that a node consists of, made here and nowhere else.

`Node(config, loop).start()` locks and formats the log directories, loads the logs, starts the
metadata quorum, publishes what is committed to the parts that follow it, registers the broker and
serves once it is unfenced. `stop()` goes the way back: leaderships, connections, logs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kwire.api.shared.auto_create import AutoTopicCreation
from kwire.clock import Clock, Random, SystemClock, SystemRandom
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.config.errors import ConfigError
from kwire.config.listeners import Listener as ListenerConfig
from kwire.config.listeners import shares_port
from kwire.kraft.controller.controller import HANDLED_REQUESTS
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.compaction.cleaner import LogCleaner
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.directories.directory import LogDirectory, LogDirectoryError
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.kernel_syncs import KernelSyncs
from kwire.log.partition.config import LogConfig
from kwire.log.partition.deferred_checks import Checks
from kwire.membership.broker_registration import registration_request
from kwire.membership.controlled_shutdown import shutdown_granted
from kwire.membership.controller_channel import ControllerChannel
from kwire.membership.cordoning import Cordoning
from kwire.membership.lifecycle import BrokerLifecycle
from kwire.membership.lost_brokers import LostBrokers
from kwire.membership.producer_ids import ProducerIds
from kwire.membership.replica_directories import ReplicaDirectories
from kwire.network.buffers import RESERVED_BYTES_MAX, BufferPool
from kwire.network.peer import PeerNetwork
from kwire.node.controller_requests import ControllerRequests
from kwire.node.coordinators import Coordinators
from kwire.node.host_name import reachable_name
from kwire.node.loading_logs import load_logs, tell_missing
from kwire.node.metadata_quorum import MetadataQuorum, full_delta
from kwire.node.published import PublishedMetadata
from kwire.node.replication import Replication
from kwire.node.workers import NewExecutor, Workers, one_thread
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.api_keys import API_KEYS, UNBUILT
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.manager import ReplicaManager
from kwire.replica.selector import selector
from kwire.security.allow_all import AllowAll
from kwire.server import in_process
from kwire.server.connection_limits import ConnectionLimits
from kwire.server.context import RequestContext
from kwire.server.deadlines import DeadlineHeap
from kwire.server.dispatch import Dispatcher
from kwire.server.fetch_sessions import FetchSessionCache
from kwire.server.listener import Listener, make_room
from kwire.server.parts import Parts
from kwire.server.request_steps import RequestSteps

if TYPE_CHECKING:
    from kwire.membership.controller_registration import ControllerRegistration

logger = logging.getLogger(__name__)

STILL_WAITING_S = 5.0


class StartError(Exception):
    """The node cannot start; one line for the user."""


class Node:
    """One broker, controller, or both. Attributes are what API handlers use; see `docs` of each
    part. A controller alone has no logs but the metadata's, and no broker half."""

    reachable_name = staticmethod(reachable_name)

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        *,
        features: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        files: Any = None,
        new_executor: NewExecutor | None = None,
    ) -> None:
        self.config = config
        self.dynamic_config = DynamicConfig(config, is_catching_up=True)
        self.loop = loop
        self.clock: Clock = clock or SystemClock()
        self.random: Random = random or SystemRandom()
        self.broker_id = config.node_id
        self.incarnation_id = b""
        self.published = PublishedMetadata(
            config.controller_listener_names(), lambda: self.metadata.kraft_version
        )
        self.buffer_pool = BufferPool(_receive_bytes_max(config["queued.max.request.bytes"]))
        self.deadlines = DeadlineHeap(loop)
        self.listener_name = config.inter_broker_listener_name()
        self.on_fatal: Callable[[str], None] = lambda reason: None
        self._failed = False
        self._syncs = KernelSyncs(loop) if files is None and new_executor is None else None
        self.workers = Workers(loop, new_executor or one_thread)
        self.log_manager = self._make_log_manager(files)
        self.replicas = ReplicaManager(
            self.broker_id,
            self.log_manager,
            self.topic_config,
            self._now_ms,
            config["replica.lag.time.max.ms"],
        )
        self.peers = self._make_peers()
        self.metadata = MetadataQuorum(self, self._publish)
        self.to_controller = ControllerRequests(
            self.metadata, config.controller_listener_names
        ).execute
        self.controller_channel = self._make_controller_channel()
        self.cordoning = Cordoning(self.dynamic_config, self.log_manager, lambda: self.image)
        self.lifecycle = self._make_lifecycle()
        self.cordoning.on_change = self.lifecycle.directories_changed
        self.replication = Replication(self)
        self.replica_directories = self._make_replica_directories()
        self.producer_ids = ProducerIds(
            self.broker_id, lambda: self.lifecycle.epoch, self.controller_channel.ask
        )
        self.coordinators = Coordinators(self)
        self.lost_brokers = LostBrokers()
        self.listeners: dict[str, Listener] = {}
        self.advertised: list[ListenerConfig] = []
        self._features = dict(features or {})
        self._follows = False
        self.controller_registration: ControllerRegistration | None = None
        self.parts = self._make_parts()
        self.request_steps = RequestSteps(lambda: self.parts.authorizer is not None)

    def _make_parts(self) -> Parts:
        """What API handlers may use."""
        config = self.config
        return Parts(
            broker_id=self.broker_id,
            listener_name=self.listener_name,
            config=config,
            dynamic_config=self.dynamic_config,
            loop=self.loop,
            clock=self.clock,
            random=self.random,
            deadlines=self.deadlines,
            metadata=self.published,
            quorum=self.metadata,
            forwarder=self.controller_channel,
            ask_controller=self.to_controller,
            authorizer=AllowAll() if config["authorizer.class.name"] else None,
            replicas=self.replicas,
            coordinators=self.coordinators,
            auto_topics=AutoTopicCreation(config, self.controller_channel),
            producer_ids=self.producer_ids,
            lost_brokers=self.lost_brokers,
            cordoning=self.cordoning,
            log_manager=self.log_manager,
            check_later=lambda later: self.checks.run(later),
            fetch_sessions=FetchSessionCache(
                config["max.incremental.fetch.session.cache.slots"], self.random
            ),
            fetch_bytes_max=config["fetch.max.bytes"],
            replica_selector=selector(config["replica.selector.class"], lambda: self.image.brokers),
            read_quota=self.replication,
        )

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that was published."""
        return self.published.image

    @property
    def cluster_id(self) -> str:
        return self.published.cluster_id

    def _make_log_manager(self, files: Any) -> LogManager:
        config = self.config
        manager = LogManager(
            [os.path.abspath(path) for path in config.log_directories],
            self.clock,
            self.random,
            files=files,
            scheduler=self.workers.scheduler("kwire-log"),
            sync_scheduler=self.workers.scheduler("kwire-sync"),
            syncs=self._syncs,
            settings=ManagerSettings.from_values(config),
            now_ms=self._now_ms,
            config_of=self.topic_config,
            on_directory_failure=self._directory_failed,
        )
        manager.goes_offline_by_writes = self._has_others
        manager.shortages.on_descriptors_short = lambda: make_room(self.listeners.values())
        manager.cleaner = LogCleaner(
            manager,
            CleanerSettings.from_values(config),
            lambda: self.workers.scheduler("kwire-cleaner"),
            self.random,
        )
        self.dynamic_config.add_listener(manager.cleaner.changed)
        return manager

    def _make_peers(self) -> PeerNetwork:
        return PeerNetwork(
            self.loop,
            self.buffer_pool,
            self.random,
            resolve=self.address_of,
            controller=lambda: None,
            client_id=f"kwire-{self.broker_id}",
        )

    def _make_controller_channel(self) -> ControllerChannel:
        return ControllerChannel(
            self.loop,
            self.buffer_pool,
            self.random,
            broker_id=self.broker_id,
            quorum=self.metadata,
            execute=self.to_controller,
            ask_timeout_ms=max(1000, self.config["broker.session.timeout.ms"]),
        )

    def _make_replica_directories(self) -> ReplicaDirectories:
        return ReplicaDirectories(
            self.loop,
            self.dynamic_config,
            self.log_manager,
            broker_id=self.broker_id,
            broker_epoch=lambda: self.lifecycle.epoch,
            hosted=self.replicas.partition,
            ask=self.controller_channel.ask,
        )

    def _make_lifecycle(self) -> BrokerLifecycle:
        return BrokerLifecycle(
            self.loop,
            self.broker_id,
            self.controller_channel.ask,
            self._registration_request,
            lambda: self.image.offset,
            self.config["broker.heartbeat.interval.ms"],
            self.fatal,
            self.config["controller.quorum.fetch.timeout.ms"],
            waits_for_logs=True,
            cordoned=self.cordoning.reported,
            directory_failure_ms=self.config["log.dir.failure.timeout.ms"],
        )

    def _registration_request(self) -> m.BrokerRegistrationRequest:
        return registration_request(
            broker_id=self.broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=self.advertised,
            rack=self.config["broker.rack"],
            directories=self.log_manager.directories,
        )

    @property
    def checks(self) -> Checks:
        """Checks batches that would hold up the loop."""
        return self.workers.checks

    # -- start

    async def start(self) -> None:
        """Return when the broker serves. Raises StartError and ConfigError, one line each."""
        from kwire.kraft.formatting.log_directories import FeatureError, FormatError
        from kwire.kraft.raft.election import QuorumStateError
        from kwire.kraft.raft.types import RaftInvariantError
        from kwire.kraft.snapshots.content import SnapshotError

        try:
            self.log_manager.open_directories()
            await self._bind_controller()
            self.metadata.open(self._features)
        except FeatureError as error:
            raise ConfigError(str(error)) from None
        except (
            LogDirectoryError,
            FormatError,
            RaftInvariantError,
            SnapshotError,
            QuorumStateError,
        ) as error:
            raise StartError(str(error)) from None
        except OSError as error:
            where = error.filename or self.metadata.directory
            raise StartError(f"{where}: {error.strerror or error}") from None
        self._tell_offline()
        self.published.cluster_id = self.metadata.cluster_id
        self.incarnation_id = uuids.random_uuid(self.random)
        self.peers.bind_local(self.broker_id, self._local_request)
        if self.config.is_broker:
            await self._bind()
        if self.config.is_controller and self.metadata.advertised:
            from kwire.membership.controller_registration import ControllerRegistration

            self.controller_registration = ControllerRegistration(
                self.loop,
                controller_id=self.broker_id,
                incarnation_id=self.incarnation_id,
                listeners=self.metadata.advertised,
                image=lambda: self.image,
                ask=self.controller_channel.ask,
            )
        for name in self.config.controller_listener_names():
            if name in self.listeners:
                await self.listeners[name].start()
        limit_ms = None
        if not self.config.is_controller:
            limit_ms = self.config["initial.broker.registration.timeout.ms"]
        await self._done(self.metadata.start(), "an active controller", limit_ms)
        if self.config.is_broker:
            await self._start_broker()
        else:
            self.dynamic_config.caught_up()

    async def _start_broker(self) -> None:
        """Register, catch up with the metadata, load the logs, serve."""
        self.metadata.on_leader_change(self.lifecycle.controller_changed)
        self.lifecycle.start()
        limit_ms = self.config["initial.broker.registration.timeout.ms"]
        await self._done(self.lifecycle.caught_up, "the registration of this broker", limit_ms)
        self.dynamic_config.caught_up()
        await self._load_logs()
        self.replication.start()
        self.lifecycle.ready_to_serve()
        await self._done(self.lifecycle.started, "the controller to let this broker serve")
        for listener in self.listeners.values():
            await listener.start()
        self.log_manager.start_timers()

    async def _done(self, pending: Pending[None], what: str, limit_ms: int | None = None) -> None:
        """Wait for a part of the start, and say so where others take long; StartError at the
        limit."""
        future = self._end_of(pending)
        end_s = None if limit_ms is None else self.loop.time() + limit_ms / 1000
        while not future.done():
            if end_s is not None and self.loop.time() >= end_s:
                raise StartError(f"waited {limit_ms} ms for {what}, without success")
            wait_s = STILL_WAITING_S * 2
            if end_s is not None:
                wait_s = min(wait_s, max(0.0, end_s - self.loop.time()))
            timer = self.loop.call_later(STILL_WAITING_S, logger.info, "waiting for %s", what)
            try:
                await asyncio.wait_for(asyncio.shield(future), wait_s)
            except TimeoutError:
                continue
            finally:
                timer.cancel()

    async def _load_logs(self) -> None:
        """Load the logs that the metadata expects here, then follow the metadata.

        Heartbeats and the quorum go on in between.
        """

        def expected(topic: str, index: int) -> bytes | None:
            known = self.image.topics.by_name.get(topic)
            partition = None if known is None else known.partitions.get(index)
            if known is None or partition is None or self.broker_id not in partition.replicas:
                return None
            return known.topic_id

        threads = self.dynamic_config["num.recovery.threads.per.data.dir"]
        try:
            await load_logs(self.log_manager, expected, self.loop, threads)
        except LogDirectoryError as error:
            raise StartError(str(error)) from None
        for log in self.log_manager.logs():
            if expected(log.topic, log.partition) != log.topic_id:
                self.log_manager.delete(log.topic, log.partition)  # it was deleted meanwhile
        tell_missing(self.log_manager, self.image, self.broker_id)
        self._follows = True
        self._publish(full_delta(self.image), self.image)

    async def _bind_controller(self) -> None:
        """Take the addresses of the controller's listeners; their ports go into the metadata."""
        names = self.config.controller_listener_names()
        if not self.config.is_controller:
            return
        from kwire.server.controller_dispatch import ControllerDispatcher

        dispatcher = ControllerDispatcher(self.metadata, self.to_controller)
        for listener in self.config.listeners():
            if listener.name in names:
                await self._listen(listener, dispatcher, None)

    def bound_port(self, listener_name: str) -> int:
        """The port of a listener of this node."""
        return self.listeners[listener_name].port

    async def _bind(self) -> None:
        names = {key: info.name for key, info in API_KEYS.items() if "broker" in info.listeners}
        for key in UNBUILT:
            names.pop(key, None)
        dispatcher = Dispatcher(names)
        config = self.config
        limits = ConnectionLimits(self.dynamic_config)
        self.dynamic_config.add_listener(limits.changed)
        for listener in config.broker_listeners():
            await self._listen(listener, dispatcher, limits)
        self.advertised = [
            listener._replace(port=listener.port or self.listeners[listener.name].port)
            for listener in config.advertised_listeners(reachable_name)
        ]

    async def _listen(
        self, listener: Any, dispatcher: Dispatcher, limits: ConnectionLimits | None
    ) -> None:
        config = self.config
        bound = Listener(
            listener.name,
            dispatcher,
            loop=self.loop, pool=self.buffer_pool, parts=self.parts, steps=self.request_steps,
            request_bytes_max=config["socket.request.max.bytes"],
            limits=limits,
            connections_max_idle_ms=config["connections.max.idle.ms"],
            connection_gone=self.log_manager.shortages.hurry,
        )  # fmt: skip
        try:
            await bound.bind(
                listener.host,
                listener.port,
                one_family=shares_port(listener, config.listeners()),
            )
        except OSError as error:
            raise StartError(
                f"cannot listen on {listener.host or '*'}:{listener.port}: "
                f"{error.strerror or error}"
            ) from None
        self.listeners[listener.name] = bound

    def ready_address(self) -> tuple[str, int]:
        """Host and port of the first listener, as the ready line shows it."""
        config = self.config
        listener = (config.broker_listeners() if config.is_broker else config.listeners())[0]
        return listener.host or "0.0.0.0", self.listeners[listener.name].port

    # -- metadata

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata, in the order in which the parts depend on each other."""
        self.published.image = image
        self.request_steps.image_published()
        if delta.configs:
            self.dynamic_config.update(image.configs, delta.configs)
        if self.controller_registration is not None:
            self.controller_registration.published(image)
        if not self.config.is_broker:
            return
        if self._follows:
            for broker_id, (old, new) in delta.brokers.items():
                if old is not None and (new is None or new.endpoints != old.endpoints):
                    self.peers.disconnect(broker_id)
            if delta.brokers:
                self.lost_brokers.applied(delta, self._now_ms())
            self.replicas.apply(delta, image)
            self.replication.applied(delta)
            self.replica_directories.applied(delta)
            self.coordinators.apply(delta)
        self.lifecycle.image_published()

    def topic_config(self, topic: str) -> LogConfig:
        """The resolved configs of a topic's logs."""
        return LogConfig.from_values(self.dynamic_config.topic_values_of(topic))

    # -- other nodes

    @property
    def is_active_controller(self) -> bool:
        """Whether this node's controller decides."""
        return self.metadata.is_active

    def _local_request(self, api_key: int, version: int, request: Any) -> Pending[Any]:
        """A request of a part of this node to this node."""
        if type(request).NAME in HANDLED_REQUESTS:
            return self.to_controller(request, None, version)
        listener = self.listeners[self.config.broker_listeners()[0].name]
        context = RequestContext(self.parts, None, api_key, version, 0, None)
        steps, loop = self.request_steps, self.loop
        return in_process.execute(listener.dispatcher, steps, loop, context, request)

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a broker is reached by other brokers."""
        broker = self.image.brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoint(self.listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def _now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def _has_others(self) -> bool:
        """Whether others can take over what this broker cannot write."""
        return len(self.image.brokers) > 1

    def _directory_failed(self, directory: LogDirectory) -> None:
        """Tell the controller; without a directory left others have to take over, as in Kafka."""
        directories = self.log_manager.directories
        self._tell_offline()
        if directory.path == self.metadata.directory:
            self.fatal(f"{directory.path} has failed, which holds the metadata: {directory.error}")
        elif self._has_others() and all(d.error for d in directories):
            self.fatal(f"every log directory has failed: {directory.error}")

    def _tell_offline(self) -> None:
        failed = [d.directory_id for d in self.log_manager.directories if d.error is not None]
        self.lifecycle.directories_failed([known for known in failed if known != uuids.ZERO])

    def fatal(self, reason: str) -> None:
        """The node cannot go on: log why, tell whoever runs it."""
        logger.error("%s", reason)
        self._failed = True
        self.on_fatal(reason)

    # -- stop

    def _nobody_answers(self) -> bool:
        """Whether the only controller is ours, and decides nothing."""
        return bool(self._failed or self.metadata.waits_for) and len(self.image.controllers) <= 1

    def _end_of(self, pending: Pending[Any]) -> asyncio.Future[None]:
        """A future that is done when `pending` is, whatever became of it."""
        future: asyncio.Future[None] = self.loop.create_future()
        pending.add_done_callback(lambda _: _finish(future))
        return future

    async def stop(self) -> None:
        """Stop in order; nothing raises.

        Clients and followers are served until the leaderships have moved; the controller's
        listener stays until the quorum has heard of the stop.
        """
        if self.lifecycle.epoch >= 0 and not self._nobody_answers():
            stopped = self._end_of(self.lifecycle.begin_shutdown())
            await shutdown_granted(self.loop, stopped, self._nobody_answers)
        epoch = self.lifecycle.epoch
        self.lifecycle.close()
        if self.controller_registration is not None:
            self.controller_registration.close()
        self.coordinators.close()
        for listener in self.listeners.values():
            if self.published.listener_type(listener.name) == "broker":
                listener.stop_accepting()
                listener.close_connections()
        self.replication.close()
        self.replica_directories.close()
        self.replicas.close()
        self.deadlines.close()
        self.peers.close()
        self.controller_channel.close()
        await self._end_of(self.metadata.stop())
        for listener in self.listeners.values():
            listener.stop_accepting()
            listener.close_connections()
        checked = self.workers.checks_ended()
        if checked is not None:
            await self._end_of(checked)
        await self._end_of(self.log_manager.drained())
        self.log_manager.shutdown(epoch, is_loaded=self._follows)
        if self._syncs is not None:
            self._syncs.close()
        self.workers.close()


def _receive_bytes_max(configured: int) -> int:
    """queued.max.request.bytes, or kwire's own bound where it is not set."""
    return configured if configured > 0 else RESERVED_BYTES_MAX


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


__all__ = ["ErrorCode", "KafkaError", "Node", "StartError"]
