"""How far the dead letters of one partition are redriven: which of its offsets are settled.

Settled is what was sent, cannot be sent any more, or is no dead letter of the group. All below
`first` are; those that are ahead of it, because a filter left others between, are ranges. It is
kept as one committed offset: `first`, and as its metadata the ranges, if there are some, and who
has committed it, so that a redrive tells its own from that of another which did the same:

    1:      base64url of zlib of varints: gap, length, gap, length, ... from `first` on
    /id.n   the producer id and the epoch of its transaction
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kwire.client.errors import ClientError
from kwire.client.offsets import Position
from kwire.client.transactional_producer import Identity

METADATA_CHARACTERS_MAX = 4096
"""offset.metadata.max.bytes of a broker, as it is by default."""
PLAIN_BYTES_MAX = 1 << 20
OFFSET_MAX = (1 << 63) - 1
_MARK, _BY = "1:", "/"

Range = tuple[int, int]
"""(first offset, the one behind the last)."""


class Progress(NamedTuple):
    """See the module. `ahead` is sorted; between `first` and it, and between its ranges, there is
    always something left."""

    first: int = 0
    ahead: tuple[Range, ...] = ()

    def is_settled(self, offset: int) -> bool:
        """Whether nothing is to be done for it."""
        return offset < self.first or any(start <= offset < end for start, end in self.ahead)

    def after(self, start: int, end: int, left: Sequence[int] = ()) -> Progress:
        """With all from `start` to below `end` settled, apart from those `left` (sorted)."""
        added: list[Range] = []
        for offset in left:
            if start < offset:
                added.append((start, offset))
            start = offset + 1
        if start < end:
            added.append((start, end))
        return _merged([(0, self.first), *self.ahead, *added])


def _merged(ranges: Iterable[Range]) -> Progress:
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return Progress(merged[0][1], tuple(merged[1:]))


def to_position(progress: Progress, by: Identity | None = None) -> Position | None:
    """What is committed for it by that producer; None where its ranges do not fit into the
    metadata."""
    signed = "" if by is None else f"{_BY}{by.producer_id}.{by.epoch}"
    if not progress.ahead:
        return Position(progress.first, signed)
    plain = bytearray()
    at = progress.first
    for start, end in progress.ahead:
        _put(plain, start - at)
        _put(plain, end - start)
        at = end
    text = _MARK + base64.urlsafe_b64encode(zlib.compress(plain, 9)).decode() + signed
    if len(text) > METADATA_CHARACTERS_MAX or len(plain) > PLAIN_BYTES_MAX:
        return None
    return Position(progress.first, text)


def from_position(position: Position) -> Progress:
    """The progress that was committed; ClientError where somebody else's is."""
    offset, metadata = position
    text = metadata.partition(_BY)[0]
    if not text:
        return Progress(offset)
    ahead: list[Range] = []
    at = offset
    for gap, length in _pairs(text):
        if not gap or not length or at + gap + length > OFFSET_MAX:
            raise _unreadable()
        ahead.append((at + gap, at + gap + length))
        at += gap + length
    return Progress(offset, tuple(ahead))


def _pairs(text: str) -> list[tuple[int, int]]:
    if not text.startswith(_MARK):
        raise _unreadable()
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(text[len(_MARK) :], altchars=b"-_", validate=True)
        plain = unpacking.decompress(packed, PLAIN_BYTES_MAX)
    except (binascii.Error, zlib.error, ValueError):
        raise _unreadable() from None
    if not unpacking.eof or not plain:
        raise _unreadable()
    numbers: list[int] = []
    number = shift = 0
    for byte in plain:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
        elif shift > 63:
            raise _unreadable()
    if shift or len(numbers) % 2:
        raise _unreadable()
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _put(plain: bytearray, number: int) -> None:
    while number > 0x7F:
        plain.append(number & 0x7F | 0x80)
        number >>= 7
    plain.append(number)


def _unreadable() -> ClientError:
    return ClientError("what is committed there is not the progress of a redrive")
