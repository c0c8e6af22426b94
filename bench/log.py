"""The log on its own: `python bench/log.py [--directory DIR] [--json FILE] [--mb N]`.

Appends by batch size, reads, durable appends with group commit, opening many partitions, and how
space is allocated ahead. Every figure is CPU time of this process (user and system) and wall time;
a round is repeated and the median given, the first one (cold memory) left out. One partition on
the file system of DIR, which should be the one that the broker will use.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kwire.clock import SeededRandom, SystemClock
from kwire.log.directories.manager import LogManager
from kwire.log.files import Files, SystemFiles
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.log.scheduling import ImmediateScheduler, LoopScheduler
from kwire.log.types import FetchSlices
from kwire.protocol.records import Record, build_batch

ROUNDS = 5


class Turns(ImmediateScheduler):
    """A loop's turn after as many appends as a busy broker has in one."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> object:
        self._soon.append(callback)
        return None

    def turn(self) -> None:
        due, self._soon = self._soon, []
        for callback in due:
            callback()


class NoAllocation(SystemFiles):
    """Blocks are allocated by the writes themselves."""

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        return False


class Extending(SystemFiles):
    """posix_fallocate: the file grows by zeros ahead of the batches."""

    def allocate(self, handle: int, position: int, size_bytes: int) -> bool:
        os.posix_fallocate(handle, position, size_bytes)
        return True


def _open(directory: str, files: Files, **config: Any) -> tuple[PartitionLog, Turns]:
    turns = Turns()
    log = open_log(
        tempfile.mkdtemp(dir=directory),
        "bench",
        0,
        bytes(16),
        LogConfig(**config),
        SystemClock(),
        files=files,
        scheduler=turns,
    )
    return log, turns


def _batch(records: int, value_bytes: int) -> bytearray:
    now_ms = time.time_ns() // 1_000_000
    return build_batch([Record(0, now_ms, None, bytes(value_bytes))] * records)


def _measure(work: Callable[[], int]) -> dict[str, float]:
    """Medians of the rounds of `work`, which returns the bytes it handled."""
    walls, cpus = [], []
    for at in range(ROUNDS + 1):
        wall, cpu = time.perf_counter(), time.process_time()
        size_bytes = work()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if at:
            walls.append(size_bytes / wall / 1e6)
            cpus.append(cpu / (size_bytes / 1e9))
    return {
        "mb_per_s": round(statistics.median(walls)),
        "cpu_s_per_gb": round(statistics.median(cpus), 3),
    }


