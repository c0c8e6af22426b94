"""One record, as it is read and built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Record(NamedTuple):
    """One record. `timestamp` in ms (the append time where that is the batch's type).

    Header keys are read as str, or bytes where they are not UTF-8; header values may be None.
    """

    offset: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str | bytes, bytes | None]] = ()
