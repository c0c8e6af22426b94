"""Several brokers in one cluster for tests: ended, paused and parted one by one."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from kwire.client.cluster import Cluster as Client
from kwire.client.errors import ClientError
from kwire.client.settings import ConnectionSettings
from kwire.clock import SystemClock, SystemRandom
from kwire.kraft.formatting.log_directories import FormatOptions, format_directories
from kwire.node.early_topics import SETTING as EARLY_TOPICS
from kwire.protocol import messages as m
from kwire.protocol import uuids
from kwire.testing.arguments import flag, whole
from kwire.testing.blocking import BlockingClient
from kwire.testing.broker import DIRECTORIES
from kwire.testing.brokers.copies import clear_soon
from kwire.testing.brokers.process_runner import ProcessRunner
from kwire.testing.brokers.relays import Address, Relays
from kwire.testing.brokers.runner import HOST, BrokerFailed, Runner, Setting, setting_texts
from kwire.testing.brokers.thread_runner import ThreadRunner
from kwire.testing.brokers.unfinished import NOTE, check_finished, unfinished
from kwire.testing.cluster.cluster import FAST_SETTINGS
from kwire.testing.cluster.ports import free_ports
from kwire.testing.entering import entered
from kwire.testing.faults import Faults
from kwire.testing.groups import Group
from kwire.testing.owner import Owner
from kwire.testing.snapshots import ClusterSnapshot, Snapshot
from kwire.testing.topics import Topic, names_of_topics

CLIENTS, BROKERS, CONTROLLER = "PLAINTEXT", "BROKERS", "CONTROLLER"
BROKERS_MAX = 9
ASK_TIMEOUT_S = 5.0
OWN_CONFIGS = (
    *DIRECTORIES,
    *("process.roles", "node.id", "broker.id", "listeners", "advertised.listeners"),
    *("listener.security.protocol.map", "inter.broker.listener.name", "controller.listener.names"),
    *("security.inter.broker.protocol", "controller.quorum.voters"),
    "controller.quorum.bootstrap.servers",
)
"""What makes brokers one cluster, differs from broker to broker, or leads to them."""


class ClusterBroker:
    """One broker of a cluster, which is a controller too."""

    def __init__(self, node_id: int, runner: Runner, relays: Relays) -> None:
        self.node_id = node_id
        self._runner = runner
        self._relays = relays
        self._is_paused = False

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self._runner.port}"

    @property
    def is_running(self) -> bool:
        return self._runner.is_running

    def start(self) -> None:
        """Start it and wait until it serves."""
        self._is_paused = False
        self._relays.open(self.node_id)
        self._runner.start()

    def stop(self) -> None:
        """Stop it in order; nothing when it does not run."""
        self._runner.stop()
        self._relays.close(self.node_id)

    def kill(self) -> None:
        """End it as SIGKILL does."""
        self._runner.kill()
        self._relays.close(self.node_id)

    def lose_power(self) -> None:
        """End it as `kill` does, and take back what it had written and not synced."""
        self._runner.lose_power()
        self._relays.close(self.node_id)

    @property
    def runner(self) -> Runner:
        """How it runs."""
        return self._runner

    @property
    def faults(self) -> Faults:
        """Faults on command of this broker: docs/FAULTS.md."""
        return Faults([self._runner])

    def restart(self) -> None:
        """Stop it in order and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """As SIGSTOP does: it keeps its connections and does nothing until `resume`."""
        self._runner.pause()
        self._is_paused = True

    def resume(self) -> None:
        """End a pause."""
        self._runner.resume()
        self._is_paused = False

    @property
    def is_paused(self) -> bool:
        """Whether it waits for `resume`; an end of its life ends that too."""
        return self._is_paused and self.is_running

    def log_text(self) -> str:
        """What it has logged over all starts: in a thread the last 100,000 records, else all."""
        return self._runner.log_text()

    def close(self) -> None:
        """End it; nobody needs what a stop in order would keep."""
        self._runner.kill()
        self._runner.close()


