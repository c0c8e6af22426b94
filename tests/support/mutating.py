"""Bytes changed at random, as hostile tests send them."""

from __future__ import annotations

import random
import struct

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
COUNTS = (-1, 0, 1, 2**31 - 1, -(2**31), 65536)
TIMES = (0, 1, 1, 1, 2, 3, 8)


def mutated(draw: random.Random, data: bytes, first: int = 0) -> bytes:
    """`data` with none to eight changes from the place `first` on: other bytes, fewer, more,
    another count."""
    found = bytearray(data)
    for _ in range(draw.choice(TIMES)):
        at = draw.randrange(first, max(len(found), first) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            found[at : at + 1] = bytes([draw.randrange(256)])
        elif kind == 1:
            found[at : at + 1] = bytes([draw.choice(INTERESTING)])
        elif kind == 2:
            del found[at : at + draw.choice((1, 2, 4, 8))]
        elif kind == 3:
            found[at:at] = draw.randbytes(draw.choice((1, 2, 4)))
        else:
            found[at : at + 4] = struct.pack(">i", draw.choice(COUNTS))
    return bytes(found)
