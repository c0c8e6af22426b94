# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The record kernel: what goes record by record through a batch of magic 2.

One source, two lives: compiled by Cython (`setup.py`; the loops then run without the interpreter
lock) or imported as it is. Either way a walk is a step function: `validate(limit)` and its like
handle at most `limit` records, keep their place in the object and return RUNNING when there is
more, so that uncompiled work can be cut into slices that do not hold up an event loop.

A record (varints are zigzag; lengths of -1 and below are null, as Kafka reads them):

| varint  | length of what follows               |
| int8    | attributes, unused                   |
| varlong | timestamp delta to the base timestamp|
| varint  | offset delta to the base offset      |
| varint  | key length, key                      |
| varint  | value length, value                  |
| varint  | header count                         |
| varint  | header key length (not null), key    | repeated
| varint  | header value length, value           |

Statuses: DONE (all records read and nothing left), RUNNING (limit reached), NULL_KEY and
TIMESTAMP (record `index - 1` offends; stepping on continues behind it), and the failures, below 0:
SHORT (the payload ends before `count` records), STRUCTURE (record `index` is malformed), REMAINING
(bytes after the last one), TOO_LARGE (record `index - 1` is larger than allowed).
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # the installation has neither a compiled kernel nor Cython
    from kwire.protocol.records import cython_shim as cython

if cython.compiled:
    from cython.cimports.cpython.buffer import (
        PyBUF_SIMPLE,
        PyBuffer_Release,
        PyObject_GetBuffer,
    )
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize

COMPILED: bool = cython.compiled

# Twice: C integers for the loops, Python ones for whoever asks.
_DONE = cython.declare(cython.int, 1)
_RUNNING = cython.declare(cython.int, 0)
_NULL_KEY = cython.declare(cython.int, 2)
_TIMESTAMP = cython.declare(cython.int, 3)
_SHORT = cython.declare(cython.int, -1)
_STRUCTURE = cython.declare(cython.int, -2)
_REMAINING = cython.declare(cython.int, -3)
_TOO_LARGE = cython.declare(cython.int, -4)
DONE = 1
RUNNING = 0
NULL_KEY = 2
TIMESTAMP = 3
SHORT = -1
STRUCTURE = -2
REMAINING = -3
TOO_LARGE = -4

# Below this many bytes a step keeps the interpreter lock: giving it up and taking it back would
# cost more than the walk.
_UNLOCKED_BYTES_MIN = cython.declare(cython.Py_ssize_t, 65536)

