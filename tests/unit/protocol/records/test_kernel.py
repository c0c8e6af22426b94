"""The record kernel as step functions, and the reports of single records at fault."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from kwire.protocol.errors import ErrorCode, KafkaError
from tests.support.kernels import installed, interpreted, record_packages

packages = pytest.mark.parametrize("records", record_packages())


def payload_of(records: Any, count: int, **fields: Any) -> bytes:
    made = [
        records.Record(index, 1000 + (index * 7) % 50, b"key%d" % index, b"v" * (index % 90))
        for index in range(count)
    ]
    made = [
        record._replace(**fields) if index % 3 == 1 else record for index, record in enumerate(made)
    ]
    return bytes(records.build_batch(made)[61:])


def test_the_second_life_is_the_source_and_needs_no_cython() -> None:
    package = interpreted()
    for name in ("kernel", "compaction_kernel", "row_kernel"):
        module = getattr(package, name)
        assert not module.COMPILED
        assert module.__file__ is None or module.__file__.endswith(".py")
        assert module.cython.__name__ == "kwire.protocol.records.cython_shim"
        assert getattr(installed(), name) is not module


@packages
@pytest.mark.parametrize("limit", [1, 2, 7, 99, 100, 101, 10_000])
def test_every_slicing_gives_the_same(records: Any, limit: int) -> None:
    kernel = records.kernel
    data = payload_of(records, 100)
    walk = kernel.RecordWalk(data, 0, len(data), 100, 50, 1000)
    status, steps = kernel.RUNNING, 0
    while status == kernel.RUNNING:
        status = walk.validate(limit)
        steps += 1
    assert status == kernel.DONE
    assert steps == -(-100 // limit)
    assert (walk.max_timestamp, walk.max_timestamp_index) == (1049, 7)
    assert walk.consecutive
    assert walk.position == len(data)

    walk = kernel.RecordWalk(data, 0, len(data), 100, 50, 1000)
    rows: list[Any] = []
    status = kernel.RUNNING
    while status == kernel.RUNNING:
        status, part = walk.read(limit)
        rows += part
    assert status == kernel.DONE
    assert [row[0] for row in rows] == list(range(50, 150))
    assert [row[2] for row in rows] == [b"key%d" % index for index in range(100)]

    table = memoryview(bytearray(96 * limit)).cast("q")
    walk = kernel.RecordWalk(data, 0, len(data), 100, 50, 1000)
    places: list[Any] = []
    status = kernel.RUNNING
    while status == kernel.RUNNING:
        status = walk.places(table, limit)
        places += [tuple(table[12 * row : 12 * row + 12]) for row in range(walk.rows)]
    assert [data[place[6] : place[6] + place[7]] for place in places] == [row[2] for row in rows]
    assert [data[place[8] : place[8] + place[9]] for place in places] == [row[3] for row in rows]
    assert [place[1] for place in places] == [row[1] for row in rows]
    assert places[0][2] == 0
    assert places[-1][3] == len(data)


@packages
def test_records_at_fault_are_reported_one_by_one(records: Any) -> None:
    kernel = records.kernel
    data = payload_of(records, 9, key=None)
    walk = kernel.RecordWalk(data, 0, len(data), 9, 0, 1000)
    found = []
    while (status := walk.validate(100, True)) != kernel.DONE:
        assert status == kernel.NULL_KEY
        found.append(walk.index - 1)
    assert found == [1, 4, 7]

    data = payload_of(records, 9, timestamp=-1)
    walk = kernel.RecordWalk(data, 0, len(data), 9, 0, 1000)
    found = []
    while (status := walk.validate(100, False, 1010, 1040)) != kernel.DONE:
        assert status == kernel.TIMESTAMP
        found.append((walk.index - 1, walk.timestamp))
    assert found == [(0, 1000), (6, 1042), (8, 1006)], "-1 is no time and never out of range"


@packages
def test_counts_and_remains(records: Any) -> None:
    kernel = records.kernel
    data = payload_of(records, 5)
    assert kernel.RecordWalk(data, 0, len(data), 6).validate(100) == kernel.SHORT
    assert kernel.RecordWalk(data, 0, len(data), 4).validate(100) == kernel.REMAINING
    assert kernel.RecordWalk(data, 0, len(data) - 1, 5).validate(100) == kernel.STRUCTURE
    assert kernel.RecordWalk(data, 0, 0, 0).validate(100) == kernel.DONE
    large = kernel.RecordWalk(data, 0, len(data), 5)
    assert large.validate(100, body_size_max=11) == kernel.TOO_LARGE


@packages
@pytest.mark.parametrize(("position", "end"), [(-1, 5), (3, 2), (0, 1000)])
def test_a_walk_stays_inside_its_buffer(records: Any, position: int, end: int) -> None:
    with pytest.raises(ValueError, match="records at"):
        records.kernel.RecordWalk(b"x" * 10, position, end, 1)


@packages
def test_tables_and_flags_that_are_too_small_are_refused(records: Any) -> None:
    data = payload_of(records, 5)
    table = memoryview(bytearray(96 * 2)).cast("q")
    walk = records.kernel.RecordWalk(data, 0, len(data), 5)
    with pytest.raises(ValueError, match="bytes for 3 rows"):
        walk.places(table, 3)
    walk.places(table, 2)
    offsets = records.compaction_kernel.OffsetMap(480, bytes(16))
    selection = records.compaction_kernel.Selection()
    with pytest.raises(ValueError, match="flags"):
        records.compaction_kernel.select(data, table, 2, offsets, True, bytearray(1), 0, selection)
    with pytest.raises(ValueError, match="too few"):
        records.compaction_kernel.rewrite(
            data, table, 2, bytearray(b"\1\1"), 0, bytearray(8), 0, 5, False
        )
    with pytest.raises(ValueError, match="rows"):
        records.compaction_kernel.index_keys(data, table, 3, offsets, 0)
    with pytest.raises(ValueError, match="another buffer"):
        records.compaction_kernel.index_keys(data[:9], table, 2, offsets, 0)
    with pytest.raises(ValueError, match="another buffer"):
        records.compaction_kernel.select(
            data[:9], table, 2, offsets, True, bytearray(2), 0, selection
        )


@packages
def test_a_walk_keeps_its_buffer_alive_and_in_place(records: Any) -> None:
    data = bytearray(payload_of(records, 3))
    walk = records.kernel.RecordWalk(data, 0, len(data), 3)
    if records.kernel.COMPILED:
        with pytest.raises(BufferError):
            data.clear()
    assert walk.validate(10) == records.kernel.DONE


def test_compiled_walks_of_large_batches_leave_the_interpreter_to_others() -> None:
    """No thread is made to give up the interpreter here: another one runs only if the walk does."""
    kernel = installed().kernel
    if not kernel.COMPILED:
        pytest.skip("the kernel is not compiled here")
    data = payload_of(installed(), 100) * 16_000
    go, seen = threading.Event(), []
    thread = threading.Thread(target=lambda: seen.append(go.wait()))
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        go.set()
        for _ in range(500):
            walk = kernel.RecordWalk(data, 0, len(data), 1_600_000)
            assert walk.validate(1_600_000) == kernel.DONE
            if seen:
                break
    finally:
        sys.setswitchinterval(interval)
    assert seen
    thread.join()


@packages
def test_a_validation_in_slices_says_the_same(records: Any) -> None:
    data = records.build_batch([records.Record(0, 5, b"k", b"v")] * 4000)
    header = records.parse_header(data)
    rules = records.AppendRules()
    options = {"client": True, "wall_ms": 9, "base_offset": 30, "leader_epoch": 2}
    steps = records.validation_steps(data, 0, header, rules, **options)
    slices = 0
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result = stop.value
            break
        slices += 1
    assert slices == (0 if records.kernel.COMPILED else 2)
    assert result.header.base_offset == 30
    assert result.info == (5, 30, 4000)


@packages
def test_read_only_memory_is_copied_before_it_is_stamped(records: Any) -> None:
    data = bytes(records.build_batch([records.Record(0, 5, b"k", b"v")]))
    header = records.parse_header(data)
    options = {"client": True, "wall_ms": 9, "base_offset": 30, "leader_epoch": 2}
    made = records.validate_for_append(data, 0, header, records.AppendRules(), **options)
    assert made.buffer is not data
    assert records.parse_header(data).base_offset == 0
    assert records.read_records(made.buffer)[0].offset == 30


@packages
def test_a_bomb_in_a_produce_request_is_refused(records: Any) -> None:
    data = records.build_batch(
        [records.Record(0, 5, b"k", bytes(8_000_000))], codec=records.Codec.ZSTD
    )
    header = records.parse_header(data)
    rules = records.AppendRules(size_max=1_000_000)
    options = {"client": True, "wall_ms": 9, "base_offset": 30, "leader_epoch": 2}
    with pytest.raises(KafkaError) as raised:
        records.validate_for_append(data, 0, header, rules, **options)
    assert raised.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
