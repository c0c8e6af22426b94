"""DER, as far as names in certificates need it: a tag, a length, a content.

offset  size    what
0       1       tag
1       1       length; from 128 on the number of bytes that hold it
2       0-4     such a length
        length  content
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Value(NamedTuple):
    """One value: its tag, its content, and both with the length between."""

    tag: int
    content: bytes
    whole: bytes


def values(data: bytes) -> Iterator[Value]:
    """The values that follow each other; ValueError where one is not whole."""
    at = 0
    while at < len(data):
        start = at
        if at + 2 > len(data):
            raise ValueError("DER ends in a value")
        tag, length = data[at], data[at + 1]
        at += 2
        if length >= 0x80:
            count = length & 0x7F
            if not 1 <= count <= 4 or at + count > len(data):
                raise ValueError("a DER length of another form")
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + length > len(data):
            raise ValueError("DER ends in a value")
        yield Value(tag, data[at : at + length], data[start : at + length])
        at += length


def identifier(data: bytes) -> str:
    """An object identifier's content as text: `2.5.4.3`."""
    numbers: list[int] = []
    number = 0
    for byte in data:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers:
        raise ValueError("an empty object identifier")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
