# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The row kernel: where the keys and values of many small batches lie.

For readers that want every record of a log with the least work per batch (a coordinator that loads
its partition: most batches of those logs hold one record). One source that runs compiled or as it
is. A step goes over plain batches - magic 2, uncompressed, neither control nor transactional - and
fills a table; any other batch, and one that is not well formed, is left to the caller.

A row has 5 int64: offset, start and size of the key, start and size of the value (-1 is null).

Statuses: DONE (the region ends behind a batch, or inside of one), FULL (the table has no room for
the next batch), OTHER (the batch at the returned position is for the caller).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # the installation has neither a compiled kernel nor Cython
    from kwire.protocol.records import cython_shim as cython

COMPILED: bool = cython.compiled

DONE = 1
FULL = 0
OTHER = -1

ROW_FIELDS = 5
_HEADER = cython.declare(cython.Py_ssize_t, 61)
_OFFSET_MAX = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
# Compression, transactional, control.
_NOT_PLAIN = cython.declare(cython.int, 0x37)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _int(
    p: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t, size: cython.int
) -> cython.longlong:
    """A big-endian signed integer of `size` bytes."""
    value: cython.ulonglong = 0
    i: cython.int
    for i in range(size):
        value = (value << 8) | p[at + i]
    if cython.compiled:
        if size == 4:
            return cython.cast(cython.int, cython.cast(cython.uint, value))
        return cython.cast(cython.longlong, value)
    else:
        limit = 1 << (8 * size - 1)
        return value - 2 * limit if value >= limit else value


@cython.final
@cython.cclass
class RowScan:
    """Goes over a region; `position` is where to go on, `rows` what the last step put out."""

    position = cython.declare(cython.Py_ssize_t, visibility="public")
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _at: cython.Py_ssize_t

    def __init__(self, position=0):
        self.position = position
        self.rows = 0
        self._at = 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _varint(
        self, p: cython.pointer[cython.const[cython.uchar]], end: cython.Py_ssize_t
    ) -> cython.longlong:
        """The zigzag varint at `_at`, which moves behind it, or past `end` for a malformed one."""
        value: cython.ulonglong = 0
        byte: cython.ulonglong
        shift: cython.int = 0
        at: cython.Py_ssize_t = self._at
        while at < end and shift < 64:
            byte = p[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._at = at
                if cython.compiled:
                    return cython.cast(cython.longlong, (value >> 1) ^ (0 - (value & 1)))
                else:
                    value &= 0xFFFFFFFFFFFFFFFF
                    return (value >> 1) ^ -(value & 1)
            shift += 7
        self._at = end + 1
        return -1

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _record(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        end: cython.Py_ssize_t,
        base: cython.longlong,
        table: cython.pointer[cython.longlong],
        row: cython.Py_ssize_t,
    ) -> cython.bint:
        """One record at `_at` into the table; False when it is malformed."""
        size: cython.longlong = self._varint(p, end)
        record_end: cython.Py_ssize_t
        delta: cython.longlong
        if size < 0 or self._at > end or size > end - self._at:
            return False
        record_end = self._at + size
        self._at += 1
        self._varint(p, record_end)
        delta = self._varint(p, record_end)
        if delta < 0 or delta > 0x7FFFFFFF or self._at > record_end:
            return False
        if delta > _OFFSET_MAX - base:
            return False  # no int64 holds its offset
        table[row] = base + delta
        size = self._varint(p, record_end)
        if size < -1 or self._at > record_end or size > record_end - self._at:
            return False
        table[row + 1] = self._at
        table[row + 2] = size
        if size > 0:
            self._at += size
        size = self._varint(p, record_end)
        if size < -1 or self._at > record_end or size > record_end - self._at:
            return False
        table[row + 3] = self._at
        table[row + 4] = size
        self._at = record_end
        return True

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _batch(
        self,
        p: cython.pointer[cython.const[cython.uchar]],
        end: cython.Py_ssize_t,
        table: cython.pointer[cython.longlong],
        rows_max: cython.Py_ssize_t,
    ) -> cython.int:
        """The batch at `position`: 1 when its records are in the table, or a status plus 10."""
        start: cython.Py_ssize_t = self.position
        length: cython.longlong
        count: cython.longlong
        base: cython.longlong
        row: cython.Py_ssize_t
        batch_end: cython.Py_ssize_t
        if end - start < 17:
            return 10 + 1
        length = _int(p, start + 8, 4)
        if length < 0:
            return 10 - 1
        if length > end - start - 12:
            return 10 + 1
        batch_end = start + 12 + length
        if p[start + 16] != 2 or batch_end - start < _HEADER or p[start + 22] & _NOT_PLAIN:
            return 10 - 1
        count = _int(p, start + 57, 4)
        base = _int(p, start, 8)
        if count < 0 or count > rows_max or base < 0:
            return 10 - 1
        if count > rows_max - self.rows:
            return 10 + 0
        self._at = start + _HEADER
        for row in range(count):
            if not self._record(p, batch_end, base, table, 5 * (self.rows + row)):
                return 10 - 1
        if self._at != batch_end:
            return 10 - 1
        self.rows += count
        self.position = batch_end
        return 1

    def step(
        self,
        data: cython.const[cython.uchar][::1],
        end: cython.Py_ssize_t,
        table: cython.longlong[::1],
    ):
        """Fill `table` from the batches between `position` and `end` of `data`; the status."""
        status: cython.int = 1
        rows_max: cython.Py_ssize_t = len(table) // 5
        self.rows = 0
        if end > len(data) or self.position < 0 or self.position > end:
            raise ValueError(f"no region of {len(data)} bytes")
        if end == self.position:
            return DONE
        if rows_max < 1:
            raise ValueError("the table has no room for a row")
        if cython.compiled:
            p = cython.address(data[0])
            out = cython.address(table[0])
        else:
            p = data
            out = table
        with cython.nogil:
            while status == 1:
                status = self._batch(p, end, out, rows_max)
        return status - 10