class Cluster:
    """Brokers 1 to `brokers`, each broker and controller; `cluster[1]` is one of them. A context
    manager of both kinds (`with`, `async with`).

    They run in threads of this process, or with `process=True` as processes. `config` are Kafka's
    configs, for all of them. That a broker is dead is noticed in one or two seconds. Topics have
    as many replicas as there are brokers, three at most. Its data ends with the context.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, Setting] | None = None,
        process: bool = False,
        faults: bool = False,
    ) -> None:
        whole("brokers", brokers, 1, BROKERS_MAX)
        flag("process", process)
        flag("faults", faults)
        self._config = setting_texts(
            config or {}, OWN_CONFIGS, "the brokers of a cluster have it from the cluster"
        )
        self._is_process, self._has_faults = process, faults
        self._is_closed = False
        self._owner = Owner("the cluster")
        self._directory = Path(tempfile.mkdtemp(prefix="kwire-testing-"))
        self._relays = Relays()
        self._parted: set[frozenset[int]] = set()
        self._brokers: dict[int, ClusterBroker] = {}
        ids = range(1, brokers + 1)
        rows = iter(free_ports(5 * brokers))
        self._ports = {node_id: tuple(itertools.islice(rows, 5)) for node_id in ids}
        for node_id in ids:
            self._add(node_id, process=process, has_faults=faults)
        self._format()
        self._client = BlockingClient(self._asked)
        self._snapshots: list[ClusterSnapshot] = []

    def _add(self, node_id: int, *, process: bool, has_faults: bool) -> None:
        clients, own, relay, controller, controller_relay = self._ports[node_id]
        self._relays.add(Address(node_id, BROKERS), own, relay)
        self._relays.add(Address(node_id, CONTROLLER), controller, controller_relay)
        settings = self._settings(node_id)
        name = f"broker-{node_id}"
        runner: Runner
        if process:
            runner = ProcessRunner(name, lambda port: settings, port=clients, has_faults=has_faults)
        else:
            runner = ThreadRunner(name, lambda port: settings, port=clients, is_durable=False)
        self._brokers[node_id] = ClusterBroker(node_id, runner, self._relays)

    def _settings(self, node_id: int) -> dict[str, str]:
        clients, own, relay, controller, controller_relay = self._ports[node_id]
        replicas = str(min(3, len(self._ports)))
        two = "2" if len(self._ports) > 2 else "1"
        listening = {CLIENTS: clients, BROKERS: own, CONTROLLER: controller}
        advertised = {CLIENTS: clients, BROKERS: relay, CONTROLLER: controller_relay}
        return {
            "process.roles": "broker,controller",
            "node.id": str(node_id),
            "listeners": _listeners(listening),
            "advertised.listeners": _listeners(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listening),
            "inter.broker.listener.name": BROKERS,
            "controller.listener.names": CONTROLLER,
            "controller.quorum.bootstrap.servers": ",".join(
                f"{HOST}:{ports[4]}" for ports in self._ports.values()
            ),
            "log.dirs": str(self._data(node_id)),
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": two,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": two,
            EARLY_TOPICS: "__consumer_offsets",
            **FAST_SETTINGS,
            **self._config,
        }

    def _data(self, node_id: int) -> Path:
        return self._directory / f"broker-{node_id}"

    def _format(self) -> None:
        random = SystemRandom()
        cluster_id = uuids.to_text(uuids.random_uuid(random))
        voters = ",".join(
            f"{node_id}@{HOST}:{ports[4]}:{uuids.to_text(uuids.random_uuid(random))}"
            for node_id, ports in self._ports.items()
        )
        for node_id in self._ports:
            data = str(self._data(node_id))
            self._data(node_id).mkdir(exist_ok=True)
            options = FormatOptions(
                cluster_id, node_id, [data], data, is_controller=True, initial_controllers=voters
            )
            format_directories(options, clock=SystemClock(), random=random)

    def __getitem__(self, node_id: int) -> ClusterBroker:
        if node_id not in self._brokers:
            raise KeyError(f"broker {node_id}: there are {', '.join(map(str, self._brokers))}")
        return self._brokers[node_id]

    def __iter__(self) -> Iterator[ClusterBroker]:
        return iter(self._brokers.values())

    def __len__(self) -> int:
        return len(self._brokers)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await entered(self.start, self.close)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    # -- life

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, as clients want them."""
        return ",".join(broker.bootstrap for broker in self)

    def _named(self, brokers: tuple[int, ...]) -> list[ClusterBroker]:
        """Those of these ids, all where none is named."""
        return [self[node_id] for node_id in brokers] if brokers else list(self)

    def start(self, *brokers: int) -> Self:
        """Start all brokers that do not run, or those that are named, and wait until they serve."""
        self._check_open()
        for node_id in self._brokers:
            check_finished(self._data(node_id))
        from concurrent.futures import ThreadPoolExecutor

        waiting = [broker for broker in self._named(brokers) if not broker.is_running]
        try:
            # No broker serves before most of them do.
            with ThreadPoolExecutor(len(self)) as pool:
                for started in [pool.submit(broker.start) for broker in waiting]:
                    started.result()
        except BaseException:
            self.close()
            raise
        return self

    def stop(self, *brokers: int) -> None:
        """Stop all brokers in order, or those that are named."""
        for broker in self._named(brokers):
            broker.stop()

    def kill(self, *brokers: int) -> None:
        """End all brokers, or those that are named, as SIGKILL does."""
        for broker in self._named(brokers):
            broker.kill()

    def restart(self, *brokers: int) -> Self:
        """Stop all brokers in order, or those that are named, and start them again."""
        self.stop(*brokers)
        return self.start(*brokers)

    def pause(self, *brokers: int) -> None:
        """As SIGSTOP of all brokers that run, or of those that are named, until `resume`."""
        for broker in self._named(brokers):
            if brokers or broker.is_running:
                broker.pause()

    def resume(self, *brokers: int) -> None:
        """End the pauses of all brokers, or of those that are named."""
        for broker in self._named(brokers):
            if brokers or broker.is_running:
                broker.resume()

    def close(self) -> None:
        """End all brokers and their data; nothing when that was said before, and in a fork of the
        process that made them."""
        if self._is_closed or not self._owner.is_here:
            return
        self._is_closed = True
        try:
            self.heal()
            self._client.close()
            for broker in self:
                broker.close()
            self._relays.end()
            for taken in self._snapshots:
                taken.close()
        finally:
            shutil.rmtree(self._directory, ignore_errors=True)

    def snapshot(self) -> ClusterSnapshot:
        """Keep the state of all brokers as it is at one moment, at which none of them does
        anything: as `Broker.snapshot`. What is on its way between them is not in it, as if all
        of them had been killed. BrokerFailed."""
        self._check_open()
        resumed = [one for one in self if one.is_running and not one.is_paused]
        taken: dict[int, Snapshot] = {}
        try:
            for broker in resumed:
                broker.pause()
            for node_id in self._brokers:
                taken[node_id] = self._kept(node_id)
        except BaseException:
            ClusterSnapshot(taken, self._ports).close()
            raise
        finally:
            for broker in resumed:
                broker.resume()
        self._snapshots.append(ClusterSnapshot(taken, self._ports))
        return self._snapshots[-1]

    def _kept(self, node_id: int) -> Snapshot:
        runner, options = self._brokers[node_id].runner, self._settings(node_id)
        data = self._data(node_id)
        return runner.while_still(
            lambda still: Snapshot.of(data, options, still, links=runner.links)
        )

    def restore(self, snapshot: ClusterSnapshot) -> Self:
        """Go back to a state that was kept: all brokers run, on the same ports, and reach each
        other. Connections are cut. BrokerFailed, and nothing has happened, for one that this
        cluster cannot have: other options, another number of brokers."""
        if not isinstance(snapshot, ClusterSnapshot):
            raise TypeError(
                f"restore({snapshot!r}): expected what the snapshot() of a cluster has given"
            )
        snapshot.check({node_id: self._settings(node_id) for node_id in self._brokers})
        self._end_life()
        self._put(snapshot)
        return self.start()

    def reset(self) -> Self:
        """Begin anew without anything, as another cluster, on the same ports: all brokers run and
        reach each other. Connections are cut. BrokerFailed."""
        self._end_life()
        try:
            with ExitStack() as stack:
                for node_id in self._brokers:
                    stack.enter_context(unfinished(self._data(node_id)))
                for node_id in self._brokers:
                    clear_soon(str(self._data(node_id)), {NOTE})
                self._format()
        except OSError as error:
            raise BrokerFailed(f"the brokers cannot be emptied: {error}") from None
        return self.start()

    def fork(self) -> Cluster:
        """Another cluster of as many brokers, on ports of its own, that begins with the state of
        this one; it runs, and has to be closed (a context manager). Both go on by themselves."""
        with self.snapshot() as taken:
            made = Cluster(
                len(self), config=self._config, process=self._is_process, faults=self._has_faults
            )
            try:
                made._put(taken)
                return made.start()
            except BaseException:
                made.close()
                raise

    def _asked(self) -> str:
        """Where it is asked; BrokerFailed after its end."""
        if self._is_closed:
            raise BrokerFailed("the cluster is closed")
        return self.bootstrap

    def _check_open(self) -> None:
        """BrokerFailed after the end of its data, and in a fork."""
        self._owner.check()
        if self._is_closed:
            raise BrokerFailed("the cluster is closed, and its data is gone: make another one")

    def _end_life(self) -> None:
        self._check_open()
        self._client.disconnect()
        for broker in self:
            broker.kill()
        self.heal()

    def _put(self, snapshot: ClusterSnapshot) -> None:
        snapshot.put({node_id: self._data(node_id) for node_id in self._brokers}, self._ports)

    def log_text(self) -> str:
        """What all brokers have logged, one after the other."""
        return "\n".join(f"broker {one.node_id}:\n{one.log_text()}" for one in self)

    @property
    def faults(self) -> Faults:
        """Faults on command, of all brokers that run, or `broker=1`: docs/FAULTS.md."""
        return Faults([one.runner for one in self if one.is_running])

    # -- the network among them

    def partition(self, one: int, *others: int) -> None:
        """Cut broker `one` off from `others`, from all others where none are named: between them
        nothing passes in either direction until `heal`. Clients reach all of them."""
        for node_id in (one, *others):
            self[node_id]  # KeyError names what there is
        if one in others:
            raise ValueError(f"broker {one} cannot be cut off from itself")
        for other in others or [node_id for node_id in self._brokers if node_id != one]:
            self._parted.add(frozenset((one, other)))
        self._relays.set_parted(self._parted)

    def heal(self) -> None:
        """End all partitions of the network."""
        self._parted.clear()
        self._relays.set_parted(self._parted)

    # -- what is in it

    def topic(self, name: str) -> Topic:
        """The topic of this name, whether it exists or not."""
        return Topic(name, self._client)

    def group(self, group_id: str) -> Group:
        """The consumer group of this id, whether it exists or not."""
        return Group(group_id, self._client)

    def topics(self) -> list[str]:
        """The names of all topics but internal ones."""
        return self._client.run(names_of_topics)

    def leader(self, topic: str, partition: int = 0) -> ClusterBroker:
        """The broker that leads a partition now, by those that know the newest leader epoch;
        BrokerFailed where none does."""
        addresses = [broker.bootstrap for broker in self if broker.is_running]

        async def find(_: Client) -> list[tuple[int, int]]:
            asked = [_leader_seen_by(address, topic, partition) for address in addresses]
            return [found for found in await asyncio.gather(*asked) if found is not None]

        epoch, leader_id = max(self._client.run(find), default=(-1, -1))
        if leader_id not in self._brokers:
            why = "no broker knows it: create it first" if epoch < 0 else f"leader epoch {epoch}"
            raise BrokerFailed(f"{topic}-{partition} has no leader ({why})")
        return self[leader_id]


async def _leader_seen_by(address: str, topic: str, partition: int) -> tuple[int, int] | None:
    """Leader epoch and leader; None where the broker does not know the partition, or is silent."""
    settings = ConnectionSettings(
        address, "kwire-testing", request_timeout_s=ASK_TIMEOUT_S, first_timeout_s=ASK_TIMEOUT_S
    )
    async with Client(settings) as client:
        topics = [m.MetadataRequest.MetadataRequestTopic(name=topic)]
        request = m.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            response = await client.call(request)
        except ClientError:
            return None
    for one in response.topics[0].partitions:
        if one.partition_index == partition:
            return one.leader_epoch, one.leader_id
    return None


def _listeners(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{HOST}:{port}" for name, port in ports.items())
