"""The client programs of compat_tests while brokers are killed under them.

    python -m tests.runner.kills [--kafka] [--every SECONDS] [--seed N] [--only WORD] [CLIENT...]

`kwire serve --brokers 3`, topics with three replicas; all the while one broker after the other is
killed (SIGKILL) and started again, the next as soon as every replica is in sync and SECONDS (4)
have passed. A CLIENT is a group of tests/run.py (without: all that the machine can build). What
may fail stands in compat_tests/allowed-under-kills.tsv: program, case (or *), a piece of what the
failure says, why. `--kafka` runs the same against three Apache Kafka nodes, which says whether such
a reason is a fact. What fails otherwise is run once more: the second run decides, both are told.

Prints a table and the failures; the exit status is 1 when something failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kwire.protocol import messages as m
from kwire.testing.cluster import BrokersCommand, Cluster, wait_for
from tests.runner.groups import AGAIN_MAX, GATE, TEST, Context, Group, second_verdict
from tests.runner.model import ROOT, Paths, Result
from tests.support.kafka_node import KafkaNode
from tests.support.wire import WireClient

CLIENTS = (
    *("kafka-python", "confluent-kafka", "aiokafka", "kcat", "java clients"),
    *("java share", "java streams", "franz-go", "sarama", "kafka-go", "confluent-kafka-go"),
    *("kafkajs", "confluent-kafka-javascript", "platformatic-kafka", "rdkafka (rust)"),
)
NODES = (1, 2, 3)
REPLICAS = 3
METADATA_VERSION = 12
ALLOWED = ROOT / "compat_tests" / "allowed-under-kills.tsv"
PATIENCE_S = 30.0
SLOWNESS = 2.0
"""A program may take so much longer than without kills."""

SETTINGS = {"min.insync.replicas": 2, "group.initial.rebalance.delay.ms": 0}


@dataclasses.dataclass(frozen=True)
class Allowance:
    """A failure that kills may lead to: of a program (group), of a case or of any (`*`)."""

    program: str
    case: str
    text: str
    reason: str

    def covers(self, program: str, case: str, said: str) -> bool:
        return self.program in (program, "*") and self.case in (case, "*") and self.text in said


def read_allowances(path: pathlib.Path) -> list[Allowance]:
    """The rows of allowed-under-kills.tsv; lines that start with # are comments."""
    rows = [row for row in path.read_text().splitlines() if row and not row.startswith("#")]
    return [Allowance(*row.split("\t")) for row in rows]


def excuse(
    program: str, result: Result, allowances: list[Allowance], output: Sequence[str] = ()
) -> Result:
    """Failures that are allowed count as skipped, with their reason; `output` are the lines of the
    program.

    >>> found = Result(3, 1, 0, ["p a: failed", "FAIL a 0.1s Gone"])
    >>> excuse("p", found, [Allowance("p", "*", "Gone", "it does")]).notes
    ['skipped: p a: it does']
    """
    told = [note for note in (*result.notes, *output) if "FAIL " in note]
    kept: list[str] = []
    excused = 0
    used: list[str] = []
    for note in result.notes:
        if not note.endswith(": failed"):
            kept.append(note)
            continue
        case = note.removesuffix(": failed").split(" ", 1)[1]
        said = [line for line in told if f"FAIL {case}" in line]
        covering = [a for a in allowances if a.covers(program, case, " ".join(said))]
        if not covering:
            kept.append(note)
            continue
        excused += 1
        used += said
        kept.append(f"skipped: {program} {case}: {covering[0].reason}")
    return Result(
        passed=result.passed,
        failed=result.failed - excused,
        skipped=result.skipped + excused,
        notes=[note for note in kept if note not in used],
    )


class Killed(Protocol):
    """Three brokers; `revive` returns when the killed one serves again."""

    bootstrap: str

    def kill(self, node_id: int) -> None: ...

    def revive(self, node_id: int) -> None: ...

    def close(self) -> None: ...


class KwireBrokers:
    """`kwire serve --brokers 3`, which starts a killed node again itself."""

    def __init__(self, directory: pathlib.Path, log: pathlib.Path) -> None:
        self._command = BrokersCommand(data_dir=directory / "data", log_path=log)
        try:
            self._command.start()
            self._command.wait_ready()
        except BaseException:
            self.close()
            raise
        self.bootstrap = self._command.bootstrap

    def kill(self, node_id: int) -> None:
        self._killed = self._command.pids()[node_id - 1]
        os.kill(self._killed, signal.SIGKILL)

    def revive(self, node_id: int) -> None:
        wait_for(
            lambda: self._command.pids()[node_id - 1] != self._killed, f"broker {node_id} again"
        )

    def close(self) -> None:
        if self._command.process.is_running:
            self._command.stop()
        self._command.close()


