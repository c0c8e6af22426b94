"""What is done about damaged files: the damages that were observed on Apache Kafka 4.4, and kwire's
answer, which is Kafka's unless Kafka's does harm.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import iterate_headers
from tests.support.damages import (
    CLEAN,
    CONFIG,
    FROM_ZERO,
    STARTS,
    append_and_read,
    damaged_start,
    filled,
    truncate_last_batch,
)
from tests.support.data_directories import committed_offsets
from tests.support.logs import DIRECTORY, World, names, read_all


@STARTS
@pytest.mark.parametrize("suffixes", [(".index", ".timeindex"), (".timeindex",), (".index",)])
def test_missing_indexes_are_rebuilt(start: Any, suffixes: tuple[str, ...]) -> None:
    world = filled()
    before = {n: world.disk.read_file(f"{DIRECTORY}/{n}") for n in names(world.disk)}

    def remove(bases: list[int]) -> None:
        before.update({n: world.disk.read_file(f"{DIRECTORY}/{n}") for n in names(world.disk)})
        for base in bases:
            for suffix in suffixes:
                world.disk.unlink(world.path(suffix, base))

    damaged_start(world, remove, **start)
    world.log.close()
    for name in names(world.disk):
        if name.endswith("index"):
            assert world.disk.read_file(f"{DIRECTORY}/{name}") == before[name], name


@STARTS
def test_index_of_an_older_segment_three_bytes_too_long(start: Any) -> None:
    world = filled()

    def extend(bases: list[int]) -> None:
        path = world.path(".index", bases[1])
        world.overwrite(path, world.disk.size_of(path), b"abc")

    end, _ = damaged_start(world, extend, **start)
    assert world.log.log_end_offset == end
    append_and_read(world, end)


@STARTS
@pytest.mark.parametrize("which", [1, -1])
def test_index_entry_between_batches(start: Any, which: int) -> None:
    """Kafka walks from the wrong place; here the entry is checked before it is used."""
    world = filled()

    def shift(bases: list[int]) -> None:
        path = world.path(".index", bases[which])
        data = world.disk.read_file(path)
        position = int.from_bytes(data[4:8], "big")
        world.overwrite(path, 4, (position + 7).to_bytes(4, "big"))

    end, _ = damaged_start(world, shift, **start)
    assert [world.log.read(o, 1).next_offset > o for o in range(end)] == [True] * end  # type: ignore[union-attr]
    append_and_read(world, end)


def test_last_batch_truncated_after_a_clean_stop_keeps_all_whole_batches(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka lets the log end fall to the last index entry and appends behind the torn bytes."""
    world = filled()
    end, _ = damaged_start(world, truncate_last_batch(world), **CLEAN)
    assert world.log.log_end_offset == end - 3
    assert "stored durably" in caplog.text or "quarantine" in caplog.text
    assert any(name.endswith(".quarantine") for name in names(world.disk))
    append_and_read(world, end - 3)


