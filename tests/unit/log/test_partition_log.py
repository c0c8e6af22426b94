"""Appending, rolling, look-ups and reads of one log."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from kwire.log.partition.config import LogConfig
from kwire.log.types import FetchSlices, Isolation, Origin
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import (
    Codec,
    Record,
    build_batch,
    check_crc,
    iterate_headers,
    parse_header,
    read_batch,
)
from kwire.protocol.records.validation import InvalidRecordsError
from tests.support.logs import NOW_MS, World, client_batch, read_all


def _read(world: World, offset: int, bytes_max: int = 1 << 20, **options: Any) -> FetchSlices:
    slices = world.log.read(offset, bytes_max, **options)
    assert isinstance(slices, FetchSlices)
    return slices


def _append(world: World, count: int = 1, **options: Any) -> Any:
    info = world.append(count, **options)
    world.scheduler.turn()
    return info


def _code(world: World, batch: Any, **options: Any) -> ErrorCode:
    before = world.log.next_offset
    with pytest.raises(KafkaError) as caught:
        world.log.append_as_leader(batch, leader_epoch=0, **options)
    assert world.log.next_offset == before
    return caught.value.code


# -- appending ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [memoryview, bytearray, bytes, lambda b: [memoryview(b)]])
def test_any_kind_of_memory_is_taken(kind: Any) -> None:
    world = World()
    for _ in range(2):
        world.log.append_as_leader(kind(bytearray(client_batch(2))), leader_epoch=3)
    world.scheduler.turn()
    headers = [h for _, h in iterate_headers(_read(world, 0).buffers[0])]
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 3), (2, 3)]
    assert all(check_crc(b, 0, parse_header(b)) for b in _read(world, 0).buffers)


@pytest.mark.parametrize("codec", list(Codec))
def test_the_short_way_and_the_long_way_agree(codec: Codec) -> None:
    world = World()
    records = [Record(0, NOW_MS + i, b"k", b"v" * 50, [("h", b"x")]) for i in range(5)]
    plain = build_batch(records, codec=codec)
    world.log.append_as_leader(memoryview(bytearray(plain)), leader_epoch=1)
    world.log.append_as_leader(bytes(plain), leader_epoch=1)
    world.scheduler.turn()
    data = b"".join(bytes(b) for b in _read(world, 0).buffers)
    first, second = [data[p : p + h.size_bytes] for p, h in iterate_headers(data)]
    assert first[8:] == second[8:]
    assert [r.value for r in read_batch(first)] == [b"v" * 50] * 5


def _broken(**changes: Any) -> bytearray:
    """A client's batch with one thing wrong, its checksum right."""
    from kwire.protocol.records.header import HEADER, compute_crc

    batch = bytearray(client_batch(3))
    names_ = (
        "base",
        "length",
        "epoch",
        "magic",
        "crc",
        "attributes",
        "delta",
        "base_timestamp",
        "max_timestamp",
        "producer",
        "producer_epoch",
        "sequence",
        "count",
    )
    fields = dict(zip(names_, HEADER.unpack_from(batch), strict=True)) | changes
    HEADER.pack_into(batch, 0, *fields.values())
    batch[17:21] = compute_crc(batch, 0, len(batch)).to_bytes(4, "big")
    return batch


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (_broken(base=5), ErrorCode.INVALID_RECORD),
        (_broken(delta=4), ErrorCode.INVALID_RECORD),
        (_broken(count=2), ErrorCode.INVALID_RECORD),
        (_broken(count=-1), ErrorCode.INVALID_RECORD),
        (_broken(delta=-1, count=0), ErrorCode.INVALID_RECORD),
        (_broken(attributes=0x20), ErrorCode.INVALID_RECORD),
        (_broken(attributes=7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (_broken(attributes=1), ErrorCode.INVALID_RECORD),
        (_broken(producer=4, producer_epoch=0, sequence=-1), ErrorCode.INVALID_RECORD),
        (bytearray(client_batch(3)[:-1]), ErrorCode.CORRUPT_MESSAGE),
        (bytearray(client_batch(3)) + b"xyz", ErrorCode.CORRUPT_MESSAGE),
        (bytearray(client_batch(1)) + bytearray(client_batch(1)), ErrorCode.INVALID_RECORD),
        (bytearray(), ErrorCode.INVALID_RECORD),
        (bytearray(70), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_refused_batches(batch: bytearray, code: ErrorCode) -> None:
    world = World()
    assert _code(world, memoryview(batch)) == code
    assert read_all(world.log) == []
    _append(world)


def test_a_flipped_bit_anywhere_is_noticed() -> None:
    world = World()
    original = bytes(client_batch(2))
    for position in range(17, len(original)):
        batch = bytearray(original)
        batch[position] ^= 0x10
        assert _code(world, memoryview(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_sizes() -> None:
    world = World(config=LogConfig(max_message_bytes=500, segment_bytes=2000))
    assert _code(world, client_batch(1, value=bytes(500))) == ErrorCode.MESSAGE_TOO_LARGE
    _append(world, 1, value=bytes(400))
    world = World(config=LogConfig(segment_bytes=500))
    assert _code(world, client_batch(1, value=bytes(500))) == ErrorCode.RECORD_LIST_TOO_LARGE


def test_compacted_topics_need_keys() -> None:
    world = World(config=LogConfig(cleanup_policy=("compact",)))
    records = [Record(0, NOW_MS, b"k", b""), Record(0, NOW_MS, None, b""), Record(0, NOW_MS)]
    with pytest.raises(InvalidRecordsError) as caught:
        world.log.append_as_leader(memoryview(build_batch(records)), leader_epoch=0)
    assert caught.value.code == ErrorCode.INVALID_RECORD
    reason = (
        f"Compacted topic cannot accept message without key in topic partition {world.log.name}"
    )
    assert caught.value.record_errors == [(1, reason), (2, reason)]
    assert caught.value.message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=1, message='{reason}'), "
        f"RecordError(batchIndex=2, message='{reason}')]"
    ), "measured on Apache Kafka 4.4"


def test_timestamps_out_of_range() -> None:
    world = World(
        config=LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=2000)
    )
    for delta, fits in ((-1001, False), (-1000, True), (2000, True), (2001, False)):
        batch = client_batch(1, timestamp=world.clock.now_ms + delta)
        if fits:
            world.log.append_as_leader(batch, leader_epoch=0)
        else:
            assert _code(world, batch) == ErrorCode.INVALID_TIMESTAMP


def test_append_time() -> None:
    world = World(config=LogConfig(message_timestamp_type="LogAppendTime"))
    info = _append(world, 2, timestamp=5)
    assert info.log_append_time_ms == world.clock.now_ms
    (buffer,) = _read(world, 0).buffers
    header = parse_header(buffer)
    assert header.is_log_append_time
    assert check_crc(buffer, 0, header)
    assert [r.timestamp for r in read_batch(buffer)] == [world.clock.now_ms] * 2
    assert _append(World()).log_append_time_ms == -1


@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topics_codec_replaces_the_producers(name: str) -> None:
    world = World(config=LogConfig(compression_type=name))
    expected = {"uncompressed": "NONE"}.get(name, name.upper())
    for codec in Codec:
        _append(world, 4, codec=codec, value=b"abc" * 40)
    headers = [h for _, h in iterate_headers(_read(world, 0).buffers[0])]
    assert [h.codec.name for h in headers] == [expected] * 5
    assert [value for _, value in read_all(world.log)] == [b"abc" * 40] * 20


def test_raft_may_append_several_batches_at_once() -> None:
    world = World()
    batches = b"".join(bytes(client_batch(2)) for _ in range(3))
    info = world.log.append_as_leader(
        memoryview(bytearray(batches)), leader_epoch=4, origin=Origin.RAFT
    )
    world.scheduler.turn()
    assert (info.base_offset, info.last_offset) == (0, 5)
    assert world.log.leader_epochs.entries == [(4, 0)]


def test_followers_keep_what_they_get() -> None:
    leader, follower = World(), World()
    for epoch in (1, 1, 3):
        leader.append(
            2, epoch=epoch, producer_id=5, producer_epoch=0, base_sequence=leader.log.next_offset
        )
        leader.scheduler.turn()
    data = bytes(_read(leader, 0).buffers[0])
    follower.log.append_as_follower(data)
    follower.scheduler.turn()
    assert bytes(_read(follower, 0).buffers[0]) == data
    assert follower.log.leader_epochs.entries == [(1, 0), (3, 4)]
    assert follower.log.producers.entries[5].last_sequence == 5
    for bad in (data, data[:-1], data[:-1] + b"x"):
        with pytest.raises(KafkaError) as caught:
            follower.log.append_as_follower(bad)
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert follower.log.log_end_offset == 6


def test_followers_refuse_falling_epochs() -> None:
    world = World()
    newer = build_batch([Record(0, NOW_MS)], base_offset=0, leader_epoch=5)
    older = build_batch([Record(1, NOW_MS)], base_offset=1, leader_epoch=4)
    world.log.append_as_follower(newer)
    with pytest.raises(KafkaError) as caught:
        world.log.append_as_follower(older)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_followers_take_gaps_that_compaction_left() -> None:
    world = World()
    for offset in (0, 7, 2**32):
        batch = build_batch([Record(offset, NOW_MS)], base_offset=offset, leader_epoch=0)
        world.log.append_as_follower(batch)
        world.scheduler.turn()
    assert [offset for offset, _ in read_all(world.log)] == [0, 7, 2**32]
    assert len(world.log.segments) == 2, "an index holds offsets of 31 bits"
    assert _read(world, 3).next_offset == 8


# -- rolling --------------------------------------------------------------------------------------


def test_rolls_by_size() -> None:
    size = len(client_batch(1))
    world = World(config=LogConfig(segment_bytes=3 * size))
    for _ in range(7):
        _append(world)
    assert world.log.segments.bases == [0, 3, 6]
    sizes = [world.disk.size_of(world.path(".log", base)) for base in (0, 3, 6)]
    assert sizes == [3 * size, 3 * size, size]


def test_rolls_by_the_batches_timestamps() -> None:
    world = World(config=LogConfig(segment_ms=1000))
    for delta in (0, 1000, 1001, 500, 2001, 2002):
        _append(world, timestamp=NOW_MS + delta)
    assert world.log.segments.bases == [0, 2, 5]
    world.reopen()
    _append(world, timestamp=NOW_MS + 3002)
    assert world.log.segments.bases == [0, 2, 5]
    _append(world, timestamp=NOW_MS + 3003)
    assert world.log.segments.bases == [0, 2, 5, 7]


def test_jitter_shortens_a_segments_life() -> None:
    world = World(config=LogConfig(segment_ms=1000, segment_jitter_ms=500))
    world.log.local.jitter_share = 4 * 2**32 // 5 + 1
    for delta in (0, 600, 601):
        _append(world, timestamp=NOW_MS + delta)
    assert world.log.segments.bases == [0, 2]


@pytest.mark.parametrize("share", [0, 2**31, 2**32 * 99 // 100])
def test_jitter_leaves_a_segment_an_age(share: int) -> None:
    """A segment.jitter.ms above segment.ms rolled a segment an append (Kafka: never)."""
    world = World(config=LogConfig(segment_ms=3_600_000, segment_jitter_ms=86_400_000))
    world.log.local.jitter_share = share
    for delta in range(20):
        _append(world, timestamp=NOW_MS + delta)
    assert world.log.segments.bases == [0]


def test_a_jitter_that_fitted_does_not_outgrow_a_lowered_age() -> None:
    world = World(config=LogConfig(segment_ms=3_600_000, segment_jitter_ms=1_800_000))
    world.log.local.jitter_share = 2**32 * 9 // 10
    world.log.reconfigure(LogConfig(segment_ms=1000, segment_jitter_ms=1_800_000))
    for delta in range(20):
        _append(world, timestamp=NOW_MS + delta)
    assert world.log.segments.bases == [0]


def test_rolls_when_an_index_is_full() -> None:
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=60)
    world = World(config=config)
    for at in range(20):
        _append(world, timestamp=NOW_MS + at)
    assert world.log.segments.bases == [0, 5, 10, 15]
    for base in (0, 5, 10):
        assert world.disk.size_of(world.path(".index", base)) == 4 * 8
        assert world.disk.size_of(world.path(".timeindex", base)) == 4 * 12


def test_sealed_files_are_trimmed_and_the_active_ones_at_the_stop() -> None:
    world = World(config=LogConfig(index_interval_bytes=0))
    for at in range(600):
        _append(world, timestamp=NOW_MS + at)
    for suffix, size in ((".index", 10_485_760), (".timeindex", 10_485_756)):
        assert world.disk.size_of(world.path(suffix)) == size, "allocated in full, as Kafka does"
    world.log.roll()
    assert world.disk.size_of(world.path(".index")) == 599 * 8
    assert world.disk.size_of(world.path(".timeindex")) == 599 * 12
    _append(world)
    world.log.close()
    assert world.disk.size_of(world.path(".index", 600)) == 0
    assert world.disk.size_of(world.path(".timeindex", 600)) == 12


def test_rolling_an_empty_log_changes_nothing() -> None:
    world = World()
    world.log.roll()
    assert world.log.segments.bases == [0]
    _append(world)
    world.log.roll()
    world.log.roll()
    assert world.log.segments.bases == [0, 1]


# -- look-ups -------------------------------------------------------------------------------------


def test_offsets_by_timestamp_agree_with_a_scan() -> None:
    world = World(config=LogConfig(segment_bytes=600, index_interval_bytes=100))
    draw = [5, 3, 9, 9, 1, 30, 20, 25, 40, 2, 40, 41, 39, 60, 8]
    for at, delta in enumerate(draw * 3):
        _append(world, timestamp=NOW_MS - 10**6 + delta * 10 + at // 15 * 300)
    rows = [
        (record.timestamp, record.offset)
        for buffer in _read(world, 0, 1 << 20).buffers
        for position, header in iterate_headers(buffer)
        for record in read_batch(buffer, position, header)
    ]
    offset = _read(world, 0).next_offset
    while offset < world.log.log_end_offset:
        slices = _read(world, offset)
        rows += [
            (r.timestamp, r.offset)
            for b in slices.buffers
            for p, h in iterate_headers(b)
            for r in read_batch(b, p, h)
        ]
        offset = slices.next_offset
    assert len(rows) == 45
    for _ in range(2):
        for timestamp in range(NOW_MS - 10**6 - 5, NOW_MS - 10**6 + 1300, 7):
            expected = next((row for row in rows if row[0] >= timestamp), None)
            found = world.log.offset_for_timestamp(timestamp)
            assert (found and (found.timestamp, found.offset)) == expected
        largest = max(row[0] for row in rows)
        found = world.log.max_timestamp_offset()
        assert found is not None
        assert (found.timestamp, found.offset) == next(r for r in rows if r[0] == largest)
        world.reopen()


def test_look_ups_in_an_empty_log() -> None:
    log = World().log
    assert log.offset_for_timestamp(0) is None
    assert log.max_timestamp_offset() is None
    assert log.end_offset_for_epoch(0) == (-1, -1)


def test_look_up_skips_deleted_records() -> None:
    world = World()
    _append(world, 5, timestamp=NOW_MS)
    world.log.update_high_watermark(5)
    world.log.delete_records_before(3)
    found = world.log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 3


# -- reading --------------------------------------------------------------------------------------


def test_reads_are_cut_at_batches() -> None:
    world = World(config=LogConfig(index_interval_bytes=100))
    size = len(client_batch(2))
    for _ in range(20):
        _append(world, 2)
    assert _read(world, 0, 3 * size + 5).size_bytes == 3 * size
    assert _read(world, 5, 3 * size).next_offset == 10
    assert _read(world, 0, 1).next_offset == 2, "at least one batch"
    assert _read(world, 0, 0).next_offset == 2
    assert _read(world, 0, size - 1, min_one=False).size_bytes == 0
    assert _read(world, 0, 0, min_one=False).size_bytes == 0
    assert _read(world, 0, size, min_one=False).size_bytes == size
    assert _read(world, 40).size_bytes == 0


def test_a_batch_larger_than_the_limit_comes_whole() -> None:
    world = World()
    _append(world, 1, value=bytes(300_000))
    slices = _read(world, 0, 1000)
    assert slices.size_bytes > 300_000
    assert check_crc(slices.buffers[0], 0, parse_header(slices.buffers[0]))


def test_reads_see_no_more_than_their_isolation() -> None:
    world = World()
    for _ in range(5):
        _append(world, 2)
    world.log.update_high_watermark(4)
    assert _read(world, 0, isolation=Isolation.HIGH_WATERMARK).next_offset == 4
    assert _read(world, 4, isolation=Isolation.HIGH_WATERMARK).size_bytes == 0
    assert _read(world, 6, isolation=Isolation.HIGH_WATERMARK).size_bytes == 0
    assert _read(world, 0, isolation=Isolation.LOG_END).next_offset == 10
    for offset in (-1, 11):
        with pytest.raises(KafkaError) as caught:
            world.log.read(offset, 100)
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_high_watermark_stays_inside_the_log() -> None:
    world = World()
    _append(world, 5)
    assert world.log.update_high_watermark(9) == 5
    assert world.log.update_high_watermark(-3) == 0
    assert world.log.update_high_watermark(3) == 3


def test_truncation_in_the_middle_of_an_older_segment() -> None:
    world = World(config=LogConfig(segment_bytes=600, index_interval_bytes=100))
    for at in range(30):
        _append(world, 2, epoch=at // 10)
    world.log.update_high_watermark(60)
    world.log.truncate_to(24)
    assert world.log.log_end_offset == world.log.high_watermark == 24
    assert world.log.leader_epochs.entries == [(0, 0), (1, 20)]
    info = _append(world, 1, epoch=5)
    assert info.base_offset == 24
    assert len(read_all(world.log)) == 25
    world.kill(recovery_point=20)
    assert len(read_all(world.log)) == 25
    assert world.log.leader_epochs.entries == [(0, 0), (1, 20), (5, 24)]


def test_beginning_anew_elsewhere() -> None:
    world = World()
    _append(world, 5, producer_id=3, producer_epoch=0, base_sequence=0)
    world.log.truncate_fully_and_start_at(100)
    assert (world.log.log_start_offset, world.log.log_end_offset) == (100, 100)
    assert world.log.active_producers() == []
    assert world.log.leader_epochs.entries == []
    assert _append(world, epoch=4).base_offset == 100
    world.reopen()
    assert [offset for offset, _ in read_all(world.log)] == [100]


def test_a_changed_config_counts_from_the_next_batch() -> None:
    world = World()
    _append(world, 5)
    world.log.reconfigure(
        LogConfig(segment_bytes=100, max_message_bytes=95, compression_type="lz4")
    )
    assert _code(world, client_batch(1, value=bytes(50))) == ErrorCode.MESSAGE_TOO_LARGE
    _append(world)
    assert world.log.segments.bases == [0, 5]


def test_the_limits_hold_for_a_batch_that_was_compressed_anew() -> None:
    world = World()
    plain = client_batch(1)
    size = len(plain)
    world.log.reconfigure(LogConfig(max_message_bytes=size, compression_type="lz4"))
    assert _code(world, plain) == ErrorCode.MESSAGE_TOO_LARGE
    world.log.reconfigure(LogConfig(segment_bytes=size, compression_type="lz4"))
    assert _code(world, client_batch(1)) == ErrorCode.RECORD_LIST_TOO_LARGE
    assert world.log.next_offset == 0


def test_config_from_kafkas_names() -> None:
    config = LogConfig.from_values(
        {
            "cleanup.policy": ["compact", "delete"],
            "segment.bytes": 1 << 20,
            "internal.segment.bytes": 4096,
            "message.timestamp.type": "LogAppendTime",
            "min.cleanable.dirty.ratio": 0.25,
            "follower.replication.throttled.replicas": [],
        }
    )
    assert (config.compacts, config.deletes, config.is_log_append_time) == (True, True, True)
    assert (config.segment_bytes, config.min_cleanable_dirty_ratio) == (4096, 0.25)


def test_a_cold_read_is_made_off_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kwire.log.segment.reading.WARM_BYTES", 0)
    world = World()
    for at in range(5):
        _append(world, 2, value=b"%d" % at)
    world.disk.is_cached = lambda handle, position, size_bytes: False  # type: ignore[method-assign]
    world.scheduler.holds_jobs = True
    pending = world.log.read(4, 100, may_wait=True)
    assert isinstance(pending, Pending)
    assert not pending.done
    assert isinstance(world.log.read(4, 100), FetchSlices), "who cannot wait blocks"
    world.scheduler.run_jobs()
    assert pending.result().next_offset == 6
    # What happened meanwhile counts.
    pending = world.log.read(0, 100, may_wait=True)
    world.log.update_high_watermark(10)
    world.log.delete_records_before(3)
    world.scheduler.run_jobs()
    assert isinstance(pending, Pending)
    error = pending.error()
    assert isinstance(error, KafkaError)
    assert error.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_first_batch_of_an_epoch_replaces_no_file() -> None:
    """A node that takes over thousands of partitions has one such batch in each."""
    world = World()
    world.append(epoch=0)
    world.scheduler.turn()
    calls: list[str] = []

    def count(operation: str, path: str) -> None:
        calls.append(operation)

    world.disk.fault = count
    for epoch in (2, 3):
        world.log.assign_epoch(epoch)
        world.append(epoch=epoch)
        world.scheduler.turn()
    assert set(calls) == {"pwritev"}
    assert world.log.local.epoch_file.content is None
    world.disk.fault = None
    world.kill()
    assert world.log.leader_epochs.entries == [(0, 0), (2, 1), (3, 2)]


@pytest.mark.parametrize("how", ["flush", "stop", "power loss"])
def test_an_epoch_is_in_its_file_before_nobody_reads_its_batches_again(how: str) -> None:
    world = World()
    world.append(epoch=0)
    world.scheduler.turn()
    world.append(epoch=2)
    world.scheduler.turn()
    if how == "stop":
        world.reopen()
    else:
        world.log.flush()
        world.scheduler.turn()
        assert world.log.recovery_point == 2
        if how == "power loss":
            world.disk.crash()
        world.kill(recovery_point=2)
    assert world.log.leader_epochs.entries == [(0, 0), (2, 1)]
    assert world.log.local.epoch_file.content == b"0\n2\n0 0\n2 1\n"


def test_the_recovery_point_stays_while_an_epoch_cannot_be_saved() -> None:
    world = World()
    world.append(epoch=0)
    world.scheduler.turn()
    world.log.flush()
    world.scheduler.turn()
    world.append(epoch=2)
    world.scheduler.turn()

    def full(operation: str, path: str) -> OSError | None:
        is_epochs = "leader-epoch" in path
        return OSError(errno.ENOSPC, "no room") if is_epochs and operation != "unlink" else None

    world.disk.fault = full
    world.log.flush()
    world.scheduler.turn()
    assert world.log.is_short
    assert world.log.recovery_point == 1
    world.disk.fault = None
    world.log.resume_appends()
    world.log.flush()
    world.scheduler.turn()
    assert not world.log.is_short
    assert world.log.recovery_point == 2
    world.kill(recovery_point=2)
    assert world.log.leader_epochs.entries == [(0, 0), (2, 1)]


def test_becoming_leader_writes_nothing_until_there_is_a_batch() -> None:
    """A node with 10,000 partitions becomes leader of all of them at once when it starts."""
    world = World()
    world.append()
    world.scheduler.turn()
    world.log.assign_epoch(1)
    calls: list[str] = []

    def count(operation: str, path: str) -> None:
        calls.append(f"{operation} {path}")

    world.disk.fault = count
    for epoch in (2, 3):
        world.log.assign_epoch(epoch)
    assert calls == []
    assert world.log.leader_epochs.entries == [(0, 0), (3, 1)]
    assert world.log.end_offset_for_epoch(2) == (0, 1)
    world.append(epoch=3)
    world.scheduler.turn()
    world.log.flush()
    world.scheduler.turn()
    assert world.log.recovery_point == 2
    world.kill(recovery_point=2)
    assert world.log.leader_epochs.entries == [(0, 0), (3, 1)]
    world.log.assign_epoch(4)
    world.reopen()
    assert world.log.leader_epochs.entries == [(0, 0), (3, 1)]
    # One that contradicts what is saved is saved at once: nothing of it may come back.
    world.append(epoch=4)
    world.scheduler.turn()
    world.log.truncate_to(2)
    world.log.assign_epoch(5)
    world.kill(recovery_point=2)
    assert world.log.leader_epochs.entries == [(0, 0), (3, 1)]


def test_the_start_of_the_log_and_of_its_local_part_move_together() -> None:
    """Nothing is kept elsewhere yet: with tiers the local part will begin later."""
    world = World(config=LogConfig(segment_bytes=200))
    starts = []

    def note() -> None:
        world.scheduler.turn()
        assert world.log.local_log_start_offset == world.log.log_start_offset
        starts.append(world.log.log_start_offset)

    for _ in range(6):
        _append(world, 2)
    world.scheduler.turn()
    world.log.update_high_watermark(12)
    note()
    world.log.delete_records_before(5)
    note()
    world.log.delete_old_segments(NOW_MS)
    note()
    world.reopen()
    note()
    world.log.truncate_fully_and_start_at(20)
    note()
    world.log.truncate_to(7)
    note()
    assert starts == [0, 5, 5, 5, 20, 7]