class KafkaBrokers:
    """Three Apache Kafka nodes, with times as short as those of `kwire serve --brokers 3`."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._cluster = Cluster(directory, kinds=dict.fromkeys(NODES, KafkaNode), settings=SETTINGS)
        self._cluster.start()
        self.bootstrap = self._cluster.bootstrap

    def kill(self, node_id: int) -> None:
        self._cluster[node_id].kill()

    def revive(self, node_id: int) -> None:
        self._cluster[node_id].start()
        self._cluster[node_id].wait_ready()

    def close(self) -> None:
        self._cluster.close()


class Killer:
    """Kills one broker after the other until told to end. Also what groups ask for an address."""

    def __init__(self, brokers: Killed, every_s: float, seed: int) -> None:
        self._brokers = brokers
        self._every_s = every_s
        self._draw = random.Random(seed)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.kills = 0
        self.error: BaseException | None = None

    def bootstrap(self, _: str = "main") -> str:
        return self._brokers.bootstrap

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(180)

    def _run(self) -> None:
        try:
            while not self._end.wait(self._every_s):
                self._wait_whole()
                node_id = self._draw.choice(NODES)
                self._brokers.kill(node_id)
                self.kills += 1
                self._brokers.revive(node_id)
        except BaseException as error:
            self.error = error

    def _wait_whole(self) -> None:
        """Until every replica is in sync, or patience is over: chaos goes on either way."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and not self._end.is_set():
            if is_whole(self._brokers.bootstrap):
                return
            time.sleep(0.2)


def is_whole(bootstrap: str) -> bool:
    """Whether some broker knows of all three, and of every replica in sync."""
    request = m.MetadataRequest(topics=None, include_topic_authorized_operations=False)
    for address in bootstrap.split(","):
        try:
            with WireClient(address, 2.0) as client:
                answer: Any = client.call(request, METADATA_VERSION)
        except (OSError, AssertionError):
            continue
        return len(answer.brokers) == len(NODES) and all(
            len(partition.isr_nodes) == len(partition.replica_nodes)
            for topic in answer.topics
            for partition in topic.partitions
        )
    return False


def run_group(group: Group, paths: Paths, killer: Killer) -> Result:
    """One client's programs; what it cannot do here is skipped by name."""
    missing = group.missing()
    if missing is not None:
        return Result.skip(missing)
    brokers: Any = killer
    limit_s = group.limit_s * SLOWNESS
    context = Context(group.name, limit_s, paths, brokers)
    allowances = read_allowances(ALLOWED)

    def judged(context: Context) -> Result:
        result = group.run(context)
        log = context.log()
        output = log.read_text(errors="replace").splitlines() if log.exists() else []
        return excuse(group.name, result, allowances, output)

    first = judged(context)
    if not 0 < first.failed <= AGAIN_MAX:
        return first
    return second_verdict(first, judged(dataclasses.replace(context, again=True)))


def run(groups: list[Group], make: Callable[[pathlib.Path], Killed], options: Any) -> Result:
    """All groups on one cluster."""
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    paths = Paths(cache, ROOT / ".cache" / "kills-logs", sys.executable)
    total = Result()
    with tempfile.TemporaryDirectory(prefix="kwire-kills-") as directory:
        brokers = make(pathlib.Path(directory))
        killer = Killer(brokers, options.every, options.seed)
        try:
            killer.start()
            for group in groups:
                started, kills = time.monotonic(), killer.kills
                result = run_group(group, paths, killer)
                print(
                    f"{group.name:28} {result.passed:4} passed {result.failed:3} failed "
                    f"{result.skipped:3} skipped {time.monotonic() - started:6.0f} s "
                    f"{killer.kills - kills:3} kills",
                    flush=True,
                )
                for note in result.notes:
                    print(f"    {note}", flush=True)
                total.add(result)
            killer.end()
            if killer.error is not None:
                print(f"the killer ended: {killer.error!r}", flush=True)
                total.failed += 1
        finally:
            killer.end()
            brokers.close()
    return total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kafka", action="store_true")
    parser.add_argument("--every", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a word that case names must hold")
    parser.add_argument("clients", nargs="*", metavar="CLIENT")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the brokers end in any case
    os.environ["RF"] = str(REPLICAS)
    if options.only:
        os.environ["ONLY"] = options.only
    os.chdir(ROOT)
    logs = ROOT / ".cache" / "kills-logs"
    logs.mkdir(parents=True, exist_ok=True)
    by_name = {group.name: group for group in (*TEST, *GATE)}
    unknown = [name for name in options.clients if name not in CLIENTS]
    if unknown:
        parser.error(f"no such client: {', '.join(unknown)}; there are {', '.join(CLIENTS)}")
    groups = [by_name[name] for name in options.clients or CLIENTS]

    def make(directory: pathlib.Path) -> Killed:
        return KafkaBrokers(directory) if options.kafka else KwireBrokers(directory, logs / "serve")

    total = run(groups, make, options)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
