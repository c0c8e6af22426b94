"""Directories, pipes, devices and links where files of a log directory should be.

A start waited for a pipe for ever, read from a device without an end, or took the whole log
directory offline for a link to nowhere; a directory was met when the file was next written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.checkpoint_format import parse_checkpoint
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.manager import LogManager
from kwire.log.files import SystemFiles
from kwire.log.partition.config import LogConfig
from tests.support.logs import client_batch, read_all

TOPIC_ID = bytes(range(1, 17))
CONFIG = LogConfig(
    segment_bytes=300, index_interval_bytes=100, message_timestamp_after_max_ms=1 << 62
)


def _directory(path: Path) -> None:
    path.mkdir()
    (path / "something").write_bytes(b"1")


STRANGE: dict[str, Callable[[Path], None]] = {
    "directory": _directory,
    "pipe": os.mkfifo,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nowhere": lambda path: path.symlink_to("/nowhere/at/all"),
    "endless device": lambda path: path.symlink_to("/dev/zero"),
}
KINDS = pytest.mark.parametrize("kind", sorted(STRANGE))


def _start(path: Path) -> LogManager:
    manager = LogManager(
        [str(path)], SystemClock(), SeededRandom(1), config_of=lambda topic: CONFIG
    )
    manager.open_directories()
    manager.load_all()
    return manager


def _fill(path: Path) -> list[int]:
    """A directory with a log of several segments, stopped cleanly; the segments' bases."""
    manager = _start(path)
    log = manager.create("topic", 0, TOPIC_ID)
    for at in range(12):
        log.append_as_leader(
            client_batch(3, producer_id=7, producer_epoch=0, base_sequence=3 * at), leader_epoch=0
        )
    bases = log.segments.bases
    assert len(bases) > 3
    manager.shutdown()
    return bases


def _replace(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    STRANGE[kind](path)


@KINDS
@pytest.mark.parametrize(
    "name",
    ["{1}.index", "{1}.timeindex", "{1}.txnindex", "{2}.snapshot", "leader-epoch-checkpoint",
     "leader-epoch-checkpoint.tmp", "partition.metadata.tmp", "{1}.log.cleaned"],
)  # fmt: skip
def test_beside_a_log_they_are_set_aside(
    name: str, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bases = _fill(tmp_path)
    path = tmp_path / "topic-0" / name.format(*(f"{base:020d}" for base in bases))
    _replace(path, kind)
    manager = _start(tmp_path)
    (log,) = manager.logs()
    assert f"{path} is no plain file" in caplog.text
    assert os.path.lexists(f"{path}.quarantine")
    assert [offset for offset, _ in read_all(log)] == list(range(36))
    log.assign_epoch(1)
    for _ in range(4):
        log.append_as_leader(client_batch(3), leader_epoch=1)
    manager.shutdown()
    assert [offset for offset, _ in read_all(_start(tmp_path).logs()[0])] == list(range(48))


@KINDS
@pytest.mark.parametrize("at", [0, 1, -1])
def test_in_place_of_a_segment_they_are_set_aside_and_the_rest_is_served(
    at: int, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bases = _fill(tmp_path)
    path = tmp_path / "topic-0" / f"{bases[at]:020d}.log"
    _replace(path, kind)
    lost = range(bases[at], [*bases, 36][bases.index(bases[at]) + 1])
    manager = _start(tmp_path)
    (log,) = manager.logs()
    assert f"{path} is no plain file" in caplog.text
    log.assign_epoch(1)
    assert [o for o, _ in read_all(log)] == [o for o in range(36) if o not in lost]
    assert log.append_as_leader(client_batch(1), leader_epoch=1).base_offset == 36
    manager.shutdown()


@KINDS
@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint.tmp",
     "replication-offset-checkpoint", "cleaner-offset-checkpoint", ".kafka_cleanshutdown"],
)  # fmt: skip
def test_beside_the_logs_they_are_set_aside(name: str, kind: str, tmp_path: Path) -> None:
    _fill(tmp_path)
    _replace(tmp_path / name, kind)
    manager = _start(tmp_path)
    assert [offset for offset, _ in read_all(manager.logs()[0])] == list(range(36))
    assert os.path.lexists(tmp_path / f"{name}.quarantine")
    manager.shutdown()
    content = (tmp_path / "recovery-point-offset-checkpoint").read_bytes()
    assert parse_checkpoint(content) == {("topic", 0): 36}


@pytest.mark.parametrize("kind", ["directory", "pipe", "endless device", "link to itself"])
@pytest.mark.parametrize("name", ["meta.properties", "topic-0/partition.metadata"])
def test_in_place_of_what_cannot_be_made_anew_they_are_refused_in_one_line(
    name: str, kind: str, tmp_path: Path
) -> None:
    _fill(tmp_path)
    _replace(tmp_path / name, kind)
    with pytest.raises(LogDirectoryError, match=name) as caught:
        _start(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_read_in_pieces_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems of a network or of a process answer a read with less before the end, too."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    read, sizes = os.read, []

    def short(handle: int, size_bytes: int) -> bytes:
        sizes.append(size_bytes)
        return read(handle, min(size_bytes, 30))

    monkeypatch.setattr(os, "read", short)
    assert SystemFiles().read_file(str(path)) == bytes(range(100))
    assert len(sizes) == 4, "the end is known by the size"
