"""Space, descriptors or memory that are used up for a while: at any call of an append or a roll.

Nothing that was acknowledged is lost, nothing that was refused comes back, and when the shortage is
over the log takes appends again, with producers, epochs, indexes and transactions as if what was
refused had never been there.
"""

from __future__ import annotations

import contextlib
import errno

import pytest

from kwire.log.directories.periodic_work import visit_in_slices
from kwire.log.files import NotBegunError
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.logs import World, names, read_all

SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100)
FLUSHED = LogConfig(segment_bytes=600, index_interval_bytes=100, flush_messages=1)
SYNCS = ("fdatasync", "sync_directory")  # one that fails is final, whatever it says
SHORT = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)


class Shortage:
    """From the call number `first` on, `length` calls fail; syncs do not."""

    def __init__(self, world: World, first: int, length: int, number: int) -> None:
        self.left = first
        self.length = length
        self.number = number
        self.is_met = False
        world.disk.fault = self._fault

    def _fault(self, operation: str, path: str) -> OSError | None:
        if operation in SYNCS or operation in ("unlink", "remove_directory"):
            return None
        self.left -= 1
        if self.left >= 0 or self.length == 0:
            return None
        self.length -= 1
        self.is_met = True
        return OSError(self.number, f"{operation} failed", path)


