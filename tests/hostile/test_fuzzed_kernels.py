"""Kernels against mutated batches and random bytes: compiled they find what their sources find.

What is handed to them lies in memory of exactly its size, so that `tools/asan.py` sees a byte that
is read behind it. `KWIRE_EFFORT` multiplies the seeds.
"""

from __future__ import annotations

import random
import struct
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from kwire.protocol.records import Codec, Record, build_batch
from kwire.protocol.varint import encode_uvarint
from tests.support.effort import seeds
from tests.support.kernels import installed, interpreted
from tests.support.mutating import mutated

CASES_A_SEED = 120
HEADER_BYTES = 61
LARGE = 2**63 - 1
CODECS = (Codec.NONE, Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4)

pytestmark = pytest.mark.skipif(not installed().kernel.COMPILED, reason="kernels are not compiled")

Outcome = tuple[str, Any]
Exercise = Callable[[Any], Any]


def exact(data: bytes) -> memoryview:
    """The bytes in memory of their own, with nothing behind the last one."""
    return memoryview(array("B", data))


def table_of(rows: int, fields: int) -> memoryview:
    return memoryview(array("q", bytes(8 * fields * rows)))


def outcome(exercise: Exercise, records: Any) -> Outcome:
    """What comes of it; an error by its name and code."""
    try:
        return "found", exercise(records)
    except Exception as error:
        return type(error).__name__, getattr(error, "code", None)


def drawn_bytes(draw: random.Random, size_max: int) -> bytes | None:
    return None if draw.randrange(4) == 0 else draw.randbytes(draw.randrange(size_max))


def drawn_batch(draw: random.Random, codec: Codec = Codec.NONE) -> bytes:
    base = draw.choice((0, 1, 1000, 2**40))
    made = [
        Record(
            base + i,
            draw.choice((0, 1000, 1_700_000_000_000)) + draw.randrange(100),
            drawn_bytes(draw, 12),
            drawn_bytes(draw, draw.choice((3, 70, 300))),
            [("h" * draw.randrange(3), drawn_bytes(draw, 5)) for _ in range(draw.randrange(3))],
        )
        for i in range(1 + draw.randrange(8))
    ]
    producer = (-1, -1, -1) if draw.randrange(2) else (draw.randrange(100), 0, draw.randrange(100))
    return bytes(
        build_batch(
            made, base_offset=base, codec=codec, transactional=draw.randrange(4) == 0,
            producer_id=producer[0], producer_epoch=producer[1], base_sequence=producer[2],
        )
    )  # fmt: skip


def drawn_log(draw: random.Random) -> bytes:
    """Several batches, some of them changed, or nothing of the kind."""
    kind = draw.randrange(8)
    if kind == 0:
        return draw.randbytes(draw.randrange(200))
    batches = [drawn_batch(draw, draw.choice(CODECS)) for _ in range(1 + draw.randrange(4))]
    if kind == 1:  # offsets at the end of what an int64 holds
        batches[-1] = struct.pack(">q", LARGE - draw.randrange(3)) + batches[-1][8:]
    data = b"".join(batches)
    if kind == 2:
        return data[: draw.randrange(len(data) + 1)]
    return mutated(draw, data)


def rows_of(data: bytes, rows_max: int, tombstones: bool, records: Any) -> Any:
    """Of the row kernel and of those who get its table; what it leaves to others is skipped."""
    kernel, compaction, view = records.row_kernel, records.compaction_kernel, exact(data)
    offsets = compaction.OffsetMap(24 * 10, bytes(16))
    scan, found = kernel.RowScan(), []
    table = table_of(rows_max, kernel.ROW_FIELDS)
    status = kernel.FULL
    while status == kernel.FULL:
        before = scan.position
        status = scan.step(view, len(view), table)
        rows = table[: scan.rows * kernel.ROW_FIELDS].tolist()
        for start, size in (*zip(rows[1::5], rows[2::5]), *zip(rows[3::5], rows[4::5])):
            assert 0 <= start <= len(view)
            assert -1 <= size <= len(view) - start
        compaction.index_rows(view, table, scan.rows, offsets)
        kept = compaction.latest_rows(view, table, scan.rows, offsets, tombstones)
        found.append((rows, status, kept, table[: 5 * kept].tolist()))
        if status == kernel.FULL and scan.position == before:
            break
    return found, scan.position, offsets.used, offsets.latest_offset