_TIMESTAMP_MAX = 0x7FFFFFFFFFFFFFFF


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(
    p: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    size_max: cython.int,
) -> cython.int:
    """Bytes of the varint at `position`; 0 when it runs into `end` or over `size_max`."""
    size: cython.int = 0
    while size < size_max and position < end:
        size += 1
        if p[position] < 0x80:
            return size
        position += 1
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unzigzag(
    p: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    size: cython.int,
    is_long: cython.bint,
) -> cython.longlong:
    """Value of the varint of `size` bytes as int32 or int64, whose bits beyond are lost."""
    value: cython.ulonglong = 0
    byte: cython.ulonglong
    i: cython.int
    for i in range(size):
        byte = p[position + i]
        value |= (byte & 0x7F) << (7 * i)
    if cython.compiled:
        if not is_long:
            value = cython.cast(cython.uint, value)
        return cython.cast(cython.longlong, (value >> 1) ^ (0 - (value & 1)))
    else:
        value &= 0xFFFFFFFFFFFFFFFF if is_long else 0xFFFFFFFF
        return (value >> 1) ^ -(value & 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _add(left: cython.longlong, right: cython.longlong) -> cython.longlong:
    """Sum of two int64 that wraps, as Kafka's timestamps and offsets do."""
    if cython.compiled:
        return cython.cast(
            cython.longlong,
            cython.cast(cython.ulonglong, left) + cython.cast(cython.ulonglong, right),
        )
    else:
        total = left + right
        if -0x8000000000000000 <= total <= 0x7FFFFFFFFFFFFFFF:
            return total
        return ((total + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


@cython.final
@cython.cclass
class Source:
    """A readable buffer, pinned as long as this object lives."""

    view: Py_buffer  # noqa: F821
    p: cython.pointer[cython.const[cython.uchar]]
    held: cython.bint
    size: cython.Py_ssize_t

    def __init__(self, data):
        if cython.compiled:
            if self.held:
                raise RuntimeError("a source is bound once")
            PyObject_GetBuffer(data, cython.address(self.view), PyBUF_SIMPLE)
            self.p = cython.cast(cython.pointer[cython.const[cython.uchar]], self.view.buf)
            self.size = self.view.len
        else:
            self.p = data
            self.size = len(data)
        self.held = True

    def __dealloc__(self):
        if cython.compiled:  # noqa: SIM102 (decided when it is compiled)
            if self.held:
                PyBuffer_Release(cython.address(self.view))


@cython.final
@cython.cclass
class RecordWalk:
    """A place in the uncompressed records of one batch: bytes `position` to `end` of `data`.

    `count` records are expected; `append_time` (else None) replaces every record's timestamp.
    Positions below are positions in `data`. `data` must not be resized or released meanwhile.
    """

    source: Source
    _p: cython.pointer[cython.const[cython.uchar]]
    position = cython.declare(cython.Py_ssize_t, visibility="readonly")
    end = cython.declare(cython.Py_ssize_t, visibility="readonly")
    index = cython.declare(cython.longlong, visibility="readonly")
    count = cython.declare(cython.longlong, visibility="readonly")
    base_offset = cython.declare(cython.longlong, visibility="readonly")
    base_timestamp = cython.declare(cython.longlong, visibility="readonly")
    # what `validate` gathers
    max_timestamp = cython.declare(cython.longlong, visibility="readonly")
    max_timestamp_index = cython.declare(cython.longlong, visibility="readonly")
    consecutive = cython.declare(cython.bint, visibility="readonly")
    # the record read last
    timestamp = cython.declare(cython.longlong, visibility="readonly")
    offset_delta = cython.declare(cython.longlong, visibility="readonly")
    record_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    body_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    offset_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    key_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    key_size = cython.declare(cython.longlong, visibility="readonly")
    value_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    value_size = cython.declare(cython.longlong, visibility="readonly")
    header_count = cython.declare(cython.longlong, visibility="readonly")
    headers_start = cython.declare(cython.Py_ssize_t, visibility="readonly")
    # how many rows `places` wrote
    rows = cython.declare(cython.Py_ssize_t, visibility="readonly")
    _at: cython.Py_ssize_t
    _append_time: cython.longlong
    _has_append_time: cython.bint

    def __init__(
        self, data, position, end, count, base_offset=0, base_timestamp=0, append_time=None
    ):
        self.source = Source(data)
        if not 0 <= position <= end <= self.source.size:
            raise ValueError(f"records at {position} to {end} of {self.source.size} bytes")
        self._p = self.source.p
        self.position = position
        self.end = end
        self.index = 0
        self.count = count
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self._has_append_time = append_time is not None
        self._append_time = 0 if append_time is None else append_time
        self._at = position
        self.max_timestamp = -1
        self.max_timestamp_index = -1
        self.consecutive = True
        self.timestamp = -1
        self.offset_delta = 0
        self.record_start = self.body_start = self.offset_start = position
        self.key_start = self.value_start = self.headers_start = position
        self.key_size = self.value_size = -1
        self.header_count = 0
        self.rows = 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _wide(
        self, position: cython.Py_ssize_t, end: cython.Py_ssize_t, is_long: cython.bint
    ) -> cython.longlong:
        """The varint at `position`; `_at` is then behind it, or behind `end` when it is none."""
        size: cython.int = _varint_size(self._p, position, end, 10 if is_long else 5)
        self._at = position + size if size > 0 else end + 1
        return _unzigzag(self._p, position, size, is_long)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _next(self) -> cython.int:
        """Read the record at `position` into the fields: RUNNING, DONE or a failure.

        Varints of one byte, nearly all, are read in place. A failed `_wide` puts the position
        behind the end, where the check before the next field finds it.
        """
        p = self._p
        position: cython.Py_ssize_t = self.position
        end: cython.Py_ssize_t = self.end
        byte: cython.longlong
        value: cython.longlong
        if self.index >= self.count:
            return _DONE if position == end or self.count <= 0 else _REMAINING
        if position >= end:
            return _SHORT
        self.record_start = position

        byte = p[position]
        if byte < 0x80:
            position += 1
            value = (byte >> 1) ^ -(byte & 1)
        else:
            value = self._wide(position, end, False)
            position = self._at
        if value < 6 or value > end - position:
            return _STRUCTURE
        self.body_start = position
        end = position + value
        position += 1  # attributes: no bit of them has a meaning

        byte = p[position]
        if byte < 0x80:
            position += 1
            value = (byte >> 1) ^ -(byte & 1)
        else:
            value = self._wide(position, end, True)
            position = self._at
        if self._has_append_time:
            self.timestamp = self._append_time
        else:
            self.timestamp = _add(self.base_timestamp, value)

        if position >= end:
            return _STRUCTURE
        self.offset_start = position
        byte = p[position]
        if byte < 0x80:
            position += 1
            self.offset_delta = (byte >> 1) ^ -(byte & 1)
        else:
            self.offset_delta = self._wide(position, end, False)
            position = self._at
        return self._finish(position, end)

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _finish(self, position: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """Key, value and headers of the record that ends at `end`."""
        p = self._p
        byte: cython.longlong
        value: cython.longlong
        if position >= end:
            return _STRUCTURE
        byte = p[position]
        if byte < 0x80:
            position += 1
            value = (byte >> 1) ^ -(byte & 1)
        else:
            value = self._wide(position, end, False)
            position = self._at
        self.key_start = position
        self.key_size = value
        if value > 0:
            if value > end - position:
                return _STRUCTURE
            position += value

        if position >= end:
            return _STRUCTURE
        byte = p[position]
        if byte < 0x80:
            position += 1
            value = (byte >> 1) ^ -(byte & 1)
        else:
            value = self._wide(position, end, False)
            position = self._at
        self.value_start = position
        self.value_size = value
        if value > 0:
            if value > end - position:
                return _STRUCTURE
            position += value

        if position >= end:
            return _STRUCTURE
        if p[position] == 0:
            position += 1
            self.headers_start = position
            self.header_count = 0
        else:
            self.header_count = self._wide(position, end, False)
            self.headers_start = self._at
            position = self._skip_headers(self._at, end)
        if position != end:
            return _STRUCTURE
        self.position = position
        self.index += 1
        return _RUNNING

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _skip_headers(
        self, position: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.Py_ssize_t:
        """Where the `header_count` headers at `position` end; -1 when they are malformed."""
        remaining: cython.longlong = self.header_count
        value: cython.longlong
        if remaining < 0 or remaining > end - position:
            return -1
        while remaining > 0:
            remaining -= 1
            value = self._wide(position, end, False)
            position = self._at
            if value < 0 or value > end - position:
                return -1
            position += value
            value = self._wide(position, end, False)
            position = self._at
            if value > end - position:
                return -1
            if value > 0:
                position += value
        return position

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _validate(
        self,
        limit: cython.longlong,
        key_required: cython.bint,
        timestamp_min: cython.longlong,
        timestamp_max: cython.longlong,
        refuse_all: cython.bint,
        body_size_max: cython.longlong,
    ) -> cython.int:
        status: cython.int
        while limit > 0:
            limit -= 1
            status = self._next()
            if status != _RUNNING:
                return status
            if self.position - self.body_start > body_size_max:
                return _TOO_LARGE
            if self.offset_delta != self.index - 1:
                self.consecutive = False
            if key_required and self.key_size < 0:
                return _NULL_KEY
            if self.timestamp > self.max_timestamp:
                self.max_timestamp = self.timestamp
                self.max_timestamp_index = self.index - 1
            if refuse_all or (
                (self.timestamp < timestamp_min or self.timestamp > timestamp_max)
                and self.timestamp != -1
            ):
                return _TIMESTAMP
        return _RUNNING if self.index < self.count else self._next()

    def validate(
        self,
        limit,
        key_required=False,
        timestamp_min=-0x8000000000000000,
        timestamp_max=_TIMESTAMP_MAX,
        refuse_all=False,
        body_size_max=_TIMESTAMP_MAX,
    ):
        """Walk up to `limit` records; a timestamp outside of min..max and not -1 is reported.

        With `refuse_all` every timestamp is (TIMESTAMP). A record of more than `body_size_max`
        bytes behind its length ends the walk with TOO_LARGE.

        Afterwards `max_timestamp` (-1 without any above) and `max_timestamp_index` say which
        record is the first with the largest timestamp, and `consecutive` whether offset deltas
        were 0, 1, 2, ...
        """
        limit_: cython.longlong = limit
        required: cython.bint = key_required
        low: cython.longlong = timestamp_min
        high: cython.longlong = timestamp_max
        refuse: cython.bint = refuse_all
        size_max: cython.longlong = body_size_max
        status: cython.int
        if self.end - self.position < _UNLOCKED_BYTES_MIN:
            return self._validate(limit_, required, low, high, refuse, size_max)
        with cython.nogil:
            status = self._validate(limit_, required, low, high, refuse, size_max)
        return status

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _find(
        self, limit: cython.longlong, target: cython.longlong, offset_min: cython.longlong
    ) -> cython.int:
        status: cython.int
        offset: cython.longlong
        while limit > 0:
            limit -= 1
            status = self._next()
            if status != _RUNNING:
                return status
            offset = _add(self.base_offset, self.offset_delta)
            if self.timestamp >= target and offset >= offset_min:
                return _TIMESTAMP
        return _RUNNING

    def find_timestamp(self, limit, target, offset_min):
        """Walk to the first record of timestamp >= `target` and offset >= `offset_min`.

        TIMESTAMP when it is found: `timestamp` and `offset_delta` are its own.
        """
        limit_: cython.longlong = limit
        target_: cython.longlong = target
        offset_min_: cython.longlong = offset_min
        status: cython.int
        if self.end - self.position < _UNLOCKED_BYTES_MIN:
            return self._find(limit_, target_, offset_min_)
        with cython.nogil:
            status = self._find(limit_, target_, offset_min_)
        return status

    def read(self, limit, flags=None):
        """(status, [(offset, timestamp, key, value, headers), ...]) of up to `limit` records.

        Keys and values are bytes or None, headers a list of (bytes, bytes or None). With `flags`
        (a byte for each record) only of those whose flag is not 0.
        """
        records: list = []
        remaining: cython.longlong = limit
        status: cython.int = _RUNNING
        while remaining > 0:
            remaining -= 1
            status = self._next()
            if status != _RUNNING:
                break
            if flags is not None and not flags[self.index - 1]:
                continue
            records.append(
                (
                    _add(self.base_offset, self.offset_delta),
                    self.timestamp,
                    self._bytes(self.key_start, self.key_size),
                    self._bytes(self.value_start, self.value_size),
                    self.headers() if self.header_count else [],
                )
            )
        else:
            if self.index >= self.count:
                status = self._next()
        return status, records

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(check=False)
    def _places(self, table: cython.pointer[cython.longlong], limit: cython.longlong) -> cython.int:
        status: cython.int
        row: cython.Py_ssize_t = 0
        self.rows = 0
        while limit > 0:
            limit -= 1
            status = self._next()
            if status != _RUNNING:
                return status
            table[row] = _add(self.base_offset, self.offset_delta)
            table[row + 1] = self.timestamp
            table[row + 2] = self.record_start
            table[row + 3] = self.position
            table[row + 4] = self.body_start
            table[row + 5] = self.offset_start
            table[row + 6] = self.key_start
            table[row + 7] = self.key_size
            table[row + 8] = self.value_start
            table[row + 9] = self.value_size
            table[row + 10] = self.headers_start
            table[row + 11] = self.header_count
            row += 12
            self.rows += 1
        return _RUNNING if self.index < self.count else self._next()

    def places(self, table, limit):
        """Fill `table` (memoryview of int64, 12 a record) with the places of `limit` records.

        A row: offset, timestamp, record start and end, start behind the length, start of the
        offset delta, key start and size, value start and size, headers start, header count; a
        size below 0 is null. `rows` tells how many rows were written.
        """
        limit_: cython.longlong = limit
        status: cython.int
        if table.nbytes < 96 * limit:
            raise ValueError(f"{table.nbytes} bytes for {limit} rows of 96")
        if cython.compiled:
            target: cython.longlong[::1] = table
            with cython.nogil:
                status = self._places(cython.address(target[0]), limit_)
        else:
            status = self._places(table, limit_)
        return status

    @cython.cfunc
    def _bytes(self, start: cython.Py_ssize_t, size: cython.longlong):
        if size < 0:
            return None
        if cython.compiled:
            return PyBytes_FromStringAndSize(
                cython.cast(cython.p_char, cython.address(self._p[start])), size
            )
        else:
            return bytes(self._p[start : start + size])

    def headers(self):
        """The headers of the record read last: [(key bytes, value bytes or None), ...]."""
        found: list = []
        position: cython.Py_ssize_t = self.headers_start
        length: cython.longlong
        _i: cython.longlong
        for _i in range(self.header_count):
            length = self._wide(position, self.position, False)
            key = self._bytes(self._at, length)
            position = self._at + length
            length = self._wide(position, self.position, False)
            found.append((key, self._bytes(self._at, length)))
            position = self._at + (length if length > 0 else 0)
        return found