def append(
    directory: str, files: Files, records: int, value_bytes: int, size_bytes: int
) -> dict[str, float]:
    """Append batches of `records`, 20 in a turn of the loop."""
    template = _batch(records, value_bytes)
    buffers = [bytearray(template) for _ in range(20)]
    count = max(size_bytes // len(template), 1)

    def work() -> int:
        log, turns = _open(directory, files)
        for at in range(count):
            buffer = buffers[at % 20]
            buffer[0:8] = bytes(8)
            log.append_as_leader(memoryview(buffer), leader_epoch=0)
            if at % 20 == 19:
                turns.turn()
        turns.turn()
        log.close()
        shutil.rmtree(log.directory)
        return count * len(template)

    result = _measure(work)
    result["us_per_batch"] = round(result["cpu_s_per_gb"] * len(template) / 1000, 2)
    return result


def read(directory: str, records: int, bytes_max: int, size_bytes: int) -> dict[str, float]:
    """Read a whole log in fetches of `bytes_max`."""
    log, turns = _open(directory, SystemFiles())
    template = _batch(records, 1000)
    for _ in range(size_bytes // len(template)):
        log.append_as_leader(memoryview(bytearray(template)), leader_epoch=0)
    turns.turn()

    def work() -> int:
        offset = total = 0
        while offset < log.log_end_offset:
            slices = log.read(offset, bytes_max)
            assert isinstance(slices, FetchSlices)
            offset = slices.next_offset
            total += slices.size_bytes
        return total

    result = _measure(work)
    log.close()
    shutil.rmtree(log.directory)
    return result


def durable(directory: str, flush_messages: int, clients: int, seconds: float) -> dict[str, float]:
    """One-record appends of `clients`, each of which waits for its own before the next."""

    async def run() -> float:
        loop = asyncio.get_running_loop()
        log = open_log(
            tempfile.mkdtemp(dir=directory),
            "bench",
            0,
            bytes(16),
            LogConfig(flush_messages=flush_messages),
            SystemClock(),
            scheduler=LoopScheduler(loop, ThreadPoolExecutor(1)),
        )
        template = _batch(1, 100)
        done = 0
        end = time.perf_counter() + seconds
        idle = asyncio.Event()
        running = clients

        def send() -> None:
            nonlocal running
            if time.perf_counter() >= end:
                running -= 1
                if not running:
                    idle.set()
                return
            info = log.append_as_leader(memoryview(bytearray(template)), leader_epoch=0)
            info.written.add_done_callback(lambda _: loop.call_soon(sent))

        def sent() -> None:
            nonlocal done
            done += 1
            send()

        for _ in range(clients):
            send()
        await idle.wait()
        log.close()
        shutil.rmtree(log.directory)
        return done / seconds

    return {"appends_per_s": round(asyncio.run(run()))}


def start(directory: str, partitions: int) -> dict[str, float]:
    """Load partitions of one small segment each after a clean stop."""
    path = tempfile.mkdtemp(dir=directory)

    class Unsynced(SystemFiles):
        def fdatasync(self, handle: int) -> None:
            pass

        def sync_directory(self, path: str) -> None:
            pass

    def manager() -> LogManager:
        return LogManager([path], SystemClock(), SeededRandom(1), files=Unsynced())

    made = manager()
    made.open_directories()
    template = _batch(10, 100)
    for partition in range(partitions):
        log = made.create("bench", partition, bytes(15) + b"\x01")
        log.append_as_leader(memoryview(bytearray(template)), leader_epoch=0)
        if partition % 500 == 499:
            for known in made.logs():
                for segment in known.segments:
                    segment.close()
    made.shutdown()
    loaded = manager()
    loaded.open_directories()
    wall, cpu = time.perf_counter(), time.process_time()
    loaded.load_all()
    result = {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
    }
    loaded.abandon()
    shutil.rmtree(path)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", default=tempfile.gettempdir())
    parser.add_argument("--json")
    parser.add_argument("--mb", type=int, default=512, help="size of a round")
    parser.add_argument("--partitions", type=int, default=10_000)
    args = parser.parse_args()
    _raise_file_limit(args.partitions)
    size = args.mb << 20
    home = tempfile.mkdtemp(dir=args.directory)
    results: dict[str, Any] = {}
    try:
        for name, records, value in (
            ("one record of 100 B", 1, 100),
            ("one record of 1 KB", 1, 1000),
            ("16 of 1 KB", 16, 1000),
            ("100 of 1 KB", 100, 1000),
            ("1000 of 1 KB", 1000, 1000),
        ):
            total = size if records > 1 else size // 10
            results[f"append {name}"] = append(home, SystemFiles(), records, value, total)
        for name, files in (
            ("by the writes", NoAllocation()),
            ("ahead, size kept", SystemFiles()),
            ("ahead, extending", Extending()),
        ):
            results[f"allocation {name}"] = append(home, files, 100, 1000, size)
        results["read in 1 MB"] = read(home, 16, 1 << 20, size)
        results["read in 50 KB"] = read(home, 16, 50_000, size)
        results["unsynced, 100 clients"] = durable(home, 1 << 62, 100, 3.0)
        results["flush.messages=1, 100 clients"] = durable(home, 1, 100, 3.0)
        results[f"start with {args.partitions} partitions"] = start(home, args.partitions)
    finally:
        shutil.rmtree(home)
    for name, values in results.items():
        print(f"{name:36}", "  ".join(f"{k} {v:,}" for k, v in values.items()))
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


def _raise_file_limit(wanted: int) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(hard, wanted + 1000)
    if limit > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


if __name__ == "__main__":
    sys.exit(main())
