"""The metadata quorum of a node: raft, the controller, what is committed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from kwire.clock import Clock, Random
from kwire.config.broker_config import BrokerConfig
from kwire.config.dynamic import DynamicConfig
from kwire.kraft import quorum_settings as settings
from kwire.kraft.controller.config_rules import controller_config
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.controller import Controller
from kwire.kraft.controller.routes import HANDLED_REQUESTS
from kwire.kraft.images.image_publisher import ImagePublisher, Publisher
from kwire.kraft.metadata_log import MetadataLog
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.files import Files
from kwire.log.recovery.known_logs import KnownLog
from kwire.log.scheduling import Scheduler
from kwire.membership.dead_processes import DeadProcesses
from kwire.network.buffers import BufferPool
from kwire.network.login import MakeAuthentication
from kwire.network.peer import PeerNetwork, Wrap
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Message, Request
from kwire.security.acl import CLUSTER_NAME
from kwire.server.context import RequestContext

logger = logging.getLogger(__name__)

Response = TypeVar("Response", bound=Message)


class MetadataQuorum:
    """This node's replica of `__cluster_metadata`, with its controller where it has that role.

    `publish(delta, image)` is called with everything committed, `on_fatal(reason)` when the node
    cannot go on. `listener_name` is the controllers' listener, `authentication()` a login there,
    `wrap` protects connections to it. `driver` is there after `open`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        pool: BufferPool,
        clock: Clock,
        random: Random,
        config: BrokerConfig,
        dynamic_config: DynamicConfig,
        *,
        listener_name: str,
        publish: Publisher,
        on_fatal: Callable[[str], None],
        wrap: Wrap,
        authentication: MakeAuthentication | None = None,
    ) -> None:
        self._loop = loop
        self._pool = pool
        self._clock = clock
        self._random = random
        self._config = config
        self._dynamic_config = dynamic_config
        self._listener_name = listener_name
        self._authentication = authentication
        self._publish = publish
        self._on_fatal = on_fatal
        self._wrap = wrap
        self.publisher = ImagePublisher()
        self.driver: RaftDriver | None = None
        self._peers: PeerNetwork | None = None
        self._dead_processes: DeadProcesses | None = None
        self._leader_listeners: list[Callable[[], None]] = []

    def on_leader_change(self, listener: Callable[[], None]) -> None:
        """Tell whenever there is another active controller, in the loop's next turn."""
        self._leader_listeners.append(listener)

    # -- start

    def open(
        self,
        cluster_id: str,
        directory: str,
        directory_id: bytes,
        endpoints: Sequence[Endpoint],
        *,
        files: Files,
        scheduler: Scheduler,
        known: KnownLog | None,
    ) -> None:
        """Open the metadata log in a log directory; `endpoints` are where this node's controller
        is reached, where it has one, `known` is what is known of the log's files. Raises
        ConfigError and what `RaftDriver` raises."""
        config = self._config
        raft_config = settings.raft_config(
            config,
            cluster_id=cluster_id,
            directory_id=directory_id,
            endpoints=tuple(endpoints),
            roles=tuple(config["process.roles"]),
        )
        log = MetadataLog.open(
            directory,
            settings.log_config(config),
            self._clock,
            files=files,
            scheduler=scheduler,
            known=known,
        )
        self._peers = PeerNetwork(
            self._loop,
            self._pool,
            self._random,
            resolve=self.address_of,
            controller=lambda: self.leader_id,
            client_id=f"raft-client-{config.node_id}",
            backoff_max_ms=200,
            authentication=self._authentication,
            wrap=self._wrap,
        )
        driver = self.driver = RaftDriver(
            raft_config,
            log,
            sender=self._peers,
            loop=self._loop,
            scheduler=scheduler,
            clock=self._clock,
            random=self._random,
            controller=self._controller(cluster_id) if config.is_controller else None,
            policy=settings.snapshot_policy(config),
            on_fatal=lambda error: self._on_fatal(f"the metadata quorum has failed: {error}"),
        )
        driver.add_listener(self.publisher)
        driver.snapshotter.source = self.publisher
        self.publisher.add(self._publish)
        if config.is_controller and config["kwire.dead.process.detection.enable"]:
            self._detect_dead_processes(driver, self._peers)
        self._warn_of_another_directory(driver, directory)

    def write_out(self) -> KnownLog | None:
        """As `MetadataLog.write_out`, of a quorum that is open."""
        return None if self.driver is None else self.driver.metadata_log.write_out()

    def _controller(self, cluster_id: str) -> Controller:
        voters = (self._config.node_id,)
        config = controller_config(self._config, cluster_id, voters, self._dynamic_config)
        return Controller(config, self._random)

    def _detect_dead_processes(self, driver: RaftDriver, peers: PeerNetwork) -> None:
        listener_name = self._config.inter_broker_listener_name()
        self._dead_processes = DeadProcesses(self._loop, driver, peers, listener_name)
        self.publisher.add(self._dead_processes.published)

    def _warn_of_another_directory(self, driver: RaftDriver, directory: str) -> None:
        """A voter whose directory was replaced does not vote: say so, it may wait for ever."""
        own = driver.raft.config.key
        voter = driver.raft.voters.voters.get(own.id)
        if voter is None or voter.key.directory_id in (None, own.directory_id):
            return
        logger.warning(
            "node %d does not vote: the quorum knows it with directory.id %s, and %s has %s",
            own.id,
            uuids.to_text(voter.key.directory_id or uuids.ZERO),
            directory,
            uuids.to_text(own.directory_id or uuids.ZERO),
        )

    @property
    def _opened(self) -> RaftDriver:
        driver = self.driver
        if driver is None:
            raise AssertionError("the metadata log is not open")
        return driver

    def start(self) -> Pending[None]:
        """Begin; done when what was committed before, and this node's own start, is published."""
        started: Pending[None] = Pending()

        def leader_changed(leader_id: int | None, epoch: int) -> None:
            if leader_id is not None:
                if not started.done:
                    self._loop.call_soon(self._leader_known, started)
                for listener in self._leader_listeners:
                    self._loop.call_soon(listener)

        driver = self._opened
        driver.on_leader_change(leader_changed)
        driver.start()
        return started

    def _leader_known(self, started: Pending[None]) -> None:
        driver = self._opened
        if driver.runner is not None and driver.runner.is_active:
            driver.runner.when_committed(driver.raft.log.end_offset, started, None)
        else:
            started.complete(None)

    # -- requests

    @property
    def leader_id(self) -> int | None:
        """The active controller, as far as this node knows."""
        return self._opened.leader_id

    @property
    def is_led(self) -> bool:
        """Whether that one leads, as far as this node can tell: the last one is known for as long
        as there is no other."""
        return self.driver is not None and self.driver.raft.is_led

    @property
    def waits_for(self) -> str:
        """What the metadata log is short of, empty while it is not."""
        return "" if self.driver is None else self.driver.waits_for

    @property
    def complete(self) -> tuple[int, int] | None:
        """See `RaftDriver.complete`."""
        return None if self.driver is None else self.driver.complete

    @property
    def kraft_version(self) -> int:
        return self._opened.raft.voters.level

    @property
    def is_active(self) -> bool:
        """Whether the active controller is this node's."""
        return self.driver is not None and self.driver.is_active

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a controller is reached."""
        return self._opened.address_of(node_id)

    def raft_request(
        self, request: Request[Response], context: RequestContext
    ) -> Pending[Response]:
        """A request of another replica, or about the quorum, that came in by a listener."""
        return self._opened.request(request, context.api_version, listener=context.listener_name)

    def handle(self, request: Request[Response], context: ControllerContext) -> Pending[Response]:
        """A request for the controller or for raft, from this process."""
        driver = self._opened
        if request.NAME in HANDLED_REQUESTS:
            if driver.runner is None:
                raise AssertionError("a request for the controller of a node without one")
            return driver.runner.handle(request, context)
        if not _may_ask_raft(request.API_KEY, context):
            from kwire.kraft.controller.errors import error_response

            denied = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            refused: Response = error_response(request, denied, context.api_version)
            return Pending.completed(refused)
        listener = context.listener_name or self._listener_name
        return driver.request(request, context.api_version, listener=listener)

    def heard(self, context: RequestContext, request: m.BrokerHeartbeatRequest) -> None:
        """The active controller has accepted a broker's heartbeat."""
        if self._dead_processes is not None and context.connection is not None:
            self._dead_processes.heard(context.connection, request.broker_id, request.broker_epoch)

    def stop(self) -> Pending[None]:
        """Resign, tell the other voters, close the metadata log; done when it is closed."""
        driver = self.driver
        if driver is None:
            return Pending.completed(None)
        if self._dead_processes is not None:
            self._dead_processes.close()
        stopped = driver.stop()
        stopped.add_done_callback(lambda _: self._peers.close() if self._peers else None)
        return stopped


def _may_ask_raft(api_key: int, context: ControllerContext) -> bool:
    """Whether a client has the right that its request requires on a controller's listener, too."""
    from kwire.server.controller_dispatch import RAFT_AUTHORIZATION

    return all(
        context.authorize(required.operation, required.resource_type, CLUSTER_NAME)
        for required in RAFT_AUTHORIZATION[api_key]
    )
