"""What the requests of a connection begin with, and what is known of those that do.

A client says the same again and again: from the client id on its requests begin with the same
bytes, the head. What a road makes of a head is remembered once it has taken a request that begins
with it. Heads are bounded in number here, and in bytes by those who make them.

A request that begins otherwise may be made a head of, which costs as much as a part of the general
way, in front of it. So requests are `asks`-ed about only while that is not in vain: behind
`IN_VAIN_MAX` heads in a row that came to nothing, or drove out another one, only one request of
`ASKED_OF` is looked at.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kwire.protocol.request_frames import SAID_START

IN_VAIN_MAX = 8
ASKED_OF = 64

Known = TypeVar("Known")


class SaidHeads(Generic[Known]):
    """At most `count_max` heads with what is known of each; the oldest gives way to a new one.

    A request that begins as the last one did is found in `known` at
    `body[SAID_START : heads.end].tobytes()`, any other one by `found`. What is known holds while
    `DescribedTopics.changes` is `changes`; who sees another number there clears it.
    """

    __slots__ = ("_count_max", "_ends", "_in_vain", "_not_asked", "changes", "end", "known")

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self.changes = -1
        self.known: dict[bytes, Known] = {}
        self.end = SAID_START  # of the last request's head
        self._ends: tuple[int, ...] = ()
        self._in_vain = 0
        self._not_asked = 0

    def found(self, body: memoryview) -> Known | None:
        """What is known of a request that does not begin as the last one did."""
        known = self.known
        for end in self._ends:
            found = known.get(body[SAID_START:end].tobytes())
            if found is not None:
                self.end = end
                return found
        return None

    def asks(self) -> bool:
        """Whether the next request that is not known is to be looked at: by count, so that the
        same requests are answered in the same way. It is in vain unless `keep` follows."""
        if self._in_vain < IN_VAIN_MAX:
            self._in_vain += 1
            return True
        self._not_asked += 1
        if self._not_asked < ASKED_OF:
            return False
        self._not_asked = 0
        return True

    def keep(self, head: bytes, known: Known) -> None:
        """A request that begins with `head` has been taken."""
        if len(self.known) >= self._count_max:
            del self.known[next(iter(self.known))]  # its client has more than can be kept
        else:
            self._in_vain = 0
        self.known[head] = known
        self.end = SAID_START + len(head)
        self._ends = tuple(dict.fromkeys(SAID_START + len(each) for each in self.known))

    def clear(self, changes: int) -> None:
        """Nothing that is known holds any more; `changes` is what the next is known at."""
        self.changes = changes
        self.known.clear()
        self.end, self._ends = SAID_START, ()
        self._in_vain = self._not_asked = 0
