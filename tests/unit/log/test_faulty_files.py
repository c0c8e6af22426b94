"""A disk that is full on command, and what is left after a loss of power."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kwire.log.faulty_files import FaultyFiles
from tests.support.logs import World, client_batch, read_all


def write(files: FaultyFiles, path: Path, data: bytes, position: int, *, sync: bool) -> None:
    handle = files.open(str(path), create=True)
    files.pwritev(handle, [data], position)
    if sync:
        files.fdatasync(handle)
    files.close(handle)


@pytest.mark.parametrize("is_synced", [True, False])
def test_what_was_not_synced_is_taken_back(tmp_path: Path, is_synced: bool) -> None:
    files = FaultyFiles(is_synced=is_synced)
    log, index, new = (tmp_path / name for name in ("log", "index", "new"))
    write(files, log, b"kept", 0, sync=True)
    write(files, log, b"lost", 4, sync=False)
    write(files, index, b"abcdef", 0, sync=True)
    write(files, index, b"XY", 1, sync=False)
    write(files, index, b"Z", 2, sync=False)
    write(files, new, b"never", 0, sync=False)
    assert index.read_bytes() == b"aXZdef"
    assert files.lose_power() == 3
    assert (log.read_bytes(), index.read_bytes(), new.read_bytes()) == (b"kept", b"abcdef", b"")
    assert files.lose_power() == 0, "it is taken back once"


def test_what_was_there_before_counts_as_synced(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"old")
    files = FaultyFiles()
    write(files, path, b"new", 3, sync=False)
    files.lose_power()
    assert path.read_bytes() == b"old"


def test_a_renamed_file_and_one_in_a_renamed_directory_lose_theirs(tmp_path: Path) -> None:
    files = FaultyFiles()
    (tmp_path / "t-0").mkdir()
    write(files, tmp_path / "t-0" / "log", b"lost", 0, sync=False)
    write(files, tmp_path / "a", b"lost", 0, sync=False)
    files.rename(str(tmp_path / "t-0"), str(tmp_path / "t-1"))
    files.rename(str(tmp_path / "a"), str(tmp_path / "b"))
    assert files.lose_power() == 2
    assert (tmp_path / "t-1" / "log").read_bytes() == (tmp_path / "b").read_bytes() == b""


def test_a_removed_file_and_a_shortened_one_stay_so(tmp_path: Path) -> None:
    files = FaultyFiles()
    write(files, tmp_path / "gone", b"x", 0, sync=False)
    files.unlink(str(tmp_path / "gone"))
    path = tmp_path / "short"
    write(files, path, b"abcd", 0, sync=True)
    handle = files.open(str(path))
    files.pwritev(handle, [b"ef"], 4)
    files.truncate(handle, 2)
    files.close(handle)
    files.lose_power()
    assert not (tmp_path / "gone").exists()
    assert path.read_bytes() == b"ab"


def test_what_was_written_over_and_then_cut_off_does_not_come_back(tmp_path: Path) -> None:
    files = FaultyFiles()
    path = tmp_path / "index"
    write(files, path, b"abcdef", 0, sync=True)
    handle = files.open(str(path))
    files.pwritev(handle, [b"XY"], 1)
    files.pwritev(handle, [b"Z"], 5)
    files.truncate(handle, 2)
    files.close(handle)
    files.lose_power()
    assert path.read_bytes() == b"ab"


def test_a_full_disk_takes_nothing_but_metadata(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.is_full = True
    handle = files.open(str(tmp_path / "log"), create=True)
    with pytest.raises(OSError, match="No space") as full:
        files.pwritev(handle, [b"x"], 0)
    assert full.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        files.allocate(handle, 0, 4096)
    (tmp_path / "__cluster_metadata-0").mkdir()
    metadata = files.open(str(tmp_path / "__cluster_metadata-0" / "log"), create=True)
    assert files.pwritev(metadata, [b"x"], 0) == 1
    files.is_full = False
    assert files.pwritev(handle, [b"x"], 0) == 1
    files.close(handle)
    files.close(metadata)


def test_a_write_to_a_slow_disk_waits_in_its_order_and_holds_nobody_up() -> None:
    """The loop slept through each write of a slow disk: who did not write waited as well."""
    world = World()
    world.disk.write_delay_ms = 1000
    big = client_batch(value=b"x" * 100_000)
    appended = [world.append(), world.log.append_as_leader(big, leader_epoch=0)]
    big[:] = bytes(len(big))  # the memory of a request is used again
    world.scheduler.turn()
    world.scheduler.advance(999)
    assert not any(info.written.done for info in appended)
    world.disk.write_delay_ms = 0
    appended.append(world.append(value=b"later"))
    world.scheduler.turn()
    assert [info.written.error() for info in appended] == [None, None, None]
    assert [value for _, value in read_all(world.log)] == [b"value", b"x" * 100_000, b"later"]
    last = world.append(value=b"at once")
    world.scheduler.turn()
    assert last.written.done


def test_a_slow_disk_that_is_fast_again_holds_no_later_write_up() -> None:
    """The timer of the first write stayed, and whatever came behind it waited with it."""
    world = World()
    world.disk.write_delay_ms = 60_000
    first = world.append()
    world.scheduler.turn()
    assert not first.written.done
    world.disk.write_delay_ms = 0
    second = world.append(value=b"later")
    world.scheduler.turn()
    assert (first.written.done, second.written.done) == (True, True)
    assert not any(timer.callback for timer in world.scheduler.timers)
    world.disk.write_delay_ms = 1000
    third = world.append(value=b"slow")
    world.scheduler.advance(999)
    assert not third.written.done
    world.log.write_tail()
    fourth = world.append(value=b"slow too")
    world.scheduler.advance(1)
    assert (third.written.done, fourth.written.done) == (True, False), "a delay of its own"
    world.scheduler.advance(999)
    assert fourth.written.done


def test_what_waits_for_a_slow_disk_is_bounded() -> None:
    """Everything that clients sent within the delay was held in memory."""
    world = World()
    world.disk.write_delay_ms = 60_000
    large = world.log.append_as_leader(client_batch(value=b"x" * 300_000), leader_epoch=0)
    world.scheduler.turn()
    assert not large.written.done, "one that waits alone may have any size"
    sent = [world.append(value=b"y" * 50_000) for _ in range(9)]
    world.scheduler.turn()
    assert large.written.done
    held = sum(not info.written.done for info in sent)
    assert 0 < held <= 5
    world.scheduler.advance(60_000)
    assert [len(value or b"") for _, value in read_all(world.log)] == [300_000] + [50_000] * 9
