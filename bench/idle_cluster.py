"""Three nodes with thousands of partitions: what they cost while nobody asks, and a node's end.

    bench/idle_cluster.py [--partitions 1 100 3000] [--idle 60] [--ends kill stop] [--turns]
                          [--profile DIRECTORY] [-o NAME=VALUE ...]

Three of `kwire serve --config` with nothing set but where they are, broker and controller each;
topics of at most 100 partitions with three replicas. Told of each number of partitions:

    idle        CPU of each node, in per cent of a core, while no client is there; with `--load N`
                and `--ends` without a name, while N records a second are sent
    kill, stop  SIGKILL or SIGTERM of a node, and how long after it, as a client of the others
                sees it: the first partition with another leader; all of them, told by both; all
                have taken a record (acks=all); all were read; CPU of the others until then
                and some seconds more; the longest round trip of an ApiVersions request; with
                `--load N` the longest time that a record waited for its acknowledgement while N
                a second were sent over all partitions (librdkafka), before the end and after it

`--turns` runs the nodes on asyncio's loop and tells the longest turns of it after each end, in
processor time. `--autogroup N` sets the nice value of each node's session, and the bench's own, on
a machine that others use: what waits for a core is then told from what waits for the broker.
`--profile` writes what the nodes do while idle and after an end (needs py-spy).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.all_topics import Pinger  # noqa: E402
from bench.brokers import TICKS_PER_S  # noqa: E402
from bench.failover import METADATA_VERSION, NODES, PRODUCE_VERSION, Configured, call  # noqa: E402
from kwire.protocol import messages as m  # noqa: E402
from kwire.protocol.records import Record, build_batch  # noqa: E402

TOPIC_PARTITIONS = 100
TIMEOUT_S = 120.0
SETTLE_S = 10.0
AFTER_S = 10.0
LOADED_S = 20.0  # until each partition has had the first record of its epoch
POLL_S = 0.01
ASKED_AT_ONCE = 500
FETCH_VERSION = 12
PRODUCE_WAIT_MS = 10_000
LONG_TURN_S = 0.005

Key = tuple[str, int]


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


class Many(Configured):
    """The nodes; `partitions` in all."""

    def __init__(self, scratch: pathlib.Path, options: argparse.Namespace) -> None:
        self._has_turns = options.turns
        self.scratch = scratch
        super().__init__(scratch, options.o)

    def start_again(self, broker_id: int) -> None:
        process = self._processes[broker_id]
        if process.is_running:
            process.wait()
        module = ["-m", "bench.timed_serve", self.turns_file(broker_id)]
        properties = str(self._properties(broker_id))
        command = module if self._has_turns else ["-m", "kwire"]
        process.start(
            [sys.executable, *map(str, command), "serve", "--config", properties], cwd=ROOT
        )

    def wait_ready(self) -> None:
        for process in self._processes.values():
            process.wait_ready()

    def turns_file(self, broker_id: int) -> pathlib.Path:
        return self.scratch / f"turns-{broker_id}"

    def create(self, partitions: int) -> list[Key]:
        from confluent_kafka.admin import AdminClient, NewTopic

        settings = {"bootstrap.servers": ",".join(self.addresses.values()), "log_level": 0}
        admin = AdminClient(settings)
        wanted, left = [], partitions
        while left:
            size = min(left, TOPIC_PARTITIONS)
            wanted.append(NewTopic(f"many-{len(wanted)}", size, 3))
            left -= size
        for one in wanted:
            admin.create_topics([one], operation_timeout=60)[one.topic].result(60)
        return [(one.topic, index) for one in wanted for index in range(one.num_partitions)]


def described(address: str, topic: str | None = None) -> dict[Key, Any]:
    """What a broker knows of the partitions of a topic, or of all; nothing when it does not
    answer."""
    shape = m.MetadataRequest
    asked = None if topic is None else [shape.MetadataRequestTopic(name=topic)]
    try:
        answer = call(address, shape(topics=asked), METADATA_VERSION, 10.0)
    except OSError:
        return {}
    return {
        (topic.name, one.partition_index): one
        for topic in answer.topics
        for one in topic.partitions
        if topic.name.startswith("many-")
    }


def whole(cluster: Many, partitions: int) -> bool:
    """Every partition in sync everywhere, and led by the broker that it would have lead it."""
    for address in cluster.addresses.values():
        found = described(address)
        if len(found) < partitions or any(len(p.isr_nodes) < 3 for p in found.values()):
            return False
    if all(p.leader_id == p.replica_nodes[0] for p in found.values()):
        return True
    preferred = m.ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000)
    call(address, preferred, 2, 20.0)
    return False


def wait_whole(cluster: Many, partitions: int) -> None:
    end = time.monotonic() + TIMEOUT_S
    while not whole(cluster, partitions):
        if time.monotonic() > end:
            raise SystemExit(f"bench: not every replica is in sync in {TIMEOUT_S} s")
        time.sleep(0.5)


def grouped(keys: Iterable[Key]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in keys:
        topics.setdefault(name, []).append(index)
    return topics


def produced(address: str, keys: list[Key]) -> list[Key]:
    """Those that took a record with acks=all."""
    shape = m.ProduceRequest
    batch = build_batch([Record(0, int(time.time() * 1000), None, b"x", [])])
    request = shape(
        acks=-1,
        timeout_ms=PRODUCE_WAIT_MS,
        topic_data=[
            shape.TopicProduceData(
                name=name,
                partition_data=[
                    shape.PartitionProduceData(index=index, records=batch) for index in indexes
                ],
            )
            for name, indexes in grouped(keys).items()
        ],
    )
    try:
        answer = call(address, request, PRODUCE_VERSION, 20.0)
    except OSError:
        return []
    return [
        (topic.name, one.index)
        for topic in answer.responses
        for one in topic.partition_responses
        if not one.error_code
    ]


def readable(address: str, keys: list[Key]) -> list[Key]:
    """Those that a consumer may read from their beginning."""
    shape = m.FetchRequest
    request = shape(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            shape.FetchTopic(
                topic=name,
                partitions=[
                    shape.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
                    for index in indexes
                ],
            )
            for name, indexes in grouped(keys).items()
        ],
    )
    try:
        answer = call(address, request, FETCH_VERSION, 20.0)
    except OSError:
        return []
    return [
        (topic.topic, one.partition_index)
        for topic in answer.responses
        for one in topic.partitions
        if not one.error_code
    ]


class SlowPinger(Pinger):
    """Asks so seldom that asking costs nothing."""

    pause_s = 0.01


class Watcher:
    """What clients see after a node's end; times in seconds after it."""

    def __init__(self, cluster: Many, victim: int, keys: list[Key]) -> None:
        self._others = {i: a for i, a in cluster.addresses.items() if i != victim}
        self._victim = victim
        self._keys = keys
        self._pids = [cluster.pid(i) for i in self._others]
        self.first_cpu_s = 0.0

    def cpu_s(self) -> float:
        """Of the others, so far."""
        return sum(cpu_s(pid) for pid in self._pids)

    def led(self, began: float) -> tuple[float, float, dict[Key, int]]:
        """When the first partition of the victim has another leader, and when all have, as the
        later of both brokers tells; and who leads. All are looked at once the first one has."""
        found: list[dict[Key, int]] = [{} for _ in self._others]
        first = 0.0
        while time.monotonic() - began < TIMEOUT_S:
            for number, address in enumerate(self._others.values()):
                known = described(address, None if first else self._first[0])
                found[number] = {key: one.leader_id for key, one in known.items()}
            passed = time.monotonic() - began
            if not first:
                if all(x.get(self._first, -1) not in (self._victim, -1) for x in found):
                    first = passed
                    self.first_cpu_s = self.cpu_s()
                    continue
            elif all(
                len(self._keys) == sum(leader not in (self._victim, -1) for leader in x.values())
                for x in found
            ):
                return first, passed, found[0]
            time.sleep(POLL_S)
        raise SystemExit("bench: not all partitions are led again")

    def before(self) -> None:
        """Look at who leads before the end."""
        found = described(next(iter(self._others.values())))
        self._first = next(key for key, one in found.items() if one.leader_id == self._victim)

    def done(
        self, began: float, leaders: dict[Key, int], ask: Callable[[str, list[Key]], list[Key]]
    ) -> float:
        """When all have answered `ask` without an error."""
        left = set(leaders)
        while left:
            for broker, address in self._others.items():
                mine = sorted(key for key in left if leaders[key] == broker)
                for start in range(0, len(mine), ASKED_AT_ONCE):
                    left.difference_update(ask(address, mine[start : start + ASKED_AT_ONCE]))
            if time.monotonic() - began > TIMEOUT_S:
                raise SystemExit(f"bench: {len(left)} partitions are not served")
        return time.monotonic() - began


