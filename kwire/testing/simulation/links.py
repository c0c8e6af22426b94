"""What single links of the network do wrong: slow ones, and connections that are cut at a step."""

from __future__ import annotations

import enum
from collections.abc import Callable

ANY = "*"


class Cut(enum.Enum):
    """What becomes of the bytes that are about to arrive; the connection is reset afterwards."""

    MIDDLE = "in the middle"
    LOST = "before it arrives"


class Links:
    """By source and destination, names of hosts; `ANY` is every host."""

    def __init__(self) -> None:
        self._slow: dict[tuple[str, str], tuple[float, float]] = {}
        self._cuts: list[_ArmedCut] = []
        self.apart_s = 0.0
        """Where links are slow: how much longer each connection takes than the one opened before
        it, so that nothing of two of them arrives at one instant, in an order that is chance."""

    @property
    def are_well(self) -> bool:
        return not self._slow and not self._cuts

    def slow(self, source: str, destination: str, low_s: float, high_s: float) -> None:
        """What goes there takes that much longer."""
        self._slow[source, destination] = (low_s, high_s)

    def cut(
        self, source: str, destination: str, after: int, how: Cut, told: Callable[[], None]
    ) -> None:
        """The delivery after `after` more of them is cut; `told()` when it happens."""
        self._cuts.append(_ArmedCut(source, destination, after, how, told))

    def heal(self, source: str, destination: str) -> None:
        """That link is as fast as others, and nothing more is cut on it."""
        self._slow.pop((source, destination), None)
        self._cuts = [
            one for one in self._cuts if (one.source, one.destination) != (source, destination)
        ]

    def heal_all(self) -> None:
        self._slow.clear()
        self._cuts.clear()

    def delay(self, source: str, destination: str) -> tuple[float, float] | None:
        """(least, most) seconds that are added."""
        slow = self._slow
        if not slow or source == destination:
            return None
        for pair in ((source, destination), (source, ANY), (ANY, destination)):
            if pair in slow:
                return slow[pair]
        return None

    def next_delivery(self, source: str, destination: str) -> Cut | None:
        """How the delivery that is due is cut, if it is."""
        for one in self._cuts:
            if one.source in (source, ANY) and one.destination in (destination, ANY):
                if one.after > 0:
                    one.after -= 1
                    continue
                self._cuts.remove(one)
                one.told()
                return one.how
        return None


class _ArmedCut:
    def __init__(
        self, source: str, destination: str, after: int, how: Cut, told: Callable[[], None]
    ) -> None:
        self.source = source
        self.destination = destination
        self.after = after
        self.how = how
        self.told = told
