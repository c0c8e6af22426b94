"""Random lives of logs, kept at any moment, and put back: what is in memory then is what a start on
a copy of the same files finds, whatever has been done to the directory since.

The steps are the real ones, without a node: the files are those of a broker in a thread, kept by
hard links; what is known of the logs is handed over, and only what has changed is put back.
"""

from __future__ import annotations

import dataclasses
import random
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from kwire.clock import SeededRandom
from kwire.log.compaction.cleaner import LogCleaner
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.directories.identity_files import CLEAN_SHUTDOWN, encode_clean_shutdown
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.known_logs import KnownLog, known_logs
from kwire.log.types import Origin
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.control import end_transaction_marker
from kwire.testing.brokers.copies import OWN, copy_tree, put_links
from kwire.testing.brokers.thread_files import ThreadFiles
from tests.support.cleaning import batches
from tests.support.effort import seeds
from tests.support.held_logs import held
from tests.support.logs import ManualClock, ManualScheduler, client_batch, read_all

PLAIN = LogConfig(segment_bytes=3000, index_interval_bytes=200, file_delete_delay_ms=1000)
CONFIGS = {
    "plain": PLAIN,
    "short": dataclasses.replace(PLAIN, retention_bytes=4000),
    "keyed": dataclasses.replace(
        PLAIN, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01
    ),
    "large": LogConfig(preallocate=True, segment_bytes=1 << 20),
}
Key = tuple[str, int]


class Life:
    """From one opening of a directory to its end."""

    def __init__(self, data: Path, clock: ManualClock, known: Mapping[Key, KnownLog]) -> None:
        self.data = data
        self.clock = clock
        self.files = ThreadFiles(is_synced=False)
        self.scheduler = ManualScheduler()
        self.manager = LogManager(
            [str(data)],
            clock,
            SeededRandom(5),
            files=self.files,
            scheduler=self.scheduler,
            settings=ManagerSettings(file_delete_delay_ms=1000, verify_transactions=False),
            now_ms=lambda: self.scheduler.now_ms,
            config_of=lambda topic: CONFIGS[topic],
        )
        self.manager.cleaner = LogCleaner(
            self.manager, CleanerSettings(), lambda: self.scheduler, SeededRandom(7)
        )
        self.manager.known_logs = known
        self.manager.open_directories()
        self.manager.load_all()

    def end(self) -> None:
        self.scheduler.holds_jobs = False
        self.scheduler.turn()
        self.manager.abandon()
        self.files.abandon()

    def held(self) -> dict[Key, object]:
        return {
            (log.topic, log.partition): (held(log), read_all(log)) for log in self.manager.logs()
        }