class Load:
    """librdkafka's producer with acks=all, `rate` records a second over all partitions."""

    def __init__(self, cluster: Many, keys: list[Key], rate: int) -> None:
        from confluent_kafka import Producer

        self._producer: Any = Producer(
            {"bootstrap.servers": ",".join(cluster.addresses.values()), "log_level": 0}
        )
        self._keys, self._rate = keys, rate
        self._closed = False
        self.waits: list[tuple[float, float]] = []
        self.failed = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        while not self._closed:
            while count < (time.monotonic() - began) * self._rate:
                name, index = self._keys[count * 7919 % len(self._keys)]
                self._send(name, index)
                count += 1
            self._producer.poll(0.002)

    def _send(self, name: str, index: int) -> None:
        sent = time.monotonic()

        def told(error: Any, _: Any) -> None:
            if error is None:
                self.waits.append((sent, time.monotonic()))
            else:
                self.failed += 1

        self._producer.produce(name, b"x" * 100, partition=index, on_delivery=told)

    def close(self) -> None:
        self._closed = True
        self._thread.join()
        self._producer.flush(30)


class Profiles:
    """py-spy on the nodes, where it is asked for."""

    def __init__(self, directory: pathlib.Path | None) -> None:
        self._directory = directory
        self._running: list[subprocess.Popen[bytes]] = []

    def begin(self, name: str, pids: dict[int, int], seconds: float) -> None:
        if self._directory is None:
            return
        spy = shutil.which("py-spy") or os.environ.get("PY_SPY")
        if spy is None:
            raise SystemExit("bench: --profile needs py-spy")
        self._directory.mkdir(parents=True, exist_ok=True)
        for node, pid in pids.items():
            path = self._directory / f"{name}-{node}"
            command = [spy, "record", "-p", str(pid), "-d", str(int(seconds)), "-r", "500"]
            command += ["-f", "raw", "-o", str(path), "--nonblocking"]
            silent = subprocess.DEVNULL
            self._running.append(subprocess.Popen(command, stdout=silent, stderr=silent))

    def end(self) -> None:
        for process in self._running:
            process.wait()
        self._running = []


