"""Unsigned varints, the lengths and tags of flexible versions: seven bits a byte, lowest first."""

from __future__ import annotations

from kwire.protocol.errors import MalformedError

__all__ = ["encode_uvarint", "finish_uvarint", "read_uvarint"]

Buffer = bytes | bytearray | memoryview

ONE_BYTE = tuple(bytes([value]) for value in range(128))


def encode_uvarint(value: int) -> bytes:
    """The shortest encoding of 0 <= value < 2**32."""
    if value < 128:
        return ONE_BYTE[value]
    if value < 16384:
        return bytes((value & 127 | 128, value >> 7))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """(value, position after it), the value as Java's int: negative beyond 2**31.

    2**31 itself stays positive: what is read is a length plus one, and Java's subtraction
    overflows to a length that no buffer has.
    Raises MalformedError for a sixth byte, IndexError at the end of the buffer.
    """
    value = buffer[position]
    if value < 128:
        return value, position + 1
    return finish_uvarint(buffer, position + 1, value)


def finish_uvarint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """`read_uvarint` for who has read the `first` byte and found that more follow."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            value &= 0xFFFFFFFF
            return (value if value <= 0x80000000 else value - 0x100000000), position
    raise MalformedError("an unsigned varint is longer than five bytes")
