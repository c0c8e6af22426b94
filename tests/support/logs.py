"""Logs on a simulated disk, with a loop whose turns and timers the test makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kwire.clock import SeededRandom
from kwire.log.files import Files
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.types import FetchSlices, Isolation
from kwire.pending import Pending
from kwire.protocol.records import Record, build_batch, iterate_headers, read_batch
from kwire.protocol.records.control import end_transaction_marker
from kwire.testing.simulation.disk import SimulatedDisk

T = TypeVar("T")
NOW_MS = 1_800_000_000_000
DIRECTORY = "/data/topic-0"


class ManualClock:
    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def wall_ms(self) -> int:
        return self.now_ms


class _Timer:
    def __init__(self, due_ms: float, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


TURNS_MAX = 100_000  # a gigabyte is compacted in some thousands


class ManualScheduler:
    """Nothing happens before `turn`; jobs run in it too, or when `holds_jobs` in `run_jobs`."""

    def __init__(self) -> None:
        self.holds_jobs = False
        self.now_ms = 0.0
        self.timers: list[_Timer] = []
        self._soon: list[Callable[[], None]] = []
        self._jobs: list[tuple[Callable[[], Any], Pending[Any]]] = []

    def call_soon(self, callback: Callable[[], None]) -> object:
        self._soon.append(callback)
        return None

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self.now_ms + delay_ms, callback)
        self.timers.append(timer)
        return timer

    def run(self, job: Callable[[], T]) -> Pending[T]:
        pending: Pending[T] = Pending()
        self._jobs.append((job, pending))
        return pending

    def turn(self) -> None:
        """Turns of the loop until nothing is left to do."""
        for _ in range(TURNS_MAX):
            if self._soon:
                due, self._soon = self._soon, []
                for callback in due:
                    callback()
            elif self._jobs and not self.holds_jobs:
                self.run_jobs()
            else:
                return
        raise AssertionError("the loop does not come to rest")

    def run_jobs(self) -> None:
        jobs, self._jobs = self._jobs, []
        for job, pending in jobs:
            try:
                result = job()
            except Exception as error:
                pending.fail(error)
            else:
                pending.complete(result)

    def advance(self, delay_ms: float) -> None:
        """Let time pass; timers fire in the order they are due."""
        end_ms = self.now_ms + delay_ms
        while True:
            due = [t for t in self.timers if t.callback is not None and t.due_ms <= end_ms]
            if not due:
                break
            timer = min(due, key=lambda t: t.due_ms)
            self.now_ms = max(self.now_ms, timer.due_ms)
            callback, timer.callback = timer.callback, None
            assert callback is not None
            callback()
            self.turn()
        self.timers = [t for t in self.timers if t.callback is not None]
        self.now_ms = end_ms


class World:
    """A disk with one partition's log, which may be reopened, killed, or lose its power."""

    def __init__(self, seed: int = 1, config: LogConfig | None = None) -> None:
        self.clock = ManualClock()
        self.disk = SimulatedDisk(SeededRandom(seed))
        self.disk.wall_ms = self.clock.wall_ms
        self.config = config or LogConfig()
        self.scheduler = ManualScheduler()
        self.options: dict[str, Any] = {}
        self.log = self.open()

    def open(self, **options: Any) -> PartitionLog:
        """Open the log as after a kill, unless `clean=True`."""
        self.scheduler = ManualScheduler()
        self.log = open_log(
            DIRECTORY,
            "topic",
            0,
            bytes(16),
            self.config,
            self.clock,
            files=self.disk,
            scheduler=self.scheduler,
            **{**self.options, **options},
        )
        return self.log

    def reopen(self, **options: Any) -> PartitionLog:
        """Stop cleanly and start again."""
        log = self.log
        log.close(sync=True)
        return self.open(
            clean=True,
            recovery_point=log.recovery_point,
            log_start_offset=log.log_start_offset,
            high_watermark=log.high_watermark,
            **options,
        )

    def kill(self, **options: Any) -> PartitionLog:
        """Kill the process and start again, from zero unless a recovery point is given."""
        self.disk.process_killed()
        return self.open(**options)

    def append(self, count: int = 1, **options: Any) -> Any:
        """Append a batch of `count` records as a client; see `client_batch`."""
        leader_epoch = options.pop("epoch", 0)
        guard = options.pop("guard", None)
        options.setdefault("timestamp", self.clock.now_ms)
        batch = client_batch(count, **options)
        return self.log.append_as_leader(batch, leader_epoch=leader_epoch, guard=guard)

    def mark(self, producer_id: int, epoch: int, *, commit: bool, **options: Any) -> Any:
        """Append a transaction marker as the coordinator."""
        from kwire.log.types import Origin

        coordinator_epoch = options.pop("coordinator_epoch", 0)
        batch = end_transaction_marker(
            producer_id, epoch, commit, coordinator_epoch, self.clock.now_ms
        )
        return self.log.append_as_leader(
            batch, leader_epoch=0, origin=Origin.COORDINATOR, **options
        )

    def path(self, suffix: str, base_offset: int = 0) -> str:
        return f"{DIRECTORY}/{base_offset:020d}{suffix}"

    def overwrite(self, path: str, position: int, data: bytes) -> None:
        handle = self.disk.open(path, create=True)
        self.disk.pwritev(handle, [data], position)
        self.disk.close(handle)

    def resize(self, path: str, size_bytes: int) -> None:
        handle = self.disk.open(path)
        self.disk.truncate(handle, size_bytes)
        self.disk.close(handle)


def client_batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    key: bytes | None = b"key",
    timestamp: int = NOW_MS,
    **options: Any,
) -> memoryview:
    """A batch as a producer sends it, in memory that the log may stamp."""
    records = [Record(0, timestamp, key, value) for _ in range(count)]
    return memoryview(build_batch(records, **options))


def read_all(
    log: PartitionLog, isolation: Isolation = Isolation.LOG_END, bytes_max: int = 1 << 20
) -> list[tuple[int, bytes | None]]:
    """(offset, value) of all data records that the isolation shows."""
    found: list[tuple[int, bytes | None]] = []
    offset = log.log_start_offset
    while True:
        slices = log.read(offset, bytes_max, isolation=isolation)
        assert isinstance(slices, FetchSlices)
        if not slices.buffers:
            return found
        for buffer in slices.buffers:
            for position, header in iterate_headers(buffer):
                if not header.is_control:
                    found += [
                        (record.offset, record.value)
                        for record in read_batch(buffer, position, header)
                        if record.offset >= offset
                    ]
        assert slices.next_offset > offset
        offset = slices.next_offset


def names(disk: Files, directory: str = DIRECTORY) -> list[str]:
    return sorted(disk.listing(directory))
