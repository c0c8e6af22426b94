"""Whether a road looks at a request that it does not know.

Looking costs as much as a part of the general way, in front of it. So requests are looked at only
while that is not in vain: behind `IN_VAIN_MAX` looks in a row that came to nothing only one request
of `ASKED_OF` is looked at.
"""

from __future__ import annotations

IN_VAIN_MAX = 8
ASKED_OF = 64


class Looks:
    """The looks of one road."""

    __slots__ = ("_in_vain", "_not_asked")

    def __init__(self) -> None:
        self._in_vain = 0
        self._not_asked = 0

    def asks(self) -> bool:
        """Whether the next request that is not known is to be looked at: by count, so that the
        same requests are answered in the same way. It is in vain unless `found_some` follows."""
        if self._in_vain < IN_VAIN_MAX:
            self._in_vain += 1
            return True
        self._not_asked += 1
        if self._not_asked < ASKED_OF:
            return False
        self._not_asked = 0
        return True

    def found_some(self) -> None:
        """The last look was not in vain."""
        self._in_vain = 0
