"""Any file of a data directory may be garbage: a start repairs and says so, or refuses in one line.

Files of Apache Kafka's directories are flipped, cut, extended, replaced and removed at random.
After a start every partition takes a batch and gives it back; a second start agrees with the first.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.manager import LogManager
from kwire.log.partition.config import LogConfig
from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from tests.support import data_directories as golden
from tests.support.effort import seeds

NAMES = ("clean", "killed")
Sources = dict[str, tuple[Path, dict[str, Any]]]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return {
        name: (golden.unpack(name, tmp_path_factory.mktemp(name)), golden.expected(name))
        for name in NAMES
    }


def _copy(source: Path, target: Path, draw: random.Random) -> list[Path]:
    """Four partitions and the files of the directory; all of the copy's files."""
    target.mkdir()
    partitions = [p for p in sorted(source.iterdir()) if p.is_dir() and "metadata" not in p.name]
    for partition in draw.sample(partitions, 4):
        shutil.copytree(partition, target / partition.name)
    for file in sorted(source.iterdir()):
        if file.is_file():
            shutil.copy(file, target / file.name)
    return sorted(p for p in target.rglob("*") if p.is_file())


def _damage(file: Path, draw: random.Random) -> str:
    file.chmod(0o644)
    data = bytearray(file.read_bytes())
    kind = draw.choice(["flip", "overwrite", "cut", "extend", "replace", "zero", "remove"])
    if kind == "flip" and data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind == "overwrite" and data:
        at = draw.randrange(len(data))
        data[at : at + draw.randint(1, 40)] = draw.randbytes(draw.randint(1, 40))
    elif kind == "cut":
        del data[draw.randrange(len(data) + 1) :]
    elif kind == "extend":
        data += draw.randbytes(draw.randint(1, 200))
    elif kind == "replace":
        data[:] = draw.randbytes(draw.randint(0, 300))
    elif kind == "zero":
        data[:] = bytes(len(data))
    if kind == "remove":
        file.unlink()
    else:
        file.write_bytes(data)
    return f"{kind} {file.parent.name}/{file.name}"


def _start(path: Path, facts: dict[str, Any]) -> LogManager:
    manager = LogManager(
        [str(path)],
        SystemClock(),
        SeededRandom(1),
        config_of=lambda topic: (
            golden.config_of(facts, topic) if topic in facts["topics"] else LogConfig()
        ),
    )
    manager.open_directories()
    try:
        manager.load_all()
    except LogDirectoryError:
        manager.abandon()
        raise
    return manager


def _quietly(work: Any) -> None:
    """Damage below the recovery point that nobody has looked at yet may show when it is read."""
    try:
        work()
    except KafkaError as error:
        assert error.code in (  # noqa: PT017
            ErrorCode.CORRUPT_MESSAGE,
            ErrorCode.INVALID_RECORD,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            ErrorCode.RECORD_LIST_TOO_LARGE,
        ), error


def _use(manager: LogManager) -> dict[str, int]:
    ends = {}
    now_ms = manager.clock.wall_ms()
    for log in manager.logs():
        log.update_high_watermark(log.log_end_offset)
        for isolation in (Isolation.LOG_END, Isolation.COMMITTED):
            _quietly(lambda log=log, isolation=isolation: golden.batches(log, isolation))
        _quietly(lambda log=log: golden.records(log))
        for timestamp in (0, 1_700_086_400_000, 1 << 60):
            _quietly(lambda log=log, t=timestamp: log.offset_for_timestamp(t))
        _quietly(log.max_timestamp_offset)
        batch = memoryview(build_batch([Record(0, now_ms, b"key", b"value")]))
        info = log.append_as_leader(batch, leader_epoch=1000)
        slices: Any = log.read(info.base_offset, 1000)
        assert slices.next_offset == info.base_offset + 1 == log.log_end_offset
        ends[log.name] = log.log_end_offset
    return ends


@pytest.mark.parametrize("seed", seeds(60))
def test_damaged_files(seed: int, sources: Sources, tmp_path: Path) -> None:
    draw = random.Random(seed)
    source, facts = sources[draw.choice(NAMES)]
    path = tmp_path / "data"
    files = _copy(source, path, draw)
    done = [_damage(file, draw) for file in draw.sample(files, draw.randint(1, 4))]
    try:
        manager = _start(path, facts)
    except LogDirectoryError as error:
        text = str(error)
        assert "\n" not in text
        assert str(path) in text, done
        return
    ends = _use(manager)
    manager.shutdown()
    again = _start(path, facts)
    assert {log.name: log.log_end_offset for log in again.logs()} == ends, done
    again.shutdown()
