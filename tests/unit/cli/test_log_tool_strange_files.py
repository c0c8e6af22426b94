"""`kwire log` on what may lie in a directory beside files of a log: never a hang, never silence."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kwire.cli.main import main
from kwire.log.files import WHOLE_BYTES_MAX, SystemFiles
from kwire.log.tools.dumping import dump, stats
from kwire.log.tools.verification import verify
from kwire.protocol.records import Record, build_batch

ACTIONS = ("verify", "dump", "stats")
NAME = f"{0:020d}"


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition with one whole segment."""
    path = tmp_path / "topic-0"
    path.mkdir()
    (path / f"{NAME}.log").write_bytes(build_batch([Record(0, 1, b"k", b"v")], leader_epoch=0))
    (path / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    (path / f"{NAME}.index").write_bytes(b"")
    (path / f"{NAME}.timeindex").write_bytes(b"")
    return path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["log", *arguments])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_partition_is_whole(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, "verify", str(partition))
    assert (status, out.split(",")[2]) == (0, " 0 faults")


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", ["notes.txt", f"{NAME}.log.gz", "0.log", "x"])
def test_a_file_that_is_none_of_a_log_is_not_called_whole(
    action: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(b"anything")
    status, out, err = _run(capsys, action, str(tmp_path / name))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "is no file of a log" in err


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", ["pipe", f"{NAME}.log", f"{NAME}.index"])
def test_a_pipe_is_not_waited_for(
    action: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / name)
    status, out, err = _run(capsys, action, str(tmp_path / name))
    assert (status, out) == (2, "")
    assert "is no file and no directory" in err
    (tmp_path / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    assert _run(capsys, action, str(tmp_path))[0] == 0


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("path", ["", "missing", "/dev/null", "/dev/zero"])
def test_paths_that_are_nothing_to_look_at(
    action: str, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = _run(capsys, action, path)
    assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("action", ACTIONS)
def test_links_in_circles_are_walked_once(
    action: str, partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _run(capsys, action, "--json", str(partition.parent))
    (partition / "self").symlink_to(".")
    (partition / "up").symlink_to("..")
    (partition.parent / "again").symlink_to("topic-0")
    (partition / "nowhere").symlink_to("missing")
    status, out, _ = _run(capsys, action, "--json", str(partition.parent))
    assert (status, len(out.splitlines())) == (0, len(before[1].splitlines()))


@pytest.mark.parametrize("name", [f"{NAME}.index", f"{NAME}.snapshot", "leader-epoch-checkpoint"])
def test_a_giant_small_file_is_a_fault_and_ends_nothing(
    name: str, partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.truncate(os.open(partition / name, os.O_RDWR | os.O_CREAT), WHOLE_BYTES_MAX + 1)
    (partition / "quorum-state").write_bytes(b"not JSON")
    status, out, _ = _run(capsys, "verify", str(partition))
    assert status == 1
    assert f"{name}: {WHOLE_BYTES_MAX + 1} bytes are too many for such a file\n" in out
    assert "quorum-state: no JSON" in out
    assert _run(capsys, "verify", str(partition / name))[0] == 1


def test_zeros_without_end_are_not_read(
    partition: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.truncate(partition / f"{NAME}.log", 1 << 33)
    for path in (partition, partition / f"{NAME}.log"):
        status, out, _ = _run(capsys, "verify", str(path))
        assert status == 1
        assert "no record batch, and 8589934" in out


def test_a_name_that_is_no_text(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange = os.fsencode(partition.parent) + b"/bad\xff-0"
    os.rename(os.fsencode(partition), strange)
    log = os.fsdecode(strange) + f"/{NAME}.log"
    Path(log).write_bytes(b"x" * 100)
    status, out, _ = _run(capsys, "verify", str(partition.parent))
    assert status == 1
    assert "bad\\udcff-0" in out
    status, _, err = _run(capsys, "verify", os.fsdecode(strange) + "/missing")
    assert (status, err.count("\n")) == (2, 1)


class _Unreadable(SystemFiles):
    """Files of which some cannot be read."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        self._check(path)
        return super().open(path, create=create, writable=writable)

    def read_file(self, path: str) -> bytes:
        self._check(path)
        return super().read_file(path)

    def listing(self, path: str) -> dict[str, int]:
        self._check(path)
        return super().listing(path)

    def _check(self, path: str) -> None:
        if os.path.basename(path) in self.names:
            raise OSError(errno.EIO, "Input/output error", path)


@pytest.mark.parametrize(
    "name", [f"{NAME}.log", f"{NAME}.index", "quorum-state", "leader-epoch-checkpoint", "topic-0"]
)
def test_what_cannot_be_read_is_named_and_the_rest_is_looked_at(name: str, partition: Path) -> None:
    (partition / "quorum-state").write_bytes(b"{}")
    (partition.parent / "zopic-0").mkdir()
    (partition.parent / "zopic-0" / f"{NAME}.log").write_bytes(b"x" * 100)
    files = _Unreadable(name)
    found = list(verify(str(partition.parent), files))
    assert any(p.path.endswith(name) and "Input/output error" in p.reason for p in found)
    assert any("zopic-0" in p.path for p in found)
    if name != "topic-0":
        assert sum("error" in row for row in dump(str(partition.parent), files)) >= 1
        assert len(list(stats(str(partition.parent), files))) == 2
