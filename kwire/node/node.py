"""The composition root: everything that a node consists of, made here and nowhere else.

`Node(config, loop).start()` locks and formats the log directories, loads the logs, starts the
metadata quorum, publishes what is committed to the parts that follow it, registers the broker and
serves once it is unfenced (`starting.py`). `stop()` goes the way back (`stopping.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from kwire.api.shared.auto_create import AutoTopicCreation
from kwire.clock import Clock, Random, SystemClock, SystemRandom
from kwire.config import listeners as settings
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.directories.manager import LogManager
from kwire.log.files import Files
from kwire.membership.broker_registration import registration_request
from kwire.membership.controller_channel import ControllerChannel
from kwire.membership.controller_registration import ControllerRegistration
from kwire.membership.cordoning import Cordoning
from kwire.membership.lifecycle import BrokerLifecycle
from kwire.membership.lost_brokers import LostBrokers
from kwire.membership.producer_ids import ProducerIds
from kwire.membership.replica_directories import ReplicaDirectories
from kwire.network.buffers import BufferPool
from kwire.network.peer import PeerNetwork
from kwire.node.acls import PublishedAcls
from kwire.node.audit_settings import audit_of
from kwire.node.client_quotas import PublishedQuotas
from kwire.node.controller_requests import ControllerRequests
from kwire.node.coordinators import Coordinators
from kwire.node.directory_failures import DirectoryFailures
from kwire.node.directory_identities import DirectoryIdentities
from kwire.node.early_topics import EarlyTopics
from kwire.node.failure import Failure
from kwire.node.followed_answers import FollowedAnswers
from kwire.node.health import health_of
from kwire.node.host_name import reachable_name
from kwire.node.http_side import bind, make_http_side, serve
from kwire.node.listener_security import ListenerSecurity
from kwire.node.listeners import Listeners, controller_listener_name
from kwire.node.loading_logs import LogLoading
from kwire.node.local_requests import LocalRequests
from kwire.node.log_configs import LogConfigs
from kwire.node.logins import Logins
from kwire.node.logs import make_log_manager
from kwire.node.metadata_quorum import MetadataQuorum
from kwire.node.published import PublishedMetadata
from kwire.node.publishing import Publishing, on_moved
from kwire.node.quorum_opening import QuorumOpening
from kwire.node.reading import read_context, receive_bytes_max
from kwire.node.replication import Replication
from kwire.node.schema_checks import NodeSchemaChecks
from kwire.node.start_error import StartError
from kwire.node.starting import StartSequence
from kwire.node.steps import steps_of
from kwire.node.stopping import StopSequence
from kwire.node.telemetry import NodeTelemetry
from kwire.node.workers import NewExecutor, workers_of
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.replica.manager import ReplicaManager
from kwire.security.authorizer import audited
from kwire.server.connection_admission import ConnectionAdmission
from kwire.server.deadlines import DeadlineHeap
from kwire.server.described_topics import DescribedTopics
from kwire.server.dispatch import Dispatcher
from kwire.server.fetch_sessions import FetchSessionCache
from kwire.server.listener import Listener
from kwire.server.parts import Parts
from kwire.slices import Slices

if TYPE_CHECKING:
    from kwire.http.side import HttpSide
    from kwire.metrics.reading import NodeMetrics

__all__ = ["Node", "StartError"]


class Node:
    """One broker, controller, or both. A controller alone has no logs but the metadata's, and no
    broker half. `on_fatal(reason)` is called when the node cannot go on. `http_by_default`: answer
    HTTP on loopback where `http.listeners` says nothing; `http` is None where none is answered.
    `incarnation_id`: whom it goes on as, if its directories are those of a node at work."""

    def __init__(
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        *,
        features: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        files: Files | None = None,
        new_executor: NewExecutor | None = None,
        http_by_default: bool = False,
        incarnation_id: bytes = b"",
    ) -> None:
        self.config = config
        self.loop = loop
        self.clock: Clock = clock or SystemClock()
        self.random: Random = random or SystemRandom()
        self.broker_id = config.node_id
        self._goes_on, self.incarnation_id = bool(incarnation_id), incarnation_id
        self.on_fatal: Callable[[str], None] = lambda reason: None
        self.failure = Failure(lambda reason: self.on_fatal(reason))
        self.dynamic_config = DynamicConfig(config, is_catching_up=True)
        self.log_configs = LogConfigs(self.dynamic_config)
        self.security = ListenerSecurity(loop, config, self.dynamic_config)
        self.logins = Logins(loop, self.dynamic_config, self.random, self.clock, lambda: self.image)
        self.published = self._make_published()
        self.acls = PublishedAcls(config, loop.call_soon)
        self.publishing = Publishing(loop, self.failure.fatal)
        self.buffer_pool = BufferPool(receive_bytes_max(config))
        self.deadlines = DeadlineHeap(loop)
        self.workers = workers_of(loop, new_executor, is_real=files is None)
        self.log_manager = self._make_log_manager(files)
        self.replicas = self._make_replicas()
        self.listeners = Listeners(
            loop, config, self.dynamic_config, self._make_listener, reachable_name
        )
        self.peers = self._make_peers()
        self.metadata = self._make_metadata()
        self.audit = audit_of(config, loop, self.clock, self.workers.scheduler)
        self.controller_requests = self._make_controller_requests()
        self.controller_channel = self._make_controller_channel()
        self.cordoning = Cordoning(self.dynamic_config, self.log_manager, lambda: self.image)
        self.lifecycle = self._make_lifecycle()
        self.cordoning.on_change = self.lifecycle.directories_changed
        self.replication = self._make_replication()
        self.replica_directories = self._make_replica_directories()
        self.producer_ids = ProducerIds(
            self.broker_id, lambda: self.lifecycle.epoch, self.controller_channel.ask
        )
        self.coordinators = self._make_coordinators()
        self.lost_brokers = LostBrokers()
        self.controller_registration = self._make_controller_registration()
        self.directory_identities = self._make_directory_identities()
        self.directory_failures = self._make_directory_failures()
        self.health = health_of(config, self.lifecycle, self.metadata, self.log_manager)
        self.telemetry = NodeTelemetry(self.dynamic_config, self.random, lambda: self.http)
        self.published.takes_telemetry = self.telemetry.is_read
        self.parts = self._make_parts()
        self.request_steps = steps_of(
            config, loop, self.clock, self.audit, lambda: self.parts.authorizer is not None
        )
        self.client_quotas = PublishedQuotas(config, self.request_steps)
        self.local_requests = self._make_local_requests()
        self._subscribe()
        self._metrics: NodeMetrics | None = None
        self.http = self._make_http(http_by_default)
        self._starting = self._make_start_sequence(dict(features or {}))
        self._stopping = self._make_stop_sequence()

    async def start(self) -> None:
        """Return when the node serves. Raises StartError and ConfigError, one line each."""
        if self.audit is not None:
            self.audit.start()
        self.security.open()
        await self.logins.open()
        await bind(self.http, self.dynamic_config)
        await self._starting.run(lambda: serve(self.http))
        self.health.serving()

    async def stop(self) -> None:
        """Stop in order; nothing raises."""
        self.security.close()
        self.logins.close()
        if self.http is not None:
            await self.http.stop()
        await self._stopping.run()
        await self.schema_checks.close()
        if self.audit is not None:
            self.audit.close()

    # -- what whoever runs a node asks

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that was published."""
        return self.published.image

    @property
    def cluster_id(self) -> str:
        return self.published.cluster_id

    @property
    def is_active_controller(self) -> bool:
        """Whether this node's controller decides."""
        return self.metadata.is_active

    def ready_address(self) -> tuple[str, int]:
        """Host and port of the first listener, as the ready line shows it."""
        return self.listeners.ready_address()

    def _make_http(self, by_default: bool) -> HttpSide | None:
        return make_http_side(
            self.config,
            self.loop,
            self.buffer_pool,
            by_default=by_default,
            bootstrap=self.listeners.local_address,
            questions={"health": self.health.answer, "metrics": self._answer_metrics}
            | self.telemetry.questions(self._now_ms)
            | self.security.questions(),
        )

    def _answer_metrics(self, arguments: Mapping[str, str]) -> Iterator[bytes]:
        """What this node counts; who reads it is made when somebody asks."""
        if self._metrics is None:
            from kwire.metrics.reading import NodeMetrics

            self._metrics = NodeMetrics(
                is_broker=self.config.is_broker,
                parts=self.parts,
                listeners=lambda: self.listeners.bound.values(),
                driver=lambda: self.metadata.driver,
                image=lambda: self.image,
                lifecycle=self.lifecycle,
                logs=self.log_manager,
                replicas=self.replicas,
                isr_changes=self.replication.isr_changes,
                fetchers=self.replication.fetchers,
                directories=self.replica_directories,
                publisher=self.metadata.publisher,
                transaction_timeout_ms_max=self.config["transaction.max.timeout.ms"],
                coordinators=self.coordinators,
                quotas=lambda: self.client_quotas.quotas,
                telemetry=self.telemetry,
            )
        return self._metrics.answer(arguments)

    # -- logs and replicas

    def _make_log_manager(self, files: Files | None) -> LogManager:
        return make_log_manager(
            self.config,
            self.clock,
            self.random,
            files,
            self.workers,
            self.dynamic_config,
            now_ms=self._now_ms,
            config_of=self.log_configs.of,
            on_directory_failure=lambda directory: self.directory_failures.failed(directory),
            has_other_brokers=self.published.has_other_brokers,
            on_descriptors_short=lambda: self.listeners.make_room(),
        )

    def _make_replicas(self) -> ReplicaManager:
        lag_ms = self.config["replica.lag.time.max.ms"]
        return ReplicaManager(
            self.broker_id, self.log_manager, self.log_configs.of, self._now_ms, lag_ms
        )

    def _make_replication(self) -> Replication:
        return Replication(
            self.loop,
            self.buffer_pool,
            self.random,
            self.config,
            self.dynamic_config,
            replicas=self.replicas,
            resolve=self.published.address_of,
            own_epoch=lambda: self.lifecycle.epoch,
            ask=self.controller_channel.ask,
            authentication=self.logins.at(self.config.inter_broker_listener_name()),
            wrap=self.security.dialled(self.config.inter_broker_listener_name()),
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

    def _make_coordinators(self) -> Coordinators:
        return Coordinators(
            self.loop,
            self.clock,
            self.random,
            self.config,
            self.dynamic_config,
            metadata=self.published,
            replicas=self.replicas,
            peers=self.peers,
            deadlines=self.deadlines,
            allocate_producer_id=self.producer_ids.take,
            checkpoint_log_starts=self.log_manager.checkpoint_log_starts,
            create_topic=lambda name: self.parts.auto_topics.create([name], None),
            create_topics=lambda request: self.controller_channel.forward(request, None, version=7),
            new_scheduler=self.workers.scheduler,
        )

    def _make_directory_identities(self) -> DirectoryIdentities:
        return DirectoryIdentities(
            self.config,
            self.log_manager,
            self.clock,
            self.random,
            listener_name=controller_listener_name(self.config),
            endpoint=lambda: self.listeners.controller_endpoints()[0],
        )

    def _make_directory_failures(self) -> DirectoryFailures:
        return DirectoryFailures(
            self.log_manager,
            self.directory_identities.metadata_directory,
            has_others=self.published.has_other_brokers,
            report=self.lifecycle.directories_failed,
            on_fatal=self.failure.fatal,
        )

    def _now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    # -- metadata, the quorum, the cluster

    def _make_published(self) -> PublishedMetadata:
        names = self.config.inter_broker_listener_name(), self.config.controller_listener_names()
        return PublishedMetadata(*names, lambda: self.metadata)

    def _subscribe(self) -> None:
        """Who hears of committed metadata, in the order in which the parts depend on each other."""
        publishing = self.publishing
        publishing.add(self._keep_image)
        publishing.add(lambda delta, image: self.controller_registration.published(image))
        if not self.config.is_broker:
            return
        publishing.add(self.listeners.published)
        publishing.add(lambda delta, _: self.parts.described_topics.applied(delta))
        publishing.add(lambda delta, _: self.replicas.forget_names(delta))
        publishing.add_follower(on_moved(self.peers.disconnect))
        publishing.add_follower(lambda delta, _: self.lost_brokers.applied(delta, self._now_ms()))
        publishing.add_follower(self.replicas.apply)
        publishing.add_follower(self.replication.published)
        publishing.add_follower(self.replica_directories.published)
        publishing.add_follower(self.coordinators.published)
        publishing.add_last(lambda delta, image: self.lifecycle.image_published())

    def _keep_image(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.published.image = image
        self.request_steps.image_published()
        self.client_quotas.published(delta, image)
        self.acls.changed(delta.acls)
        if delta.configs:
            self.dynamic_config.update(image.configs, delta.configs)
            self.telemetry.published(delta, image)
            self.schema_checks.published(delta, image)
            self.security.look_at_files()

    def _make_peers(self) -> PeerNetwork:
        return PeerNetwork(
            self.loop,
            self.buffer_pool,
            self.random,
            resolve=self.published.address_of,
            controller=lambda: None,
            client_id=f"kwire-{self.broker_id}",
            authentication=self.logins.at(self.config.inter_broker_listener_name()),
            wrap=self.security.dialled(self.config.inter_broker_listener_name()),
        )

    def _make_metadata(self) -> MetadataQuorum:
        return MetadataQuorum(
            self.loop,
            self.buffer_pool,
            self.clock,
            self.random,
            self.config,
            self.dynamic_config,
            listener_name=controller_listener_name(self.config),
            authentication=self.logins.at(controller_listener_name(self.config)),
            publish=self.publishing.publish,
            on_fatal=self.failure.fatal,
            wrap=self.security.dialled(controller_listener_name(self.config)),
        )

    def _make_controller_requests(self) -> ControllerRequests:
        return ControllerRequests(
            self.metadata,
            self.config.controller_listener_names,
            lambda *asked: self.client_quotas.mutation_quota(*asked),
            self._now_ms,
            self.audit,
            lambda names: self.listeners.look_up(names),
        )

    def _make_controller_registration(self) -> ControllerRegistration:
        return ControllerRegistration(
            self.loop,
            controller_id=self.broker_id,
            image=lambda: self.image,
            ask=self.controller_channel.ask,
        )

    def _make_controller_channel(self) -> ControllerChannel:
        return ControllerChannel(
            self.loop,
            self.buffer_pool,
            self.random,
            broker_id=self.broker_id,
            quorum=self.metadata,
            execute=self.controller_requests.execute,
            ask_timeout_ms=max(1000, self.config["broker.session.timeout.ms"]),
            authentication=self.logins.at(controller_listener_name(self.config)),
            wrap=self.security.dialled(controller_listener_name(self.config)),
        )

    def _make_lifecycle(self) -> BrokerLifecycle:
        return BrokerLifecycle(
            self.loop,
            self.broker_id,
            self.controller_channel.ask,
            self._registration_request,
            lambda: self.image.offset,
            self.config["broker.heartbeat.interval.ms"],
            self.failure.fatal,
            self.config["controller.quorum.fetch.timeout.ms"],
            waits_for_logs=True,
            cordoned=self.cordoning.reported,
            followed_offset=lambda: self.publishing.followed_offset(self.image),
            directory_failure_ms=self.config["log.dir.failure.timeout.ms"],
            goes_on=self._goes_on,
        )

    def _registration_request(self) -> m.BrokerRegistrationRequest:
        return registration_request(
            broker_id=self.broker_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=self.listeners.advertised,
            rack=self.config["broker.rack"],
            directories=self.log_manager.directories,
        )

    # -- requests

    def _make_parts(self) -> Parts:
        """What API handlers may use."""
        config, own = self.config, (self.dynamic_config, self.replicas, self.peers, self.published)
        schemas = (self.workers.scheduler, self._now_ms, self.loop, config["http.registry.topic"])
        self.schema_checks = NodeSchemaChecks(*own, *schemas)
        return Parts(
            broker_id=self.broker_id,
            listener_name=config.inter_broker_listener_name(),
            config=config,
            dynamic_config=self.dynamic_config,
            loop=self.loop,
            clock=self.clock,
            random=self.random,
            deadlines=self.deadlines,
            metadata=self.published,
            quorum=self.metadata,
            forwarder=FollowedAnswers(self.controller_channel, self.publishing.followed),
            ask_controller=self.controller_requests.execute,
            authorizer=audited(self.acls.authorizer, self.audit),
            replicas=self.replicas,
            coordinators=self.coordinators,
            shares=self.coordinators.shares,
            auto_topics=AutoTopicCreation(config, self.controller_channel),
            producer_ids=self.producer_ids,
            lost_brokers=self.lost_brokers,
            described_topics=DescribedTopics(),
            slices=Slices(self.loop.call_soon),
            cordoning=self.cordoning,
            logs=self.log_manager,
            health=self.health,
            telemetry=self.telemetry,
            schema_checks=self.schema_checks,
            check_later=lambda later: self.workers.checks.run(later),
            fetch_sessions=FetchSessionCache(
                config["max.incremental.fetch.session.cache.slots"], self.random
            ),
            fetch_bytes_max=config["fetch.max.bytes"],
            read_context=read_context(config, self.deadlines, self.replication, lambda: self.image),
        )

    def _make_local_requests(self) -> LocalRequests:
        return LocalRequests(
            self.loop,
            self.parts,
            self.request_steps,
            dispatcher=lambda: self.listeners.of_other_brokers.dispatcher,
            ask_controller=self.controller_requests.execute,
        )

    def _make_listener(
        self,
        listener: settings.Listener,
        dispatcher: Dispatcher,
        admission: ConnectionAdmission | None,
    ) -> Listener:
        return Listener(
            listener.name,
            dispatcher,
            loop=self.loop,
            pool=self.buffer_pool,
            parts=self.parts,
            steps=self.request_steps,
            request_bytes_max=self.config["socket.request.max.bytes"],
            admission=admission,
            connections_max_idle_ms=self.config["connections.max.idle.ms"],
            connection_gone=self.log_manager.shortages.hurry,
            security_protocol=listener.protocol,
            wrap=self.security.accepted(listener),
            sasl=self.logins.of(listener.name),
            is_of_controller=listener.name in self.config.controller_listener_names(),
        )

    def _controller_dispatcher(self) -> Dispatcher:
        from kwire.server.controller_dispatch import ControllerDispatcher

        return ControllerDispatcher(self.metadata, self.controller_requests.execute)

    # -- start and stop

    def _caught_up(self) -> None:
        """What is published is the committed metadata as it stands."""
        self.dynamic_config.caught_up()
        self.acls.caught_up()

    def _make_start_sequence(self, features: Mapping[str, int]) -> StartSequence:
        opening = QuorumOpening(
            self.config,
            features,
            logs=self.log_manager,
            identities=self.directory_identities,
            listeners=self.listeners,
            controller_dispatcher=self._controller_dispatcher,
            quorum=self.metadata,
            workers=self.workers,
        )
        loading = LogLoading(
            self.loop,
            self.dynamic_config,
            self.log_manager,
            broker_id=self.broker_id,
            image=lambda: self.image,
            loaded=lambda: self.publishing.begin_following(self.image),
        )
        return StartSequence(
            self.loop,
            self.config,
            caught_up=self._caught_up,
            start_early=self.acls.start_early,
            opening=opening,
            identified=self._identified,
            listeners=self.listeners,
            quorum=self.metadata,
            lifecycle=self.lifecycle,
            loading=loading,
            logs=self.log_manager,
            replicate=self.replication.start,
            early_topics=EarlyTopics(self.config, self.parts.auto_topics, self.publishing),
        )

    def _identified(self, cluster_id: str) -> None:
        """The log directories are known: the node takes part in the cluster from now on."""
        self.directory_failures.report()
        self.published.cluster_id = cluster_id
        self.incarnation_id = self.incarnation_id or uuids.random_uuid(self.random)
        self.peers.bind_local(self.broker_id, self.local_requests.execute)
        if self.config.is_controller:
            advertised = self.listeners.advertised_controller()
            if advertised:
                self.controller_registration.begin(self.incarnation_id, advertised)

    def _make_stop_sequence(self) -> StopSequence:
        return StopSequence(
            self.loop,
            lifecycle=self.lifecycle,
            failure=self.failure,
            image=lambda: self.image,
            requesters=(self.controller_registration, self.coordinators),
            listeners=self.listeners,
            replicators=(
                self.publishing,
                self.replication,
                self.replica_directories,
                self.replicas,
                self.deadlines,
                self.peers,
                self.controller_channel,
            ),
            quorum=self.metadata,
            workers=self.workers,
            logs=self.log_manager,
            is_loaded=lambda: self.publishing.is_following,
        )
