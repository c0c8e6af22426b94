"""Several drivers with real controllers, a small network, and a loop whose time a test moves."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kwire.clock import SeededRandom
from kwire.config import BrokerConfig
from kwire.kraft.controller.config_rules import KafkaConfigRules
from kwire.kraft.controller.context import ControllerConfig
from kwire.kraft.controller.controller import Controller
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.kraft.raft import RaftConfig
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.directories.identity_files import parse_properties
from kwire.log.files import Files, SystemFiles
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.protocol.errors import ErrorCode, KafkaError

IDS = (1, 2, 3)
DIRECTORIES = {node_id: bytes(15) + bytes([100 + node_id]) for node_id in (*IDS, 4)}
SETTINGS = BrokerConfig.load(
    properties={"process.roles": "broker,controller", "node.id": "1"},
    environment={},
    developer=True,
)
LATENCY_MS = 1
DISK_MS = 3


class SmallTimer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class SmallLoop:
    """Time, timers and jobs that take DISK_MS; also the wall clock and the log's scheduler."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self._queue: list[tuple[float, int, SmallTimer, Callable[[], None]]] = []
        self._count = 0

    def time(self) -> float:
        return self.now_ms / 1000

    def wall_ms(self) -> int:
        return 1_800_000_000_000 + int(self.now_ms)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> SmallTimer:
        timer = SmallTimer()
        self._count += 1
        at_ms = self.now_ms + max(0.0, delay_ms)
        heapq.heappush(self._queue, (at_ms, self._count, timer, callback))
        return timer

    def call_soon(self, callback: Callable[[], None]) -> SmallTimer:
        return self.call_later(0, callback)

    def run(self, job: Callable[[], Any]) -> Pending[Any]:
        pending: Pending[Any] = Pending()

        def finish() -> None:
            try:
                pending.complete(job())
            except OSError as error:
                pending.fail(error)

        self.call_later(DISK_MS, finish)
        return pending

    def run_until(self, condition: Callable[[], bool], limit_ms: float = 20_000) -> None:
        end_ms = self.now_ms + limit_ms
        while not condition():
            assert self._queue, "nothing will ever happen"
            assert self.now_ms < end_ms, "the condition never held"
            at_ms, _, timer, callback = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, at_ms)
            if not timer.cancelled:
                callback()

    def run_for(self, duration_ms: float) -> None:
        done: list[int] = []
        self.call_later(duration_ms, lambda: done.append(1))
        self.run_until(lambda: bool(done), duration_ms + 1)


def endpoint_of(node_id: int) -> Endpoint:
    return Endpoint("CONTROLLER", f"host{node_id}", 9000 + node_id)


