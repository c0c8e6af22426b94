"""Compaction: MB of log a second on one core, and what it costs a producer beside it.

    python -m bench.cleaner [--megabytes 400]

The log holds 1 KB records in batches as producers send them; every key comes twice. Bytes are the
log's before the cleaning, whatever is read of it twice.
"""

from __future__ import annotations

import argparse
import tempfile
import time

from kwire.clock import SystemClock, SystemRandom
from kwire.log.compaction.job import CleaningJob, sync_segment
from kwire.log.compaction.plan import candidate, make_plan
from kwire.log.compaction.settings import CleanerSettings
from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.recovery.opening import open_log
from kwire.protocol.records import Codec, Record, build_batch

RECORD_BYTES = 1000
CONFIG = LogConfig(cleanup_policy=("compact",), segment_bytes=128 << 20, segment_ms=1 << 60)


def fill(directory: str, megabytes: int, per_batch: int, codec: Codec) -> PartitionLog:
    """A log of that many MB of records, every key twice."""
    clock = SystemClock()
    log = open_log(directory, "compacted", 0, bytes(16), CONFIG, clock)
    count = megabytes * 1_000_000 // RECORD_BYTES
    keys = count // 2
    value = SystemRandom().random_bytes(RECORD_BYTES // 2) * 2
    now_ms = clock.wall_ms()
    for first in range(0, count, per_batch):
        records = [
            Record(0, now_ms, b"key-%012d" % (at % keys), value[: RECORD_BYTES - 30])
            for at in range(first, first + per_batch)
        ]
        log.append_as_leader(memoryview(build_batch(records, codec=codec)), leader_epoch=0)
    log.roll()
    log.update_high_watermark(log.log_end_offset)
    return log


def measure(megabytes: int, per_batch: int, codec: Codec) -> None:
    with tempfile.TemporaryDirectory(prefix="kwire-bench-") as folder:
        log = fill(folder, megabytes, per_batch, codec)
        log.sync_now()
        found = candidate(log, None, log.clock.wall_ms())
        assert found is not None
        plan, _ = make_plan(found, log.clock.wall_ms())
        size = sum(source.size_bytes for source in plan.sources)
        wall, used = time.perf_counter(), time.process_time()
        job = CleaningJob(plan, CleanerSettings(), bytes(range(16)))
        for _ in job.index_steps():
            pass
        indexed = time.process_time()
        left = 0
        for group in job.groups():
            steps = job.copy_steps(group)
            while True:
                try:
                    next(steps)
                except StopIteration as stop:
                    sync_segment(stop.value)
                    left += stop.value.size_bytes
                    break
        end = time.process_time()
        print(
            f"{codec.name:6} {per_batch:4} records a batch: "
            f"{size / 1e6 / (end - used):7.0f} MB/s of one core "
            f"(keys {size / 1e6 / (indexed - used):.0f}, copy {size / 1e6 / (end - indexed):.0f}), "
            f"{size / 1e6 / (time.perf_counter() - wall):.0f} MB/s of wall time, "
            f"{size >> 20} MB to {left >> 20} MB"
        )
        log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=400)
    megabytes = parser.parse_args().megabytes
    for codec, per_batch in (
        (Codec.NONE, 16),
        (Codec.NONE, 100),
        (Codec.NONE, 1000),
        (Codec.LZ4, 100),
        (Codec.ZSTD, 100),
    ):
        measure(megabytes, per_batch, codec)


if __name__ == "__main__":
    main()
