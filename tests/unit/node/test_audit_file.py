"""The file of an audit log: what it does where it cannot be opened any more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
