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
from kwire.kraft.metadata_log import MetadataLog, metadata_log_config
from kwire.log.directories.directory import METADATA_PARTITION
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.log.recovery.known_logs import KnownLog
from kwire.testing import Broker, BrokerFailed
from kwire.testing.snapshots import Snapshot
from tests.support.held_logs import held

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


def held_of_metadata(data: Path, known: KnownLog | None) -> dict[str, object]:
    """An opening from the files reads all of them, and removes what is told of producers: nothing.
    So both have loaded everything, and that is left out."""
    log = MetadataLog.open(str(data), metadata_log_config(), StillClock(), known=known).log
    held(log)
    found = held(log)
    assert found["producers"] == []
    log.abandon()
    return {name: value for name, value in found.items() if name != "snapshots"}


def both_ways(taken: Snapshot, tmp_path: Path) -> tuple[dict[object, object], dict[object, object]]:
    found = []
    for number, known in enumerate(({}, dict(taken.going_on.logs))):
        data = tmp_path / str(number)
        shutil.copytree(taken.directory / "data", data)
        manager = opened(data, known)
        found.append({(log.topic, log.partition): held(log) for log in manager.logs()})
        found[-1][METADATA_PARTITION] = held_of_metadata(data, known.get(METADATA_PARTITION))
        manager.abandon()
    return found[0], found[1]


def test_a_known_log_is_the_one_that_its_files_hold(broker: Broker, tmp_path: Path) -> None:
    still_open = fill(broker)
    logs = {path.name for path in broker.directory.glob("*-0")}
    for round_number in itertools.count(1):
        taken = broker.snapshot()
        known = taken.going_on.logs
        assert {f"{topic}-{number}" for topic, number in known} == logs
        assert known["many", 0].segments[0].size_bytes
        assert len(known["many", 0].segments) > 2
        assert known["cut", 0].log_start_offset == 50
        assert any(one.has_transaction_index for one in known["ended", 0].segments)
        read, told = both_ways(taken, tmp_path / str(round_number))
        assert told == read
        assert len(read) == len(logs)
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
        assert taken.going_on.logs["orders", 0].epochs == ((0, 0),)


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


def test_a_snapshot_into_which_somebody_else_has_written_is_refused(broker: Broker) -> None:
    """A file that both share was damaged by hand: nothing of the restore happens. One that was
    put in the place of the broker's is no harm."""
    broker.topic("orders").send("first")
    taken = broker.snapshot()
    log = broker.directory / "orders-0" / "00000000000000000000.log"
    content = log.read_bytes()
    log.unlink()
    log.write_bytes(content[:-3])
    broker.restore(taken)
    broker.topic("orders").assert_records("first")
    with log.open("r+b") as file:
        file.truncate(len(content) - 3)
    line = "the snapshot is not what it was: orders-0/00000000000000000000.log, which it shares"
    with pytest.raises(BrokerFailed, match=line):
        broker.restore(taken)
    assert broker.is_running
