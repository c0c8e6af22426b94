"""A coordinator's log reduced to the records that decide its state, before any is decoded.

Of plain records the last of each key counts. The commits of a transaction count when its marker
commits it, then like plain ones at their own offset; a plain deletion also takes the pending ones
of its key; what is pending at the end stays with its producer. Replaying the survivors in the order
of their offsets gives the state that replaying everything gives, but for one thing: a simple group
(one without records of its own) whose offsets are all gone is not remembered. After compaction,
which leaves the same records, it would not be either.

Memory is that of the live keys and values. Tombstones are kept, as a deletion may have to reach
what is left in front of it.

With an `OffsetMap` the log is gone through twice: `index` notes the last offset of each plain key,
`steps` then takes in the records that nothing plain replaces. Both are compiled loops without the
interpreter's lock, for a thread; what is left for Python is about as much as there are live keys.
What a record that is left out would have done to transactions, the one that replaces it does; but
a tombstone ends what is pending at its place, and is kept while something is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from kwire.coordinator.shard_interface import NO_PRODUCER_ID, Shard
from kwire.protocol import coordinator_records
from kwire.protocol.records import BatchHeader, parse_header, read_batch
from kwire.protocol.records.compaction_kernel import OffsetMap, index_rows, latest_rows
from kwire.protocol.records.control import ControlType, parse_control
from kwire.protocol.records.row_kernel import FULL, OTHER, ROW_FIELDS, RowScan

TABLE_ROWS = 1024

# offset and value of a record
Entry = tuple[int, bytes | None]
# offset, key, value, producer id and epoch of one to be replayed
Survivor = tuple[int, bytes, bytes | None, int, int]


class LogReduction:
    """Takes the batches of a log in order, then replays what counts into a shard."""

    def __init__(self, offsets: OffsetMap | None = None) -> None:
        self.record_count = 0
        self._offsets = offsets
        # Plain records, in the order of their offsets: what is replaced moves to the end.
        self._latest: dict[bytes, Entry] = {}
        # Records of transactions that were committed, unless a later plain one replaced them.
        self._settled: dict[bytes, Entry] = {}
        # producer id -> (epoch, its records)
        self._pending: dict[int, tuple[int, dict[bytes, Entry]]] = {}
        self._table = memoryview(bytearray(8 * ROW_FIELDS * TABLE_ROWS)).cast("q")

    def index(self, data: bytes, offset: int) -> int:
        """Note the last offset of the keys of plain records; the next offset."""
        assert self._offsets is not None
        scan = RowScan()
        reached = offset
        status = FULL
        while status != 1:
            status = scan.step(data, len(data), self._table)
            if scan.rows:
                index_rows(data, self._table, scan.rows, self._offsets)
                reached = self._table[ROW_FIELDS * (scan.rows - 1)] + 1
            if status == OTHER:
                header = parse_header(data, scan.position)
                reached = header.next_offset
                scan.position += header.size_bytes
        return reached

    def take(self, data: bytes, offset: int) -> int:
        """All of `steps`; the next offset."""
        reached = offset
        for step in self.steps(data, offset):
            reached = step
        return reached

    def steps(self, data: bytes, offset: int) -> Iterator[int]:
        """Take in the whole batches of `data` from `offset` on; yields the next offset, after at
        most TABLE_ROWS records each time. Raises what reading a malformed batch raises."""
        scan = RowScan()
        reached = offset
        status = FULL
        while status != 1:
            status = scan.step(data, len(data), self._table)
            if scan.rows:
                reached = self._take_rows(data, scan.rows, offset)
                yield reached
            if status == OTHER:
                header = parse_header(data, scan.position)
                if header.next_offset > offset:
                    self._take_batch(data, scan.position, header, offset)
                    reached = header.next_offset
                scan.position += header.size_bytes
                yield reached

    def _take_rows(self, data: bytes, count: int, offset_min: int) -> int:
        """Plain records by the kernel's table; the next offset."""
        self.record_count += count
        reached = self._table[ROW_FIELDS * (count - 1)] + 1
        if self._offsets is not None:
            tombstones = bool(self._pending)
            count = latest_rows(data, self._table, count, self._offsets, tombstones)
        rows = self._table[: ROW_FIELDS * count].tolist()
        latest = self._latest
        others = bool(self._pending or self._settled)
        for i in range(0, len(rows), ROW_FIELDS):
            offset, key_at, key_size, value_at, value_size = rows[i : i + ROW_FIELDS]
            if key_size < 0 or offset < offset_min:
                continue
            key = data[key_at : key_at + key_size]
            if key in latest:
                del latest[key]
            value = data[value_at : value_at + value_size] if value_size >= 0 else None
            latest[key] = (offset, value)
            if others:
                self._replace_others(key, value)
        return reached

    def _take_batch(self, data: bytes, position: int, header: BatchHeader, offset_min: int) -> None:
        """A batch that is not for the kernel: a marker, a transaction's, a compressed one."""
        if header.is_control:
            for record in read_batch(data, position, header):
                kind = parse_control(record).type
                if kind in (ControlType.ABORT, ControlType.COMMIT):
                    self._end_transaction(header.producer_id, kind == ControlType.COMMIT)
            return
        for record in read_batch(data, position, header):
            if record.key is None or record.offset < offset_min:
                continue
            self.record_count += 1
            key, entry = bytes(record.key), (record.offset, record.value)
            if record.value is None or not header.is_transactional:
                self._latest.pop(key, None)
                self._latest[key] = entry
                self._replace_others(key, record.value)
            else:
                mine = self._pending.setdefault(header.producer_id, (header.producer_epoch, {}))
                mine[1][key] = entry

    def _replace_others(self, key: bytes, value: bytes | None) -> None:
        """A plain record replaces what was committed; a deletion also what is pending."""
        self._settled.pop(key, None)
        if value is None:
            for _, records in self._pending.values():
                records.pop(key, None)

    def _end_transaction(self, producer_id: int, commit: bool) -> None:
        _, records = self._pending.pop(producer_id, (0, {}))
        if not commit:
            return
        for key, entry in records.items():
            existing = self._latest.get(key) or self._settled.get(key)
            if existing is None or entry[0] > existing[0]:
                self._latest.pop(key, None)
                self._settled[key] = entry

    def replay_steps(self, shard: Shard, module: str) -> Iterator[int]:
        """Replay what counts into `shard`, a record a step; yields its offset plus 1. Raises as
        decoding does."""
        plain = (
            (offset, key, value, NO_PRODUCER_ID, -1)
            for key, (offset, value) in self._latest.items()
        )
        others = [
            (offset, key, value, NO_PRODUCER_ID, -1)
            for key, (offset, value) in self._settled.items()
        ]
        for producer_id, (epoch, records) in self._pending.items():
            others += [
                (offset, key, value, producer_id, epoch) for key, (offset, value) in records.items()
            ]
        others.sort(key=_offset_of)
        self._latest, self._settled, self._pending = {}, {}, {}
        merged = heapq.merge(plain, others, key=_offset_of)
        for offset, raw_key, raw_value, producer_id, epoch in merged:
            key = coordinator_records.decode_key(module, raw_key)
            value = None
            if raw_value is not None:
                value = coordinator_records.decode_value(module, key.API_KEY, raw_value)
            shard.replay(key, value, offset, producer_id, epoch)
            yield offset + 1


def _offset_of(survivor: Survivor) -> int:
    return survivor[0]