class Node:
    """One controller: driver, the real controller, a published image."""

    def __init__(
        self,
        cluster: Cluster,
        node_id: int,
        files: Files,
        *,
        cluster_id: str = "cluster",
        **options: Any,
    ) -> None:
        self.id = node_id
        self.cluster = cluster
        loop = cluster.loop
        root = f"{cluster.root}/{node_id}"
        properties = parse_properties(files.read_file(f"{root}/meta.properties"))
        self.errors: list[Exception] = []
        self.publisher = ImagePublisher()
        self.controller = Controller(
            ControllerConfig(node_id, "cluster", KafkaConfigRules(SETTINGS)),
            SeededRandom(node_id),
        )
        self.log = MetadataLog.open(root, metadata_log_config(), loop, scheduler=loop, files=files)
        self.driver = RaftDriver(
            RaftConfig(
                node_id,
                uuids.from_text(properties["directory.id"]),
                cluster_id,
                endpoints=(endpoint_of(node_id),),
                bootstrap_servers=tuple((f"host{n}", 9000 + n) for n in IDS),
                **options,
            ),
            self.log,
            sender=self,
            loop=loop,
            scheduler=loop,
            clock=loop,
            random=SeededRandom(node_id + cluster.seed),
            controller=self.controller,
            on_fatal=self.errors.append,
        )
        self.driver.add_listener(self.publisher)
        self.driver.snapshotter.source = self.publisher
        self.driver.start()

    @property
    def image(self) -> Any:
        return self.publisher.image

    # the Sender

    def send(
        self, node: int, api_key: int, request: Any, *, timeout_ms: int | None = None
    ) -> Pending[Any]:
        reply: Pending[Any] = Pending()
        address = self.driver.address_of(node)
        assert address is not None
        target_id = address[1] - 9000
        version = type(request).MAX_VERSION
        data = request.encode(version)
        self.cluster.sent += 1

        def lose() -> None:
            reply.fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, "lost"))

        def arrive() -> None:
            target = self.cluster.nodes.get(target_id)
            if target is None or (self.id, target_id) in self.cluster.cut:
                self.cluster.loop.call_later(LATENCY_MS, lose)
                return
            if api_key == m.ApiVersionsRequest.API_KEY:
                answer = Pending.completed(_api_versions())
            else:
                decoded = type(request).decode(data, version)
                answer = target.driver.request(decoded, version, listener="CONTROLLER")
            answer.add_done_callback(
                lambda done: self.cluster.loop.call_later(
                    LATENCY_MS, lambda: self._answered(done, version, target_id, reply)
                )
            )

        self.cluster.loop.call_later(LATENCY_MS, arrive)
        return reply

    def _answered(
        self, done: Pending[Any], version: int, target_id: int, reply: Pending[Any]
    ) -> None:
        if (target_id, self.id) in self.cluster.cut or done.error() is not None:
            reply.fail(KafkaError(ErrorCode.NETWORK_EXCEPTION, "lost"))
            return
        response = done.result()
        reply.complete(type(response).decode(response.encode(version), version))

    def disconnect(self, node_id: int) -> None:
        pass

    def write(self, name: str) -> Pending[Any]:
        """Append a record that says `name` (a config needs neither topic nor broker)."""
        assert self.driver.runner is not None
        record = m.ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="1")
        return self.driver.runner.append([(record, 0)])


def _api_versions() -> Any:
    response = m.ApiVersionsResponse
    return response(
        supported_features=[
            response.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
        ]
    )


class Cluster:
    """Formatted directories and the nodes that run on them."""

    def __init__(
        self, root: Path | str, seed: int = 0, disks: Mapping[int, Files] | None = None
    ) -> None:
        self.root = root
        self.disks = {node_id: (disks or {}).get(node_id) or SystemFiles() for node_id in (*IDS, 4)}
        self.seed = seed
        self.loop = SmallLoop()
        self.nodes: dict[int, Node] = {}
        self.cut: set[tuple[int, int]] = set()
        self.sent = 0
        initial = ",".join(f"{n}@host{n}:{9000 + n}:{uuids.to_text(DIRECTORIES[n])}" for n in IDS)
        for node_id in (*IDS, 4):
            directory = f"{root}/{node_id}"
            format_directories(
                FormatOptions(
                    cluster_id="cluster",
                    node_id=node_id,
                    directories=[directory],
                    metadata_directory=directory,
                    initial_controllers=initial if node_id in IDS else None,
                    no_initial_controllers=node_id not in IDS,
                ),
                clock=self.loop,
                random=SeededRandom(node_id),
                files=self.disks[node_id],
            )

    def start(self, *node_ids: int, **options: Any) -> None:
        for node_id in node_ids:
            self.nodes[node_id] = Node(self, node_id, self.disks[node_id], **options)

    def kill(self, node_id: int) -> Node:
        """The node is gone without a word; what it had in files stays."""
        node = self.nodes.pop(node_id)
        node.driver._closed = True
        return node

    def active(self) -> Node | None:
        found = [node for node in self.nodes.values() if node.driver.is_active]
        return max(found, key=lambda node: node.driver.epoch) if found else None

    def wait_active(self) -> Node:
        self.loop.run_until(lambda: self.active() is not None)
        node = self.active()
        assert node is not None
        return node

    def wait_same(self) -> None:
        def same() -> bool:
            ends = {node.driver.feed.next_offset for node in self.nodes.values()}
            logs = {node.driver.raft.log.end_offset for node in self.nodes.values()}
            return len(ends) == 1 and ends == logs

        self.loop.run_until(same)
