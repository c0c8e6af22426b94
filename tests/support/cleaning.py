"""A log manager with a cleaner on a simulated disk, and random workloads for compacted logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwire.clock import SeededRandom, SystemClock
from kwire.log.compaction.cleaner import LogCleaner
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.directories.loading import ExpectedTopic
from kwire.log.directories.manager import LogManager, ManagerSettings
from kwire.log.files import Files, SystemFiles
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import FetchSlices, Isolation, Origin
from kwire.protocol.records import BatchHeader, Codec, Record, build_batch, iterate_headers
from kwire.protocol.records.control import end_transaction_marker
from kwire.protocol.records.reading import read_batch
from kwire.testing.simulation.disk import SimulatedDisk
from tests.support.logs import ManualClock, ManualScheduler

TOPIC = "compacted"
TOPIC_ID = bytes(range(1, 17))
CONFIG = LogConfig(
    cleanup_policy=("compact",),
    segment_bytes=2000,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=1000,
    message_timestamp_after_max_ms=1 << 62,
)


class CleaningWorld:
    """One compacted partition; `compiled=False` runs the cleaner in slices on the loop."""

    def __init__(
        self,
        config: LogConfig = CONFIG,
        *,
        seed: int = 1,
        settings: CleanerSettings | None = None,
        compiled: bool = True,
        partitions: int = 1,
        directory: str | None = None,
        other_directories: Sequence[str] = (),
    ) -> None:
        self.clock = ManualClock()
        self.disk = SimulatedDisk(SeededRandom(seed))
        self.disk.wall_ms = self.clock.wall_ms
        self.files: Files = self.disk
        self.directory = "/data"
        if directory is not None:
            self.files, self.directory = SystemFiles(), directory
            self.clock.now_ms = SystemClock().wall_ms()
        self.other_directories = other_directories
        self.config = config
        self.settings = settings or CleanerSettings()
        self.compiled = compiled
        self.failed: list[str] = []
        self.starts = -1
        self.partition = 0
        self.all_sequences: dict[int, dict[int, int]] = {}
        self.start()
        for partition in range(partitions):
            home = self.manager.directories[0]
            self.manager.create(TOPIC, partition, TOPIC_ID, config, directory=home)
        self.scheduler.turn()

    def meet_a_full_disk(self) -> None:
        """Two records that could be cleaned, and no space to do it: the partition is given up."""
        self.append([(b"a", b"1")])
        self.append([(b"b", b"2")])
        self.roll()
        self.disk.capacity_bytes = self.disk.used_bytes()
        assert self.clean() == 0
        assert self.cleaner.uncleanable

    def config_of(self, topic: str) -> LogConfig:
        return self.config

    def start(self, expected_topic: ExpectedTopic | None = None) -> None:
        """Open whatever the disk holds."""
        self.scheduler = ManualScheduler()
        self.starts += 1  # no name is given twice
        self.manager = LogManager(
            [self.directory, *self.other_directories],
            self.clock,
            SeededRandom(5 + self.starts),
            files=self.files,
            scheduler=self.scheduler,
            settings=ManagerSettings(file_delete_delay_ms=1000, verify_transactions=False),
            config_of=self.config_of,
            on_directory_failure=lambda directory: self.failed.append(directory.path),
        )
        self.manager.cleaner = LogCleaner(
            self.manager,
            self.settings,
            lambda: self.scheduler,
            SeededRandom(7),
            compiled=self.compiled,
        )
        self.manager.open_directories()
        self.manager.load_all(expected_topic)

    def kill(self) -> None:
        """The process dies; the next one recovers."""
        self.disk.process_killed()
        self.start()

    @property
    def log(self) -> PartitionLog:
        log = self.manager.get(TOPIC, self.partition)
        assert log is not None
        return log

    @property
    def cleaner(self) -> LogCleaner:
        assert self.manager.cleaner is not None
        return self.manager.cleaner

    @property
    def sequences(self) -> dict[int, int]:
        """The next sequence of each producer of the partition."""
        return self.all_sequences.setdefault(self.partition, {})

    def append(self, rows: list[tuple[Any, Any]], **options: Any) -> None:
        """A batch of (key, value) pairs; producers' sequences are counted."""
        timestamp = options.pop("timestamp", self.clock.now_ms)
        records = [Record(0, timestamp, key, value) for key, value in rows]
        producer = options.get("producer_id", -1)
        if producer >= 0:
            options.setdefault("producer_epoch", 0)
            options.setdefault("base_sequence", self.sequences.get(producer, 0))
            self.sequences[producer] = options["base_sequence"] + len(rows)
        batch = memoryview(build_batch(records, **options))
        self.log.append_as_leader(batch, leader_epoch=self._epoch())
        self._settle()

    def mark(self, producer_id: int, *, commit: bool) -> None:
        """End the producer's transaction."""
        marker = end_transaction_marker(producer_id, 0, commit, 0, self.clock.now_ms)
        self.log.append_as_leader(marker, leader_epoch=self._epoch(), origin=Origin.COORDINATOR)
        self._settle()

    def _epoch(self) -> int:
        return max(self.log.leader_epochs.latest, 0)

    def _settle(self) -> None:
        self.scheduler.turn()
        self.log.update_high_watermark(self.log.log_end_offset)

    def roll(self) -> None:
        """Seal the active segment: what it holds may be compacted."""
        self.log.roll()
        self._settle()

    def clean(self) -> int:
        """Clean until nothing is due; returns how many cleanings that were."""
        before = self.cleaner.cleanings
        self.cleaner.find_work()
        self.scheduler.turn()
        return self.cleaner.cleanings - before

    def rows(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """(offset, key, value) of all data records, of aborted transactions too."""
        return [
            (record.offset, record.key, record.value)
            for header, data in batches(self.log)
            if not header.is_control
            for record in read_batch(data)
        ]

    def shape(self) -> list[str]:
        """A line for each batch: its offsets, records and what is special about it."""
        return [describe(header) for header, _ in batches(self.log)]

    def names(self) -> list[str]:
        return sorted(self.files.listing(self.log.directory))


Row = tuple[int, bytes | None, bytes | None]
Outcome = tuple[list[str], list[Row], list[int], list[tuple[int, ...]]]


def plain_outcome(left: dict[int, tuple[list[str], list[Row]]]) -> dict[str, Any]:
    """Shape and rows of partitions as JSON takes them."""
    return {
        str(partition): [shape, [[offset, *map(_text, row)] for offset, *row in rows]]
        for partition, (shape, rows) in left.items()
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def batches(
    log: PartitionLog, isolation: Isolation = Isolation.LOG_END
) -> list[tuple[BatchHeader, bytes]]:
    """All batches that the isolation shows."""
    found: list[tuple[BatchHeader, bytes]] = []
    offset = log.log_start_offset
    while True:
        slices = log.read(offset, 1000, isolation=isolation)
        assert isinstance(slices, FetchSlices)
        if not slices.buffers:
            return found
        for buffer in slices.buffers:
            for position, header in iterate_headers(buffer):
                found.append((header, bytes(buffer[position : position + header.size_bytes])))
        assert slices.next_offset > offset
        offset = slices.next_offset


def describe(header: BatchHeader) -> str:
    """`0..4 5` and what is special: tx, control, horizon."""
    words = [f"{header.base_offset}..{header.last_offset}", str(header.record_count)]
    words += [
        word
        for word, applies in (
            ("tx", header.is_transactional),
            ("control", header.is_control),
            ("horizon", header.has_delete_horizon),
        )
        if applies
    ]
    return " ".join(words)


def committed_state(log: PartitionLog) -> dict[bytes, tuple[int, bytes]]:
    """Key -> (offset, value) as a read_committed consumer ends up with, tombstones applied."""
    state: dict[bytes, tuple[int, bytes]] = {}
    offset = log.log_start_offset
    while True:
        slices = log.read(offset, 1000, isolation=Isolation.COMMITTED)
        assert isinstance(slices, FetchSlices)
        if not slices.buffers:
            return state
        waiting = sorted(slices.aborted or [], key=lambda entry: entry[1])
        aborting: dict[int, bool] = {}
        for buffer in slices.buffers:
            for position, header in iterate_headers(buffer):
                while waiting and waiting[0][1] <= header.last_offset:
                    aborting[waiting.pop(0)[0]] = True
                if header.is_control:
                    aborting.pop(header.producer_id, None)
                elif not (header.is_transactional and header.producer_id in aborting):
                    for record in read_batch(buffer, position, header):
                        assert record.key is not None
                        if record.value is None:
                            state.pop(record.key, None)
                        else:
                            state[record.key] = (record.offset, record.value)
        offset = slices.next_offset


def random_workload(world: CleaningWorld, random: SeededRandom, steps: int) -> None:
    """Plain, idempotent and transactional batches of few keys, tombstones, markers, rolls."""
    open_transactions: dict[int, None] = {}
    codecs = (Codec.NONE, Codec.NONE, Codec.LZ4, Codec.ZSTD)
    for step in range(steps):
        kind = random.below(20)
        if kind == 0:
            world.roll()
            continue
        if kind < 5 and open_transactions:
            producer = list(open_transactions)[random.below(len(open_transactions))]
            del open_transactions[producer]
            world.mark(producer, commit=random.below(2) == 0)
            continue
        rows: list[tuple[bytes, bytes | None]] = []
        for _ in range(1 + random.below(8)):
            value = None if random.below(6) == 0 else b"%d" % step + b"x" * random.below(100)
            rows.append((b"key-%d" % random.below(12), value))
        options: dict[str, Any] = {"codec": codecs[random.below(4)]}
        if kind < 10:
            producer = 1 + random.below(3)
            open_transactions[producer] = None
            options |= {"producer_id": producer, "transactional": True}
        elif kind < 13:
            options["producer_id"] = 10 + random.below(2)
        world.clock.now_ms += random.below(50)
        world.append(rows, **options)
    for producer in open_transactions:
        world.mark(producer, commit=random.below(2) == 0)
    world.roll()