class Writer:
    """An idempotent producer in epochs of leaders: what is refused it sends again, the same."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.acknowledged: list[bytes] = []
        self.refused = 0
        self._at = 0

    def send(self) -> bool:
        value = b"%03d" % self._at
        try:
            info = self.world.append(
                2,
                value=value,
                producer_id=3,
                producer_epoch=0,
                base_sequence=2 * self._at,
                epoch=self._at // 8,
            )
        except KafkaError as refusal:
            return self._is_refused(refusal)
        self.world.scheduler.turn()
        if not info.written.done:  # it waits for a sync that could not be begun
            self.world.scheduler.advance(5000)
        error = info.written.error()
        assert info.written.done
        if error is not None:
            return self._is_refused(error)
        self.acknowledged.append(value)
        self._at += 1
        return True

    def _is_refused(self, error: Exception) -> bool:
        assert isinstance(error, KafkaError)
        assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
        self.refused += 1
        return False

    def run(self, count: int) -> None:
        for _ in range(count):
            if not self.send():
                self.world.log.resume_appends()
                self.world.scheduler.turn()


def check(world: World, acknowledged: list[bytes]) -> None:
    """The log holds what was acknowledged, once each, and nothing else."""
    log = world.log
    assert [v for offset, v in read_all(log) if offset % 2 == 0] == acknowledged
    assert log.next_offset == log.log_end_offset == 2 * len(acknowledged)
    entry = log.producers.entries.get(3)
    assert (entry.last_sequence if entry else -1) == 2 * len(acknowledged) - 1
    expected = [(e, 16 * e) for e in range((len(acknowledged) + 7) // 8)]
    assert log.leader_epochs.entries == expected


def calls_of(config: LogConfig) -> int:
    world = World(1, config)
    shortage = Shortage(world, 1 << 30, 0, errno.ENOSPC)
    Writer(world).run(24)
    return (1 << 30) - shortage.left


@pytest.mark.parametrize("config", [SMALL, FLUSHED], ids=["default", "flushed"])
@pytest.mark.parametrize("length", [1, 7])
def test_a_shortage_at_any_call_passes(config: LogConfig, length: int) -> None:
    calls = calls_of(config)
    assert calls > 60
    met = 0
    for at in range(calls):
        number = SHORT[at % len(SHORT)]
        world = World(1, config)
        shortage = Shortage(world, at, length, number)
        writer = Writer(world)
        writer.run(24)
        world.disk.fault = None
        world.log.resume_appends()
        world.scheduler.turn()
        assert world.log.error is None, f"call {at}"
        met += shortage.is_met
        check(world, writer.acknowledged)
        writer.run(4)
        check(world, writer.acknowledged)
        world.kill()
        check(world, writer.acknowledged)
        assert not [name for name in names(world.disk) if name.endswith(".tmp")]
    assert met > 60


def test_a_power_loss_after_a_shortage_brings_nothing_back() -> None:
    """What was refused must not come back between newer batches: the cut is durable first."""
    for at in range(0, calls_of(FLUSHED), 3):
        for seed in (1, 2, 3):
            world = World(seed, FLUSHED)
            world.disk.sync_directory("/data")
            Shortage(world, at, 5, errno.ENOSPC)
            writer = Writer(world)
            writer.run(20)
            world.disk.fault = None
            world.log.resume_appends()
            world.scheduler.turn()
            writer.run(2)
            world.disk.crash()
            world.open(recovery_point=0)
            check(world, writer.acknowledged)


def test_a_kill_in_a_shortage_leaves_what_was_acknowledged() -> None:
    for at in range(calls_of(SMALL)):
        world = World(1, SMALL)
        Shortage(world, at, 1 << 30, errno.ENOSPC)
        writer = Writer(world)
        writer.run(24)
        world.disk.fault = None
        world.kill()
        values = [v for offset, v in read_all(world.log) if offset % 2 == 0]
        assert values[: len(writer.acknowledged)] == writer.acknowledged
        assert len(values) <= len(writer.acknowledged) + 1


def test_all_that_waited_behind_the_failed_write_is_refused_and_taken_back() -> None:
    world = World()
    world.append(3, producer_id=1, producer_epoch=0, base_sequence=0)
    world.scheduler.turn()
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    infos = [
        world.append(2, producer_id=1, producer_epoch=0, base_sequence=3 + 2 * at)
        for at in range(3)
    ]
    assert world.log.next_offset == 9
    world.scheduler.turn()
    assert [info.written.error() is not None for info in infos] == [True] * 3
    assert world.log.is_short
    assert world.log.next_offset == world.log.log_end_offset == 3
    assert world.log.resume_appends().error() is not None, "the disk is still full"
    world.disk.capacity_bytes = None
    world.log.resume_appends()
    world.scheduler.turn()
    again = world.append(2, producer_id=1, producer_epoch=0, base_sequence=3)
    assert (again.base_offset, again.duplicate) == (3, False)
    world.scheduler.turn()
    assert world.log.log_end_offset == 5


def test_duplicates_of_before_the_shortage_are_still_known() -> None:
    """All five: a producer has that many requests under way."""
    world = World()
    for at in range(4):
        world.append(1, producer_id=1, producer_epoch=0, base_sequence=at)
    world.scheduler.turn()
    world.log.roll()  # a snapshot holds the last batch only
    world.disk.capacity_bytes = world.disk.used_bytes()
    world.append(1, producer_id=1, producer_epoch=0, base_sequence=4)
    world.scheduler.turn()
    assert world.log.is_short
    world.disk.capacity_bytes = None
    world.log.resume_appends()
    world.scheduler.turn()
    for at in range(4):
        info = world.append(1, producer_id=1, producer_epoch=0, base_sequence=at)
        assert (info.duplicate, info.base_offset) == (True, at)
    assert not world.append(1, producer_id=1, producer_epoch=0, base_sequence=4).duplicate


def two_transactions() -> World:
    """Open ones from offsets 0 and 1 on."""
    world = World()
    for producer in (1, 2):
        guard = world.log.begin_verification(producer, 0)
        world.append(
            1,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            guard=guard,
        )
    world.scheduler.turn()
    world.log.update_high_watermark(2)
    return world


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_that_was_not_written_has_ended_nothing(commit: bool) -> None:
    world = two_transactions()
    world.disk.capacity_bytes = world.disk.used_bytes()
    if commit:
        world.mark(1, 0, commit=True)
        world.scheduler.turn()
    else:  # its entry in the transaction index comes first
        with pytest.raises(KafkaError):
            world.mark(1, 0, commit=False)
    assert world.log.is_short
    assert world.log.last_stable_offset == 0
    assert world.log.producers.has_ongoing_transaction(1, 0)
    world.disk.capacity_bytes = None
    world.log.resume_appends()
    world.scheduler.turn()
    assert world.log.last_stable_offset == 0
    world.mark(1, 0, commit=commit)
    world.mark(2, 0, commit=True)
    world.scheduler.turn()
    world.log.update_high_watermark(4)
    assert world.log.last_stable_offset == 4
    aborted = [] if commit else [(1, 0)]
    found = world.log.read(0, 1 << 20, isolation=Isolation.COMMITTED)
    assert getattr(found, "aborted", None) == aborted
    world.kill(high_watermark=4)
    found = world.log.read(0, 1 << 20, isolation=Isolation.COMMITTED)
    assert getattr(found, "aborted", None) == aborted


def test_a_transaction_that_was_not_written_holds_nothing_back() -> None:
    world = World()
    world.append(2)
    world.scheduler.turn()
    world.log.update_high_watermark(2)
    world.disk.capacity_bytes = world.disk.used_bytes()
    guard = world.log.begin_verification(7, 0)
    world.append(
        1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True, guard=guard
    )
    world.scheduler.turn()
    assert world.log.is_short
    assert 7 not in world.log.producers.entries
    world.disk.capacity_bytes = None
    world.log.resume_appends()
    world.scheduler.turn()
    world.append(2)
    world.scheduler.turn()
    world.log.update_high_watermark(4)
    assert world.log.last_stable_offset == 4


def test_the_log_stays_closed_until_it_is_cut_back() -> None:
    """A cut that fails is tried first, again and again: nothing is appended behind half a batch."""
    world = World()
    world.append(2)
    world.scheduler.turn()
    size = world.disk.size_of(world.path(".log"))
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    world.disk.fault = lambda operation, path: (
        OSError(errno.ENOMEM, "no memory") if operation == "truncate" else None
    )
    world.append(5)
    world.scheduler.turn()
    assert world.disk.size_of(world.path(".log")) == size + 50
    world.disk.capacity_bytes = None
    assert world.log.resume_appends().error() is not None
    with pytest.raises(KafkaError):
        world.append()
    world.disk.fault = None
    world.log.resume_appends()
    world.scheduler.turn()
    assert world.disk.size_of(world.path(".log")) == size
    world.append()
    world.scheduler.turn()
    assert len(read_all(world.log)) == 3


def test_a_cut_that_got_half_way_is_synced_before_the_log_takes_appends() -> None:
    """The file is cut, then a read fails: nothing more is to be cut later, but it may come back."""
    world = World()
    world.append(2)
    world.scheduler.turn()
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    cut: list[str] = []
    synced: list[str] = []

    def fault(operation: str, path: str) -> OSError | None:
        if operation == "truncate":
            cut.append(path)
        if operation == "fdatasync":
            synced.append(path)
        if operation == "pread" and cut and not is_over:
            return OSError(errno.ENOMEM, "no memory", path)
        return None

    is_over = False

    world.disk.fault = fault
    world.append(5)
    world.scheduler.turn()
    assert cut == [world.path(".log")]
    assert world.log.is_short
    world.disk.capacity_bytes = None
    is_over = True
    world.log.resume_appends()
    world.scheduler.turn()
    assert not world.log.is_short
    assert world.path(".log") in synced


def test_a_log_begun_anew_while_its_cut_is_synced_is_durable_up_to_its_end() -> None:
    world = World()
    world.append(5)
    world.scheduler.turn()
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    world.append(2)
    world.scheduler.turn()
    world.disk.capacity_bytes = None
    world.scheduler.holds_jobs = True
    mended = world.log.resume_appends()
    world.scheduler.turn()
    assert not mended.done
    world.log.truncate_fully_and_start_at(2)
    world.scheduler.run_jobs()
    assert mended.done
    assert world.log.recovery_point == world.log.log_end_offset == 2
    world.append()
    world.scheduler.turn()
    assert world.log.log_end_offset == 3


@pytest.mark.parametrize("second", ["truncate", "fdatasync"])
def test_a_cut_that_fails_for_another_reason_closes_the_log_for_good(second: str) -> None:
    world = World()
    world.append(2)
    world.scheduler.turn()
    world.disk.capacity_bytes = world.disk.used_bytes() + 50
    world.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "input/output error") if operation == second else None
    )
    world.append(5)
    world.scheduler.turn()
    world.disk.capacity_bytes = None
    world.log.resume_appends()
    world.scheduler.turn()
    world.disk.fault = None
    assert not world.log.is_short
    world.log.resume_appends()
    world.scheduler.turn()
    with pytest.raises(KafkaError):
        world.append()
    world.kill()
    assert len(read_all(world.log)) == 2


def test_an_error_that_does_not_pass_is_final() -> None:
    world = World()
    world.disk.fault = lambda operation, path: (
        OSError(errno.EIO, "input/output error")
        if operation == "pwritev" and path.endswith(".log")
        else None
    )
    world.append()
    world.scheduler.turn()
    world.disk.fault = None
    world.log.resume_appends()
    world.scheduler.turn()
    with pytest.raises(KafkaError):
        world.append()


def test_a_sync_that_reports_a_full_disk_is_final() -> None:
    world = World(config=LogConfig(flush_messages=1))
    world.disk.fault = lambda operation, path: (
        OSError(errno.ENOSPC, "no space left on device") if operation == "fdatasync" else None
    )
    world.append()
    world.scheduler.turn()
    world.disk.fault = None
    world.log.resume_appends()
    world.scheduler.turn()
    assert not world.log.is_short
    with pytest.raises(KafkaError):
        world.append()


def test_a_sync_that_was_not_begun_is_tried_again() -> None:
    """No descriptor for a sealed segment, or no thread: nothing was synced, nothing is lost."""
    world = World(config=SMALL)
    syncs: list[str] = []

    def fault(operation: str, path: str) -> OSError | None:
        if operation == "fdatasync":
            syncs.append(path)
        if operation == "open" and path.endswith("00.log") and not is_over:
            return OSError(errno.EMFILE, "too many open files", path)
        return None

    is_over = False
    world.append(3)
    world.scheduler.turn()
    world.log.roll()
    world.disk.fault = fault
    done = world.log.flush()
    world.scheduler.turn()
    assert not done.done
    assert world.log.error is None
    assert world.path(".log") not in syncs
    is_over = True
    world.scheduler.advance(1000)
    assert done.done
    assert done.error() is None
    assert world.path(".log") in syncs
    assert world.log.recovery_point == 3
    assert issubclass(NotBegunError, OSError)


@pytest.mark.parametrize("anew", [False, True])
def test_a_truncation_in_a_shortage_gets_to_its_end(anew: bool) -> None:
    """A follower that has to drop records: at any call, then as if nothing had been in the way."""

    def truncate(log: PartitionLog) -> None:
        if anew:
            log.truncate_fully_and_start_at(40)
        else:
            log.truncate_to(6)

    def prepared() -> World:
        world = World(1, SMALL)
        Writer(world).run(12)
        return world

    probe = prepared()
    shortage = Shortage(probe, 1 << 30, 0, errno.EMFILE)
    truncate(probe.log)
    calls = (1 << 30) - shortage.left
    assert calls > 3
    expected = read_all(probe.log)
    for at in range(calls):
        world = prepared()
        Shortage(world, at, 3, errno.EMFILE)
        with contextlib.suppress(KafkaError):
            truncate(world.log)
        world.disk.fault = None
        world.log.resume_appends()
        world.scheduler.turn()
        assert world.log.error is None, f"call {at}"
        assert read_all(world.log) == expected
        assert world.log.log_end_offset == (40 if anew else 6)
        world.append(1, epoch=3)
        world.scheduler.turn()
        assert world.log.log_end_offset == (41 if anew else 7)
        world.kill(log_start_offset=world.log.log_start_offset)
        assert world.log.log_end_offset == (41 if anew else 7)


def test_a_truncation_done_again_is_synced_before_the_log_takes_appends() -> None:
    """Its syncs cannot be begun either: what was dropped may come back until they are done."""
    world = World(1, SMALL)
    Writer(world).run(12)
    world.log.flush()
    world.scheduler.turn()
    failing = "truncate"
    syncs: list[str] = []

    def fault(operation: str, path: str) -> OSError | None:
        if operation == failing:
            return OSError(errno.EMFILE, "too many open files", path)
        if operation == "sync_directory":
            syncs.append(path)
        return None

    world.disk.fault = fault
    with pytest.raises(KafkaError):
        world.log.truncate_to(6)
    failing = "sync_directory"
    assert world.log.resume_appends().error() is not None
    world.scheduler.turn()
    assert world.log.is_short
    assert not syncs
    failing = "none"
    world.log.resume_appends()
    world.scheduler.turn()
    assert world.log.error is None
    assert syncs
    assert world.log.recovery_point == world.log.log_end_offset == 6


def test_no_open_transaction_is_shown_while_a_truncation_is_not_done() -> None:
    """The producers are read again by it: those read so far say nothing of the last stable offset,
    at whatever call it fails."""

    def prepared() -> World:
        world = World()
        world.options = {"verify_transactions": False}
        world.open()
        world.append(2)
        world.append(1, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        world.append(3)
        world.scheduler.turn()
        world.log.update_high_watermark(6)
        assert world.log.last_stable_offset == 2
        return world

    probe = prepared()
    shortage = Shortage(probe, 1 << 30, 0, errno.EMFILE)
    probe.log.truncate_to(5)
    for at in range((1 << 30) - shortage.left):
        world = prepared()
        Shortage(world, at, 1, errno.EMFILE)
        with contextlib.suppress(KafkaError):
            world.log.truncate_to(5)
        assert world.log.last_stable_offset == 2, f"call {at}"
        world.log.resume_appends()
        world.scheduler.turn()
        assert world.log.error is None
        assert world.log.last_stable_offset == 2
        assert world.log.log_end_offset == 5


@pytest.mark.parametrize("clean", [False, True])
def test_a_roll_that_was_not_finished_has_not_happened(clean: bool) -> None:
    """A large batch needs a new segment and gets none; smaller ones go on in the old one."""

    def prepared() -> World:
        world = World(1, SMALL)
        for at in range(4):
            world.append(1, value=bytes(20), timestamp=world.clock.now_ms + at)
        world.scheduler.turn()
        return world

    probe = prepared()
    shortage = Shortage(probe, 1 << 30, 0, errno.ENOSPC)
    probe.append(1, value=bytes(400))
    calls = (1 << 30) - shortage.left
    assert calls > 10
    for at in range(calls):
        world = prepared()
        Shortage(world, at, 1 << 30, SHORT[at % len(SHORT)])
        with contextlib.suppress(KafkaError):
            world.append(1, value=bytes(400))
            world.scheduler.turn()
        world.disk.fault = None
        if not world.log.is_short:
            continue
        world.log.resume_appends()
        world.scheduler.turn()
        is_rolled = len(world.log.segments) > 1
        assert not world.log.segments.active.is_sealed
        for more in range(2):
            world.append(1, value=b"small", timestamp=world.clock.now_ms + 10 + more)
            world.scheduler.turn()
        expected = read_all(world.log)
        assert [value for _, value in expected] == 4 * [bytes(20)] + 2 * [b"small"]
        if clean:
            world.reopen()
        else:
            world.kill(recovery_point=0)
        assert read_all(world.log) == expected, f"call {at}"
        logs = [name for name in names(world.disk) if name.endswith(".log")]
        assert len(logs) == 1 + is_rolled
        found = world.log.offset_for_timestamp(world.clock.now_ms + 11)
        assert found is not None
        assert found.offset == 5


def test_a_roll_of_retention_that_fails_leaves_nothing_behind() -> None:
    """All records are too old, but there is no room for a new segment: at any call.

    What was left of that roll must neither seal the segment that goes on nor, at the next
    shortage, take the files of the one that was made later at the same offset.
    """
    config = LogConfig(retention_ms=1000)

    def prepared() -> World:
        world = World(1, config)
        for at in range(3):
            world.append(1, timestamp=world.clock.now_ms + at)
            world.scheduler.turn()
        world.log.update_high_watermark(3)
        world.clock.now_ms += 10_000
        return world

    def clean_up(world: World) -> None:
        now_ms = world.clock.now_ms
        visit_in_slices(
            world.scheduler, [world.log], lambda log: log.delete_old_segments(now_ms, 10)
        )

    probe = prepared()
    shortage = Shortage(probe, 1 << 30, 0, errno.ENOSPC)
    clean_up(probe)
    met = 0
    for at in range((1 << 30) - shortage.left):
        world = prepared()
        Shortage(world, at, 1, SHORT[at % len(SHORT)])
        clean_up(world)
        world.disk.fault = None
        if not world.log.is_short:
            continue
        met += 1
        world.log.resume_appends()
        world.scheduler.turn()
        assert not world.log.segments.active.is_sealed, f"call {at}"
        clean_up(world)
        assert world.log.log_start_offset == world.log.segments.first.base_offset == 3
        world.append(1, value=b"kept")
        world.scheduler.turn()
        world.disk.capacity_bytes = world.disk.used_bytes()
        world.append(1, value=b"refused")
        world.scheduler.turn()
        assert world.log.is_short
        world.disk.capacity_bytes = None
        world.log.resume_appends()
        world.scheduler.turn()
        assert read_all(world.log) == [(3, b"kept")], f"call {at}"
        world.scheduler.advance(config.file_delete_delay_ms)
        assert not [name for name in names(world.disk) if name.startswith("0" * 20)]
        world.kill(log_start_offset=3)
        assert read_all(world.log) == [(3, b"kept")], f"call {at}"
    assert met > 3