class Steps:
    """What is done to logs, by chance. It knows what their producers would send next."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sequences: dict[tuple[Key, int], int] = {}
        self.open: set[tuple[Key, int]] = set()
        self.made = 0

    def run(self, life: Life, count: int) -> None:
        for _ in range(count):
            life.clock.now_ms += 10
            logs = life.manager.logs()
            if not logs or self.chance.random() < 0.05:
                self.create(life)
                continue
            log = self.chance.choice(logs)
            step = self.chance.choices(
                (self.append, self.idempotent, self.transactional, self.roll, self.cut, self.tidy),
                (6, 4, 4, 2, 2, 3),
            )[0]
            with suppress(KafkaError):  # of a producer whose records were cut off
                step(life, log)
            if self.chance.random() < 0.7:
                life.scheduler.turn()
            if self.chance.random() < 0.9:
                log.update_high_watermark(log.log_end_offset)
            if self.chance.random() < 0.1:
                life.scheduler.holds_jobs = False

    def create(self, life: Life) -> None:
        self.made += 1
        key = self.chance.choice(list(CONFIGS)), self.chance.randrange(2)
        if life.manager.get(*key) is None:
            log = life.manager.create(*key, self.made.to_bytes(16, "big"), CONFIGS[key[0]])
            if self.chance.random() < 0.8:
                log.assign_epoch(0)

    def append(self, life: Life, log: PartitionLog) -> None:
        batch = client_batch(
            self.chance.randint(1, 4),
            key=b"k%d" % self.chance.randrange(5),
            value=self.chance.randbytes(self.chance.choice((10, 200, 900))),
            timestamp=life.clock.now_ms,
        )
        log.append_as_leader(batch, leader_epoch=max(log.leader_epochs.latest, 0))

    def of_producer(self, life: Life, log: PartitionLog, producer_id: int, *, open_: bool) -> None:
        at = (log.topic, log.partition), producer_id
        batch = client_batch(
            2,
            timestamp=life.clock.now_ms,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences.get(at, 0),
            transactional=open_,
        )
        log.append_as_leader(batch, leader_epoch=max(log.leader_epochs.latest, 0))
        self.sequences[at] = self.sequences.get(at, 0) + 2

    def idempotent(self, life: Life, log: PartitionLog) -> None:
        self.of_producer(life, log, self.chance.randint(1, 3), open_=False)

    def transactional(self, life: Life, log: PartitionLog) -> None:
        at = (log.topic, log.partition), self.chance.randint(11, 13)
        if at not in self.open:
            self.of_producer(life, log, at[1], open_=True)
            self.open.add(at)
            return
        self.open.discard(at)
        is_commit = self.chance.random() < 0.5
        marker = end_transaction_marker(at[1], 0, is_commit, 0, life.clock.now_ms)
        log.append_as_leader(
            marker, leader_epoch=max(log.leader_epochs.latest, 0), origin=Origin.COORDINATOR
        )

    def roll(self, life: Life, log: PartitionLog) -> None:
        if self.chance.random() < 0.1:
            log.assign_epoch(log.leader_epochs.latest + 1)
        else:
            log.roll()

    def cut(self, life: Life, log: PartitionLog) -> None:
        kind = self.chance.choice((0, 1, 1, 1, 2, 3))
        if kind == 0:
            log.delete_records_before(self.chance.randint(0, log.high_watermark))
        elif kind == 1:
            log.delete_old_segments(life.clock.now_ms)
        elif kind == 2 and log.log_end_offset > log.log_start_offset:
            log.truncate_to(self.chance.choice([header.base_offset for header, _ in batches(log)]))
        elif kind == 3 and self.chance.random() < 0.3:
            life.manager.delete(log.topic, log.partition)
            self.open = {at for at in self.open if at[0] != (log.topic, log.partition)}

    def tidy(self, life: Life, log: PartitionLog) -> None:
        kind = self.chance.randrange(6)
        if kind == 0:
            life.scheduler.advance(2000)
        elif kind == 1:
            life.manager.checkpoint_recovery()
            life.manager.checkpoint_high_watermarks()
        elif kind == 2:
            log.flush()
        elif life.manager.cleaner is not None:
            self.clean(life)

    def clean(self, life: Life) -> None:
        """Up to any step of a compaction."""
        assert life.manager.cleaner is not None
        life.scheduler.holds_jobs = True
        life.manager.cleaner.find_work()
        for _ in range(self.chance.randint(0, 8)):
            life.scheduler.turn()
            life.scheduler.run_jobs()


def kept_by(life: Life) -> tuple[dict[Key, KnownLog], bool]:
    """What is known of the logs, and whether they are written out: as `Broker.snapshot` does."""
    life.scheduler.holds_jobs = False
    life.scheduler.run_jobs()  # threads have done what they were given
    is_written_out = life.manager.write_out()
    life.files.links_were_made()
    return (known_logs(life.manager.logs()) if is_written_out else {}), is_written_out


@pytest.mark.parametrize("seed", seeds(8))
def test_what_is_put_back_is_what_its_files_say(tmp_path: Path, seed: int) -> None:
    clock, steps = ManualClock(), Steps(seed)
    data, kept = tmp_path / "data", tmp_path / "kept"
    data.mkdir()
    life = Life(data, clock, {})
    known_of = 0
    for number in range(3):
        steps.run(life, 60)
        known, is_whole = kept_by(life)
        tree = copy_tree(str(data), str(kept), links=True)
        if is_whole:
            (kept / CLEAN_SHUTDOWN).write_bytes(encode_clean_shutdown(7))
            tree[CLEAN_SHUTDOWN] = OWN
        sent = dict(steps.sequences), set(steps.open)
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(kept, copy)
        for _ in range(2):
            steps.run(life, 40)
            life.end()
            put_links(str(kept), tree, str(data))
            steps.sequences, steps.open = dict(sent[0]), set(sent[1])
            life = Life(data, clock, known)
            again = Life(copy, clock, {})
            assert life.held() == again.held()
            assert contents(data) == contents(copy)
            again.end()
            shutil.rmtree(copy)
            shutil.copytree(kept, copy)
        known_of += len(known)
        shutil.rmtree(kept)
    life.end()
    assert known_of, "nothing was known of any log"


def contents(directory: Path) -> dict[str, bytes]:
    """Of logs, by the names of their files."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*-[01]/*"))
    }


@pytest.mark.parametrize(
    "left",
    [
        "00000000000000000000.log.swap",
        "00000000000000000000.log.cleaned",
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.quarantine",
        "00000000000000000003.log",
    ],
)
def test_a_log_that_an_opening_would_clear_up_is_not_known(tmp_path: Path, left: str) -> None:
    life = Life(tmp_path, ManualClock(), {})
    log = life.manager.create("plain", 0, bytes(15) + b"x", PLAIN)
    log.assign_epoch(0)
    log.append_as_leader(client_batch(3), leader_epoch=0)
    life.scheduler.turn()
    log.update_high_watermark(3)
    assert kept_by(life)[0].keys() == {("plain", 0)}
    Path(log.directory, left).write_bytes(b"left")
    assert kept_by(life)[0] == {}
    life.end()


def test_a_log_that_is_written_out_is_still_to_be_synced(tmp_path: Path) -> None:
    """Of what a kill has left nobody knows whether it is durable: the next flush syncs it, also
    when the directory was copied before that."""
    life = Life(tmp_path, ManualClock(), {})
    log = life.manager.create("plain", 0, bytes(15) + b"x", PLAIN)
    log.assign_epoch(0)
    for _ in range(3):
        log.append_as_leader(client_batch(3), leader_epoch=0)
        log.roll()
    life.scheduler.turn()
    life.end()
    life = Life(tmp_path, ManualClock(), {})
    log = life.manager.logs()[0]

    def unsynced() -> tuple[bool, bool, int]:
        local = log.local
        return local.has_new_files, local.epoch_file.is_unsynced, len(local.unsynced_segments)

    assert unsynced() == (True, True, 3)
    assert life.manager.write_out()
    assert unsynced() == (True, True, 3)
    log.flush()
    assert unsynced() == (False, False, 0)
    life.end()
