"""Where the numbers lie in an OffsetCommit, and in the record of a committed offset.

A consumer commits the same partitions again and again: between two requests only offsets and leader
epochs differ. `CommitShape` is all the rest of such a request, from version 6 on:

| all up to the first offset | API key and version, correlation id, client id, group, topic   |
| int64, int32               | offset and leader epoch of a partition              | repeated |
| bytes                      | metadata; what stands before the next offset        | repeated |

`CommitValue` does the same for the value that stands in `__consumer_offsets`.
"""

from __future__ import annotations

from struct import Struct

from kwire.protocol import messages as m
from kwire.protocol.bare_classes import bare_class
from kwire.protocol.coordinator_records import encode_value
from kwire.protocol.errors import EncodeError, MalformedError
from kwire.protocol.frame import encode_request, parse_request_header
from kwire.protocol.request_frames import SAID_START

VERSION_MIN = 6
PARTITIONS_MAX = 64
SHAPE_BYTES_MAX = 4096
"""What a client says but its numbers, from the client id on."""
VALUE_VERSION = 4
NEVER = -1
"""The broker's retention decides when an offset expires."""

_NUMBERS = Struct(">qi")
_TIMESTAMP = Struct(">q")
_BODY_BYTES_MAX = SAID_START + SHAPE_BYTES_MAX + PARTITIONS_MAX * _NUMBERS.size


class CommitShape:
    """What a client says again and again; `request` is the first that said it, `head` the bytes up
    to the first offset, without what is in front of the client id."""

    __slots__ = ("_behind", "_size_bytes", "_unpack", "head", "request")

    def __init__(
        self, request: m.OffsetCommitRequest, head: bytes, behind: tuple[bytes, ...]
    ) -> None:
        self.request = request
        self.head = head
        self._behind = behind
        row = Struct(">" + "".join(f"qi{len(piece)}s" for piece in behind))
        self._unpack = row.unpack_from
        self._size_bytes = SAID_START + len(head) + row.size

    def numbers(self, body: memoryview) -> tuple[int | bytes, ...] | None:
        """Of a request that begins with this head: offset, leader epoch, what is behind them, of
        each partition. None for one that is not of this shape."""
        if len(body) != self._size_bytes:
            return None
        found: tuple[int | bytes, ...] = self._unpack(body, SAID_START + len(self.head))
        return found if found[2::3] == self._behind else None


def shape_of(body: memoryview) -> CommitShape | None:
    """The shape of a request; None for one that is large, or written in an unusual way."""
    if len(body) > _BODY_BYTES_MAX:
        return None
    try:
        key, version, correlation_id, client_id, position = parse_request_header(body)
        request, _ = m.OffsetCommitRequest.decode_from(body, position, version)
        if version < VERSION_MIN:
            return None
        partitions = [x for topic in request.topics for x in topic.partitions]
        if not 0 < len(partitions) <= PARTITIONS_MAX:
            return None
        if len(body) - SAID_START - len(partitions) * _NUMBERS.size > SHAPE_BYTES_MAX:
            return None
        said = [(x.committed_offset, x.committed_leader_epoch) for x in partitions]
        whole = b"".join(encode_request(key, version, correlation_id, client_id, request))[4:]
        marks = [(0x5AC3_0FF5_A53C_0000 + i, 0x2D4B_0000 + i) for i in range(len(partitions))]
        for x, mark in zip(partitions, marks, strict=True):
            x.committed_offset, x.committed_leader_epoch = mark
        marked = b"".join(encode_request(key, version, correlation_id, client_id, request))[4:]
        for x, numbers in zip(partitions, said, strict=True):
            x.committed_offset, x.committed_leader_epoch = numbers
    except (MalformedError, EncodeError):
        return None
    if whole != body.tobytes():
        return None  # longer varints than needed, or something in its header
    pieces: list[bytes] = []
    start = SAID_START
    for mark in marks:
        at = marked.index(_NUMBERS.pack(*mark), start)
        pieces.append(whole[start:at])
        start = at + _NUMBERS.size
    return CommitShape(request, pieces[0], (*pieces[1:], whole[start:]))


class CommitValue:
    """The value of a committed offset with its metadata, of a topic with its id."""

    __slots__ = ("_before", "_behind", "_middle", "metadata", "topic_id")

    def __init__(self, metadata: str, topic_id: bytes) -> None:
        self.metadata = metadata
        self.topic_id = topic_id
        mark, stamp = (0x5AC3_0FF5_A53C_0FF0, 0x2D4B_D4B2), 0x6996_9669_6996_9669
        marked = encode_value(self.message(*mark, stamp), VALUE_VERSION)
        self._before, rest = marked.split(_NUMBERS.pack(*mark), 1)
        self._middle, self._behind = rest.rsplit(_TIMESTAMP.pack(stamp), 1)

    def encoded(self, offset: int, leader_epoch: int, commit_ms: int) -> bytes:
        """As it stands in the log."""
        return b"".join(
            (
                self._before,
                _NUMBERS.pack(offset, leader_epoch),
                self._middle,
                _TIMESTAMP.pack(commit_ms),
                self._behind,
            )
        )

    def message(self, offset: int, leader_epoch: int, commit_ms: int) -> m.OffsetCommitValue:
        """The same as a message."""
        made = _BareValue()  # without the price of keywords
        made._tagged = None
        made.offset = offset
        made.leader_epoch = leader_epoch
        made.metadata = self.metadata
        made.commit_timestamp = commit_ms
        made.expire_timestamp = NEVER
        made.topic_id = self.topic_id
        return made


_BareValue = bare_class(m.OffsetCommitValue)
