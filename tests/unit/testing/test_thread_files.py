"""Files of a broker in a thread: what has another name is parted from it before it is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.testing.brokers.copies import copy_file, copy_tree
from kwire.testing.brokers.thread_files import ThreadFiles

CONTENT = b"kept " * 1000


@pytest.fixture
def files() -> ThreadFiles:
    return ThreadFiles(is_synced=False)


def linked(directory: Path) -> tuple[Path, Path]:
    """A file and its other name."""
    own, other = directory / "own", directory / "other"
    own.write_bytes(CONTENT)
    os.link(own, other)
    return own, other


CHANGES: dict[str, Callable[[ThreadFiles, int], object]] = {
    "append": lambda files, handle: files.pwritev(handle, [b"more"], len(CONTENT)),
    "overwrite": lambda files, handle: files.pwritev(handle, [b"more"], 0),
    "cut": lambda files, handle: files.truncate(handle, 10),
    "grow": lambda files, handle: files.truncate(handle, len(CONTENT) + 10),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_name_keeps_what_it_has(files: ThreadFiles, tmp_path: Path, name: str) -> None:
    own, other = linked(tmp_path)
    handle, second = files.open(str(own)), files.open(str(own), writable=False)
    CHANGES[name](files, handle)
    assert other.read_bytes() == CONTENT
    assert own.read_bytes() != CONTENT
    assert files.pread(second, 1 << 20, 0) == own.read_bytes(), "all handles see the change"
    for each in (handle, second):
        files.close(each)


def test_reserved_space_and_times_belong_to_one_name(files: ThreadFiles, tmp_path: Path) -> None:
    own, other = linked(tmp_path)
    before = other.stat()
    files.set_modified_ms(str(own), 1_000_000)
    assert own.stat().st_mtime_ns == 1_000_000 * 1_000_000
    handle = files.open(str(own))
    files.allocate(handle, len(CONTENT), 1 << 20)
    after = other.stat()
    assert (after.st_mtime_ns, after.st_blocks) == (before.st_mtime_ns, before.st_blocks)
    files.close(handle)


def test_a_file_that_was_renamed_is_parted_under_its_new_name(
    files: ThreadFiles, tmp_path: Path
) -> None:
    (tmp_path / "before").mkdir()
    own, _ = linked(tmp_path / "before")
    handle = files.open(str(own))
    files.rename(str(tmp_path / "before"), str(tmp_path / "after"))
    files.rename(str(tmp_path / "after" / "own"), str(tmp_path / "after" / "own.swap"))
    files.pwritev(handle, [b"more"], 0)
    assert (tmp_path / "after" / "other").read_bytes() == CONTENT
    assert (tmp_path / "after" / "own.swap").read_bytes()[:4] == b"more"
    assert sorted(os.listdir(tmp_path / "after")) == ["other", "own.swap"]
    files.close(handle)


def test_links_that_come_later_are_seen(files: ThreadFiles, tmp_path: Path) -> None:
    own = tmp_path / "own"
    handle = files.open(str(own), create=True)
    files.pwritev(handle, [b"first"], 0)
    os.link(own, tmp_path / "other")
    files.links_were_made()
    files.pwritev(handle, [b"later"], 0)
    assert (tmp_path / "other").read_bytes() == b"first"
    assert own.read_bytes() == b"later"
    files.close(handle)


def test_times_that_are_set_leave_no_handle_behind(files: ThreadFiles, tmp_path: Path) -> None:
    own, other = linked(tmp_path)
    handle = files.open(str(own))
    files.set_modified_ms(str(own), 1_000_000)
    files.pwritev(handle, [b"more"], 0)
    assert other.read_bytes() == CONTENT
    assert own.read_bytes()[:4] == b"more"
    files.close(handle)


@pytest.mark.parametrize("is_synced", [True, False])
def test_a_snapshot_between_a_write_and_its_sync_outlives_a_loss_of_power(
    tmp_path: Path, is_synced: bool
) -> None:
    files = ThreadFiles(is_synced=is_synced)
    (tmp_path / "data").mkdir()
    log, index, late = (tmp_path / "data" / name for name in ("log", "index", "late"))
    handles = {path: files.open(str(path), create=True) for path in (log, index, late)}
    for handle in handles.values():
        files.pwritev(handle, [b"kept"], 0)
        files.fdatasync(handle)
    files.pwritev(handles[log], [b" and not synced"], 4)
    files.pwritev(handles[index], [b"XY"], 1)
    files.links_were_made()
    copy_tree(str(tmp_path / "data"), str(tmp_path / "snapshot"), links=True)
    files.pwritev(handles[late], [b" behind it"], 4)
    files.pwritev(handles[index], [b"Z"], 3)
    assert {path: path.read_bytes() for path in handles} == {
        log: b"kept and not synced",
        index: b"kXYZ",
        late: b"kept behind it",
    }
    files.abandon()
    assert files.lose_power() == 3
    assert {path.read_bytes() for path in handles} == {b"kept"}
    kept = {path.name: path.read_bytes() for path in (tmp_path / "snapshot").iterdir()}
    assert kept == {"log": b"kept and not synced", "index": b"kXYt", "late": b"kept"}


def test_copies_have_the_same_bytes_holes_and_modes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "inner").mkdir(parents=True)
    (source / ".lock").write_bytes(b"")
    (source / "inner" / "small").write_bytes(b"small")
    with open(source / "holes", "wb") as file:
        file.write(b"begin")
        file.seek(8 << 20)
        file.write(b"middle")
        file.truncate(20 << 20)
    os.chmod(source / "inner" / "small", 0o400)
    for links in (False, True):
        target = tmp_path / f"target-{links}"
        copy_tree(str(source), str(target), links=links)
        assert sorted(os.listdir(target)) == ["holes", "inner"]
        assert (target / "inner" / "small").stat().st_mode & 0o777 == 0o400
        assert (target / "holes").read_bytes() == (source / "holes").read_bytes()
        assert (target / "holes").stat().st_blocks * 512 < 4 << 20
    copy_file(str(source / "holes"), str(tmp_path / "again"))
    assert (tmp_path / "again").stat().st_size == 20 << 20
