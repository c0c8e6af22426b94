"""The envelope kernel, compiled and as it is: plain partitions are read, nothing else is."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwire.protocol.varint import encode_uvarint
from tests.support.kernels import record_packages

packages = pytest.mark.parametrize("records", record_packages())


class Element:
    __slots__ = ("_tagged", "index", "records")


def element(index: int, records: bytes, tags: bytes = b"\0") -> bytes:
    return index.to_bytes(4, "big", signed=True) + encode_uvarint(len(records) + 1) + records + tags


def read(records: Any, data: bytes, count: int, start: int = 0) -> tuple[list[Element], int, int]:
    items = [Element() for _ in range(count)]
    view = memoryview(bytearray(data))
    done, position = records.envelope_kernel.read_elements(items, view, start, "index", "records")
    return items[:done], done, position


@packages
@pytest.mark.parametrize("seed", range(5))
def test_plain_elements_are_read(records: Any, seed: int) -> None:
    source = random.Random(seed)
    sizes = [0, 1, 126, 127, 128, 16382, 16383, 16384, 70_000]
    given = [
        (source.choice((0, 1, -1, 2**31 - 1, -(2**31))), source.randbytes(source.choice(sizes)))
        for _ in range(12)
    ]
    data = b"\x0d" + b"".join(element(*one) for one in given) + b"\0"
    found, done, position = read(records, data, 12)
    assert [(item.index, bytes(item.records), item._tagged) for item in found] == [
        (*one, None) for one in given
    ]
    assert (done, position) == (12, len(data) - 2)


@packages
def test_it_stops_in_front_of_what_is_not_plain(records: Any) -> None:
    good, behind = element(7, b"seven"), element(8, b"eight")
    null = (9).to_bytes(4, "big") + b"\0\0"
    long_null = (9).to_bytes(4, "big") + b"\x80\x00\0"
    tagged = element(9, b"nine", b"\x01\x05\x00")
    endless = (9).to_bytes(4, "big") + b"\xff" * 10
    too_long = (9).to_bytes(4, "big") + encode_uvarint(1000) + b"x"
    for odd in (null, long_null, tagged, endless, too_long):
        data = b"\x03" + good + odd + behind
        found, done, position = read(records, data, 3)
        assert [item.index for item in found] == [7]
        assert (done, position) == (1, len(good))


@packages
def test_it_never_reads_beyond_the_end(records: Any) -> None:
    whole = b"\x02" + element(1, b"x" * 200) + element(2, b"y")
    for end in range(len(whole)):
        found, done, position = read(records, whole[:end], 2)
        assert done == (1 if end > len(element(1, b"x" * 200)) else 0)
        assert position <= end
        assert [item.index for item in found] == [1][:done]


@packages
def test_a_length_of_two_bytes_that_fits_one_is_a_length(records: Any) -> None:
    data = b"\x02" + (5).to_bytes(4, "big") + b"\x83\x00" + b"ab" + b"\0"
    ((item,), done, position) = read(records, data, 1)
    assert (item.index, bytes(item.records), done, position) == (5, b"ab", 1, len(data) - 1)
