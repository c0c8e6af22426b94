"""The file of an audit log: what it does where it cannot be opened any more."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kwire.node import audit
from kwire.node.audit import AuditFile


def test_a_file_that_cannot_be_opened_anew_closes_no_file_of_others(tmp_path: Path) -> None:
    there, away = tmp_path / "there", tmp_path / "away"
    there.mkdir()
    file = AuditFile(str(there / "audit.log"))
    file.open()
    file.write("one\n")
    there.rename(away)
    with pytest.raises(FileNotFoundError):
        file.write("two\n")
    others = [os.open(tmp_path / f"other{number}", os.O_RDWR | os.O_CREAT) for number in range(8)]
    with pytest.raises(FileNotFoundError):
        file.write("three\n")
    for number, descriptor in enumerate(others):
        assert os.fstat(descriptor).st_ino == (tmp_path / f"other{number}").stat().st_ino
    away.rename(there)
    file.write("four\n")
    assert (there / "audit.log").read_text() == "one\nfour\n"
    for descriptor in others:
        assert os.fstat(descriptor).st_size == 0
        os.close(descriptor)


def test_a_file_that_cannot_be_looked_up_any_more_is_written_on(tmp_path: Path) -> None:
    """Its descriptor is open: no line is lost for it."""
    there, away = tmp_path / "there", tmp_path / "away"
    there.mkdir()
    file = AuditFile(str(there / "audit.log"))
    file.open()
    there.rename(away)
    there.write_text("is no directory")
    file.write("one\n")
    assert (away / "audit.log").read_text() == "one\n"


def test_a_line_that_a_full_disk_has_cut_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(str(path))
    file.open()
    write = os.write
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda fd, data: write(fd, data[:4]) if data[4:] else _full())
        with pytest.raises(OSError, match="No space"):
            file.write('{"one": 1}\n')
    assert path.read_text() != '{"one": 1}\n'
    file.write('{"two": 2}\n')
    file.write('{"three": 3}\n')
    assert path.read_text().splitlines()[1:] == ['{"two": 2}', '{"three": 3}']


def _full() -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_line_that_a_killed_process_has_left_unfinished_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text('{"one": 1}\n{"tw')
    file = AuditFile(str(path))
    file.open()
    file.write('{"three": 3}\n')
    assert path.read_text().splitlines() == ['{"one": 1}', '{"tw', '{"three": 3}']


def test_a_pipe_that_nobody_reads_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "PIPE_FULL_S", 0.01)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    file = AuditFile(str(path))
    with pytest.raises(OSError, match="No such device"):
        file.open()
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    file.open()
    file.write("one\n")
    assert os.read(reader, 10) == b"one\n"
    with pytest.raises(BlockingIOError):
        file.write("two\n" * 100_000)  # more than a pipe holds
    os.close(reader)