def walked(
    data: bytes,
    start: int,
    count: int,
    base: int,
    append_time: int | None,
    limit: int,
    records: Any,
) -> Any:
    """All that a walk over the records of a batch is asked."""
    kernel, view, end = records.kernel, exact(data), len(data)

    def walk() -> Any:
        return kernel.RecordWalk(view, start, end, count, base, 1000, append_time)

    found: list[Any] = []
    for arguments in ((False,), (True, 0, 2000), (False, 0, 0, True), (False, 0, LARGE, False, 9)):
        one = walk()
        statuses = [one.validate(limit, *arguments) for _ in range(5)]
        found.append(
            (statuses, one.max_timestamp, one.max_timestamp_index, one.consecutive, one.position)
        )
    one = walk()
    found.append(one.find_timestamp(limit, 1050, base + 2))
    one = walk()
    status, read = one.read(limit, bytes([1, 0]) * limit)
    is_read = status in (kernel.RUNNING, kernel.DONE)  # else it is not known where they lie
    found.append((status, read, one.headers() if is_read else None))
    return found


def compacted(data: bytes, start: int, count: int, base: int, records: Any) -> Any:
    """What is made of the records of a batch that are read to their end."""
    kernel, compaction, view = records.kernel, records.compaction_kernel, exact(data)
    limit = 20
    table = table_of(limit, 12)
    walk = kernel.RecordWalk(view, start, len(view), count, base, 1000)
    status, rows = walk.places(table, limit), walk.rows
    found: list[Any] = [status, table[: 12 * rows].tolist()]
    if not rows:
        return found
    offsets = compaction.OffsetMap(24 * 12, bytes(16))
    found.append(compaction.index_keys(view, table, rows, offsets, base + 1))
    flags, selection = bytearray(rows), compaction.Selection()
    compaction.select(view, table, rows, offsets, True, flags, 0, selection)
    found += [bytes(flags), selection.count, selection.size_bytes, selection.tombstones]
    for verbatim in (False, True):
        for room in (24 * rows + len(view), 24, rows):
            out = memoryview(array("B", bytes(room)))
            made = outcome(partial(_rewritten, view, table, rows, flags, out, verbatim), compaction)
            found.append(made)
    return found


def _rewritten(
    view: memoryview,
    table: memoryview,
    rows: int,
    flags: bytearray,
    out: memoryview,
    verbatim: bool,
    compaction: Any,
) -> bytes:
    end = compaction.rewrite(view, table, rows, flags, 0, out, 0, 1005, verbatim)
    return bytes(out[:end])


class Element:
    __slots__ = ("_tagged", "index", "records")


def elements(data: bytes, count: int, records: Any) -> Any:
    """Of the envelope kernel."""
    items = [Element() for _ in range(count)]
    read, position = records.envelope_kernel.read_elements(
        items, exact(data), 0, "index", "records"
    )
    return read, position, [(x.index, bytes(x.records)) for x in items[:read]]


def read_whole(data: bytes, records: Any) -> Any:
    """The road of a reader: header, checksum, codec, records."""
    view = exact(data)
    header = records.header.parse_header(view)
    checked = records.header.check_crc(view, 0, header)
    return checked, [tuple(record) for record in records.reading.read_batch(view, 0, header)]


def drawn_exercise(draw: random.Random) -> Exercise:
    kind = draw.randrange(5)
    if kind == 0:
        return partial(rows_of, drawn_log(draw), 1 + draw.randrange(30), draw.randrange(2) == 0)
    if kind == 1:
        sizes = (0, 1, 5, 126, 127, 128, 300)
        parts = [
            draw.randbytes(4) + encode_uvarint(size + 1) + draw.randbytes(size) + b"\0"
            for size in draw.choices(sizes, k=draw.randrange(6))
        ]
        return partial(elements, mutated(draw, b"\1" + b"".join(parts)), draw.randrange(8))
    if kind == 2:
        return partial(read_whole, mutated(draw, drawn_batch(draw, draw.choice(CODECS))))
    batch = drawn_batch(draw)
    count = struct.unpack_from(">i", batch, 57)[0]
    data = mutated(draw, batch[HEADER_BYTES:])
    count = draw.choice((count, count, count, count + 1, 0, -1, 2**31 - 1))
    start = draw.choice((0, 0, 0, min(1, len(data)), len(data)))
    base = draw.choice((0, 0, 1000, LARGE - 3))
    if kind == 3:
        append_time = draw.choice((None, None, 1234))
        return partial(walked, data, start, count, base, append_time, 1 + draw.randrange(20))
    return partial(compacted, data, start, count, base)


@pytest.mark.parametrize("seed", seeds(4))
def test_compiled_kernels_find_what_their_sources_find(seed: int) -> None:
    draw = random.Random(seed)
    for case in range(CASES_A_SEED):
        exercise = drawn_exercise(draw)
        # What is changed in place is made anew for either.
        compiled, plain = outcome(exercise, installed()), outcome(exercise, interpreted())
        assert compiled == plain, (seed, case, exercise)
