"""A crash after every write, sync, truncation, rename and removal of everything a log does.

Appends, rolls, retention, compaction, deleted records, checkpoints, a deleted topic made anew, a
clean stop: at each call that changes the disk the process is killed, or the power goes. Then the
node starts again, and nothing acknowledged under the stated guarantee is lost, nothing invented:

- killed: everything that was acknowledged is there;
- power loss with `flush.messages=1`: the same;
- of a compacted log: the last acknowledged value of every key, or a later one;
- of a deleted topic: nothing, once the deletion was answered;
- records below a log start that was moved, or given up by retention, may be there or not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import AppendInfo
from kwire.protocol.errors import KafkaError
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.cleaning import CONFIG, CleaningWorld, batches
from tests.support.effort import seeds

CHANGING = {
    "open",
    "pwritev",
    "fdatasync",
    "truncate",
    "rename",
    "unlink",
    "make_directory",
    "remove_directory",
    "sync_directory",
    "set_modified_ms",
}
DELETING = LogConfig(
    segment_bytes=1200, index_interval_bytes=100, retention_bytes=2500, file_delete_delay_ms=500
)
COMPACTING = dataclasses.replace(
    CONFIG, segment_bytes=1200, delete_retention_ms=50, file_delete_delay_ms=500
)
OLD_ID, NEW_ID = bytes(range(1, 17)), bytes(range(2, 18))


class Crash(BaseException):
    """The machine stops at this call: nothing may catch it."""


class Node(CleaningWorld):
    """A node with a log that deletes, one that compacts and a topic that is deleted."""

    def __init__(self, seed: int, flush: bool) -> None:
        self.flush = flush
        self.acknowledged: dict[str, list[tuple[int, bytes, bytes | None]]] = {}
        self.sent: dict[str, dict[int, tuple[bytes, bytes | None]]] = {}
        self.floor: dict[str, int] = {}
        self.metadata: dict[str, bytes] = {}  # what a metadata log would say
        super().__init__(CONFIG, seed=seed, partitions=0)
        self.disk.sync_directory("/")
        self.disk.sync_directory("/data")

    def config_of(self, topic: str) -> LogConfig:
        config = COMPACTING if topic == "compacting" else DELETING
        return dataclasses.replace(config, flush_messages=1) if self.flush else config

    def start(self) -> None:
        super().start(lambda topic, partition: self.metadata.get(topic))

    def put(self, topic: str, key: bytes, value: bytes | None) -> None:
        """Append one record; acknowledged once it is written, and flushed if that is asked for."""
        from kwire.protocol.records import Record, build_batch

        log = self.manager.get(topic, 0)
        assert log is not None
        batch = memoryview(build_batch([Record(0, self.clock.now_ms, key, value)]))
        name = topic + log.topic_id.hex()
        self.sent.setdefault(name, {})[log.next_offset] = (key, value)
        info: AppendInfo = log.append_as_leader(batch, leader_epoch=0)
        self.scheduler.turn()
        assert info.written.done
        assert info.written.error() is None
        self.acknowledged.setdefault(name, []).append((info.base_offset, key, value))
        log.update_high_watermark(log.log_end_offset)

    def create(self, topic: str, topic_id: bytes) -> None:
        self.metadata[topic] = topic_id
        self.manager.create(topic, 0, topic_id, self.config_of(topic))
        self.scheduler.turn()


def work(node: Node) -> None:
    """One life of a node; the order of its calls depends on nothing but this."""
    for topic in ("deleting", "compacting", "doomed"):
        node.create(topic, OLD_ID)
    for step in range(30):
        node.clock.now_ms += 20
        key = b"key-%d" % (step % 4)
        value = None if step % 11 == 10 else b"%03d" % step + bytes(60)
        node.put("compacting", key, value)
        node.put("deleting", key, b"%03d" % step + bytes(100))
        if step < 8:
            node.put("doomed", key, value)
        if step % 9 == 8:
            node.manager.enforce_retention()
            node.cleaner.find_work()
            node.scheduler.turn()
            node.scheduler.advance(600)
        if step == 12:
            before = node.manager.get("deleting", 0)
            assert before is not None
            node.floor["deleting" + OLD_ID.hex()] = 10
            before.delete_records_before(max(10, before.log_start_offset))
            node.manager.checkpoint_log_starts()
        if step == 14:
            del node.metadata["doomed"]
            done = node.manager.delete("doomed", 0)
            node.scheduler.turn()
            assert done.done
            node.create("doomed", NEW_ID)
        if step > 14 and step % 4 == 0:
            node.put("doomed", key, value)
        if step % 7 == 6:
            node.manager.checkpoint_recovery()
            node.manager.checkpoint_high_watermarks()
            node.scheduler.turn()
    node.manager.shutdown(3)


def check(node: Node) -> None:
    """What a start found, against what was acknowledged before."""
    found = {log.topic: log for log in node.manager.logs()}
    for name, acknowledged in node.acknowledged.items():
        topic, topic_id = name[:-32], bytes.fromhex(name[-32:])
        log = found.get(topic)
        if log is None or log.topic_id != topic_id:
            assert node.metadata.get(topic) != topic_id, f"{topic} is gone"
            continue
        assert node.metadata.get(topic) == topic_id, "deleted, yet there"
        rows = rows_of(log)
        for offset, key, value in rows:
            assert node.sent[name].get(offset) == (key, value), f"{topic} {offset} was never sent"
        if topic == "compacting":
            check_last_values(rows, acknowledged, log)
        else:
            start = max(node.floor.get(name, 0), log.log_start_offset)
            there = {offset: (key, value) for offset, key, value in rows}
            missing = [o for o, _, _ in acknowledged if o >= start and o not in there]
            assert not missing, f"{topic}: {missing} were acknowledged"


def check_last_values(
    rows: list[tuple[int, bytes, bytes | None]],
    acknowledged: list[tuple[int, bytes, bytes | None]],
    log: PartitionLog,
) -> None:
    last = {key: (offset, value) for offset, key, value in acknowledged}
    left = {key: offset for offset, key, _ in rows}
    for key, (offset, value) in last.items():
        if value is None:
            continue  # a tombstone may be gone by itself
        assert left.get(key, -1) >= offset, f"the value of {key!r} at {offset} is lost"


def rows_of(log: PartitionLog) -> list[tuple[int, bytes, bytes | None]]:
    from kwire.protocol.records.reading import read_batch

    log.update_high_watermark(log.log_end_offset)
    found = []
    for _, data in batches(log):
        for record in read_batch(data):
            assert record.key is not None
            if record.offset >= log.log_start_offset:
                found.append((record.offset, record.key, record.value))
    return found


def use(node: Node) -> None:
    """The node goes on: appends, compacts, stops and starts again."""
    for topic in ("compacting", "deleting"):
        if node.manager.get(topic, 0) is not None:
            node.put(topic, b"after", b"crash")
    node.cleaner.find_work()
    node.scheduler.turn()
    node.manager.shutdown(4)
    node.start()
    check(node)


def calls_of(flush: bool) -> list[str]:
    node, calls = Node(1, flush), []

    def count(operation: str, path: str) -> None:
        if operation in CHANGING:
            calls.append(f"{operation} {path}")

    node.disk.fault = count
    work(node)
    return calls


def crash_at(at: int, seed: int, flush: bool, happens: Callable[[SimulatedDisk], None]) -> Node:
    node, left = Node(seed, flush), [at]

    def fault(operation: str, path: str) -> OSError | None:
        if operation in CHANGING:
            left[0] -= 1
            if left[0] < 0:
                raise Crash
        return None

    node.disk.fault = fault
    with pytest.raises(Crash):
        work(node)
    node.disk.fault = None
    happens(node.disk)
    node.start()
    return node


def test_the_work_covers_what_it_should() -> None:
    calls = "\n".join(calls_of(True))
    for part in (
        "rename /data/compacting-0/00000000000000000000.log.cleaned",
        "rename /data/compacting-0/00000000000000000000.log.swap",
        "unlink /data/compacting-0/00000000000000000000.log.deleted",
        "rename /data/deleting-0/00000000000000000000.log",
        "unlink /data/deleting-0/00000000000000000000.log.deleted",
        "rename /data/cleaner-offset-checkpoint.tmp",
        "rename /data/recovery-point-offset-checkpoint.tmp",
        "rename /data/log-start-offset-checkpoint.tmp",
        "rename /data/doomed-0",
        "remove_directory /data/doomed-0.",
        "rename /data/.kafka_cleanshutdown.tmp",
    ):
        assert part in calls, part


# In one run a third of the points, each seed another third: `make stress` goes over all of them.
STRIDE = 3
PARTS = 4


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("seed", seeds(1))
def test_a_kill_at_any_change_of_the_disk(seed: int, part: int) -> None:
    points = len(calls_of(False))
    assert points > 400
    for at in range((seed + STRIDE * part) % (STRIDE * PARTS), points, STRIDE * PARTS):
        node = crash_at(at, seed, False, SimulatedDisk.process_killed)
        check(node)
        use(node)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("seed", seeds(1))
def test_a_power_loss_at_any_change_of_the_disk(seed: int, part: int) -> None:
    points = len(calls_of(True))
    for at in range((seed + STRIDE * part) % (STRIDE * PARTS), points, STRIDE * PARTS):
        node = crash_at(at, seed, True, SimulatedDisk.crash)
        check(node)
        use(node)


def test_the_check_notices_a_segment_that_was_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.log.compaction.cleaner.sync_segment", lambda segment: None)
    points = len(calls_of(True))
    failed = 0
    for at in range(points // 2, points, 2):
        try:
            check(crash_at(at, at, True, SimulatedDisk.crash))
        except (AssertionError, KafkaError):
            failed += 1
    assert failed
