"""The simulated disk: what a power loss may and may not take."""

from __future__ import annotations

import errno

import pytest

from kwire.clock import SeededRandom
from kwire.log.files import write_atomically
from kwire.testing.simulation.disk import SimulatedDisk


def written(seed: int) -> tuple[SimulatedDisk, int]:
    disk = SimulatedDisk(SeededRandom(seed))
    disk.make_directory("/data")
    handle = disk.open("/data/log", create=True)
    disk.sync_directory("/data")
    return disk, handle


def content(disk: SimulatedDisk, path: str = "/data/log") -> bytes:
    return disk.read_file(path)


@pytest.mark.parametrize("seed", range(50))
def test_what_was_synced_survives_a_power_loss_and_the_rest_is_a_torn_prefix(seed: int) -> None:
    disk, handle = written(seed)
    disk.pwritev(handle, [b"synced"], 0)
    disk.fdatasync(handle)
    later = [b"-one", b"-two", b"-three"]
    position = 6
    for part in later:
        position += disk.pwritev(handle, [part], position)
    whole = b"synced" + b"".join(later)
    assert content(disk) == whole
    disk.crash()
    left = content(disk).rstrip(b"\0")
    assert left.startswith(b"synced")
    assert whole.startswith(left)
    with pytest.raises(OSError):
        disk.pread(handle, 1, 0)


def test_every_length_of_prefix_occurs() -> None:
    lengths = {}
    for seed in range(400):
        disk, handle = written(seed)
        disk.pwritev(handle, [b"abcdefgh"], 0)
        disk.crash()
        lengths[len(content(disk).rstrip(b"\0"))] = None
    assert sorted(lengths) == list(range(9))


def test_a_killed_process_loses_nothing() -> None:
    disk, handle = written(1)
    disk.pwritev(handle, [b"written"], 0)
    disk.process_killed()
    assert content(disk) == b"written"


@pytest.mark.parametrize("seed", range(50))
def test_an_atomic_replacement_leaves_the_old_or_the_new_content(seed: int) -> None:
    disk, _ = written(seed)
    write_atomically(disk, "/data/checkpoint", b"old")
    disk.fault = lambda operation, path: (
        OSError(errno.EIO, "power") if operation == "sync_directory" else None
    )
    with pytest.raises(OSError):
        write_atomically(disk, "/data/checkpoint", b"new")
    disk.fault = None
    disk.crash()
    assert content(disk, "/data/checkpoint") in (b"old", b"new")


def test_overwrites_and_truncations_are_taken_back_in_order() -> None:
    for seed in range(200):
        disk, handle = written(seed)
        disk.pwritev(handle, [b"0123456789"], 0)
        disk.fdatasync(handle)
        disk.truncate(handle, 4)
        disk.pwritev(handle, [b"xy"], 4)
        disk.crash()
        assert content(disk).rstrip(b"\0") in (b"0123456789", b"0123", b"0123x", b"0123xy")


def test_a_full_disk_takes_a_part_and_then_refuses() -> None:
    disk, handle = written(1)
    disk.capacity_bytes = 6
    assert disk.pwritev(handle, [b"12345678"], 0) == 6
    with pytest.raises(OSError) as refused:
        disk.pwritev(handle, [b"9"], 6)
    assert refused.value.errno == errno.ENOSPC


def test_a_renamed_directory_takes_its_files_along() -> None:
    disk, handle = written(1)
    disk.pwritev(handle, [b"x"], 0)
    disk.rename("/data", "/data-delete")
    assert disk.listing("/data-delete") == {"log": 1}
    assert not disk.exists("/data")
