"""Cost of record batches, compiled and interpreted: `python bench/records.py [--json FILE]`.

For values of 100 B, 1 KB and 10 KB in batches of about 1 MB: the checksum, the record walk, the
whole of what a leader does to a batch, compaction (index and filter, every second record goes), and
reading records as objects. Every figure is the best of many rounds, because a busy machine only
ever adds to it. "interpreted" is the kernels' source without Cython, as on a machine without a
compiler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.kernels import installed, interpreted

VALUE_SIZES = (100, 1000, 10_000)
BATCH_BYTES = 1_000_000
SEED = bytes(16)


def best(work: Callable[[], object], rounds: int, prepare: Callable[[], object] = int) -> float:
    """Seconds of the fastest round."""
    fastest = 1e9
    for _ in range(rounds):
        prepare()
        start = time.perf_counter()
        work()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def batch_of(records: Any, value_size: int, count: int) -> bytearray:
    made = [
        records.Record(index, 1_700_000_000_000 + index, b"key-%08d" % index, bytes(value_size))
        for index in range(count)
    ]
    batch: bytearray = records.build_batch(made)
    return batch


def measure(records: Any, value_size: int, rounds: int) -> dict[str, float]:
    """Nanoseconds a record, but for the checksum and compaction: MB/s."""
    count = max(1, BATCH_BYTES // value_size)
    batch = batch_of(records, value_size, count)
    header = records.parse_header(batch)
    offsets = records.compaction_kernel.OffsetMap(24 * (2 * count + 10), SEED)
    replaced = [
        records.Record(10**9 + index, 0, b"key-%08d" % index) for index in range(0, count, 2)
    ]
    later = records.build_batch(replaced, base_offset=10**9)
    rules = records.AppendRules()
    megabytes = len(batch) / 1e6

    def walk() -> None:
        kernel = records.kernel
        made = kernel.RecordWalk(batch, 61, len(batch), count, 0, header.base_timestamp)
        assert made.validate(count + 1) == kernel.DONE

    def lead() -> None:
        fresh = records.check_produced(batch, 9)
        records.check_batch(batch, 0, fresh, max_message_bytes=2**30, client=True)
        records.validate_for_append(
            batch, 0, fresh, rules, client=True, wall_ms=0, base_offset=0, leader_epoch=1
        )

    def compact() -> None:
        records.compaction.index_batch(offsets, batch, 0, header)
        records.compaction.index_batch(offsets, later, 0, records.parse_header(later))
        records.compaction.filter_batch(batch, 0, header, offsets, keep_tombstones=True)

    return {
        "walk ns/record": best(walk, rounds) / count * 1e9,
        "read ns/record": best(lambda: records.read_batch(batch), rounds) / count * 1e9,
        "lead MB/s": megabytes / best(lead, rounds),
        "compact MB/s": megabytes / best(compact, rounds),
        "crc32c MB/s": megabytes / best(lambda: records.compute_crc(batch, 0, len(batch)), rounds),
    }


def measure_one(records: Any) -> float:
    """Microseconds of all that a leader does to a batch of one 100-byte record."""
    batch = batch_of(records, 100, 1)
    rules = records.AppendRules()

    def lead() -> None:
        for _ in range(1000):
            fresh = records.check_produced(batch, 9)
            records.check_batch(batch, 0, fresh, max_message_bytes=2**30, client=True)
            records.validate_for_append(
                batch, 0, fresh, rules, client=True, wall_ms=0, base_offset=0, leader_epoch=1
            )

    return best(lead, 15) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    lives = [("interpreted", interpreted(), 5)]
    if installed().kernel.COMPILED:
        lives.insert(0, ("compiled", installed(), 60))
    found: dict[str, Any] = {}
    for name, records, rounds in lives:
        found[name] = {"lead a batch of one record us": measure_one(records)}
        print(f"{name}: a batch of one record costs a leader {measure_one(records):.1f} us")
        for size in VALUE_SIZES:
            figures = measure(records, size, rounds)
            found[name][f"{size} B"] = figures
            text = ", ".join(f"{key} {value:,.0f}" for key, value in figures.items())
            print(f"  {size:>6} B: {text}")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
