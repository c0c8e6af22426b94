"""Share groups beside Apache Kafka: alternating rounds on the same clients.

    bench/share.py [java|c|idle|members|state ...] [--rounds N] [--gigabytes G] [--warm-gb G]
                   [--minutes N] [--broker NAME ...]

    java     one share consumer of Apache Kafka reads records of 1 KB, 4 partitions, and accepts
    c        the same by blast_share.c: 4 members, accepting with the next fetch, or by requests
             of their own (c-acknowledge); small records in small batches (c-small)
    idle     share fetches that find nothing beside fetches that find nothing: 8 partitions, 50
             connections, each request waits 100 ms; CPU of the broker for one
    members  1,000 members on 12 partitions: joins, and 100-byte records until all have some
    state    bytes of `__share_group_state` for 1,000 records of the runs before

Needs Java and Kafka's jars for `java` and for Kafka (`make peers`). Prints each round, medians and
ratios (`side_by_side.py`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.brokers import Broker  # noqa: E402
from bench.build import build  # noqa: E402
from bench.groups import Connection  # noqa: E402
from bench.run import commands  # noqa: E402
from bench.side_by_side import (  # noqa: E402
    BATCH_BYTES,
    LINGER_MS,
    Figures,
    Rows,
    WarmMemory,
    run,
    summarise,
)
from kwire.protocol import messages as m  # noqa: E402

KINDS = ("java", "c", "idle", "members", "state")
SIZE_BYTES, SMALL_BYTES = 1024, 100
PARTITIONS, MEMBERS = 4, 4
REPLY_BYTES = 32 << 20
IDLE_CONNECTIONS, IDLE_PARTITIONS, IDLE_WAIT_MS, IDLE_S = 50, 8, 100, 6.0
MANY_MEMBERS, MANY_PARTITIONS, MANY_RECORDS = 1000, 12, 1_000_000
MANY_REPLY_BYTES = 4 << 20
RECORDS_MAX = 500
"""As max.poll.records of the Java consumer."""
GROUP_CONFIGS, SET = 32, 0
STATE_TOPIC = "__share_group_state"


class Run:
    """One broker in one round."""

    def __init__(self, broker: Broker, tools: pathlib.Path, worker: list[str], gb: float) -> None:
        self._broker = broker
        self._tools = tools
        self._worker = worker
        self._gigabytes = gb
        self._state: dict[str, Figures] = {}

    def figures(self, kinds: list[str]) -> Iterator[tuple[str, Figures]]:
        """(kind of run, its figures)."""
        count = int(self._gigabytes * 1e9 / SIZE_BYTES)
        small = int(self._gigabytes * 1e9 * 0.2 / SMALL_BYTES)
        if "java" in kinds or "c" in kinds or "state" in kinds:
            topic_id = self._filled("large", PARTITIONS, SIZE_BYTES, _more(count), BATCH_BYTES)
            small_id = self._filled("small", PARTITIONS, SMALL_BYTES, _more(small), 2000)
            # Both have compiled what is hot by then.
            self._blast("fetch", "warm", "large", topic_id, count // 2, SIZE_BYTES)
            self._state.clear()
        if "java" in kinds:
            yield "java", self._java(count)
        if "c" in kinds or "state" in kinds:
            yield "c", self._blast("fetch", "c", "large", topic_id, count, SIZE_BYTES)
            figures = self._blast(
                "acknowledge", "c-acknowledge", "large", topic_id, count, SIZE_BYTES
            )
            yield "c-acknowledge", figures
            yield "c-small", self._blast("fetch", "c-small", "small", small_id, small, SMALL_BYTES)
        if "state" in kinds:
            yield from self._state.items()
        if "idle" in kinds:
            yield from asyncio.run(self._idle())
        if "members" in kinds:
            yield "members", self._many()

    def _filled(
        self, topic: str, partitions: int, size_bytes: int, count: int, batch_bytes: int
    ) -> bytes:
        """A topic of its own for a run, with its records; its id."""
        topic_id = asyncio.run(_topic(self._broker.address, topic, partitions))
        words = (topic, partitions, size_bytes, count, "1", "none", batch_bytes, LINGER_MS)
        sent = run(self._tools / "rkperf", "produce", self._broker.address, *words)
        if sent["err"]:
            raise SystemExit(f"bench: {self._broker.name} refused {sent['err']} records")
        return topic_id

    def _java(self, count: int) -> Figures:
        group = "java"
        asyncio.run(_earliest(self._broker.address, group))
        state, before = self._state_bytes(), self._broker.cpu_s()
        figures = run(*self._worker, self._broker.address, group, "large", count)
        cpu_s = self._broker.cpu_s() - before
        if figures["ok"] < count:
            raise SystemExit(f"bench: {self._broker.name} gave {figures['ok']} of {count} records")
        return self._rated("java", figures, cpu_s, count, SIZE_BYTES, state)

    def _blast(
        self, mode: str, group: str, topic: str, topic_id: bytes, count: int, size_bytes: int
    ) -> Figures:
        asyncio.run(_earliest(self._broker.address, group))
        state, before = self._state_bytes(), self._broker.cpu_s()
        words = (mode, self._broker.port, group, topic, topic_id.hex(), PARTITIONS, MEMBERS, count)
        figures = run(self._tools / "blast_share", *words, RECORDS_MAX, REPLY_BYTES)
        cpu_s = self._broker.cpu_s() - before
        if figures["ok"] < count or figures["err"]:
            raise SystemExit(f"bench: {self._broker.name}: {group}: {figures}, not {count} records")
        return self._rated(group, figures, cpu_s, count, size_bytes, state)

    def _rated(
        self, kind: str, figures: Figures, cpu_s: float, count: int, size_bytes: int, state: int
    ) -> Figures:
        written = self._state_bytes() - state
        self._state[f"state {kind}"] = {"bytes_per_1000": round(written / count * 1000, 1)}
        gigabytes = count * size_bytes / 1e9
        return {
            "records_per_s": figures["recps"],
            "cpu_s_per_GB": round(cpu_s / gigabytes, 3),
            "cpu_us_a_record": round(cpu_s / count * 1e6, 3),
            "client_cpu_s_per_GB": round(figures["clientcpu"] / gigabytes, 3),
        }

    def _state_bytes(self) -> int:
        found = pathlib.Path(self._broker.directory).rglob(f"{STATE_TOPIC}-*/*.log")
        return sum(path.stat().st_size for path in found)

    # -- idle fetches

    async def _idle(self) -> list[tuple[str, Figures]]:
        address = self._broker.address
        topic_id = await _topic(address, "idle", IDLE_PARTITIONS)
        connections = [await Connection.open(address) for _ in range(IDLE_CONNECTIONS)]
        rows: list[tuple[str, Figures]] = []
        for name, fetches in (("idle fetch", _fetches), ("idle share fetch", _share_fetches)):
            await _join(connections, name)
            ends_at = time.monotonic() + 1.5  # opened, and compiled by the peer
            for _ in range(2):
                before = self._broker.cpu_s()
                done = await asyncio.gather(
                    *(fetches(x, i, topic_id, ends_at) for i, x in enumerate(connections))
                )
                cpu_us = (self._broker.cpu_s() - before) / max(1, sum(done)) * 1e6
                ends_at = time.monotonic() + IDLE_S
            rows.append((name, {"cpu_us": round(cpu_us, 1)}))
            for connection in connections:
                connection.close()
            connections = [await Connection.open(address) for _ in range(IDLE_CONNECTIONS)]
        for connection in connections:
            connection.close()
        return rows

    # -- many members

    def _many(self) -> Figures:
        topic_id = self._filled("many", MANY_PARTITIONS, SMALL_BYTES, MANY_RECORDS, 10_000)
        asyncio.run(_earliest(self._broker.address, "many"))
        before = self._broker.cpu_s()
        words = (self._broker.port, "many", "many", topic_id.hex(), MANY_PARTITIONS, MANY_MEMBERS)
        figures = run(
            self._tools / "blast_share",
            "fetch",
            *words,
            MANY_RECORDS * 9 // 10,
            100,
            MANY_REPLY_BYTES,
        )
        cpu_s = self._broker.cpu_s() - before
        return {
            "join_s": figures["join_s"],
            "records_per_s": figures["recps"],
            "cpu_us_a_record": round(cpu_s / max(1, figures["ok"]) * 1e6, 2),
            "fetch_p99_ms": round(figures["p99us"] / 1000, 1),
            "least": figures["least"],
            "most": figures["most"],
            "err": figures["err"],
        }


def _more(count: int) -> int:
    """More records than a run accepts: what is measured is no wait for records that never come."""
    return count + count // 10


async def _topic(address: str, name: str, partitions: int) -> bytes:
    """Create a topic; its id, once it can be written to."""
    connection = await Connection.open(address)
    topic = m.CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
    created = await connection.until(request, 7, lambda x: int(x.topics[0].error_code))
    if created.topics[0].error_code:
        raise SystemExit(f"bench: {created}")
    connection.close()
    topic_id: bytes = created.topics[0].topic_id
    return topic_id


async def _earliest(address: str, group: str) -> None:
    """The group begins at the first record, and its coordinator is there."""
    connection = await Connection.open(address)
    shape = m.IncrementalAlterConfigsRequest
    configs = [
        shape.AlterableConfig(
            name="share.auto.offset.reset", config_operation=SET, value="earliest"
        )
    ]
    resource = shape.AlterConfigsResource(
        resource_type=GROUP_CONFIGS, resource_name=group, configs=configs
    )
    altered = await connection.ask(shape(resources=[resource]), 1)
    if altered.responses[0].error_code:
        raise SystemExit(f"bench: {altered}")
    await _coordinated(connection, group)
    connection.close()


async def _coordinated(connection: Connection, group: str) -> None:
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    await connection.until(find, 4, lambda x: int(x.coordinators[0].error_code))


async def _join(connections: list[Connection], name: str) -> None:
    """Members of the group of the idle share fetches."""
    if name != "idle share fetch":
        return
    await _coordinated(connections[0], "idle")
    left = set(range(len(connections)))
    while left:
        for i in sorted(left):
            request = m.ShareGroupHeartbeatRequest(
                group_id="idle",
                member_id=f"member-{i}",
                member_epoch=0,
                subscribed_topic_names=["idle"],
            )
            answer = await connections[i].until(request, 1, lambda x: int(x.error_code))
            if answer.error_code:
                raise SystemExit(f"bench: {answer}")
            if answer.assignment is not None and answer.assignment.topic_partitions:
                left.discard(i)
        await asyncio.sleep(0.05)


_sessions: dict[Connection, tuple[int, int]] = {}


async def _fetches(connection: Connection, i: int, topic_id: bytes, ends_at: float) -> int:
    """Fetches of a session until then; how many."""
    shape = m.FetchRequest
    done = 0
    while time.monotonic() < ends_at:
        session_id, epoch = _sessions.get(connection, (0, 0))
        partitions = [
            shape.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in range(IDLE_PARTITIONS)
        ]
        topics = [] if epoch else [shape.FetchTopic(topic_id=topic_id, partitions=partitions)]
        request = shape(
            max_wait_ms=IDLE_WAIT_MS,
            min_bytes=1,
            max_bytes=50 << 20,
            session_id=session_id,
            session_epoch=epoch,
            topics=topics,
        )
        answer = await connection.ask(request, 13)
        if answer.error_code:
            raise SystemExit(f"bench: {answer}")
        _sessions[connection] = answer.session_id or session_id, epoch + 1
        done += 1
    return done


async def _share_fetches(connection: Connection, i: int, topic_id: bytes, ends_at: float) -> int:
    """Share fetches of a session until then; how many."""
    shape = m.ShareFetchRequest
    done = 0
    while time.monotonic() < ends_at:
        _, epoch = _sessions.get(connection, (0, 0))
        partitions = [
            shape.FetchPartition(partition_index=index, acknowledgement_batches=[])
            for index in range(IDLE_PARTITIONS)
        ]
        request = shape(
            group_id="idle",
            member_id=f"member-{i}",
            share_session_epoch=epoch,
            max_wait_ms=IDLE_WAIT_MS,
            min_bytes=1,
            max_bytes=50 << 20,
            max_records=RECORDS_MAX,
            batch_size=RECORDS_MAX,
            topics=[] if epoch else [shape.FetchTopic(topic_id=topic_id, partitions=partitions)],
        )
        answer = await connection.ask(request, 2)
        if answer.error_code:
            raise SystemExit(f"bench: {answer}")
        _sessions[connection] = 0, epoch + 1
        done += 1
    return done


def java_worker(cache: pathlib.Path, scratch: pathlib.Path) -> list[str]:
    """The command that runs ShareWorker.java, compiled."""
    libs = f"{cache / 'kafka' / 'libs'}/*"
    source = str(ROOT / "bench" / "ShareWorker.java")
    subprocess.run(["javac", "-nowarn", "-d", str(scratch), "-cp", libs, source], check=True)
    classes = f"{scratch}:{libs}"
    return ["java", "-Xmx512m", "-Dlog4j2.level=OFF", "-cp", classes, "ShareWorker"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help=" ".join(KINDS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--warm-gb", type=float, default=64.0)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--broker", action="append", help="only these: kafka, kwire")
    options = parser.parse_args()
    kinds = options.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        raise SystemExit(f"bench: {sorted(unknown)[0]!r} is none of {', '.join(KINDS)}")
    cache = pathlib.Path(os.environ.get("KWIRE_CACHE") or pathlib.Path.home() / ".cache" / "kwire")
    tools = build(cache / "bench")
    logs = ROOT / ".cache" / "bench-logs"
    logs.mkdir(parents=True, exist_ok=True)
    rows: Rows = {}
    ends_s = time.monotonic() + options.minutes * 60
    print(f"load average before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        folder = pathlib.Path(scratch)
        brokers: dict[str, Any] = commands(cache, folder)
        limits = {"group.share.max.size": 1000, "group.share.max.share.sessions": 2000}
        if "kafka" in brokers:
            brokers["kafka"] += "".join(f" {name}={value}" for name, value in limits.items())
        brokers["kwire"] += "".join(f" -o {name}={value}" for name, value in limits.items())
        brokers = {name: brokers[name] for name in options.broker or brokers}
        worker = java_worker(cache, folder) if "java" in kinds else []
        memory = WarmMemory(scratch, options.warm_gb)
        for number in range(options.rounds):
            if time.monotonic() > ends_s:
                break
            for name in list(brokers) if number % 2 == 0 else reversed(list(brokers)):
                memory.fill()
                broker = Broker(name, brokers[name], logs / f"{name}-share.log")
                try:
                    one = Run(broker, tools, worker, options.gigabytes)
                    for kind, figures in one.figures(kinds):
                        rows.setdefault(kind, {}).setdefault(name, []).append(figures)
                        print(f"round {number + 1} {name:8} {kind:18} {figures}", flush=True)
                finally:
                    broker.stop()
    for kind, by_broker in summarise(rows, next(iter(brokers))).items():
        for name, figures in by_broker.items():
            print(f"{kind:18} {name:8} {figures}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
