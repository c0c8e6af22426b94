"""The metadata quorum of a node: formatting on first use, raft, controller, published image."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kwire.config.listeners import Listener
from kwire.kraft import quorum_settings as settings
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.controller import HANDLED_REQUESTS, Controller
from kwire.kraft.controller.rules import controller_config
from kwire.kraft.images.image_publisher import ImagePublisher, Publisher
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.kraft.metadata_log import MetadataLog
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.directories.directory import LogDirectory, LogDirectoryError, holds_log, parse_name
from kwire.membership.dead_processes import DeadProcesses
from kwire.network.peer import PeerNetwork
from kwire.pending import Pending
from kwire.protocol import uuids

if TYPE_CHECKING:
    from kwire.node.node import Node

logger = logging.getLogger(__name__)

DEFAULT_CONTROLLER_PORT = 9093


class MetadataQuorum:
    """This node's replica of `__cluster_metadata`, with its controller where it has that role.

    `cluster_id` is known after `open`. `publish(delta, image)` hears of everything committed,
    `on_leader_change(leader id, epoch)` of elections.
    """

    def __init__(self, node: Node, publish: Publisher) -> None:
        self._node = node
        self._publish = publish
        self.cluster_id = ""
        self.publisher = ImagePublisher()
        self.driver: Any = None
        self._peers: PeerNetwork | None = None
        self._dead_processes: DeadProcesses | None = None
        self._leader_listeners: list[Callable[[], None]] = []

    def on_leader_change(self, listener: Callable[[], None]) -> None:
        """Tell whenever there is another active controller, in the loop's next turn."""
        self._leader_listeners.append(listener)

    # -- start

    @property
    def directory(self) -> str:
        """The log directory that holds the metadata log."""
        path: str | None = self._node.config["metadata.log.dir"]
        return os.path.abspath(path or self._node.config.log_directories[0])

    def open(self, features: Mapping[str, int]) -> None:
        """Format what is not formatted, check what is, open the metadata log.

        The log directories are locked. Raises LogDirectoryError, FormatError, ConfigError.
        """
        directories = self._online()
        properties = [d.meta_properties() for d in directories]
        known = [found for found in properties if found is not None]
        for directory, found in zip(directories, properties):
            if found is None:
                self._check_is_new(directory.path)
        if len(known) < len(properties):
            self._format(features, known[0].get("cluster.id") if known else None)
            known = [d.meta_properties() or {} for d in directories]
        for directory, found in zip(directories, known):
            self._check(directory.path, found, known[0])
            if directory.directory_id == uuids.ZERO:
                self._give_id(directory, found)
        self.cluster_id = known[0].get("cluster.id", "")
        given = self._node.config.cluster_id
        if given is not None and given != self.cluster_id:
            logger.warning(
                "CLUSTER_ID is %s, but %s belongs to cluster %s, and stays so",
                given,
                directories[0].path,
                self.cluster_id,
            )
        self._open_driver()
        self._warn_of_another_directory()

    def _online(self) -> list[LogDirectory]:
        """The log directories that could be opened; LogDirectoryError without the metadata's."""
        directories = self._node.log_manager.directories
        for directory in directories:
            if directory.error is not None and directory.path == self.directory:
                raise LogDirectoryError(
                    f"{directory.path}, which holds the metadata, cannot be used: {directory.error}"
                )
        return [directory for directory in directories if directory.error is None]

    def _check(self, path: str, found: dict[str, str], first: dict[str, str]) -> None:
        node_id = str(self._node.broker_id)
        if found.get("node.id", found.get("broker.id")) != node_id:
            raise LogDirectoryError(
                f"{path} belongs to node {found.get('node.id')}, this node's id is {node_id}; "
                "set node.id to it, or choose another data directory"
            )
        if found.get("cluster.id") != first.get("cluster.id"):
            raise LogDirectoryError(
                f"{path} belongs to cluster {found.get('cluster.id')}, another log directory to "
                f"{first.get('cluster.id')}; move the wrong one away"
            )

    def _give_id(self, directory: LogDirectory, found: dict[str, str]) -> None:
        from kwire.kraft.formatting.log_directories import random_directory_id

        node = self._node
        directory.give_id(found, random_directory_id(node.random), node.clock.wall_ms())
        told = uuids.to_text(directory.directory_id)
        logger.info("%s had no directory.id; it is %s now", directory.path, told)

    def _warn_of_another_directory(self) -> None:
        """A voter whose directory was replaced does not vote: say so, it may wait for ever."""
        own = self.driver.raft.config.key
        voter = self.driver.raft.voters.voters.get(own.id)
        if voter is None or voter.key.directory_id in (None, own.directory_id):
            return
        logger.warning(
            "node %d does not vote: the quorum knows it with directory.id %s, and %s has %s",
            own.id,
            uuids.to_text(voter.key.directory_id),
            self.directory,
            uuids.to_text(own.directory_id or uuids.ZERO),
        )

    def _check_is_new(self, path: str) -> None:
        """A directory with partitions is never formatted: its identity was lost."""
        names = self._node.log_manager.files.directories(path)
        files = self._node.log_manager.files
        if any(
            parse_name(name) is not None and holds_log(files, f"{path}/{name}") for name in names
        ):
            raise LogDirectoryError(
                f"{path}/meta.properties is missing, but there are partitions: restore it from a "
                "copy or by hand (cluster.id, node.id, directory.id, version=1)"
            )

    def _format(self, features: Mapping[str, int], cluster_id: str | None) -> None:
        from kwire.kraft.formatting.log_directories import FormatOptions, format_directories

        node = self._node
        config = node.config
        static = settings.static_voters(config, self._listener_name)
        alone = config.is_controller and (
            static.ids == [node.broker_id]
            if static is not None
            else config.developer or config.bootstraps_from_itself()
        )
        if cluster_id is None:
            cluster_id = config.cluster_id
            # Whether a controller begins a dynamic quorum or joins one, its id does not say.
            is_told = static is not None or not config.is_controller
            if not alone and not (cluster_id and is_told):
                hint = ", or set the environment's CLUSTER_ID" if is_told else ""
                raise LogDirectoryError(
                    f"{self.directory} is not formatted, and this node is not alone in its quorum: "
                    f"format it with kwire format{hint}"
                )
        paths = [directory.path for directory in self._online()]
        lines = format_directories(
            FormatOptions(
                cluster_id=cluster_id or uuids.to_text(uuids.random_uuid(node.random)),
                node_id=node.broker_id,
                directories=paths,
                metadata_directory=self.directory,
                is_controller=config.is_controller,
                has_static_voters=static is not None,
                endpoint=self._endpoints()[0] if config.is_controller else None,
                listener_name=self._listener_name,
                standalone=alone and static is None,
                no_initial_controllers=not alone and static is None,
                ignore_formatted=True,
                features=[f"{name}={level}" for name, level in features.items()],
            ),
            clock=node.clock,
            random=node.random,
            files=node.log_manager.files,
        )
        for line in lines:
            logger.info("%s", line)

    @property
    def _listener_name(self) -> str:
        names = self._node.config.controller_listener_names()
        return names[0] if names else "CONTROLLER"

    @property
    def advertised(self) -> list[Listener]:
        """The controller listeners of this node as others reach them."""
        node = self._node
        return [
            listener._replace(port=listener.port or node.bound_port(listener.name))
            for listener in node.config.advertised_controller_listeners(node.reachable_name)
        ]

    def _endpoints(self) -> tuple[Endpoint, ...]:
        """Where this node's controller is reached; a developer's node alone needs no listener."""
        found = tuple(
            Endpoint(listener.name, listener.host, listener.port) for listener in self.advertised
        )
        return found or (Endpoint(self._listener_name, "localhost", DEFAULT_CONTROLLER_PORT),)

    def _open_driver(self) -> None:
        node = self._node
        config = node.config
        scheduler = node.workers.scheduler("kwire-metadata")
        directory_id = next(
            directory.directory_id
            for directory in node.log_manager.directories
            if directory.path == self.directory
        )
        raft_config = settings.raft_config(
            config,
            cluster_id=self.cluster_id,
            directory_id=directory_id,
            endpoints=self._endpoints() if config.is_controller else (),
            roles=tuple(config["process.roles"]),
        )
        log = MetadataLog.open(
            self.directory,
            settings.log_config(config),
            node.clock,
            files=node.log_manager.files,
            scheduler=scheduler,
        )
        self._peers = PeerNetwork(
            node.loop,
            node.buffer_pool,
            node.random,
            resolve=lambda node_id: self.driver.address_of(node_id),
            controller=lambda: self.driver.leader_id,
            client_id=f"raft-client-{node.broker_id}",
            backoff_max_ms=200,
        )
        self.driver = RaftDriver(
            raft_config,
            log,
            sender=self._peers,
            loop=node.loop,
            scheduler=scheduler,
            clock=node.clock,
            random=node.random,
            controller=self._controller() if config.is_controller else None,
            policy=settings.snapshot_policy(config),
            on_fatal=lambda error: node.fatal(f"the metadata quorum has failed: {error}"),
        )
        self.driver.add_listener(self.publisher)
        self.driver.snapshotter.source = self.publisher
        self.publisher.add(self._publish)
        if config.is_controller and config["kwire.dead.process.detection.enable"]:
            self._watch_processes(self._peers)

    def _watch_processes(self, peers: PeerNetwork) -> None:
        node = self._node
        watch = DeadProcesses(node.loop, self.driver, peers, node.listener_name)
        self.publisher.add(watch.published)
        self._dead_processes = watch

    def heard(self, context: Any, request: Any) -> None:
        """The active controller has accepted a broker's heartbeat."""
        if self._dead_processes is not None and context.connection is not None:
            self._dead_processes.heard(context.connection, request.broker_id, request.broker_epoch)

    def _controller(self) -> Controller:
        node = self._node
        voters = (node.broker_id,)
        config = controller_config(node.config, self.cluster_id, voters, node.dynamic_config)
        return Controller(config, node.random)

    def start(self) -> Pending[None]:
        """Begin; done when what was committed before, and this node's own start, is published."""
        started: Pending[None] = Pending()

        def leader_changed(leader_id: int | None, epoch: int) -> None:
            if leader_id is not None:
                if not started.done:
                    self._node.loop.call_soon(self._leader_known, started)
                for listener in self._leader_listeners:
                    self._node.loop.call_soon(listener)

        self.driver.on_leader_change(leader_changed)
        self.driver.start()
        return started

    def _leader_known(self, started: Pending[None]) -> None:
        runner = self.driver.runner
        if runner is not None and runner.is_active:
            runner.when_committed(self.driver.raft.log.end_offset, started, None)
        else:
            started.complete(None)

    # -- requests

    @property
    def leader_id(self) -> int | None:
        """The active controller, as far as this node knows."""
        found: int | None = self.driver.leader_id
        return found

    @property
    def waits_for(self) -> str:
        """What the metadata log is short of, empty while it is not."""
        return "" if self.driver is None else str(self.driver.waits_for)

    @property
    def kraft_version(self) -> int:
        return int(self.driver.raft.voters.level)

    @property
    def is_active(self) -> bool:
        """Whether the active controller is this node's."""
        runner = None if self.driver is None else self.driver.runner
        return runner is not None and runner.is_active

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a controller is reached."""
        found: tuple[str, int] | None = self.driver.address_of(node_id)
        return found

    def raft_request(self, request: Any, context: Any) -> Pending[Any]:
        """A request of another replica, or about the quorum, that came in by a listener."""
        reply: Pending[Any] = self.driver.request(
            request, context.api_version, listener=context.listener_name
        )
        return reply

    def handle(self, request: Any, context: ControllerContext) -> Pending[Any]:
        """A request for the controller or for raft, from this process."""
        if type(request).NAME in HANDLED_REQUESTS:
            if self.driver.runner is None:
                raise AssertionError("a request for the controller of a node without one")
            answer: Pending[Any] = self.driver.runner.handle(request, context)
            return answer
        listener = context.listener_name or self._listener_name
        reply: Pending[Any] = self.driver.request(request, context.api_version, listener=listener)
        return reply

    def stop(self) -> Pending[None]:
        """Resign, tell the other voters, close the metadata log; done when it is closed."""
        if self.driver is None:
            return Pending.completed(None)
        if self._dead_processes is not None:
            self._dead_processes.close()
        stopped: Pending[None] = self.driver.stop()
        stopped.add_done_callback(lambda _: self._peers.close() if self._peers else None)
        return stopped


def full_delta(image: MetadataImage) -> MetadataDelta:
    """Everything in the image as new: what a part hears first that starts to follow it."""
    from kwire.kraft.images.difference import difference

    delta = MetadataDelta()
    difference(MetadataImage(), image, delta)
    return delta


ImageListener = Callable[[MetadataDelta, MetadataImage], None]
