"""What the requests of a connection begin with, and what is known of those that do.

A client says the same again and again: from the client id on its requests begin with the same
bytes, the head. What a road makes of a head is remembered once it has taken a request that begins
with it. Heads are bounded in number here, and in bytes by those who make them.

A request that begins otherwise may be made a head of, while that is not in vain (`Looks`): it is
where heads come to nothing, and where they drive out others.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kwire.api.plain.looks import Looks
from kwire.protocol.request_frames import SAID_START

Known = TypeVar("Known")


class SaidHeads(Looks, Generic[Known]):
    """At most `count_max` heads with what is known of each; the oldest gives way to a new one.

    A request that begins as the last one did is found in `known` at
    `body[SAID_START : heads.end].tobytes()`, any other one by `found`. What is known holds while
    `DescribedTopics.changes` is `changes`; who sees another number there clears it. A look is in
    vain unless `keep` follows.
    """

    __slots__ = ("_count_max", "_ends", "changes", "end", "known")

    def __init__(self, count_max: int) -> None:
        super().__init__()
        self._count_max = count_max
        self.changes = -1
        self.known: dict[bytes, Known] = {}
        self.end = SAID_START  # of the last request's head
        self._ends: tuple[int, ...] = ()

    def found(self, body: memoryview) -> Known | None:
        """What is known of a request that does not begin as the last one did."""
        known = self.known
        for end in self._ends:
            found = known.get(body[SAID_START:end].tobytes())
            if found is not None:
                self.end = end
                return found
        return None

    def keep(self, head: bytes, known: Known) -> None:
        """A request that begins with `head` has been taken."""
        if len(self.known) >= self._count_max:
            del self.known[next(iter(self.known))]  # its client has more than can be kept
        else:
            self.found_some()
        self.known[head] = known
        self.end = SAID_START + len(head)
        self._ends = tuple(dict.fromkeys(SAID_START + len(each) for each in self.known))

    def clear(self, changes: int) -> None:
        """Nothing that is known holds any more; `changes` is what the next is known at."""
        self.changes = changes
        self.known.clear()
        self.end, self._ends = SAID_START, ()
        self._in_vain = self._not_asked = 0
