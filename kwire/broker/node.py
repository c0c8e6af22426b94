"""The composition root: everything that a node consists of, made here and nowhere else.

`Node(config, loop).start()` locks and formats the log directories, loads the logs, starts the
metadata quorum, publishes what is committed to the parts that follow it, registers the broker and
serves once it is unfenced. `stop()` goes the way back: leaderships, connections, logs.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from kwire.broker.auto_create import AutoTopicCreation
from kwire.broker.connection_limits import ConnectionLimits
from kwire.broker.context import RequestContext
from kwire.broker.coordinators import Coordinators
from kwire.broker.dispatch import Dispatcher
from kwire.broker.fetch_sessions import FetchSessionCache
from kwire.broker.lifecycle import BrokerLifecycle
from kwire.broker.producer_ids import ProducerIds
from kwire.broker.purgatory import DeadlineHeap
from kwire.broker.quorum import MetadataQuorum, full_delta
from kwire.broker.registration import registration_request
from kwire.broker.server import Listener
from kwire.clock import Clock, Random, SystemClock, SystemRandom
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.controller import HANDLED_REQUESTS
from kwire.kraft.image import MetadataDelta, MetadataImage
from kwire.log.cleaner import LogCleaner
from kwire.log.cleaner_settings import CleanerSettings
from kwire.log.log_config import LogConfig
from kwire.log.log_directory import LogDirectoryError
from kwire.log.manager import LogManager, ManagerSettings
from kwire.log.scheduling import LoopScheduler
from kwire.network.buffers import RESERVED_BYTES_MAX, BufferPool
from kwire.network.peer import CONTROLLER, PeerNetwork
from kwire.pending import Pending
from kwire.protocol import uuids
from kwire.protocol.api_keys import API_KEYS, UNBUILT, ApiKey
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

PRODUCE_ADVERTISED_MIN = 0
TELEMETRY_KEYS = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
START_TIMEOUT_S = 60.0
CONTROLLED_SHUTDOWN_S = 0.5
IMAGE_CONFIGS_EMPTY: Mapping[tuple[int, str], Mapping[str, str]] = {}


class StartError(Exception):
    """The node cannot start; one line for the user."""


class Node:
    """One broker and controller. Attributes are what API handlers use; see `docs` of each part."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        *,
        features: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        files: Any = None,
        new_executor: Callable[[str], Any] | None = None,
    ) -> None:
        self.config = config
        self.dynamic_config = DynamicConfig(config)
        self.loop = loop
        self.clock: Clock = clock or SystemClock()
        self.random: Random = random or SystemRandom()
        self.broker_id = config.node_id
        self.cluster_id = ""
        self.incarnation_id = b""
        self.authorizer: Any = None
        self.image = MetadataImage()
        self.buffer_pool = BufferPool(_receive_bytes_max(config["queued.max.request.bytes"]))
        self.deadlines = DeadlineHeap(loop)
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"], self.random
        )
        self.fetch_bytes_max: int = config["fetch.max.bytes"]
        self.listener_name = config.inter_broker_listener_name()
        self.on_fatal: Callable[[str], None] = lambda reason: None
        self._executors: list[Any] = []
        self._new_executor = new_executor or _one_worker
        self.log_manager = LogManager(
            [os.path.abspath(path) for path in config.log_directories],
            self.clock,
            self.random,
            files=files,
            scheduler=self.new_scheduler("kwire-log"),
            settings=ManagerSettings.from_values(config),
            config_of=self.topic_config,
        )
        self.log_manager.cleaner = LogCleaner(
            self.log_manager,
            CleanerSettings.from_values(config),
            lambda: self.new_scheduler("kwire-cleaner"),
            self.random,
        )
        self.dynamic_config.add_listener(self.log_manager.cleaner.changed)
        self.replicas = ReplicaManager(
            self.broker_id,
            self.log_manager,
            self.topic_config,
            self._now_ms,
            config["replica.lag.time.max.ms"],
        )
        self.peers = self._make_peers()
        self.lifecycle = self._make_lifecycle()
        self.producer_ids = ProducerIds(
            self.broker_id, lambda: self.lifecycle.epoch, self._ask_controller
        )
        self.auto_topics = AutoTopicCreation(self)
        self.coordinators = Coordinators(self)
        self.listeners: dict[str, Listener] = {}
        self.advertised: list[Any] = []
        self._features = dict(features or {})
        self._apis: list[tuple[int, int, int]] | None = None
        self._follows = False
        self.metadata = MetadataQuorum(self, self._publish)

    def _make_peers(self) -> PeerNetwork:
        return PeerNetwork(
            self.loop,
            self.buffer_pool,
            self.random,
            resolve=self._address_of,
            controller=self._controller_id,
            client_id=f"kwire-{self.broker_id}",
        )

    def _make_lifecycle(self) -> BrokerLifecycle:
        return BrokerLifecycle(
            self.loop,
            self.broker_id,
            self._ask_controller,
            lambda: registration_request(self),
            lambda: self.image.offset,
            self.config["broker.heartbeat.interval.ms"],
            self.fatal,
        )

    @property
    def groups(self) -> Any:
        """The group coordinator."""
        return self.coordinators.groups

    @property
    def transactions(self) -> Any:
        """The transaction coordinator."""
        return self.coordinators.transactions

    @property
    def transaction_verifier(self) -> Any:
        """Asks coordinators about transactional writes."""
        return self.coordinators.verifier

    def new_scheduler(self, name: str) -> LoopScheduler:
        """Timers of the loop, and jobs of a worker of their own, one at a time."""
        executor = self._new_executor(name)
        self._executors.append(executor)
        return LoopScheduler(self.loop, executor)

    # -- start

    async def start(self) -> None:
        """Return when the broker serves. Raises StartError and ConfigError, one line each."""
        from kwire.kraft.format import FormatError
        from kwire.kraft.raft.types import RaftInvariantError

        try:
            self.log_manager.open_directories()
            self.metadata.open(self._features)
        except (LogDirectoryError, FormatError, RaftInvariantError, OSError) as error:
            raise StartError(str(error)) from None
        self.cluster_id = self.metadata.cluster_id
        self.incarnation_id = uuids.random_uuid(self.random)
        self.peers.bind_local(self.broker_id, self._local_request)
        await self._bind()
        await self._done(self.metadata.start())
        self._load_logs()
        self.lifecycle.start()
        await self._done(self.lifecycle.started)
        for listener in self.listeners.values():
            await listener.start()
        self.log_manager.start_timers()

    async def _done(self, pending: Pending[None]) -> None:
        """Wait for a part of the start."""
        future: asyncio.Future[None] = self.loop.create_future()
        pending.add_done_callback(lambda _: _finish(future))
        await asyncio.wait_for(future, START_TIMEOUT_S)

    def _load_logs(self) -> None:
        """Load the logs that the metadata expects here, then follow the metadata."""

        def expected(topic: str, index: int) -> bytes | None:
            known = self.image.topics.by_name.get(topic)
            partition = None if known is None else known.partitions.get(index)
            if known is None or partition is None or self.broker_id not in partition.replicas:
                return None
            return known.topic_id

        try:
            self.log_manager.load_all(expected)
        except LogDirectoryError as error:
            raise StartError(str(error)) from None
        self._follows = True
        self._publish(full_delta(self.image), self.image)

    async def _bind(self) -> None:
        names = {key: info.name for key, info in API_KEYS.items() if "broker" in info.listeners}
        for key in UNBUILT:
            names.pop(key, None)
        dispatcher = Dispatcher(names)
        config = self.config
        limits = ConnectionLimits(self.dynamic_config)
        self.dynamic_config.add_listener(limits.changed)
        for listener in config.broker_listeners():
            bound = Listener(
                self,
                listener.name,
                dispatcher,
                request_bytes_max=config["socket.request.max.bytes"],
                limits=limits,
                connections_max_idle_ms=config["connections.max.idle.ms"],
            )
            try:
                await bound.bind(listener.host, listener.port)
            except OSError as error:
                raise StartError(
                    f"cannot listen on {listener.host or '*'}:{listener.port}: "
                    f"{error.strerror or error}"
                ) from None
            self.listeners[listener.name] = bound
        self.advertised = [
            listener._replace(port=listener.port or self.listeners[listener.name].port)
            for listener in config.advertised_listeners(reachable_name)
        ]

    def ready_address(self) -> tuple[str, int]:
        """Host and port of the first listener, as the ready line shows it."""
        listener = self.config.broker_listeners()[0]
        return listener.host or "0.0.0.0", self.listeners[listener.name].port

    # -- metadata

    def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata, in the order in which the parts depend on each other."""
        self.image = image
        if delta.configs:
            self.dynamic_config.update(image.configs, delta.configs)
        if not self._follows:
            return
        self.replicas.apply(delta, image)
        self.coordinators.apply(delta)
        self.lifecycle.image_published()

    def topic_config(self, topic: str) -> LogConfig:
        """The resolved configs of a topic's logs."""
        return LogConfig.from_values(self.dynamic_config.topic_values_of(topic))

    def finalized_features(self) -> dict[str, int]:
        """Feature levels of the cluster, kraft.version among them."""
        return {**self.image.features.finalized, "kraft.version": self.metadata.kraft_version}

    def advertised_apis(self, listener_name: str) -> list[tuple[int, int, int]]:
        """(API key, lowest, highest version) of what ApiVersions lists, ascending."""
        if self._apis is None:
            self._apis = [
                (key, 0 if key == ApiKey.PRODUCE else info.min, info.max)
                for key, info in API_KEYS.items()
                if "broker" in info.listeners and key not in UNBUILT and key not in TELEMETRY_KEYS
            ]
        return self._apis

    # -- other nodes

    def forward(
        self,
        request: Any,
        context: RequestContext | None,
        *,
        api_key: int | None = None,
        version: int | None = None,
    ) -> Pending[Any]:
        """Let the active controller execute a client's request, in the client's name."""
        if self._controller_id() == self.broker_id:
            return self._to_controller(request, context, version)
        key = type(request).API_KEY if api_key is None else api_key
        return self.peers.send(CONTROLLER, int(key), request, version=version)

    def _to_controller(
        self, request: Any, context: RequestContext | None, version: int | None
    ) -> Pending[Any]:
        at = version
        if at is None:
            at = type(request).MAX_VERSION if context is None else context.api_version
        made = ControllerContext(api_version=at)
        if context is None:
            made.same_process = True
        else:
            made.principal = context.principal
            made.client_id = context.client_id
            made.authorize = context.authorize
            made.listener_name = context.listener_name
        return self.metadata.handle(request, made)

    def _local_request(self, api_key: int, version: int, request: Any) -> Pending[Any]:
        """A request of a part of this node to this node."""
        if type(request).NAME in HANDLED_REQUESTS:
            return self._to_controller(request, None, version)
        listener = next(iter(self.listeners.values()))
        context = RequestContext(self, None, api_key, version, 0, None)
        context.is_internal = True
        outcome = listener.dispatcher.route_local(api_key).execute(context, request)
        if isinstance(outcome, Pending):
            return outcome
        return Pending.completed(outcome)

    def _ask_controller(self, api_key: int, request: Any) -> Pending[Any]:
        return self.peers.send(CONTROLLER, api_key, request)

    def _controller_id(self) -> int | None:
        return self.metadata.leader_id

    def _address_of(self, node_id: int) -> tuple[str, int] | None:
        broker = self.image.brokers.get(node_id)
        endpoint = None if broker is None else broker.endpoint(self.listener_name)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def _now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def fatal(self, reason: str) -> None:
        """The node cannot go on: log why, tell whoever runs it."""
        logger.error("%s", reason)
        self.on_fatal(reason)

    # -- stop

    async def stop(self) -> None:
        """Stop in order; nothing raises."""
        for listener in self.listeners.values():
            listener.stop_accepting()
        if self.lifecycle.epoch >= 0:
            stopped: asyncio.Future[None] = self.loop.create_future()
            self.lifecycle.begin_shutdown().add_done_callback(lambda _: _finish(stopped))
            try:
                await asyncio.wait_for(stopped, CONTROLLED_SHUTDOWN_S)
            except TimeoutError:
                logger.warning("the controller did not let us go in time")
        epoch = self.lifecycle.epoch
        self.lifecycle.close()
        self.coordinators.close()
        for listener in self.listeners.values():
            listener.close_connections()
        self.replicas.close()
        self.deadlines.close()
        self.peers.close()
        closed: asyncio.Future[None] = self.loop.create_future()
        self.metadata.stop().add_done_callback(lambda _: _finish(closed))
        await closed
        if self._follows:
            self.log_manager.shutdown(epoch)
        else:
            # The logs were not loaded, maybe not recovered: a clean stop must not be noted.
            self.log_manager.abandon()
        for executor in self._executors:
            shutdown = getattr(executor, "shutdown", None)
            if shutdown is not None:
                shutdown(wait=False)


def reachable_name() -> str:
    """What clients are told for a listener on every interface: this host's name where it resolves
    (in a container, on a server), else localhost (a laptop without a name in any DNS)."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name


def _receive_bytes_max(configured: int) -> int:
    """queued.max.request.bytes, or kwire's own bound where it is not set."""
    return configured if configured > 0 else RESERVED_BYTES_MAX


def _one_worker(name: str) -> Any:
    """An executor with one thread, started at its first job."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, thread_name_prefix=name)


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


__all__ = ["ErrorCode", "KafkaError", "Node", "StartError"]
