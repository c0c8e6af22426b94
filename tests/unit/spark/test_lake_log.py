"""The commit log of a lake: what is there after a kill at any point, and with two writers."""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwire.log.files import write_atomically
from kwire.spark import lake_files
from kwire.spark.lake_files import FileInfo, LocalLakeFiles, open_lake_files
from kwire.spark.lake_log import RECORDS, STATE_EVERY, Commit, DataFile, LakeLog, LakeState
from kwire.spark.maintenance import OldFile, expired
from kwire.spark.usage import FinalError

DAY_MS = 86_400_000


def data_file(
    name: str, *, first: int = 0, size: int = 100, date: str = "2026-01-01", day: int = 0
) -> DataFile:
    path, first_ms = f"topic=t/date={date}/partition=0/{name}", day * DAY_MS + first
    return DataFile(path, RECORDS, "t", date, 0, 10, size, first, first + 9, first_ms, first_ms + 9)


def opened(path: Path, session: str, writer: str = "w") -> LakeLog:
    log = LakeLog(LocalLakeFiles(str(path)), writer, session)
    log.open(1)
    return log


def append(log: LakeLog, start: int, count: int = 10) -> None:
    log.commit(
        log.new_commit(
            "append",
            2,
            add=[data_file(f"f{start}", first=start)],
            offsets={("t", 0): start + count},
        )
    )


def test_a_state_is_a_function_of_its_commits(tmp_path: Path) -> None:
    log = opened(tmp_path, "s1")
    for batch in range(2 * STATE_EVERY + 3):
        append(log, batch * 10)
    log.commit(log.new_commit("compact", 5, add=[data_file("c")], remove=[data_file("f0").path]))
    again = LakeLog(LocalLakeFiles(str(tmp_path)))
    again.load()
    assert vars(again.state) == vars(log.state)
    for state in (tmp_path / "_kwire" / "states").iterdir():
        state.write_bytes(state.read_bytes()[:20])  # damaged: the commits are enough
    third = LakeLog(LocalLakeFiles(str(tmp_path)))
    third.load()
    assert vars(third.state) == vars(log.state)
    assert third.state.removed == {data_file("f0").path: 5}
    assert LakeState.decode(log.state.encode()).files == log.state.files


def test_an_older_session_cannot_commit_any_more(tmp_path: Path) -> None:
    old = opened(tmp_path, "s1")
    append(old, 0)
    new = opened(tmp_path, "s2")
    with pytest.raises(FinalError, match="taken over"):
        append(old, 10)
    append(new, 10)
    with pytest.raises(FinalError, match="taken over"):
        append(old, 10)
    assert new.load().offsets == {("t", 0): 20}


def test_writers_of_other_names_go_on_beside_each_other(tmp_path: Path) -> None:
    first, second = opened(tmp_path, "a", "one"), opened(tmp_path, "b", "two")
    append(first, 0)
    second.commit(second.new_commit("append", 3, add=[data_file("x", first=50)]))
    append(first, 10)
    assert sorted(first.state.files) == sorted(data_file(n).path for n in ("f0", "f10", "x"))
    assert second.load().files == first.state.files


def test_a_check_sees_what_others_have_committed(tmp_path: Path) -> None:
    first, second = opened(tmp_path, "a", "one"), opened(tmp_path, "b", "two")
    append(first, 0)

    def unmoved(state: LakeState) -> None:
        if ("t", 0) in state.offsets:
            raise FinalError("moved")

    with pytest.raises(FinalError, match="moved"):
        second.commit(second.new_commit("append", 3, offsets={("t", 0): 10}), unmoved)


class KilledError(BaseException):
    """kill -9: nothing runs after it."""


class KillingFiles(LocalLakeFiles):
    """Files of a process that is killed at its n-th write, before or behind it."""

    def __init__(self, root: str, writes: int, behind: bool) -> None:
        super().__init__(root)
        self._left = writes
        self._behind = behind

    def create(self, path: str, data: bytes) -> bool:
        self._left -= 1
        if self._left < 0:
            raise KilledError
        if self._left == 0 and not self._behind:
            raise KilledError
        done = super().create(path, data)
        if self._left == 0:
            raise KilledError
        return done


