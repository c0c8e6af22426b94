"""`kwire serve --brokers N`: a real cluster on this machine, one process a node.

Every node is broker and controller. Under the data directory are, for node i, `broker-i`
(its log directory) and `broker-i.properties` (its settings, written anew at each start: a node can
be started alone with `kwire serve --config` too), and `cluster.properties`, which keeps what must
not change: the cluster's id and the controllers' ports. The settings are those of a developer:
topics on all nodes, and a failover in about a second. A node that dies is started again a second
later, unless somebody else has done so by then. Nodes end with this process, however it ends: they
watch a pipe.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

from kwire.cli.interpreter import advice
from kwire.cli.serve import (
    CLUSTER_FILE,
    default_cluster_directory,
    split_address,
)
from kwire.cli.serve_arguments import ServeArguments, UsageError
from kwire.config.listeners import is_wildcard
from kwire.config.properties import read_properties
from kwire.python_module import python_module

READY_PREFIX = "kwire ready on "
CLUSTER_ID, PORTS = "cluster.id", "controller.ports"
UNFORMATTED = "unformatted.directory.ids"
"""In `cluster.properties`: what the nodes agree on. The last one until all are formatted."""
DEFAULT_LISTEN = "localhost:9092"
CONTROLLER_HOST = "127.0.0.1"
BROKERS_MAX = 9
EXIT_FAILED = 1
STOP_TIMEOUT_S = 60.0
READY_PAUSE_S = 0.02
HELD_BACK_MAX = 100
RESTART_S = 1.0
"""A node that died comes back after a failover, not instead of one."""

# A dead node is noticed in about a second; Kafka's defaults are made for slower networks.
CLUSTER_SETTINGS: dict[str, str] = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "group.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "100",
    "broker.session.timeout.ms": "600",
    "controller.quorum.election.timeout.ms": "300",
    "controller.quorum.election.backoff.max.ms": "100",
    "controller.quorum.fetch.timeout.ms": "400",
    "controller.quorum.request.timeout.ms": "1000",
    "replica.fetch.backoff.ms": "200",
    "leader.imbalance.check.interval.seconds": "30",
}


class ClusterNode:
    """One member of the cluster: its ports, its files, its process."""

    def __init__(self, node_id: int, host: str, port: int, controller_port: int) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.controller_port = controller_port
        self.process: asyncio.subprocess.Process | None = None
        self.address = ""

    @property
    def listener_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def serve_cluster(arguments: ServeArguments) -> int:
    """Run the cluster until SIGTERM or SIGINT; returns the exit status."""
    if arguments.config is not None:
        raise UsageError("--brokers and --config exclude each other: each node has its own file")
    if not 1 <= arguments.brokers <= BROKERS_MAX:
        raise UsageError(f"--brokers {arguments.brokers}: expected 1 to {BROKERS_MAX}")
    ephemeral = None
    if arguments.ephemeral:
        import tempfile

        ephemeral = tempfile.mkdtemp(prefix="kwire-cluster-")
    directory = ephemeral or os.path.abspath(
        arguments.data_dir or default_cluster_directory(arguments.brokers)
    )
    try:
        cluster = Cluster(directory, arguments)
        cluster.prepare()
        return asyncio.run(cluster.run())
    finally:
        if ephemeral is not None:
            import shutil

            shutil.rmtree(ephemeral, ignore_errors=True)


class Cluster:
    """The nodes and what they share."""

    def __init__(self, directory: str, arguments: ServeArguments) -> None:
        self.directory = directory
        self._arguments = arguments
        self._nodes: list[ClusterNode] = []
        self._is_stopping = False
        self._is_ready_printed = False
        self._held_back: list[str] = []
        self._printing_ready: asyncio.Future[None] | None = None

    # -- files

    def path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def prepare(self) -> None:
        """Choose ports, format what is new, write the settings. UsageError, one line."""
        if os.path.exists(self.path("meta.properties")):
            raise UsageError(f"{self.directory} is the data directory of a single node")
        os.makedirs(self.directory, exist_ok=True)
        count = self._arguments.brokers
        known: dict[str, str] = {}
        if os.path.exists(self.path(CLUSTER_FILE)):
            known = read_properties(self.path(CLUSTER_FILE))
        ports = [int(port) for port in known.get(PORTS, "").split(",") if port]
        if known and len(ports) != count:
            raise UsageError(
                f"{self.directory} holds a cluster of {len(ports)} brokers, not {count}"
            )
        host, first_port = split_address("--listen", self._arguments.listen or DEFAULT_LISTEN)
        wanted = count * [0] if first_port == 0 else [first_port + i for i in range(count)]
        if wanted[-1] > 65535:
            raise UsageError(f"--listen: there are no {count} ports from {first_port} on")
        free = free_ports(wanted.count(0) + (0 if ports else count))
        broker_ports = [port or free.pop() for port in wanted]
        ports = ports or [free.pop() for _ in range(count)]
        self._nodes = [
            ClusterNode(at + 1, host, port, controller)
            for at, (port, controller) in enumerate(zip(broker_ports, ports))
        ]
        if not known:
            known = self._new_cluster(ports)
        if UNFORMATTED in known:
            self._format(known)
        for node in self._nodes:
            self._write_properties(node)

    def _new_cluster(self, ports: list[int]) -> dict[str, str]:
        """Choose what the nodes agree on, and note it before any of them is formatted."""
        from kwire.clock import SystemRandom
        from kwire.protocol import uuids

        random = SystemRandom()
        names = [uuids.to_text(uuids.random_uuid(random)) for _ in range(1 + len(ports))]
        known = {
            CLUSTER_ID: names[0],
            PORTS: ",".join(map(str, ports)),
            UNFORMATTED: ",".join(names[1:]),
        }
        self._note(known)
        return known

    def _note(self, known: dict[str, str]) -> None:
        path = self.path(CLUSTER_FILE)
        write_text(f"{path}.new", "".join(f"{name}={text}\n" for name, text in known.items()))
        os.replace(f"{path}.new", path)

    def _format(self, known: dict[str, str]) -> None:
        """Format the nodes' directories, those that an interrupted start has left out at least."""
        from kwire.clock import SystemClock, SystemRandom
        from kwire.kraft.formatting.errors import FormatError
        from kwire.kraft.formatting.log_directories import FormatOptions, format_directories

        directory_ids = known[UNFORMATTED].split(",")
        initial = ",".join(
            f"{node.node_id}@{CONTROLLER_HOST}:{node.controller_port}:{directory_id}"
            for node, directory_id in zip(self._nodes, directory_ids)
        )
        features = [f"{name}={level}" for name, level in self._arguments.features.items()]
        for node in self._nodes:
            path = self.path(f"broker-{node.node_id}")
            options = FormatOptions(
                known[CLUSTER_ID],
                node.node_id,
                [path],
                path,
                initial_controllers=initial,
                ignore_formatted=True,
                features=features,
            )
            try:
                format_directories(options, clock=SystemClock(), random=SystemRandom())
            except FormatError as error:
                raise UsageError(str(error)) from None
        self._note({name: text for name, text in known.items() if name != UNFORMATTED})

    def _write_properties(self, node: ClusterNode) -> None:
        count = len(self._nodes)
        replicas, in_sync = str(min(3, count)), str(min(2, count))
        controller = f"CONTROLLER://{CONTROLLER_HOST}:{node.controller_port}"
        advertised = node.listener_host, node.port
        if self._arguments.advertise is not None:
            host, port = split_address("--advertise", self._arguments.advertise)
            if host and is_wildcard(host):
                raise UsageError(f"--advertise {self._arguments.advertise}: not an address")
            advertised = host, port + node.node_id - 1
        settings = {
            "node.id": str(node.node_id),
            "log.dirs": self.path(f"broker-{node.node_id}"),
            "listeners": f"PLAINTEXT://{node.listener_host}:{node.port},{controller}",
            "controller.quorum.bootstrap.servers": ",".join(
                f"{CONTROLLER_HOST}:{other.controller_port}" for other in self._nodes
            ),
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            **CLUSTER_SETTINGS,
            **self._arguments.overrides,
        }
        if not is_wildcard(node.host) or self._arguments.advertise is not None:
            settings.setdefault(
                "advertised.listeners", f"PLAINTEXT://{advertised[0]}:{advertised[1]},{controller}"
            )
        lines = [f"{name}={_escaped(value)}" for name, value in settings.items()]
        write_text(self.path(f"broker-{node.node_id}.properties"), "\n".join([*lines, ""]))

    # -- processes

    async def run(self) -> int:
        """Start all nodes, say so once all are ready, stop them all."""
        loop = asyncio.get_running_loop()
        stop: asyncio.Future[None] = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, stop)
        watchers = [asyncio.ensure_future(self._run_node(node, stop)) for node in self._nodes]
        nobody = asyncio.ensure_future(_ended(watchers))
        await asyncio.wait([stop, nobody], return_when=asyncio.FIRST_COMPLETED)
        if not stop.done():
            sys.stderr.write("kwire: no broker is left\n")
            return EXIT_FAILED
        self._is_stopping = True
        self._terminate()
        _done, late = await asyncio.wait(watchers, timeout=STOP_TIMEOUT_S)
        if late:
            self._kill()
            await asyncio.wait(late)
        failed = any(watcher.result() for watcher in watchers)
        return EXIT_FAILED if failed else 0

    def _signalled(self, stop: asyncio.Future[None]) -> None:
        if stop.done():
            self._kill()
        else:
            stop.set_result(None)

    async def _run_node(self, node: ClusterNode, stop: asyncio.Future[None]) -> bool:
        """One node's lives: one that was serving and died is started again. Whether it failed to
        start in the first place."""
        config = self.path(f"broker-{node.node_id}.properties")
        while True:
            was_ready_before = bool(node.address)
            is_ready, status = await self._run_once(node, config)
            if self._is_stopping:
                return False
            ended = f"kwire: broker {node.node_id} ended {_how(status)}"
            if not is_ready:
                # At first: the reason is above. Later: somebody has started it alone, perhaps.
                sys.stderr.write(f"{ended} before it was ready\n")
                if not was_ready_before and not stop.done():
                    stop.set_result(None)
                return not was_ready_before
            sys.stderr.write(f"{ended}; starting it again\n")
            sys.stderr.flush()
            await asyncio.wait([stop], timeout=RESTART_S)
            if self._is_stopping or stop.done():
                return False

    async def _run_once(self, node: ClusterNode, config: str) -> tuple[bool, int]:
        """Whether it became ready, and its exit status."""
        node.process = process = await asyncio.create_subprocess_exec(
            *python_module("kwire"),
            *("serve", "--supervised", "--config", config),
            *(["--no-http"] if self._arguments.no_http else []),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        if self._is_stopping:
            process.terminate()
        is_ready = False
        while line := await process.stdout.readline():
            text = line.decode(errors="replace").rstrip("\n")
            if text.startswith(READY_PREFIX):
                is_ready = True
                self._note_ready(node, text.removeprefix(READY_PREFIX))
            else:
                self._print(text)
        status = await process.wait()
        node.process = None
        return is_ready, status

    def _note_ready(self, node: ClusterNode, address: str) -> None:
        process = node.process
        is_first, node.address = not node.address, address
        sys.stderr.write(
            f"kwire: broker {node.node_id} is process {process.pid if process else '?'}, "
            f"{self.path(f'broker-{node.node_id}.properties')}\n"
        )
        sys.stderr.flush()
        if is_first and all(other.address for other in self._nodes):
            self._printing_ready = asyncio.ensure_future(self._print_ready())

    async def _print_ready(self) -> None:
        """The ready line, once every node names all of them to its clients."""
        addresses = [node.address for node in self._nodes]
        loop = asyncio.get_running_loop()
        for address in addresses:
            while await loop.run_in_executor(None, _brokers_named_by, address) < len(addresses):
                if self._is_stopping:
                    return
                await asyncio.sleep(READY_PAUSE_S)
        self._is_ready_printed = True
        self._print(f"{READY_PREFIX}{','.join(addresses)}")
        for text in self._held_back:
            self._print(text)
        if (told := advice()) is not None:
            sys.stderr.write(f"kwire: {told}\n")
            sys.stderr.flush()

    def _print(self, text: str) -> None:
        """What a node says is printed behind the ready line."""
        if self._is_ready_printed:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        elif len(self._held_back) < HELD_BACK_MAX:
            self._held_back.append(text)

    def _terminate(self) -> None:
        for node in self._nodes:
            if node.process is not None:
                _signal(node.process, signal.SIGTERM)

    def _kill(self) -> None:
        for node in self._nodes:
            if node.process is not None:
                _signal(node.process, signal.SIGKILL)


def _brokers_named_by(address: str) -> int:
    """How many brokers this one's metadata names; 0 when it does not answer."""
    from kwire.cli.client import Client
    from kwire.client.errors import ClientError

    try:
        with Client(address) as client:
            return len(client.metadata([]).brokers)
    except ClientError:
        return 0


async def _ended(tasks: list[asyncio.Task[bool]]) -> None:
    """Return when all have ended."""
    await asyncio.wait(tasks)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except ProcessLookupError:
        pass


def _how(status: int) -> str:
    return f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def free_ports(count: int) -> list[int]:
    """So many ports that nobody has now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind((CONTROLLER_HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
