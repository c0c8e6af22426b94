"""kwire opens data directories of Apache Kafka 4.4 and finds in them what Kafka finds."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.types import Isolation
from tests.support import data_directories as golden

SETTINGS = ManagerSettings(producer_id_expiration_ms=golden.INT_MAX)
KAFKA_EPOCH = {"clean": 8, "killed": 2}


@pytest.fixture(scope="module", params=["clean", "killed"])
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[LogManager, dict[str, Any], Path]:
    """(manager that has loaded a copy, Kafka's facts, path)."""
    name = request.param
    path = golden.unpack(name, tmp_path_factory.mktemp(name))
    facts = golden.expected(name)
    manager = LogManager(
        [str(path)],
        SystemClock(),
        SeededRandom(1),
        settings=SETTINGS,
        config_of=lambda topic: golden.config_of(facts, topic),
    )
    manager.open_directories()
    manager.load_all()
    for log in manager.logs():
        log.assign_epoch(KAFKA_EPOCH[name])
        log.update_high_watermark(log.log_end_offset)
    yield manager, facts, path
    manager.shutdown()


def _each(
    opened: tuple[LogManager, dict[str, Any], Path],
) -> list[tuple[PartitionLog, dict[str, Any]]]:
    manager, facts, _ = opened
    found = []
    for topic, content in facts["topics"].items():
        for partition, partition_facts in content["partitions"].items():
            log = manager.get(topic, int(partition))
            assert log is not None, f"{topic}-{partition} was not loaded"
            found.append((log, partition_facts))
    assert len(found) == len(manager.logs())
    return found


def test_offsets(opened: Any) -> None:
    for log, facts in _each(opened):
        found = (
            log.log_start_offset,
            log.log_end_offset,
            log.high_watermark,
            log.last_stable_offset,
        )
        assert found == (
            facts["log_start_offset"],
            facts["log_end_offset"],
            facts["high_watermark"],
            facts["last_stable_offset"],
        ), log.name


def test_records(opened: Any) -> None:
    for log, facts in _each(opened):
        assert golden.records(log) == golden.expected_records(facts), log.name


def test_read_committed(opened: Any) -> None:
    for log, facts in _each(opened):
        ranges = facts["read_committed_offsets"]
        offsets = [offset for first, last in ranges for offset in range(first, last + 1)]
        assert golden.committed_offsets(log) == offsets, log.name


def test_list_offsets(opened: Any) -> None:
    for log, facts in _each(opened):
        for query in facts["list_offsets"]:
            found = golden.list_offset(log, query)
            if found is None:
                continue
            if query.get("spec") == "latest":  # the epoch depends on how often Kafka was started
                found[2] = query["leader_epoch"]
            assert found == [query["at"], query["offset"], query["leader_epoch"]], (log.name, query)


def test_producers(opened: Any) -> None:
    for log, facts in _each(opened):
        assert golden.producers(log) == facts["producers"], log.name


# -- the files themselves -------------------------------------------------------------------------


def _files(path: Path) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes()
        for file in sorted(path.iterdir())
        if file.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    }


def _partitions(path: Path) -> list[tuple[str, int]]:
    names = [p.name for p in path.iterdir() if p.is_dir() and p.name != "__cluster_metadata-0"]
    return sorted((n.rpartition("-")[0], int(n.rpartition("-")[2])) for n in names)


def test_recovery_rebuilds_kafkas_indexes_byte_for_byte(tmp_path: Path) -> None:
    """From zero, without any index: what is rebuilt is what Kafka had written.

    The indexes of compacted topics differ: Kafka's cleaner indexes by the chunks it writes.
    """
    path = golden.unpack("clean", tmp_path / "data")
    facts = golden.expected("clean")
    compared = 0
    for topic, partition in _partitions(path):
        directory = path / f"{topic}-{partition}"
        config = golden.config_of(facts, topic)
        before = _files(directory)
        for file in directory.iterdir():
            if file.suffix in (".index", ".timeindex", ".txnindex"):
                file.unlink()
        log = open_log(
            str(directory),
            topic,
            partition,
            bytes(16),
            config,
            SystemClock(),
            producer_expiration_ms=golden.INT_MAX,
        )
        log.close()
        after = _files(directory)
        for name, data in before.items():
            if config.compacts and not name.endswith(".log"):
                continue
            if f"{directory.name}/{name}" in ONE_RUN_DIFFERS:
                continue
            assert after.get(name) == data, f"{directory.name}/{name}"
            compared += 1
    assert compared > 250