def archive_all(files: LocalLakeFiles, session: str, end: int) -> None:
    """What a job does with its log: a batch of ten offsets at a time."""
    log = LakeLog(files, "w", session)
    log.open(1)
    while (start := log.state.offsets.get(("t", 0), 0)) < end:
        file = data_file(f"w.{session}.{start:06d}-0.parquet", first=start)
        log.commit(log.new_commit("append", 2, add=[file], offsets={("t", 0): start + 10}))


@settings(deadline=None, max_examples=40)
@given(kills=st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=6))
def test_killed_anywhere_nothing_is_twice_and_nothing_missing(
    kills: list[tuple[int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("lake")
    for number, (writes, behind) in enumerate(kills):
        try:
            archive_all(KillingFiles(str(root), writes, behind), f"s{number}", 100)
        except KilledError:
            continue
    archive_all(LocalLakeFiles(str(root)), "last", 100)
    files = LakeLog(LocalLakeFiles(str(root))).load().files.values()
    found = [at for file in files for at in range(file.first_offset, file.last_offset + 1)]
    assert sorted(found) == list(range(100))


def test_a_file_is_created_once_and_whole(tmp_path: Path) -> None:
    files = open_lake_files(f"file:{tmp_path}/lake")
    assert files.create("a/b.json", b"one")
    assert not files.create("a/b.json", b"two")
    assert files.read("a/b.json") == b"one"
    assert files.read("a/none") is None
    assert files.names("a") == ["b.json"]
    assert list(files.walk("")) == [FileInfo("a/b.json", 3)]
    files.delete(["a/b.json", "a/none"])
    assert files.names("") == []
    with pytest.raises(ValueError, match="session"):
        open_lake_files("s3a://bucket/lake")


def test_processes_with_one_number_write_drafts_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers on one volume often have: one's commit had the other's content, and counted for
    both of them. A batch was lost without a word."""
    has_written, may_write, may_link = threading.Event(), threading.Event(), threading.Event()

    def in_turn(files: Any, path: str, data: bytes) -> None:
        if data == b"one":
            write_atomically(files, path, data)
            may_write.set()
            has_written.wait(60)
        else:
            may_write.wait(60)
            write_atomically(files, path, data)
            has_written.set()
            may_link.wait(60)

    monkeypatch.setattr(lake_files, "write_atomically", in_turn)
    logs = LocalLakeFiles(str(tmp_path)), LocalLakeFiles(str(tmp_path))
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(logs[1].create, "commits/1.json", b"two")
        try:
            assert logs[0].create("commits/1.json", b"one")
        finally:
            may_write.set()
            may_link.set()
        assert not second.result()
    assert logs[0].read("commits/1.json") == b"one"
    assert [path.name for path in (tmp_path / "commits").iterdir()] == ["1.json"]


def test_a_lake_of_another_format_is_refused() -> None:
    data = Commit("open", "w", "s", 1).encode().replace(b'"format": 1', b'"format": 2')
    with pytest.raises(FinalError, match="format"):
        Commit.decode(data)


def with_files(files: Iterable[DataFile]) -> LakeState:
    state = LakeState()
    state.files = {file.path: file for file in files}
    return state


def test_retention_takes_old_files_then_the_oldest_over_the_size() -> None:
    """Years of more than four digits are later than others, though not as text."""
    day_ms = 20_455 * DAY_MS
    files = [
        OldFile(day_ms - 1, "a", 100, 0),
        OldFile(day_ms + 5, "b", 100, 1),
        OldFile(day_ms + 1, "c", 100, 0),
        OldFile(20_370_370 * DAY_MS, "d", 100, 0),
    ]

    def names(before_ms: int | None, size_bytes_max: int | None) -> list[str]:
        return [file.path for file in expired(files, before_ms, size_bytes_max)]

    assert names(day_ms, None) == ["a"]
    assert names(None, 250) == ["a", "c"]
    assert names(day_ms, 250) == ["a", "c"]
    assert names(None, None) == []
    assert names(None, 0) == ["a", "c", "b", "d"]


def test_a_full_disk_leaves_no_draft_of_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LocalLakeFiles(str(tmp_path))
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(files._files, "fdatasync", lambda handle: (_ for _ in ()).throw(full))
    with pytest.raises(OSError, match="No space"):
        files.create("a/b.json", b"one")
    assert list((tmp_path / "a").iterdir()) == []


GARBAGE = (
    *(b"", b'{"format": 1, "action": "op', b"\0" * 300, b"[]", b"null", b"7", b"{}"),
    *(b'{"format": 1}', b'{"format": 1, "add": [[]], "offsets": []}', b"[" * 100_000),
    b'{"format": 1, "add": [], "offsets": [], "more": 1}',
)


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_a_damaged_commit_is_named(tmp_path: Path, data: bytes) -> None:
    """It was an error of the JSON reader, without a word of where."""
    log = opened(tmp_path, "s1")
    append(log, 0)
    append(log, 10)
    damaged = tmp_path / "_kwire" / "commits" / f"{1:020d}.json"
    damaged.write_bytes(data)
    with pytest.raises(FinalError, match=f"{damaged} is damaged"):
        opened(tmp_path, "s2")
    with pytest.raises(FinalError, match=f"{damaged} is damaged"):
        LakeLog(LocalLakeFiles(str(tmp_path))).load()


def test_a_commit_that_is_missing_is_named(tmp_path: Path) -> None:
    """A session went on in the gap: with old offsets, and what it committed hid the others."""
    log = opened(tmp_path, "s1")
    for batch in range(4):
        append(log, batch * 10)
    missing = tmp_path / "_kwire" / "commits" / f"{2:020d}.json"
    missing.unlink()
    with pytest.raises(FinalError, match=f"{missing} is missing"):
        opened(tmp_path, "s2")
    assert not missing.exists()


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_a_damaged_state_is_made_again_from_the_commits(tmp_path: Path, data: bytes) -> None:
    log = opened(tmp_path, "s1")
    for batch in range(STATE_EVERY):
        append(log, batch * 10)
    (state,) = (tmp_path / "_kwire" / "states").iterdir()
    for damaged in (data, gzip.compress(data), gzip.compress(data)[:-9] + b"x" * 9):
        state.write_bytes(damaged)
        again = LakeLog(LocalLakeFiles(str(tmp_path)))
        assert vars(again.load()) == vars(log.state)


def test_a_commit_counts_though_the_state_behind_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session took a batch that was committed for one that was not."""
    log = opened(tmp_path, "s1")
    create = log.files.create

    def on_a_full_disk(path: str, data: bytes) -> bool:
        if path.startswith("_kwire/states"):
            raise OSError(28, "No space left on device")
        return create(path, data)

    monkeypatch.setattr(log.files, "create", on_a_full_disk)
    for batch in range(STATE_EVERY + 1):
        append(log, batch * 10)
    again = LakeLog(LocalLakeFiles(str(tmp_path)))
    assert vars(again.load()) == vars(log.state)


HOLDER = """
import sys
from kwire.spark.lake_files import LocalLakeFiles
files = LocalLakeFiles(sys.argv[1])
print(files.hold("note"), flush=True)
sys.stdin.read()
"""


def test_a_file_is_kept_to_a_process_until_it_ends(tmp_path: Path) -> None:
    """Two replays with the same id at a time sent everything twice."""
    files = LocalLakeFiles(str(tmp_path))
    files.create("note", b"{}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "None\n"
        assert files.hold("note") == other.pid
        other.kill()
    assert files.hold("note") is None
    assert files.hold("note") is None
