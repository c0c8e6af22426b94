# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The compaction kernel: the last offset of every key, and batches without what it replaced.

Like the record kernel one source that runs compiled, without the interpreter lock, or as it is. It
works on the table of places that `RecordWalk.places` fills (12 int64 a record) and on the bytes
the places point to, at most a table at a time: that is the slice of uncompiled work.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # the installation has neither a compiled kernel nor Cython
    from kwire.protocol.records import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        PyBUF_SIMPLE,
        PyBUF_WRITABLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.libc.string import memcpy
else:
    from hashlib import blake2b

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    out: cython.pointer[cython.uchar],
    at: cython.Py_ssize_t,
    p: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    if cython.compiled:
        memcpy(out + at, p + start, size)
    else:
        out[at : at + size] = p[start : start + size]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _subtract(left: cython.longlong, right: cython.longlong) -> cython.longlong:
    """Difference of two int64 that wraps, as Kafka's timestamp deltas do."""
    if cython.compiled:
        return cython.cast(
            cython.longlong,
            cython.cast(cython.ulonglong, left) - cython.cast(cython.ulonglong, right),
        )
    else:
        return ((left - right + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_length(value: cython.longlong) -> cython.int:
    """Bytes of `value` as a zigzag varint."""
    size: cython.int = 1
    if value < 0:
        value = -(value + 1)
    while value >= 64:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(
    out: cython.pointer[cython.uchar], at: cython.Py_ssize_t, value: cython.longlong
) -> cython.Py_ssize_t:
    """Write `value` as a zigzag varint at `at`; the position behind it."""
    size: cython.int = _varint_length(value)
    i: cython.int
    negative: cython.longlong = 0
    if value < 0:
        negative = 1
        value = -(value + 1)
    # The lowest 6 bits with the sign below them, then 7 bits a byte.
    out[at] = ((value & 0x3F) << 1) | negative | (0x80 if size > 1 else 0)
    value >>= 6
    for i in range(1, size):
        out[at + i] = (value & 0x7F) | (0x80 if i < size - 1 else 0)
        value >>= 7
    return at + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _rotate(value: cython.ulonglong, bits: cython.int) -> cython.ulonglong:
    return (value << bits) | (value >> (64 - bits))


@cython.final
@cython.no_gc  # its memory cannot be part of a cycle, and must not be cleared while it is in use
@cython.cclass
class OffsetMap:
    """Last offset by key, in memory that is taken once and never grows.

    Open addressing over slots of 24 bytes: 128 bits of a keyed hash of the key, then its offset
    plus 1 (0 is an empty slot). Keys are not kept: with a secret `seed` of 16 bytes two keys are
    taken for one with a chance below 2**-64 in any map that fits a machine, and nobody can make
    it happen. Kafka's map is the same with MD5. Compiled the hash is SipHash-2-4 of 128 bits,
    uncompiled BLAKE2b; it never leaves the map.
    """

    _table: object
    _slots: cython.pointer[cython.ulonglong]
    _view: Py_buffer  # noqa: F821
    _held: cython.bint
    _seed: object
    _start0: cython.ulonglong
    _start1: cython.ulonglong
    _start2: cython.ulonglong
    _start3: cython.ulonglong
    _hash0: cython.ulonglong
    _hash1: cython.ulonglong
    capacity = cython.declare(cython.longlong, visibility="readonly")
    used = cython.declare(cython.longlong, visibility="readonly")
    used_max = cython.declare(cython.longlong, visibility="readonly")
    latest_offset = cython.declare(cython.longlong, visibility="public")

    def __init__(self, memory_bytes, seed, load_factor=0.9):
        if cython.compiled:  # noqa: SIM102 (decided when it is compiled)
            if self._held:
                raise RuntimeError("an offset map is set up once")
        if len(seed) != 16:
            raise ValueError("the seed has 16 bytes")
        self.capacity = memory_bytes // 24
        self.used_max = int((memory_bytes // 24) * load_factor)
        if self.used_max < 1:
            raise ValueError(f"{memory_bytes} bytes are too few for an offset map")
        self.used = 0
        self.latest_offset = -1
        self._seed = seed
        self._table = memoryview(bytearray(24 * self.capacity)).cast("Q")
        if cython.compiled:
            PyObject_GetBuffer(
                self._table, cython.address(self._view), PyBUF_SIMPLE | PyBUF_WRITABLE
            )
            self._slots = cython.cast(cython.pointer[cython.ulonglong], self._view.buf)
            low = int.from_bytes(seed[:8], "little")
            high = int.from_bytes(seed[8:], "little")
            self._start0 = low ^ 0x736F6D6570736575
            self._start1 = high ^ 0x646F72616E646F6D ^ 0xEE
            self._start2 = low ^ 0x6C7967656E657261
            self._start3 = high ^ 0x7465646279746573
        else:
            self._slots = self._table
        self._held = True

    def __dealloc__(self):
        if cython.compiled:  # noqa: SIM102 (decided when it is compiled)
            if self._held:
                PyBuffer_Release(cython.address(self._view))

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _hash(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        size: cython.longlong,
    ) -> cython.void:
        """128 bits of the `size` bytes at `start` into `_hash0` and `_hash1`."""
        if cython.compiled:
            self._siphash(p, start, size)
        else:
            digest = blake2b(p[start : start + size], digest_size=16, key=self._seed).digest()
            self._hash0 = int.from_bytes(digest[:8], "little")
            self._hash1 = int.from_bytes(digest[8:], "little")

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _siphash(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        start: cython.Py_ssize_t,
        size: cython.longlong,
    ) -> cython.void:
        """SipHash-2-4 with 128 bits: words, last word with the length, two finalizations."""
        v0: cython.ulonglong = self._start0
        v1: cython.ulonglong = self._start1
        v2: cython.ulonglong = self._start2
        v3: cython.ulonglong = self._start3
        word: cython.ulonglong
        byte: cython.ulonglong
        words: cython.longlong = size // 8
        step: cython.longlong
        rounds: cython.int
        i: cython.int
        _i: cython.int
        for step in range(words + 3):
            word = 0
            rounds = 2
            if step < words:
                for i in range(8):
                    byte = p[start + 8 * step + i]
                    word |= byte << (8 * i)
            elif step == words:
                for i in range(size - 8 * words):
                    byte = p[start + 8 * words + i]
                    word |= byte << (8 * i)
                byte = size & 0xFF
                word |= byte << 56
            elif step == words + 1:
                v2 ^= 0xEE
                rounds = 4
            else:
                v1 ^= 0xDD
                rounds = 4
            v3 ^= word
            for _i in range(rounds):
                v0 += v1
                v1 = _rotate(v1, 13) ^ v0
                v0 = _rotate(v0, 32)
                v2 += v3
                v3 = _rotate(v3, 16) ^ v2
                v0 += v3
                v3 = _rotate(v3, 21) ^ v0
                v2 += v1
                v1 = _rotate(v1, 17) ^ v2
                v2 = _rotate(v2, 32)
            v0 ^= word
            if step == words + 1:
                self._hash0 = v0 ^ v1 ^ v2 ^ v3
            elif step == words + 2:
                self._hash1 = v0 ^ v1 ^ v2 ^ v3

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _find(self) -> cython.longlong:
        """The slot of the key hashed last, or the empty one where it would go."""
        slots = self._slots
        slot: cython.longlong
        h0: cython.ulonglong = self._hash0
        capacity: cython.ulonglong = self.capacity
        slot = h0 % capacity
        while slots[3 * slot + 2] != 0:
            if slots[3 * slot] == h0 and slots[3 * slot + 1] == self._hash1:
                return slot
            slot += 1
            if slot == self.capacity:
                slot = 0
        return slot

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _put(self, offset: cython.longlong) -> cython.bint:
        """Set the offset of the key hashed last; False when there is no room for a new one."""
        slots = self._slots
        slot: cython.longlong = self._find()
        if slots[3 * slot + 2] == 0:
            if self.used >= self.used_max:
                return False
            self.used += 1
            slots[3 * slot] = self._hash0
            slots[3 * slot + 1] = self._hash1
        slots[3 * slot + 2] = offset + 1
        if offset > self.latest_offset:
            self.latest_offset = offset
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _get(self) -> cython.longlong:
        """The offset of the key hashed last, -1 without one."""
        slots = self._slots
        slot: cython.longlong = self._find()
        if cython.compiled:
            return cython.cast(cython.longlong, slots[3 * slot + 2]) - 1
        else:
            return slots[3 * slot + 2] - 1

    def put(self, key: cython.const[cython.uchar][::1], offset):
        """Remember `offset` (0 or more) as the last one of `key`; False when the map is full."""
        self._hash_key(key)
        return self._put(offset)

    def get(self, key: cython.const[cython.uchar][::1]):
        """The last offset of `key`, -1 when it has none."""
        self._hash_key(key)
        return self._get()

    def digest(self, key: cython.const[cython.uchar][::1]):
        """The 16 bytes that stand for `key` in this map."""
        self._hash_key(key)
        return self._hash0.to_bytes(8, "little") + self._hash1.to_bytes(8, "little")

    @cython.cfunc
    def _hash_key(self, key: cython.const[cython.uchar][::1]):
        if cython.compiled:
            self._hash(cython.address(key[0]), 0, key.shape[0])
        else:
            self._hash(key, 0, len(key))


@cython.final
@cython.cclass
class Selection:
    """What `select` retained of a batch so far."""

    count = cython.declare(cython.longlong, visibility="readonly")
    size_bytes = cython.declare(cython.longlong, visibility="readonly")
    tombstones = cython.declare(cython.longlong, visibility="readonly")
    first_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")

    def __init__(self):
        self.count = self.size_bytes = self.tombstones = 0
        self.first_timestamp = self.max_timestamp = -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _add(
        self, row: cython.pointer[cython.const[cython.longlong]], at: cython.Py_ssize_t
    ) -> cython.void:
        if self.count == 0:
            self.first_timestamp = row[at + 1]
        self.count += 1
        self.size_bytes += row[at + 3] - row[at + 2]
        if row[at + 9] < 0:
            self.tombstones += 1
        if row[at + 1] > self.max_timestamp:
            self.max_timestamp = row[at + 1]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fits(
    places: cython.pointer[cython.const[cython.longlong]],
    rows: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.bint:
    """Whether all places lie in a buffer of `size` bytes."""
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    for row in range(rows):
        at = 12 * row
        if (
            places[at + 2] < 0
            or places[at + 2] > places[at + 4]
            or places[at + 4] > places[at + 5]
            or places[at + 5] > places[at + 6]
            or places[at + 6] > places[at + 3]
            or places[at + 7] > places[at + 3] - places[at + 6]
            or places[at + 3] > size
        ):
            return False
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rows_fit(
    places: cython.pointer[cython.const[cython.longlong]],
    rows: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.bint:
    """Whether all keys of the row kernel's table lie in a buffer of `size` bytes."""
    row: cython.Py_ssize_t
    for row in range(rows):
        if places[5 * row + 1] < 0 or places[5 * row + 1] > size:
            return False
        if places[5 * row + 2] > size - places[5 * row + 1]:
            return False
    return True


def index_keys(
    data: cython.const[cython.uchar][::1],
    table: cython.const[cython.longlong][::1],
    rows: cython.Py_ssize_t,
    offsets: OffsetMap,
    offset_min: cython.longlong,
):
    """Put the offsets of the keys of `rows` records, from `offset_min` on, into the map.

    Returns how many rows it went through: fewer than `rows` when the map had no place for one.
    """
    row: cython.Py_ssize_t = 0
    if len(table) < 12 * rows:
        raise ValueError(f"{rows} rows in {len(table)} integers")
    if cython.compiled:
        places = cython.address(table[0])
        p = cython.address(data[0])
    else:
        places = table
        p = data
    if not _fits(places, rows, len(data)):
        raise ValueError("the table belongs to another buffer")
    with cython.nogil:
        while row < rows:
            if places[12 * row + 7] >= 0 and places[12 * row] >= offset_min:
                offsets._hash(p, places[12 * row + 6], places[12 * row + 7])
                if not offsets._put(places[12 * row]):
                    break
            row += 1
    return row


def select(
    data: cython.const[cython.uchar][::1],
    table: cython.const[cython.longlong][::1],
    rows: cython.Py_ssize_t,
    offsets: OffsetMap,
    keep_tombstones: cython.bint,
    flags: cython.uchar[::1],
    first: cython.Py_ssize_t,
    selection: Selection,
):
    """Set to 1 the flag, from `first` on, of every one of `rows` records that is retained.

    Retained is what lies behind the map's latest offset, and the last record of a key unless it
    is a tombstone and those are not kept; a record without a key is not.
    """
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    if first < 0 or len(flags) < first + rows or len(table) < 12 * rows:
        raise ValueError(f"{len(flags)} flags, {len(table)} integers for {first + rows} records")
    if cython.compiled:
        places = cython.address(table[0])
        p = cython.address(data[0])
    else:
        places = table
        p = data
    if not _fits(places, rows, len(data)):
        raise ValueError("the table belongs to another buffer")
    with cython.nogil:
        for row in range(rows):
            at = 12 * row
            if places[at] <= offsets.latest_offset:
                if places[at + 7] < 0 or (places[at + 9] < 0 and not keep_tombstones):
                    continue
                offsets._hash(p, places[at + 6], places[at + 7])
                if places[at] < offsets._get():
                    continue
            flags[first + row] = 1
            selection._add(places, at)


def index_rows(
    data: cython.const[cython.uchar][::1],
    table: cython.const[cython.longlong][::1],
    rows: cython.Py_ssize_t,
    offsets: OffsetMap,
):
    """`index_keys` over the table of the row kernel; what the map has no place for is left out."""
    row: cython.Py_ssize_t
    if len(table) < 5 * rows:
        raise ValueError(f"{rows} rows in {len(table)} integers")
    if rows == 0:
        return
    if cython.compiled:
        places = cython.address(table[0])
        p = cython.address(data[0])
    else:
        places = table
        p = data
    if not _rows_fit(places, rows, len(data)):
        raise ValueError("the table belongs to another buffer")
    with cython.nogil:
        for row in range(rows):
            if places[5 * row + 2] >= 0:
                offsets._hash(p, places[5 * row + 1], places[5 * row + 2])
                offsets._put(places[5 * row])


def latest_rows(
    data: cython.const[cython.uchar][::1],
    table: cython.longlong[::1],
    rows: cython.Py_ssize_t,
    offsets: OffsetMap,
    tombstones: cython.bint,
):
    """Move the rows that the map knows no later one of to the front of the table, in their order;
    returns how many. With `tombstones` every one of those is kept, too; rows without a key never.
    """
    row: cython.Py_ssize_t
    i: cython.Py_ssize_t
    kept: cython.Py_ssize_t = 0
    if len(table) < 5 * rows:
        raise ValueError(f"{rows} rows in {len(table)} integers")
    if rows == 0:
        return 0
    if cython.compiled:
        places = cython.address(table[0])
        p = cython.address(data[0])
    else:
        places = table
        p = data
    if not _rows_fit(places, rows, len(data)):
        raise ValueError("the table belongs to another buffer")
    with cython.nogil:
        for row in range(rows):
            if places[5 * row + 2] < 0:
                continue
            if not (tombstones and places[5 * row + 4] < 0):
                offsets._hash(p, places[5 * row + 1], places[5 * row + 2])
                if places[5 * row] < offsets._get():
                    continue
            if kept < row:
                for i in range(5):
                    places[5 * kept + i] = places[5 * row + i]
            kept += 1
    return kept


def rewrite(
    data: cython.const[cython.uchar][::1],
    table: cython.const[cython.longlong][::1],
    rows: cython.Py_ssize_t,
    flags: cython.const[cython.uchar][::1],
    first: cython.Py_ssize_t,
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    verbatim: cython.bint,
):
    """Copy those of `rows` records whose flag, from `first` on, is not 0 to `out` at `at`.

    Offset deltas stay; timestamps count from `base_timestamp`, or with `verbatim` the whole record
    stays. Returns the position behind them. `out` must have 24 bytes more than each record has.
    """
    row: cython.Py_ssize_t
    size: cython.Py_ssize_t
    delta: cython.longlong
    room: cython.Py_ssize_t = len(out)
    if first < 0 or len(flags) < first + rows or len(table) < 12 * rows:
        raise ValueError(f"{len(flags)} flags, {len(table)} integers for {first + rows} records")
    if cython.compiled:
        places = cython.address(table[0])
        p = cython.address(data[0])
        target = cython.address(out[0])
    else:
        places = table
        p = data
        target = out
    if at < 0 or not _fits(places, rows, len(data)):
        raise ValueError("the table belongs to another buffer")
    with cython.nogil:
        for row in range(rows):
            if flags[first + row] == 0:
                continue
            if room - at < places[12 * row + 3] - places[12 * row + 2] + 24:
                at = -1
                break
            if verbatim:
                size = places[12 * row + 3] - places[12 * row + 2]
                _copy(target, at, p, places[12 * row + 2], size)
                at += size
                continue
            delta = _subtract(places[12 * row + 1], base_timestamp)
            size = places[12 * row + 3] - places[12 * row + 5]
            at = _put_varint(target, at, 1 + _varint_length(delta) + size)
            target[at] = p[places[12 * row + 4]]
            at = _put_varint(target, at + 1, delta)
            _copy(target, at, p, places[12 * row + 5], size)
            at += size
    if at < 0:
        raise ValueError(f"{room} bytes are too few for the records")
    return at
