"""Compaction and reduction against the plainest model: a dict of last offsets."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pytest

from tests.support.kernels import installed, record_packages

packages = pytest.mark.parametrize("records", record_packages())
SEED = bytes(range(16))


def make_log(records: Any, seed: int, **options: Any) -> list[bytearray]:
    rng = random.Random(seed)
    log, offset = [], rng.randrange(1000)
    for _ in range(rng.randrange(1, 25)):
        batch = []
        for _ in range(rng.randrange(1, 40)):
            key = None if rng.random() < 0.05 else b"key-%d" % rng.randrange(30)
            value = None if rng.random() < 0.2 else rng.randbytes(rng.randrange(200))
            headers = [("h", b"x"), ("", None)] if rng.random() < 0.2 else []
            time = 1_000_000 + rng.randrange(-5000, 5000)
            batch.append(records.Record(offset, time, key, value, headers))
            offset += rng.choice((1, 1, 1, 2, 90))
        log.append(
            records.build_batch(
                batch,
                base_offset=batch[0].offset,
                last_offset=batch[-1].offset + rng.randrange(2),
                codec=records.Codec(rng.randrange(5)),
                leader_epoch=3,
                producer_id=9,
                producer_epoch=1,
                base_sequence=4,
                **options,
            )
        )
        offset = records.parse_header(log[-1]).next_offset
    return log


def last_offsets(records: Any, log: list[bytearray], up_to: int | None = None) -> dict[bytes, int]:
    last: dict[bytes, int] = {}
    for batch in log:
        for record in records.read_batch(batch):
            if record.key is not None and (up_to is None or record.offset <= up_to):
                last[record.key] = record.offset
    return last


def retained(record: Any, last: dict[bytes, int], latest: int, keep_tombstones: bool) -> bool:
    if record.offset > latest:
        return True
    if record.key is None or (record.value is None and not keep_tombstones):
        return False
    return record.offset >= last[record.key]


@packages
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("append_time", [None, 123_456])
def test_filtering_is_what_the_model_says(records: Any, seed: int, append_time: int | None) -> None:
    options = {} if append_time is None else {"timestamp_type": 1, "append_time_ms": append_time}
    log = make_log(records, seed, **options)
    compaction = records.compaction
    offsets = records.compaction_kernel.OffsetMap(24 * 100, SEED)
    dirty = len(log) * 2 // 3 + 1
    for batch in log[:dirty]:
        assert compaction.index_batch(offsets, batch, 0, records.parse_header(batch))
    latest = offsets.latest_offset
    assert latest == records.parse_header(log[:dirty][-1]).last_offset
    last = last_offsets(records, log[:dirty])
    assert offsets.used == len(last)
    for batch in log:
        header = records.parse_header(batch)
        for keep in (True, False):
            left = compaction.filter_batch(
                batch, 0, header, offsets, keep_tombstones=keep, delete_horizon_ms=777
            )
            all_records = records.read_batch(batch)
            wanted = [r for r in all_records if retained(r, last, latest, keep)]
            assert left.records_read == len(all_records)
            assert left.records_retained == len(wanted)
            assert left.tombstones == sum(r.value is None for r in wanted)
            if not wanted:
                assert left.data is None
                continue
            made = records.parse_header(left.data)
            assert records.read_batch(left.data) == wanted
            assert records.check_crc(left.data, 0, made)
            assert made.delete_horizon_ms == (777 if left.tombstones else None)
            if left.original:
                assert bytes(left.data) == bytes(batch)
                continue
            changed = {
                "crc": made.crc,
                "size_bytes": made.size_bytes,
                "record_count": len(wanted),
                "max_timestamp": append_time or max(r.timestamp for r in wanted),
                "base_timestamp": 777 if left.tombstones else wanted[0].timestamp,
                "attributes": header.attributes | (0x40 if left.tombstones else 0),
            }
            assert made == header._replace(**changed)


@packages
def test_a_horizon_that_is_set_stays(records: Any) -> None:
    batch = records.build_batch(
        [records.Record(i, 50 + i, b"k%d" % i, None) for i in range(3)], delete_horizon_ms=999
    )
    offsets = records.compaction_kernel.OffsetMap(480, SEED)
    header = records.parse_header(batch)
    assert records.compaction.index_batch(offsets, batch, 0, header)
    offsets.put(b"k1", 70)
    left = records.compaction.filter_batch(
        batch, 0, header, offsets, keep_tombstones=True, delete_horizon_ms=5
    )
    made = records.parse_header(left.data)
    assert made.delete_horizon_ms == 999
    assert [(r.offset, r.timestamp) for r in records.read_batch(left.data)] == [(0, 50), (2, 52)]


@packages
def test_a_marker_can_be_given_a_horizon(records: Any) -> None:
    batch = records.control.end_transaction_marker(7, 1, True, 3, 5000, base_offset=20)
    header = records.parse_header(batch)
    made = records.compaction.with_delete_horizon(batch, 0, header, 8000)
    after = records.parse_header(made)
    assert after.delete_horizon_ms == 8000
    assert (after.last_offset, after.max_timestamp, after.is_control) == (20, 5000, True)
    assert records.read_batch(made) == records.read_batch(batch)


@packages
def test_a_full_map_stops_at_the_record_that_has_no_place(records: Any) -> None:
    batch = records.build_batch([records.Record(i, 1, b"k%d" % i, b"v") for i in range(20)])
    offsets = records.compaction_kernel.OffsetMap(24 * 10, SEED)
    assert offsets.capacity == 10
    header = records.parse_header(batch)
    assert not records.compaction.index_batch(offsets, batch, 0, header)
    assert (offsets.used, offsets.latest_offset) == (9, 8)
    left = records.compaction.filter_batch(batch, 0, header, offsets, keep_tombstones=True)
    assert left.original, "what lies behind the latest offset stays, so does every last one"
    assert not offsets.put(b"new", 91)
    assert offsets.put(b"k3", 90), "a key that has a place is moved"
    assert offsets.get(b"k3") == offsets.latest_offset == 90


@packages
def test_indexing_starts_where_the_dirty_part_does(records: Any) -> None:
    batch = records.build_batch([records.Record(i, 1, b"k%d" % i, b"v") for i in range(9)])
    offsets = records.compaction_kernel.OffsetMap(480, SEED)
    header = records.parse_header(batch)
    assert records.compaction.index_batch(offsets, batch, 0, header, offset_min=5)
    assert offsets.get(b"k4") == -1
    assert offsets.get(b"k5") == 5
    assert offsets.used == 4


@packages
def test_the_map_holds_what_it_says(records: Any) -> None:
    offsets = records.compaction_kernel.OffsetMap(24 * 5000, SEED)
    keys = [b"", b"a", b"a\0", bytes(7), bytes(8), bytes(9), bytes(300)]
    keys += [b"%d" % index for index in range(4000)]
    for offset, key in enumerate(keys):
        assert offsets.put(key, offset)
    assert [offsets.get(key) for key in keys] == list(range(len(keys)))
    assert offsets.get(b"absent") == -1
    assert offsets.used == len(keys)
    with pytest.raises(ValueError, match="16 bytes"):
        records.compaction_kernel.OffsetMap(480, b"short")
    with pytest.raises(ValueError, match="too few"):
        records.compaction_kernel.OffsetMap(10, SEED)


def siphash_2_4_128(key: bytes, data: bytes) -> bytes:
    """The reference: SipHash-2-4 with 128 bits of output, in plain integers."""
    mask = 2**64 - 1
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ 0xEE,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]

    def turn(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (64 - bits))) & mask

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & mask
            v[1] = turn(v[1], 13) ^ v[0]
            v[0] = turn(v[0], 32)
            v[2] = (v[2] + v[3]) & mask
            v[3] = turn(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & mask
            v[3] = turn(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & mask
            v[1] = turn(v[1], 17) ^ v[2]
            v[2] = turn(v[2], 32)

    tail = len(data) % 8
    padded = data + bytes(7 - tail) + bytes([len(data) & 0xFF])
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    high = v[0] ^ v[1] ^ v[2] ^ v[3]
    return low.to_bytes(8, "little") + high.to_bytes(8, "little")


def test_the_compiled_hash_is_siphash() -> None:
    """BLAKE2b where it is not compiled."""
    kernel = installed().compaction_kernel
    # From the reference implementation of its authors: key 00..0f, text empty and one zero byte.
    assert siphash_2_4_128(SEED, b"").hex() == "a3817f04ba25a8e66df67214c7550293"
    assert siphash_2_4_128(SEED, b"\0").hex() == "da87c1d86b99af44347659119b22fc45"
    for size in (0, 1, 7, 8, 9, 15, 16, 17, 255, 256, 300):
        key = hashlib.shake_128(b"%d" % size).digest(size)
        digest = kernel.OffsetMap(480, SEED).digest(key)
        if kernel.COMPILED:
            assert digest == siphash_2_4_128(SEED, key)
        else:
            assert digest == hashlib.blake2b(key, digest_size=16, key=SEED).digest()


@packages
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("memory_bytes", [None, 24 * 12])
def test_reduction_is_what_the_model_says(
    records: Any, seed: int, memory_bytes: int | None
) -> None:
    share = records.compaction.Share
    log = make_log(records, 100 + seed)
    rng = random.Random(seed)
    shares = [rng.choice([share.COMMITTED] * 5 + [share.OPEN, share.NONE]) for _ in log]
    batches = [
        (batch, 0, records.parse_header(batch), kind)
        for batch, kind in zip(log, shares, strict=True)
    ]
    committed = [batch for batch, kind in zip(log, shares, strict=True) if kind is share.COMMITTED]
    for keep in (False, True):
        given = list(
            records.compaction.reduce_log(
                batches, SEED, memory_bytes=memory_bytes, keep_tombstones=keep
            )
        )
        found = [record for _, part in given for record in part]
        assert [r.offset for r in found] == sorted(r.offset for r in found)
        state: dict[bytes, Any] = {}
        for record in (r for batch in committed for r in records.read_batch(batch)):
            if record.key is not None:
                state[record.key] = record
        opened = [
            record
            for batch, kind in zip(log, shares, strict=True)
            if kind is share.OPEN
            for record in records.read_batch(batch)
        ]
        open_offsets = {record.offset for record in opened}
        assert [r for r in found if r.offset in open_offsets] == opened
        rest = [r for r in found if r.offset not in open_offsets]
        replayed: dict[bytes, Any] = {}
        for record in rest:
            if record.key is not None:
                replayed[record.key] = record
        live = {key: r for key, r in state.items() if r.value is not None}
        assert {key: r for key, r in replayed.items() if r.value is not None} == live
        if memory_bytes is None:
            wanted = state if keep else live
            assert rest == sorted(wanted.values(), key=lambda record: record.offset)
