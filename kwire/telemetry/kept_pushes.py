"""What clients have sent, kept for whoever shows it (the HTTP process), within a bound.

Clients send what has been added since their last push, so that none may be left out: all are kept
until they have been read. The last one of each client stays, for a process that is started anew;
it goes when the client has been silent for three of its intervals. Where nobody reads, the oldest
give way.

On their way to the process they are a sequence of

    offset  size  type
    0       4     int32   size of the head
    4       size  JSON    `Push` without its payload, `number`, and `bytes`, the payload's size
    ...     bytes         the payload, compressed as it came
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

BYTES_MAX = 16 << 20
HEAD_BYTES = 512
"""What a push counts besides its payload."""
PIECE_BYTES = 256 * 1024
SILENT_MS = 300_000
INTERVALS_SHOWN = 3
_SIZE = Struct(">I")


class Push(NamedTuple):
    """The metrics of one PushTelemetry, with who has sent it; `codec` is its compression type."""

    instance_id: str
    client_id: str
    software_name: str
    software_version: str
    interval_ms: int
    codec: int
    pushed_ms: int
    payload: bytes

    @property
    def shown_ms(self) -> int:
        """Until when the client counts as one that is there."""
        return self.pushed_ms + max(SILENT_MS, INTERVALS_SHOWN * self.interval_ms)


class KeptPushes:
    """See the module."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._pushes: OrderedDict[int, Push] = OrderedDict()
        self._newest: dict[str, int] = {}
        self._number = 0
        self._bytes = 0
        self._read = 0
        self.total = 0
        """Pushes that were taken."""
        self.dropped = 0
        """Of them, those that gave way before they were read."""

    def add(self, push: Push) -> None:
        """Keep it, and let the oldest give way where there is no room."""
        self.total += 1
        self._number += 1
        before = self._newest.get(push.instance_id)
        self._pushes[self._number] = push
        self._newest[push.instance_id] = self._number
        self._bytes += _size(push)
        if before is not None and before <= self._read:
            self._remove(before)
        while self._bytes > self._bytes_max:
            number = next(iter(self._pushes))
            self.dropped += number > self._read
            self._remove(number)

    def read(self, after: int, now_ms: int) -> Iterator[bytes]:
        """All that are newer than the one with the number `after`, which has been read; 0 for all.
        In pieces."""
        self._read = max(self._read, after)
        for number, push in list(self._pushes.items()):
            is_old = self._newest.get(push.instance_id) != number or push.shown_ms <= now_ms
            if number <= after and is_old:
                self._remove(number)
        for number, push in list(self._pushes.items()):
            if number > after:
                yield _head(number, push)
                for at in range(0, len(push.payload), PIECE_BYTES):
                    yield push.payload[at : at + PIECE_BYTES]

    def _remove(self, number: int) -> None:
        push = self._pushes.pop(number, None)
        if push is None:
            return
        self._bytes -= _size(push)
        if self._newest.get(push.instance_id) == number:
            del self._newest[push.instance_id]


def _size(push: Push) -> int:
    texts = len(push.client_id) + len(push.software_name) + len(push.software_version)
    return len(push.payload) + texts + HEAD_BYTES


def _head(number: int, push: Push) -> bytes:
    told = push._asdict()
    told["bytes"] = len(told.pop("payload"))
    head = json.dumps({"number": number, **told}).encode()
    return _SIZE.pack(len(head)) + head


def decoded(told: bytes) -> Iterator[tuple[int, Push]]:
    """(number, push) of all that `read` gave. ValueError for anything else."""
    at = 0
    while at < len(told):
        (size,) = _SIZE.unpack_from(told, at)
        head = json.loads(told[at + 4 : at + 4 + size])
        at += 4 + size
        number, end = head.pop("number"), at + head.pop("bytes")
        yield number, Push(payload=told[at:end], **head)
        at = end