def idle(cluster: Many, keys: list[Key], options: argparse.Namespace, profiles: Profiles) -> None:
    """Nothing happens; without a node's end, with the load beside."""
    partitions, seconds = len(keys), options.idle
    time.sleep(SETTLE_S)
    load = Load(cluster, keys, options.load) if options.load and not options.ends else None
    if load is not None:
        time.sleep(LOADED_S)
    pids = {node: cluster.pid(node) for node in NODES}
    before = {node: cpu_s(pid) for node, pid in pids.items()}
    began = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - began
    shares = {node: (cpu_s(pid) - before[node]) / passed * 100 for node, pid in pids.items()}
    controller = cluster.controller()
    told = ", ".join(
        f"{shares[node]:.2f}{' (controller)' if node == controller else ''}" for node in NODES
    )
    what = "idle" if load is None else f"{options.load:,} records a second"
    print(f"{partitions:,} partitions, {what}: {told} % of a core", flush=True)
    profiles.begin(f"idle-{partitions}", pids, 20)
    profiles.end()
    if load is not None:
        load.close()


def chosen(cluster: Many, *, of_controller: bool) -> int:
    """A node that leads something, with the active controller or, if there is one, without it."""
    controller = cluster.controller()
    leaders = {one.leader_id for one in described(cluster.addresses[1]).values()}
    if of_controller and controller in leaders:
        return controller
    return next((node for node in sorted(leaders) if node != controller), controller)


