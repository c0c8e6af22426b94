"""The frames between a broker and its HTTP process, over a pair of connected sockets.

    offset  size  type
    0       4     int32   size of what follows
    4       1     uint8   kind, one of `Kind`
    5       4     int32   which question it belongs to; 0 for none
    9       size - 5      text or bytes, by the kind

Both ends are one version of kwire. Nobody else can connect: the pair has no address.
"""

from __future__ import annotations

import enum
import json
from struct import Struct

FRAME_BYTES_MAX = 1 << 20
PIECE_BYTES_MAX = FRAME_BYTES_MAX - 64
"""The largest piece of an answer."""
HEADER = Struct(">BI")
_FRAME = Struct(">iBI")


class Kind(enum.IntEnum):
    """What a frame is, and who sends it."""

    HELLO = 1
    """broker: settings as JSON, once."""
    READY = 2
    """process: connections are accepted from now on."""
    ASK = 3
    """process: a question, JSON `{"name", "arguments"}`."""
    PIECE = 4
    """broker: the next bytes of an answer."""
    END = 5
    """broker: the answer is complete."""
    REFUSED = 6
    """broker: there is no answer; text why."""
    CANCEL = 7
    """process: nobody waits for the rest of the answer."""
    PING = 8
    """broker: are you alive?"""
    PONG = 9
    """process: yes."""
    TLS = 10
    """broker: by the names of the listeners with TLS their `ssl.*` settings, as JSON."""


def framed(kind: Kind, number: int = 0, *body: bytes) -> list[bytes]:
    """The bytes of one frame, to write one after the other."""
    return [_FRAME.pack(HEADER.size + sum(map(len, body)), kind, number), *body]


def question(name: str, arguments: dict[str, str]) -> bytes:
    """The body of an ASK."""
    return json.dumps({"name": name, "arguments": arguments}).encode()
