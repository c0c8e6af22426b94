"""A log that is opened by what is known of its files is the one that is read from them.

The topics differ in what opening has to find out: segments, indexes of time and transactions,
producers, epochs, starts that were moved, compaction. Both are compared in all they hold, and in
what they load later.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kwire.clock import SystemRandom
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.log.partition.leader_epochs import parse_epochs
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog
from kwire.testing import Broker
from kwire.testing.snapshots import Snapshot

SMALL = {"segment.bytes": 1_048_576, "index.interval.bytes": 200}
NOW_MS = 2_000_000_000_000


class StillClock:
    """Logs opened one after the other have the same time."""

    def wall_ms(self) -> int:
        return NOW_MS

    def monotonic_ns(self) -> int:
        return 0


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def transaction(broker: Broker, topic: str, values: list[str], *, ends: str = "commit") -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic} {ends}"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.flush()
    if ends == "commit":
        producer.commit_transaction()
    elif ends == "abort":
        producer.abort_transaction()
    return producer


def fill(broker: Broker) -> list[Producer]:
    """Producers whose transactions stay open."""
    for name in ("empty", "plain", "ended", "open", "many", "cut", "emptied"):
        broker.topic(name).create(config=SMALL if name in ("many", "cut", "ended") else {})
    broker.topic("keyed").create(config={"cleanup.policy": "compact", **SMALL})
    broker.topic("plain").send_all([f"v{n}" for n in range(20)])
    for name in ("many", "cut"):
        for _ in range(18):
            broker.topic(name).send_all(["x" * 50_000] * 3)
    for number in range(5):
        broker.topic("keyed").send_all([(f"k{number}", "x" * 30_000)] * 12)
    broker.topic("emptied").send_all(["a", "b"])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    ends = {"cut": 50, "emptied": 2}
    asked = [TopicPartition(name, 0, offset) for name, offset in ends.items()]
    for future in admin.delete_records(asked).values():
        future.result(30)
    for how in ("commit", "abort"):
        transaction(broker, "ended", ["x" * 90_000] * 9, ends=how)
    idempotent = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(7):
        idempotent.produce("plain", b"%d" % number)
        idempotent.flush()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("plain", 0, 3)], asynchronous=False)
    consumer.close()
    return [transaction(broker, "open", ["a", "b"], ends="")]


def opened(data: Path, known: dict[tuple[str, int], KnownLog]) -> LogManager:
    manager = LogManager(
        [str(data)], StillClock(), SystemRandom(), config_of=lambda topic: LogConfig()
    )
    manager.known_logs = known
    manager.open_directories()
    manager.load_all()
    return manager


def held(log: PartitionLog) -> dict[str, object]:
    """What a log holds that was just opened, then what its parts load."""
    local, producers = log.local, log.producers
    found: dict[str, object] = {
        "offsets": (
            log.log_start_offset,
            log.local_log_start_offset,
            log.next_offset,
            log.log_end_offset,
            log.high_watermark,
            log.last_stable_offset,
        ),
        "id": log.topic_id,
        "written": (local.written_offset, local.recovery_point, local.truncations),
        "to sync": (
            local.has_new_files,
            local.unsynced_segments,
            local.unfinished,
            local.epoch_file.is_unsynced,
            log._promised_end,
        ),
        "epochs": (log.leader_epochs.entries, log.leader_epochs.latest_saved),
        "snapshots": local.snapshots.offsets,
        "jitter": local.jitter_share,
        "producers": [
            (
                one.producer_id,
                one.epoch,
                one.batches,
                one.coordinator_epoch,
                one.last_timestamp,
                one.transaction_first_offset,
            )
            for one in producers.entries.values()
        ],
        "unstable": (producers.first_unstable_offset, producers._ongoing, producers._unreplicated),
    }
    for one in log.segments:
        found[f"segment {one.base_offset}"] = (
            one.size_bytes,
            one.assigned_bytes,
            one.created_ms,
            one.is_sealed,
            one.is_full,
            one.bytes_since_index,
            one.has_transaction_index,
            one._max_timestamp,
            one._offset_of_max_timestamp,
            one._allocated_bytes,
        )
    for one in log.segments:
        found[f"loaded {one.base_offset}"] = (
            list(one.index.offsets),
            list(one.index.positions),
            one.index._persisted,
            one.index._exact,
            one.index._allocated,
            one.time_index.last_timestamp,
            one.max_timestamp,
            one.offset_of_max_timestamp,
            one.aborted_transactions(),
        )
    return found


def both_ways(taken: Snapshot, tmp_path: Path) -> tuple[dict[object, object], dict[object, object]]:
    found = []
    for number, known in enumerate(({}, dict(taken.going_on.logs))):
        data = tmp_path / str(number)
        shutil.copytree(taken.directory / "data", data)
        manager = opened(data, known)
        found.append({(log.topic, log.partition): held(log) for log in manager.logs()})
        manager.abandon()
    return found[0], found[1]


def test_a_known_log_is_the_one_that_its_files_hold(broker: Broker, tmp_path: Path) -> None:
    still_open = fill(broker)
    logs = {path.name for path in broker.directory.glob("*-0")} - {"__cluster_metadata-0"}
    for round_number in itertools.count(1):
        taken = broker.snapshot()
        known = taken.going_on.logs
        # Their epoch begins at the end: the first opening gives it up.
        unknown = {"emptied-0", "empty-0"} if round_number == 1 else set()
        assert {f"{topic}-{number}" for topic, number in known} == logs - unknown
        assert known["many", 0].segments[0].size_bytes
        assert len(known["many", 0].segments) > 2
        assert known["cut", 0].log_start_offset == 50
        assert any(one.has_transaction_index for one in known["ended", 0].segments)
        read, told = both_ways(taken, tmp_path / str(round_number))
        assert told == read
        if round_number == 2:
            break
        broker.restore(taken)  # what is known of logs that were opened so is right as well
        broker.topic("plain").send("more")
    assert broker.topic("plain").end_offsets() == {0: 28}
    del still_open


def test_an_epoch_without_batches_is_not_among_what_is_known(broker: Broker) -> None:
    """An epoch that has begun and has no batch yet is not in the file."""
    broker.topic("orders").send("a")
    broker.restart()
    with broker.snapshot() as taken:
        assert parse_epochs(taken.going_on.logs["orders", 0].epochs) == [(0, 0)]


def test_only_what_has_changed_is_put_back(broker: Broker) -> None:
    """By restores of one topic of three, of all, and by one of what has not changed."""
    topics = [broker.topic(name) for name in ("a", "b", "c")]
    for topic in topics:
        topic.send("first")

    def inodes() -> dict[str, int]:
        logs = broker.directory.glob("*-0/*.log")
        return {str(path): path.stat().st_ino for path in logs if path.parent.name[1] == "-"}

    with broker.snapshot() as taken:
        kept = inodes()
        for changed in ([], topics[:1], topics, []):
            for topic in changed:
                topic.send("second")
            others = broker.topic("other")
            if changed:
                others.send("new")
                assert inodes() != kept
            broker.restore(taken)
            assert inodes() == kept
            assert "other" not in broker.topics()
            for topic in topics:
                topic.assert_records("first")