def end_of_a_node(
    cluster: Many, keys: list[Key], how: str, options: argparse.Namespace, profiles: Profiles
) -> None:
    wait_whole(cluster, len(keys))
    time.sleep(SETTLE_S)
    if not options.only_led:
        leaders = {key: one.leader_id for key, one in described(cluster.addresses[1]).items()}
        began = time.monotonic()
        took = Watcher(cluster, 0, keys).done(began, leaders, produced)
        print(f"{len(keys):,} partitions, nobody gone: all written in {took:.2f} s", flush=True)
        time.sleep(2)
    victim = chosen(cluster, of_controller=options.controller)
    load = Load(cluster, keys, options.load) if options.load else None
    if load is not None:
        time.sleep(5)
    if options.autogroup is not None:
        for pid in (os.getpid(), *(cluster.pid(node) for node in NODES)):
            pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(options.autogroup))
        time.sleep(LOADED_S)
    watcher = Watcher(cluster, victim, keys)
    watcher.before()
    others = {node: cluster.pid(node) for node in NODES if node != victim}
    pingers = [SlowPinger(int(cluster.addresses[node].rpartition(":")[2])) for node in others]
    for pinger in pingers:
        pinger.start()
    profiles.begin(f"{how}-{len(keys)}", others, AFTER_S)
    if options.profile:
        time.sleep(2)
    before = watcher.cpu_s()
    log_size = cluster.log.stat().st_size
    began, wall = time.monotonic(), time.time()
    for pinger in pingers:
        pinger.longest_s = 0.0
    os.kill(cluster.pid(victim), signal.SIGKILL if how == "kill" else signal.SIGTERM)
    first, led, leaders = watcher.led(began)
    longest = max(pinger.longest_s for pinger in pingers)
    until_led = watcher.cpu_s() - before
    written = watcher.done(began, leaders, produced) if not options.only_led else 0.0
    read = watcher.done(began, leaders, readable) if not options.only_led else 0.0
    time.sleep(AFTER_S)
    for pinger in pingers:
        pinger.is_over = True
    after = watcher.cpu_s() - before
    served = "" if options.only_led else f", all written {written:.2f} s, all read {read:.2f} s"
    print(
        f"{len(keys):,} partitions, {how}: first led {first:.2f} s, all led {led:.2f} s{served}; "
        f"CPU of the others {watcher.first_cpu_s - before:.2f} s until the first, {until_led:.2f} "
        f"s until all, {after:.2f} s with {AFTER_S:.0f} s more; an ApiVersions waits "
        f"{longest * 1e3:.0f} ms at most",
        flush=True,
    )
    if load is not None:
        load.close()
        waits = [answered - sent for sent, answered in load.waits if answered >= began]
        usual = [
            answered - sent for sent, answered in load.waits if began - AFTER_S / 2 < sent < began
        ]
        print(
            f"    load: {len(load.waits):,} records, {load.failed} failed, a record waits "
            f"{max(waits):.2f} s at most, before the end {statistics.median(usual):.2f} s",
            flush=True,
        )
    for node in others if options.turns else ():
        lines = [line.split() for line in cluster.turns_file(node).read_text().splitlines()]
        turns = sorted(((float(s), float(at) - wall) for at, s in lines), reverse=True)
        after_end = [(s, at) for s, at in turns if 0 <= at <= written + AFTER_S]
        told = ", ".join(f"{s * 1e3:.0f} ms at {at:.2f} s" for s, at in after_end[:6])
        print(f"    longest turns of node {node}: {told}", flush=True)
    if options.trace:
        lines = cluster.log.read_text()[log_size:].rstrip()
        print(f"ended at {wall % 60:.3f} s of a minute:\n{lines}", flush=True)
    profiles.end()
    cluster.start_again(victim)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 100, 3000])
    parser.add_argument("--idle", type=float, default=60.0)
    parser.add_argument("--ends", nargs="*", choices=("kill", "stop"), default=["kill", "stop"])
    parser.add_argument("--controller", action="store_true", help="end the active controller")
    parser.add_argument("--only-led", action="store_true", help="write and read nothing")
    parser.add_argument("--load", type=int, default=0, metavar="N")
    parser.add_argument("--autogroup", type=int, metavar="N")
    parser.add_argument("--turns", action="store_true")
    parser.add_argument("--trace", action="store_true", help="print what the nodes log meanwhile")
    parser.add_argument("--profile", type=pathlib.Path)
    parser.add_argument("-o", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    profiles = Profiles(options.profile)
    for partitions in options.partitions:
        with tempfile.TemporaryDirectory(prefix="bench-idle-") as scratch:
            cluster = Many(pathlib.Path(scratch), options)
            try:
                cluster.wait_ready()
                keys = cluster.create(partitions)
                wait_whole(cluster, partitions)
                if options.idle:
                    idle(cluster, keys, options, profiles)
                for how in options.ends:
                    end_of_a_node(cluster, keys, how, options, profiles)
            finally:
                if options.profile:
                    shutil.copy(cluster.log, options.profile / f"log-{partitions}")
                cluster.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