@pytest.mark.parametrize("what", ["last batch", "last segment", "all"])
def test_a_leader_gives_no_offset_twice_that_was_durable(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A consumer that was at the end would miss what is written between there and its position."""
    world = filled()

    def lose(bases: list[int]) -> None:
        if what == "last batch":
            truncate_last_batch(world)(bases)
        for base in {"last segment": bases[-1:], "all": bases}.get(what, []):
            world.resize(world.path(".log", base), 0)

    end, _ = damaged_start(world, lose, **CLEAN)
    left = read_all(world.log)
    assert world.log.log_end_offset < end
    assert f"although {end} was stored durably" in caplog.text
    world.log.assign_epoch(5)
    assert f"to {end - 1} are lost" in caplog.text
    assert world.append(value=b"new").base_offset == end
    world.scheduler.turn()
    assert read_all(world.log) == [*left, (end, b"new")]
    if what == "all":
        assert world.log.log_start_offset == end, "nothing is left that could be read"
    else:
        assert world.log.end_offset_for_epoch(4)[1] == end
    world.kill()
    assert read_all(world.log) == [*left, (end, b"new")]


def test_what_is_kept_of_one_damage_outlives_the_next() -> None:
    """Two damages at the same place were kept under the same name."""
    world = filled()
    kept: list[bytes] = []
    for byte in (b"\x55", b"\x66"):

        def flip(bases: list[int], byte: bytes = byte) -> None:
            data = world.disk.read_file(world.path(".log", bases[1]))
            size_bytes = next(iterate_headers(data))[1].size_bytes
            kept.append(data[: size_bytes - 1] + byte)
            world.overwrite(world.path(".log", bases[1]), size_bytes - 1, byte)

        damaged_start(world, flip, **FROM_ZERO)
    found = [n for n in names(world.disk) if n.endswith(".quarantine")]
    assert sorted(world.disk.read_file(f"{DIRECTORY}/{n}") for n in found) == sorted(kept)


def test_a_follower_fetches_again_what_it_lost() -> None:
    world = filled()
    sent = bytes(world.log.read(87, 1 << 20).buffers[0])  # type: ignore[union-attr]
    whole = read_all(world.log)
    end, _ = damaged_start(world, truncate_last_batch(world), **CLEAN)
    assert world.log.log_end_offset == end - 3
    world.log.append_as_follower(sent)
    world.scheduler.turn()
    world.log.assign_epoch(5)
    assert world.append(value=b"new").base_offset == end
    world.scheduler.turn()
    assert read_all(world.log) == [*whole, (end, b"new")]


def test_last_batch_torn_by_a_kill_is_cut() -> None:
    world = filled()
    end, _ = damaged_start(world, truncate_last_batch(world), clean=False, recovery_point=0)
    assert world.log.log_end_offset == end - 3
    assert not any(name.endswith(".quarantine") for name in names(world.disk))
    append_and_read(world, end - 3)


@STARTS
@pytest.mark.parametrize(
    "garbage",
    [b"\x07garbage" * 13, bytes(4096), b"\x00" * 9 + b"\xff" * 70],
    ids=["text", "zeros", "ones"],
)
def test_bytes_after_the_last_batch(start: Any, garbage: bytes) -> None:
    """After a clean stop Kafka appends behind garbage, and refuses to start with zeros."""
    world = filled()

    def extend(bases: list[int]) -> None:
        path = world.path(".log", bases[-1])
        world.overwrite(path, world.disk.size_of(path), garbage)

    end, _ = damaged_start(world, extend, **start)
    assert world.log.log_end_offset == end
    append_and_read(world, end)
    world.kill()
    assert len(read_all(world.log)) == end + 1


@STARTS
@pytest.mark.parametrize("garbage", [bytes(4096), b"\x07garbage" * 13])
def test_bytes_after_an_older_segment(start: Any, garbage: bytes) -> None:
    """Recovering from zero Kafka deletes all later segments; nothing of them is lost here. After a
    clean stop its consumers fail at the garbage; here they do not see it."""
    world = filled()

    def extend(bases: list[int]) -> None:
        path = world.path(".log", bases[1])
        world.overwrite(path, world.disk.size_of(path), garbage)

    end, bases = damaged_start(world, extend, **start)
    assert world.log.log_end_offset == end
    assert world.log.segments.bases == bases
    append_and_read(world, end)


@pytest.mark.parametrize("start", [CLEAN, FROM_ZERO])
def test_wrong_checksum_in_the_last_batch(start: Any) -> None:
    world = filled()

    def flip(bases: list[int]) -> None:
        path = world.path(".log", bases[-1])
        size = world.disk.size_of(path)
        data = world.disk.read_file(path)
        world.overwrite(path, size - 3, bytes([data[-3] ^ 1]))

    end, _ = damaged_start(world, flip, **start)
    assert world.log.log_end_offset == end - 3
    append_and_read(world, end - 3)


def test_wrong_checksum_in_an_older_segment_costs_that_batch_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """From zero Kafka truncates there and deletes all later segments."""
    world = filled()

    def flip(bases: list[int]) -> None:
        world.overwrite(world.path(".log", bases[1]), 80, b"\xff\xff\xff")

    end, bases = damaged_start(world, flip, **FROM_ZERO)
    assert world.log.log_end_offset == end
    assert "checksum" in caplog.text
    assert any(name.endswith(".quarantine") for name in names(world.disk))
    lost = set(range(end)) - {offset for offset, _ in read_all(world.log)}
    assert len(lost) == 3
    assert min(lost) == bases[1]
    append_and_read(world, end - 3)


def test_wrong_checksum_above_the_recovery_point_ends_the_log_there() -> None:
    """After a power cut: what follows was never promised, and a replica fetches it again."""
    world = filled()

    def flip(bases: list[int]) -> None:
        world.overwrite(world.path(".log", bases[2]), 80, b"\xff\xff\xff")

    _, bases = damaged_start(world, flip, clean=False, recovery_point=1)
    assert world.log.log_end_offset == bases[2]
    assert any(n.endswith(".log.quarantine") for n in names(world.disk)), "later segments are kept"
    append_and_read(world, bases[2])


@STARTS
@pytest.mark.parametrize(
    "content", [None, b"", b"0\n2\n0 0\n", b"nonsense\n", b"\xff\xfe", bytes(20)]
)
def test_leader_epochs_are_rebuilt(start: Any, content: bytes | None) -> None:
    """Kafka loses old epochs with the file, and does not start with an unreadable one."""
    world = World(1, CONFIG)
    for at in range(30):
        world.append(3, epoch=at // 10)
        world.scheduler.turn()
    expected = list(world.log.leader_epochs.entries)
    assert len(expected) == 3
    path = f"{DIRECTORY}/leader-epoch-checkpoint"

    def damage(bases: list[int]) -> None:
        world.disk.unlink(path)
        if content is not None:
            world.overwrite(path, 0, content)

    damaged_start(world, damage, **start)
    assert world.log.leader_epochs.entries == expected
    world.log.close()
    assert world.disk.read_file(path) == b"0\n3\n0 0\n1 30\n2 60\n"


def _transactions() -> World:
    """Committed, aborted, interleaved transactions over several segments; one stays open."""
    world = World(1, CONFIG)
    world.options = {"verify_transactions": False}
    world.log.close()
    world.open()
    sequences = {1: 0, 2: 0}
    for at in range(40):
        producer_id = 1 + at % 2
        world.append(
            2,
            value=b"%d" % at,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences[producer_id],
            transactional=True,
        )
        sequences[producer_id] += 2
        if at % 5 == 4 and at < 37:
            world.mark(producer_id, 0, commit=at % 2 == 0)
        world.scheduler.turn()
    world.log.update_high_watermark(world.log.log_end_offset)
    return world


def _committed(world: World) -> list[int]:
    return committed_offsets(world.log)


@STARTS
@pytest.mark.parametrize("damage", ["missing", "cut", "garbage", "empty"])
def test_transaction_indexes_are_rebuilt(start: Any, damage: str) -> None:
    """Kafka shows aborted records when an index is gone."""
    world = _transactions()
    expected = _committed(world)
    assert any(name.endswith(".txnindex") for name in names(world.disk))
    files = {}

    def remove(bases: list[int]) -> None:
        for name in names(world.disk):
            if name.endswith(".txnindex"):
                path = f"{DIRECTORY}/{name}"
                files[path] = world.disk.read_file(path)
                if damage == "missing":
                    world.disk.unlink(path)
                elif damage == "cut":
                    world.resize(path, world.disk.size_of(path) - 3)
                elif damage == "empty":
                    world.resize(path, 0)
                else:
                    world.overwrite(path, 0, b"\xff\xff")

    end, _ = damaged_start(world, remove, **start)
    world.log.update_high_watermark(end)
    assert _committed(world) == expected
    if start is FROM_ZERO:
        for path, content in files.items():
            assert world.disk.read_file(path) == content


@STARTS
@pytest.mark.parametrize("damage", ["all missing", "newest corrupt", "all corrupt", "all empty"])
def test_producer_snapshots_are_rebuilt(start: Any, damage: str) -> None:
    """Kafka forgets the open transaction when all snapshots are missing after a clean stop."""
    world = _transactions()
    stable = world.log.last_stable_offset
    assert stable < world.log.high_watermark
    before = [(e.producer_id, e.last_sequence) for e in world.log.active_producers()]

    def spoil(bases: list[int]) -> None:
        snapshots = [n for n in names(world.disk) if n.endswith(".snapshot")]
        for name in snapshots if damage.startswith("all") else snapshots[-1:]:
            path = f"{DIRECTORY}/{name}"
            if damage == "all missing":
                world.disk.unlink(path)
            elif damage == "all empty":
                world.resize(path, 0)
            else:
                world.overwrite(path, 8, b"\xff\xff")

    end, _ = damaged_start(world, spoil, **start)
    world.log.update_high_watermark(end)
    assert world.log.last_stable_offset == stable
    after = [(e.producer_id, e.last_sequence) for e in world.log.active_producers()]
    assert after == before


@STARTS
def test_first_segments_log_missing(start: Any, caplog: pytest.LogCaptureFixture) -> None:
    world = filled()
    end, bases = damaged_start(
        world, lambda b: world.disk.unlink(world.path(".log", b[0])), **start
    )
    assert world.log.log_start_offset == bases[1]
    assert world.log.log_end_offset == end
    assert "without a log" in caplog.text
    assert world.path(".index", 0).rsplit("/", 1)[1] not in names(world.disk)
    append_and_read(world, end - bases[1])


@STARTS
def test_empty_directory_is_a_new_log(start: Any) -> None:
    world = World(1, CONFIG)
    world.log.close()
    for name in names(world.disk):
        world.disk.unlink(f"{DIRECTORY}/{name}")
    world.open(**start)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (0, 0)
    world.append()
    world.scheduler.turn()
    assert read_all(world.log) == [(0, b"value")]


@STARTS
def test_swap_is_completed_and_cleaned_and_deleted_go(start: Any) -> None:
    world = filled()

    def prepare(bases: list[int]) -> None:
        for suffix in (".log", ".index", ".timeindex"):
            path = world.path(suffix, bases[1])
            world.disk.rename(path, path + ".swap")
        world.overwrite(world.path(".log", bases[3]) + ".cleaned", 0, b"half")
        world.overwrite(world.path(".log", 7777) + ".deleted", 0, b"gone")

    end, bases = damaged_start(world, prepare, **start)
    assert not [n for n in names(world.disk) if n.endswith((".swap", ".cleaned", ".deleted"))]
    assert world.log.segments.bases == bases
    append_and_read(world, end)


def test_swap_behind_a_cleaned_is_unfinished_while_the_originals_are_there() -> None:
    world = filled()

    def prepare(bases: list[int]) -> None:
        world.overwrite(world.path(".log", bases[1]) + ".cleaned", 0, b"half")
        world.overwrite(world.path(".log", bases[2]) + ".swap", 0, b"half")

    end, _ = damaged_start(world, prepare)
    assert world.log.log_end_offset == end
    append_and_read(world, end)


def test_swap_replaces_the_segments_it_covers() -> None:
    world = filled()
    log = world.log
    end, bases = log.log_end_offset, log.segments.bases
    log.close(sync=True)
    merged = world.disk.read_file(world.path(".log", bases[0])) + world.disk.read_file(
        world.path(".log", bases[1])
    )
    world.overwrite(world.path(".log", bases[0]) + ".swap", 0, merged)
    for suffix in (".index", ".timeindex"):
        world.disk.unlink(world.path(suffix, bases[0]))
    world.open(clean=True, recovery_point=end)
    assert world.log.segments.bases == [bases[0], *bases[2:]]
    assert len(read_all(world.log)) == end


def test_zeros_of_a_preallocated_index_are_no_entries() -> None:
    world = filled()

    def extend(bases: list[int]) -> None:
        for suffix, size in ((".index", 4096), (".timeindex", 4092)):
            world.resize(world.path(suffix, bases[-1]), size)

    end, _ = damaged_start(world, extend)
    assert world.log.log_end_offset == end
    append_and_read(world, end)


def test_isolation_is_a_number_for_the_wire() -> None:
    assert [int(i) for i in Isolation] == [0, 1, 2]


@pytest.mark.parametrize("base", [0, 2, 40, 1 << 40, 1 << 62])
@pytest.mark.parametrize("with_index", [True, False])
def test_offsets_that_cannot_be_there_are_told_not_served(base: int, with_index: bool) -> None:
    """No checksum covers a batch's base offset. Readers looped, or an index overflowed."""
    world = World(config=LogConfig(segment_bytes=700, index_interval_bytes=100))
    for _ in range(30):
        world.append(value=bytes(50))
        world.scheduler.turn()
    second = world.log.segments.bases[1]
    size_bytes = world.log.segments.first.size_bytes // second
    assert second > 4
    log = world.reopen()
    for number in (3, second - 1):
        world.overwrite(world.path(".log"), number * size_bytes, base.to_bytes(8, "big"))
    if not with_index:
        segment = log.segments.first
        segment.rebuild_indexes("as asked by the test")

    def read_segment() -> None:
        offset = 0
        while offset < second:
            slices: Any = log.read(offset, size_bytes + 10)
            assert offset < slices.next_offset <= second
            offset = slices.next_offset

    with pytest.raises(KafkaError) as caught:
        read_segment()
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    slices: Any = log.read(second, 10_000)
    assert slices.next_offset > second
    world.append(value=b"after")
    world.scheduler.turn()
    assert log.log_end_offset == 31
