# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The scan kernel: the chain of batches in a region of a log, with or without their checksums.

For recovery, verification and the rebuilding of indexes. One source that runs compiled, without
the interpreter lock and with a checksum of its own (eight tables, about 1.5 GB/s; of batches of
16 KB and more the library's, which is 20 times as fast but needs the lock to be called), or as it
is with the checksums of libraries. A step fills a table with at most `limit` batches.

A row has 14 int64: position, size, base offset, last offset, leader epoch, magic, attributes, base
timestamp, max timestamp, producer id, producer epoch, base sequence, record count, CRC. For magic
0 and 1 base and last offset are the message's, the count is 1 or, for a wrapper, -1.

Statuses: DONE (the region ends behind a batch), RUNNING (limit reached), TORN (the region ends
inside the batch at `position`), CORRUPT (the bytes at `position` cannot be a batch), BAD_CRC
(the batch at `position` is whole but its checksum is wrong). `position` is where to go on.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # the installation has neither a compiled kernel nor Cython
    from kwire.protocol.records import cython_shim as cython

from crc32c import crc32c

if not cython.compiled:
    from zlib import crc32

COMPILED: bool = cython.compiled

_DONE = cython.declare(cython.int, 1)
_RUNNING = cython.declare(cython.int, 0)
_TORN = cython.declare(cython.int, -1)
_CORRUPT = cython.declare(cython.int, -2)
_BAD_CRC = cython.declare(cython.int, -3)
_LARGE = cython.declare(cython.int, 2)  # inside: the row is read, its checksum still to be checked
_LARGE_BYTES = cython.declare(cython.Py_ssize_t, 16384)
DONE = 1
RUNNING = 0
TORN = -1
CORRUPT = -2
BAD_CRC = -3

ROW_FIELDS = 14
_COLUMNS = cython.declare(cython.int, 14)


def _tables(polynomial):
    """Eight tables of 256 for a reflected CRC-32, one behind the other."""
    first = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (polynomial if value & 1 else 0)
        first.append(value)
    values = list(first)
    for table in range(1, 8):
        for byte in range(256):
            previous = values[256 * (table - 1) + byte]
            values.append((previous >> 8) ^ first[previous & 0xFF])
    return values


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _integer(
    p: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.int
) -> cython.longlong:
    """The big-endian signed integer of `size` bytes at `at`."""
    value: cython.ulonglong = 0
    i: cython.int
    if cython.compiled:
        for i in range(size):
            value = (value << 8) | p[at + i]
        if size == 4:
            return cython.cast(cython.int, value)
        if size == 2:
            return cython.cast(cython.short, value)
        return cython.cast(cython.longlong, value)
    else:
        return int.from_bytes(p[at : at + size], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unsigned(
    p: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t
) -> cython.longlong:
    """The big-endian uint32 at `at`."""
    high: cython.longlong = p[at]
    middle: cython.longlong = p[at + 1]
    return (high << 24) | (middle << 16) | (p[at + 2] << 8) | p[at + 3]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _last_offset(base: cython.longlong, delta: cython.longlong) -> cython.longlong:
    """base + delta; it wraps where nobody writes such offsets, as Kafka's does."""
    if cython.compiled:
        return cython.cast(
            cython.longlong,
            cython.cast(cython.ulonglong, base) + cython.cast(cython.ulonglong, delta),
        )
    else:
        total = base + delta
        if -0x8000000000000000 <= total <= 0x7FFFFFFFFFFFFFFF:
            return total
        return ((total + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


@cython.final
@cython.cclass
class Tables:
    """The tables of both checksums, made once: CRC-32C, then from 2048 on CRC-32."""

    words: cython.uint[4096]

    def __init__(self):
        if cython.compiled:
            i: cython.int
            values = _tables(0x82F63B78) + _tables(0xEDB88320)
            for i in range(4096):
                self.words[i] = values[i]


_made = []


def _shared_tables():
    if not _made:
        _made.append(Tables())
    return _made[0]


@cython.final
@cython.cclass
class BatchScan:
    """A place in a region of batches. `verify` checks the checksum of each batch."""

    position = cython.declare(cython.Py_ssize_t, visibility="readonly")
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _verify: cython.bint
    _tables: Tables

    def __init__(self, position=0, verify=False):
        self.position = position
        self.rows = 0
        self._verify = verify
        self._tables = _shared_tables() if verify else None

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _checksum(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        at: cython.Py_ssize_t,
        end: cython.Py_ssize_t,
        is_legacy: cython.bint,
    ) -> cython.longlong:
        """CRC-32C, or CRC-32 for `is_legacy`, of the bytes from `at` to `end`."""
        if cython.compiled:
            t = cython.address(self._tables.words[2048 if is_legacy else 0])
            crc: cython.uint = 0xFFFFFFFF
            low: cython.uint
            while end - at >= 8:
                low = p[at + 3]
                low = (low << 8) | p[at + 2]
                low = (low << 8) | p[at + 1]
                low = (low << 8) | p[at]
                low ^= crc
                crc = (
                    t[1792 + (low & 0xFF)]
                    ^ t[1536 + ((low >> 8) & 0xFF)]
                    ^ t[1280 + ((low >> 16) & 0xFF)]
                    ^ t[1024 + (low >> 24)]
                    ^ t[768 + p[at + 4]]
                    ^ t[512 + p[at + 5]]
                    ^ t[256 + p[at + 6]]
                    ^ t[p[at + 7]]
                )
                at += 8
            while at < end:
                crc = (crc >> 8) ^ t[(crc ^ p[at]) & 0xFF]
                at += 1
            return ~crc
        else:
            return crc32(p[at:end]) if is_legacy else crc32c(p[at:end])

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _next(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        end: cython.Py_ssize_t,
        row: cython.pointer[cython.longlong],
        k: cython.Py_ssize_t,
    ) -> cython.int:
        """Read the batch at `position` into the row that starts at `k`."""
        at: cython.Py_ssize_t = self.position
        size: cython.Py_ssize_t
        magic: cython.int
        if at >= end:
            return _DONE
        if end - at < 12:
            return _TORN
        size = _integer(p, at + 8, 4) + 12
        if size < 26:
            return _CORRUPT
        if end - at < 17:
            return _TORN
        magic = p[at + 16]
        if magic > 2 or (magic == 2 and size < 61) or (magic == 1 and size < 34):
            return _CORRUPT
        if size > end - at:
            return _TORN
        row[k] = at
        row[k + 1] = size
        row[k + 2] = _integer(p, at, 8)
        row[k + 5] = magic
        if magic == 2:
            row[k + 3] = _last_offset(row[k + 2], _integer(p, at + 23, 4))
            row[k + 4] = _integer(p, at + 12, 4)
            row[k + 6] = _integer(p, at + 21, 2)
            row[k + 7] = _integer(p, at + 27, 8)
            row[k + 8] = _integer(p, at + 35, 8)
            row[k + 9] = _integer(p, at + 43, 8)
            row[k + 10] = _integer(p, at + 51, 2)
            row[k + 11] = _integer(p, at + 53, 4)
            row[k + 12] = _integer(p, at + 57, 4)
            row[k + 13] = _unsigned(p, at + 17)
            if self._verify and size >= _LARGE_BYTES:
                return _LARGE
            if self._verify and self._checksum(p, at + 21, at + size, False) != row[k + 13]:
                return _BAD_CRC
        else:
            row[k + 3] = row[k + 2]
            row[k + 4] = row[k + 9] = row[k + 10] = row[k + 11] = -1
            row[k + 6] = p[at + 17]
            row[k + 7] = row[k + 8] = -1 if magic == 0 else _integer(p, at + 18, 8)
            row[k + 12] = -1 if row[k + 6] & 7 else 1
            row[k + 13] = _unsigned(p, at + 12)
            if self._verify and self._checksum(p, at + 16, at + size, True) != row[k + 13]:
                return _BAD_CRC
        self.position = at + size
        return _RUNNING

    def step(
        self,
        data: cython.const[cython.uchar][::1],
        end: cython.Py_ssize_t,
        table: cython.longlong[::1],
        limit: cython.Py_ssize_t,
    ):
        """Read at most `limit` batches of `data` up to `end` into `table`; `rows` says how many."""
        status: cython.int = _RUNNING
        row: cython.Py_ssize_t
        if end > len(data) or self.position < 0 or len(table) < limit * _COLUMNS:
            raise ValueError(f"{end} of {len(data)} bytes, {limit} rows in {len(table)} integers")
        self.rows = 0
        if self.position >= end:
            return _DONE
        if limit <= 0:
            return _RUNNING
        if cython.compiled:
            p = cython.address(data[0])
            places = cython.address(table[0])
        else:
            p = data
            places = table
        while self.rows < limit:
            with cython.nogil:
                while self.rows < limit:
                    status = self._next(p, end, places, self.rows * _COLUMNS)
                    if status != _RUNNING:
                        break
                    self.rows += 1
            if status != _LARGE:
                break
            row = self.rows * _COLUMNS
            behind: cython.Py_ssize_t = self.position + table[row + 1]
            with memoryview(data) as view:
                found = crc32c(view[self.position + 21 : behind])
            if found != table[row + 13]:
                return _BAD_CRC
            self.position = behind
            self.rows += 1
            status = _RUNNING
        if status == _RUNNING and self.position >= end:
            return _DONE
        return status
