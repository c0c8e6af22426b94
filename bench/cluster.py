"""Three brokers with three replicas and acks=all, kwire beside Apache Kafka, in one run.

    bench/cluster.py [--rounds N] [--gigabytes F] [--only NAME] [--write-docs] [--json FILE]

Each side is three nodes, broker and controller in one process each, on this machine: kwire by
`kwire serve --brokers 3`, Apache Kafka with a heap of 1 GB a node, G1 and its own defaults (needs
Java and `make peers`). Topics have three partitions, three replicas and `min.insync.replicas=2`;
the clients are librdkafka's, as in bench/run.py. CPU is that of all broker processes, for each GB
that the producer sent (which is written three times). Three rounds take five to six minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import report  # noqa: E402
from bench.brokers import TICKS_PER_S, descendants  # noqa: E402
from bench.build import build  # noqa: E402
from bench.side_by_side import Figures, Rows, run, summarise  # noqa: E402
from kwire.testing.cluster import BrokersCommand, free_adjacent_ports  # noqa: E402

KAFKA, KWIRE = "kafka", "kwire"
NODES = (1, 2, 3)
PARTITIONS = 3
RECORD_BYTES = 1024
WARM_RECORDS = 300_000
BATCH_BYTES, LINGER_MS = 1_000_000, 5
LATENCY_RATE, LATENCY_S = 1000, 8
START_TIMEOUT_S = 120.0
CLUSTER_ID = "a3dpcmUtYmVuY2gta2Fma2E"
HEAP = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
HEAP_MORE = ("-XX:InitiatingHeapOccupancyPercent=35", "-Djava.awt.headless=true")
SHARED_SETTINGS = {
    "num.partitions": str(PARTITIONS),
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


class Nodes:
    """The processes of one side, by their ids. `address` is where clients begin."""

    def __init__(self, pids: list[int], address: str) -> None:
        self._pids = pids
        self.address = address

    def cpu_s(self) -> float:
        """User and system time of all processes so far."""
        total = 0
        for above in self._pids:
            for pid in descendants(above):
                with contextlib.suppress(OSError):
                    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
                    fields = stat.rsplit(")", 1)[1].split()
                    total += int(fields[11]) + int(fields[12])
        return total / TICKS_PER_S

    def rss_mb(self) -> float:
        """Resident memory of all processes."""
        total_kb = 0
        for above in self._pids:
            for pid in descendants(above):
                with contextlib.suppress(OSError):
                    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                    total_kb += sum(int(x.split()[1]) for x in lines if x.startswith("VmRSS"))
        return total_kb / 1024


def stop_all(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def kwire_nodes(directory: pathlib.Path, log: pathlib.Path) -> Iterator[Nodes]:
    """`kwire serve --brokers 3`."""
    # Modules may be compiled to files, as where pip has installed them.
    command = BrokersCommand(
        len(NODES),
        data_dir=directory,
        log_path=log,
        options=SHARED_SETTINGS,
        environment={"PYTHONDONTWRITEBYTECODE": ""},
    )
    command.start()
    command.wait_ready()
    nodes = Nodes([command.process.pid], command.bootstrap)
    try:
        yield nodes
    finally:
        command.stop()


@contextlib.contextmanager
def kafka_nodes(libs: pathlib.Path, directory: pathlib.Path, log: pathlib.Path) -> Iterator[Nodes]:
    """Three Apache Kafka nodes, formatted and started."""
    ports = {node: free_adjacent_ports() for node in NODES}
    controllers = ",".join(f"127.0.0.1:{port + 1}" for port in ports.values())
    initial = ",".join(
        f"{node}@127.0.0.1:{port + 1}:a3dpcmUtYmVuY2gtZGl{node}AA" for node, port in ports.items()
    )
    java = ["java", "-cp", f"{libs}/*", "-Dlog4j2.level=ERROR"]
    processes = []
    with log.open("ab") as output:
        for node, port in ports.items():
            home = directory / f"node-{node}"
            home.mkdir(parents=True)
            listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}"
            settings = {
                "process.roles": "broker,controller",
                "node.id": str(node),
                "controller.quorum.bootstrap.servers": controllers,
                "listeners": listeners,
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(home / "data"),
                "group.initial.rebalance.delay.ms": "0",
                **SHARED_SETTINGS,
            }
            properties = home / "server.properties"
            properties.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
            subprocess.run(
                [*java, "-Xmx256m", "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
                + ["--initial-controllers", initial, "-c", str(properties)],
                stdout=output,
                stderr=output,
                check=True,
            )
            processes.append(
                subprocess.Popen(
                    [*java, *HEAP, *HEAP_MORE, "kafka.Kafka", str(properties)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    text=True,
                )
            )
    addresses = ",".join(f"127.0.0.1:{port}" for port in ports.values())
    try:
        yield Nodes([process.pid for process in processes], addresses)
    finally:
        stop_all(processes)


def wait_ready(nodes: Nodes, tools: pathlib.Path) -> None:
    """Until a topic with three replicas takes records, and the first writes are warm."""
    end = time.monotonic() + START_TIMEOUT_S
    settings = ("all", "none", BATCH_BYTES, LINGER_MS)
    while True:
        with contextlib.suppress(SystemExit, subprocess.TimeoutExpired):
            sent = run(
                *(tools / "rkperf", "produce", nodes.address, "warm", PARTITIONS, RECORD_BYTES),
                *(WARM_RECORDS, *settings),
            )
            if not sent["err"]:
                return
        if time.monotonic() > end:
            raise SystemExit("bench: the brokers take no records")


def measure(nodes: Nodes, tools: pathlib.Path, gigabytes: float) -> list[tuple[str, Figures]]:
    """One round on one side."""
    wait_ready(nodes, tools)
    results: list[tuple[str, Figures]] = []
    count = int(gigabytes * 1e9 / RECORD_BYTES)
    before = nodes.cpu_s()
    sent = run(
        *(tools / "rkperf", "produce", nodes.address, "rf3", PARTITIONS, RECORD_BYTES, count),
        *("all", "none", BATCH_BYTES, LINGER_MS),
    )
    if sent["err"]:
        raise SystemExit(f"bench: {sent['err']} records were refused")
    cpu = (nodes.cpu_s() - before) / (count * RECORD_BYTES / 1e9)
    rate = {"MBps": sent["MBps"], "cpu_s_per_GB": round(cpu, 3)}
    results.append(("cluster produce 1024 acks=all", rate))
    before = nodes.cpu_s()
    latency = run(tools / "rklat", nodes.address, "latency", LATENCY_RATE, LATENCY_S, "all")
    cpu_us = (nodes.cpu_s() - before) / (LATENCY_RATE * LATENCY_S) * 1e6
    told: Figures = {key: latency[key] for key in ("p50", "p99", "p999")}
    results.append(("cluster latency at 1000/s", {**told, "cpu_us": round(cpu_us, 1)}))
    results.append(("cluster memory after load", {"mb": round(nodes.rss_mb(), 1)}))
    return results


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--only", choices=(KAFKA, KWIRE))
    parser.add_argument("--write-docs", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / ".cache" / "bench-cluster.json")
    return parser.parse_args()


def main() -> int:
    """Measure in alternating rounds and report; 0 also when a goal was missed."""
    options = arguments()
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    libs = cache / "kafka" / "libs"
    sides = [side for side in (KAFKA, KWIRE) if options.only in (None, side)]
    if KAFKA in sides and not (shutil.which("java") and libs.is_dir()):
        print("bench: no Java or no jars of Kafka (make peers): measuring kwire alone")
        sides.remove(KAFKA)
    tools = build(cache / "bench")
    logs = ROOT / ".cache" / "bench-logs"
    logs.mkdir(parents=True, exist_ok=True)
    rows: Rows = {}
    for turn in range(options.rounds):
        for side in sides if turn % 2 == 0 else reversed(sides):
            with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name:
                directory, log = pathlib.Path(name), logs / f"cluster-{side}.log"
                make = (
                    kafka_nodes(libs, directory, log)
                    if side == KAFKA
                    else kwire_nodes(directory, log)
                )
                with make as nodes:
                    for kind, figures in measure(nodes, tools, options.gigabytes):
                        rows.setdefault(kind, {}).setdefault(side, []).append(figures)
                        print(f"round {turn + 1} {side:6} {kind:30} {figures}", flush=True)
    summary = summarise(rows, sides[0])
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"rows": rows, "summary": summary}, indent=1) + "\n")
    made = report.table(summary, sides[-1])
    print(f"\n{made}\n")
    for line in report.missed(summary, sides[-1]):
        print(f"goal missed: {line}")
    if options.write_docs:
        page = ROOT / "docs" / "PERFORMANCE.md"
        page.write_text(report.with_table(page.read_text(), made, "cluster"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
