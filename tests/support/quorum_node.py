"""A controller and nothing else: raft, the controller and a listener, as a process for tests.

    python -m tests.support.quorum_node DIRECTORY NODE_ID PORT BOOTSTRAP

Answers ApiVersions, raft's requests and the controller's. It prints a line at each change of the
leader, and stops on SIGTERM. What a whole node has beside it (quotas, security, Envelope) is left
out, so that a fault seen here is the quorum's.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

from kwire.clock import SystemClock, SystemRandom
from kwire.config import BrokerConfig
from kwire.kraft import quorum_settings as settings
from kwire.kraft.controller.config_rules import controller_config
from kwire.kraft.controller.context import ControllerContext
from kwire.kraft.controller.controller import Controller
from kwire.kraft.controller.routes import HANDLED_REQUESTS
from kwire.kraft.images.image_publisher import ImagePublisher
from kwire.kraft.metadata_log import MetadataLog
from kwire.kraft.raft.machine import REQUESTS
from kwire.kraft.raft.types import Endpoint
from kwire.kraft.raft_driver import RaftDriver
from kwire.log.directories.identity_files import parse_properties
from kwire.log.scheduling import LoopScheduler
from kwire.network.buffers import BufferPool
from kwire.network.frames import FrameConnection
from kwire.network.peer import PeerNetwork
from kwire.pending import Pending
from kwire.protocol import frame, uuids
from kwire.protocol import messages as m

API_VERSIONS = 18
FRAME_BYTES_MAX = 100 << 20


class ControllerNode:
    """The parts of a controller, put together."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, directory: str, node_id: int, port: int, servers: str
    ) -> None:
        properties = {
            "process.roles": "controller",
            "node.id": str(node_id),
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": servers,
            "log.dirs": directory,
        }
        config = BrokerConfig.load(properties=properties, environment={}, developer=False)
        with open(f"{directory}/meta.properties", "rb") as file:
            meta = parse_properties(file.read())
        clock, random, scheduler = SystemClock(), SystemRandom(), LoopScheduler(loop)
        self.pool = BufferPool()
        self.publisher = ImagePublisher()
        self.failed = asyncio.Event()
        network = PeerNetwork(
            loop,
            self.pool,
            random,
            resolve=lambda other: self.driver.address_of(other),
            controller=lambda: self.driver.leader_id,
        )
        self.driver = RaftDriver(
            settings.raft_config(
                config,
                cluster_id=meta["cluster.id"],
                directory_id=uuids.from_text(meta["directory.id"]),
                endpoints=(Endpoint("CONTROLLER", "127.0.0.1", port),),
                roles=("controller",),
            ),
            MetadataLog.open(directory, settings.log_config(config), clock, scheduler=scheduler),
            sender=network,
            loop=loop,
            scheduler=scheduler,
            clock=clock,
            random=random,
            controller=Controller(controller_config(config, meta["cluster.id"]), random),
            policy=settings.snapshot_policy(config),
            on_fatal=self._fatal,
        )
        self.driver.add_listener(self.publisher)
        self.driver.snapshotter.source = self.publisher
        self.driver.on_leader_change(lambda leader, epoch: print(f"leader {leader} {epoch}"))

    def _fatal(self, error: Exception) -> None:
        print(f"fatal {error}", flush=True)
        self.failed.set()

    def handle(self, request: Any, version: int) -> Pending[Any]:
        if request.API_KEY == API_VERSIONS:
            return Pending.completed(_api_versions())
        if request.API_KEY in REQUESTS:
            return self.driver.request(request, version, listener="CONTROLLER")
        assert self.driver.runner is not None
        return self.driver.runner.handle(request, ControllerContext(api_version=version))


def _api_versions() -> Any:
    response = m.ApiVersionsResponse
    keys = {API_VERSIONS, *REQUESTS, *(getattr(m, name).API_KEY for name in HANDLED_REQUESTS)}
    classes = [(key, m.request_class(key)) for key in sorted(keys)]
    return response(
        api_keys=[
            response.ApiVersion(api_key=key, min_version=c.MIN_VERSION, max_version=c.MAX_VERSION)
            for key, c in classes
        ],
        supported_features=[
            response.SupportedFeatureKey(name="metadata.version", min_version=7, max_version=33),
            response.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1),
        ],
    )


class Connection(FrameConnection):
    """One client; requests are answered as they are done."""

    def __init__(self, node: ControllerNode) -> None:
        super().__init__(node.pool, FRAME_BYTES_MAX, 4)
        self._node = node

    def frame_received(self, view: memoryview) -> None:
        header = frame.parse_request_header(view)
        key, version = header.api_key, header.api_version
        if key == API_VERSIONS and version > 4:
            version = 4 if version == 5 else 0
        cls = m.request_class(key)
        request = cls.decode(bytes(view[header.body_offset :]), header.api_version)

        def answered(done: Pending[Any]) -> None:
            if done.error() is not None:
                self.transport.abort()
                return
            self.write_frames(
                frame.encode_response(key, version, header.correlation_id, done.result())
            )

        self._node.handle(request, version).add_done_callback(answered)


async def main(directory: str, node_id: int, port: int, servers: str) -> None:
    loop = asyncio.get_running_loop()
    node = ControllerNode(loop, directory, node_id, port, servers)
    await loop.create_server(lambda: Connection(node), "127.0.0.1", port)
    node.driver.start()
    print("ready", flush=True)
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    await asyncio.wait(
        [loop.create_task(stop.wait()), loop.create_task(node.failed.wait())],
        return_when=asyncio.FIRST_COMPLETED,
    )
    closed = asyncio.Event()
    node.driver.stop().add_done_callback(lambda _: closed.set())
    await closed.wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))
