# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The envelope kernel: the partitions of a Produce request, as every client sends them.

One source that runs compiled or as it is. Only the decoder that is generated for the message uses
it, and only compiled: it stops in front of whatever is not plain, which the generated code then
reads. Bytes of a plain element, and of what is around it:

| uint8  | tag count of the element before, 0; for the first one something read already |
| int32  | index of the partition                                                       |
| varint | size of the records and 1 more, not 0 (null)                                 |
|        | records                                                                      |
| uint8  | tag count, 0                                                                 |
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

COMPILED: bool = cython.compiled


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _index(p: cython.pointer[cython.const[cython.uchar]], at: cython.Py_ssize_t) -> cython.longlong:
    value: cython.uint = p[at]
    value = (value << 8) | p[at + 1]
    value = (value << 8) | p[at + 2]
    value = (value << 8) | p[at + 3]
    if cython.compiled:
        return cython.cast(cython.int, value)
    else:
        return value - 0x100000000 if value > 0x7FFFFFFF else value


@cython.cfunc
def _read(
    items: list,
    view,
    p: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    index_name: str,
    records_name: str,
):
    count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    stop: cython.Py_ssize_t
    size: cython.Py_ssize_t
    byte: cython.Py_ssize_t
    shift: cython.int
    for item in items:
        # Its tag count is behind the least element and the one before in front of it.
        if end - position < 7 or (count > 0 and p[position] != 0):
            break
        at = position + 5
        size = 0
        shift = 0
        while True:
            byte = p[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift == 28 or at >= end:
                break
        if byte >= 128 or size == 0 or size > end - at:
            break
        stop = at + size - 1
        if p[stop] != 0:
            break
        setattr(item, index_name, _index(p, position + 1))
        setattr(item, records_name, view[at:stop])
        item._tagged = None
        position = stop
        count += 1
    return count, position


def read_elements(items, view, position, index_name, records_name):
    """Fill `items` with the elements of `view`, whose first one begins behind `position`.

    (elements read, last byte of what was read), the latter the tag count of the last one. Never
    raises for malformed bytes: it stops.
    """
    if cython.compiled:
        buffer = cython.declare(Py_buffer)  # noqa: F821
        PyObject_GetBuffer(view, cython.address(buffer), PyBUF_SIMPLE)
        try:
            return _read(
                items,
                view,
                cython.cast(cython.pointer[cython.const[cython.uchar]], buffer.buf),
                position,
                buffer.len,
                index_name,
                records_name,
            )
        finally:
            PyBuffer_Release(cython.address(buffer))
    else:
        return _read(items, view, view, position, len(view), index_name, records_name)