ONE_RUN_DIFFERS = {
    # Kafka was restarted while these segments were active: it then counts the bytes since the last
    # index entry anew, so that the entries behind differ from those of one run.
    "epochs-0/00000000000000000000.index",
    "epochs-0/00000000000000000000.timeindex",
    "tx-1/00000000000000000050.index",
    # Snapshots of a stop in the middle of a segment, and one with a producer whose records are
    # too old to be remembered after a replay.
    "epochs-0/00000000000000000032.snapshot",
    "tx-1/00000000000000000051.snapshot",
    "epochs-0/00000000000000000057.snapshot",
}


def test_appending_kafkas_batches_gives_kafkas_files(tmp_path: Path) -> None:
    """A follower that gets Kafka's batches one by one rolls, indexes and snapshots as Kafka did."""
    path = golden.unpack("clean", tmp_path / "data")
    facts = golden.expected("clean")
    compared = 0
    for topic in ("codec-none", "codec-lz4", "by-topic-zstd", "append-time", "large", "rich", "tx"):
        config = golden.config_of(facts, topic)
        source = open_log(
            str(path / f"{topic}-0"), topic, 0, bytes(16), config, SystemClock(), clean=True
        )
        copy = open_log(
            str(tmp_path / f"{topic}-0"),
            topic,
            0,
            bytes(16),
            config,
            SystemClock(),
            producer_expiration_ms=golden.INT_MAX,
        )
        for _, data, _ in golden.batches(source, Isolation.LOG_END):
            copy.append_as_follower(data)
        copy.close()
        source.close()
        theirs, ours = _files(path / f"{topic}-0"), _files(tmp_path / f"{topic}-0")
        for name, data in theirs.items():
            assert ours.get(name) == data, f"{topic}-0/{name}"
            compared += 1
    assert compared > 30


def test_recovered_files_are_those_kafka_recovers(tmp_path: Path) -> None:
    """The directory of a killed Kafka: indexes and transaction indexes after recovery."""
    path = golden.unpack("killed", tmp_path)
    facts = golden.expected("killed")
    manager = LogManager(
        [str(path)],
        SystemClock(),
        SeededRandom(1),
        settings=SETTINGS,
        config_of=lambda topic: golden.config_of(facts, topic),
    )
    manager.open_directories()
    manager.load_all()
    manager.shutdown()
    compared = 0
    for name, file in facts["files_after_recovery"].items():
        if name.startswith("__") or "/" not in name:
            continue
        raw = (path / name).read_bytes() if (path / name).exists() else None
        if file["kind"] in _PARSERS:
            assert raw is not None, name
            base = int(Path(name).name.split(".")[0])
            assert _PARSERS[file["kind"]](raw, base) == file["entries"], name
            compared += 1
        elif file["kind"] == "log":
            assert raw is not None
            assert len(raw) == file["size"], name
            compared += 1
    assert compared > 60


def _index(raw: bytes, base: int) -> list[dict[str, int]]:
    return [
        {"offset": base + offset, "position": position}
        for offset, position in struct.iter_unpack(">ii", raw)
    ]


def _time_index(raw: bytes, base: int) -> list[dict[str, int]]:
    return [
        {"offset": base + offset, "timestamp": timestamp}
        for timestamp, offset in struct.iter_unpack(">qi", raw)
    ]


def _transaction_index(raw: bytes, base: int) -> list[dict[str, int]]:
    return [
        {
            "firstOffset": first,
            "lastOffset": last,
            "lastStableOffset": stable,
            "producerId": producer_id,
            "version": version,
        }
        for version, producer_id, first, last, stable in struct.iter_unpack(">hqqqq", raw)
    ]


_PARSERS: dict[str, Any] = {
    "index": _index,
    "timeindex": _time_index,
    "txnindex": _transaction_index,
}


def test_a_config_of_a_topic_is_read(tmp_path: Path) -> None:
    config = golden.config_of(golden.expected("clean"), "tx")
    assert (config.segment_bytes, config.index_interval_bytes) == (4096, 512)
    assert LogConfig().segment_bytes == 1 << 30
