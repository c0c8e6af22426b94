"""What happened in a run, and when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
LINES_SHOWN = 60


def without_addresses(text: str) -> str:
    """Addresses of objects differ from process to process."""
    return ADDRESS.sub("0x…", text)


class Event(NamedTuple):
    """`at_s` is simulated seconds since the start; `who` a host (`n1`, `app`, a process), or
    `world` for what is done to them."""

    at_s: float
    who: str
    what: str

    def __str__(self) -> str:
        minutes, seconds = divmod(self.at_s, 60)
        return f"{int(minutes):02d}:{seconds:09.6f} {self.who}: {self.what}"


class History:
    """The events of a run, oldest first; `str(history)` is a line for each."""

    def __init__(self) -> None:
        self._events: list[Event] = []

    def add(self, at_s: float, who: str, what: str) -> Event:
        """Add what happened last."""
        event = Event(at_s, who, what)
        self._events.append(event)
        return event

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: int) -> Event:
        return self._events[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self._events))

    def of(self, who: str) -> list[Event]:
        """Those of one host, process or `world`."""
        return [event for event in self._events if event.who == who]

    def between(self, start_s: float, end_s: float) -> list[Event]:
        """Those from `start_s` on, before `end_s`."""
        return [event for event in self._events if start_s <= event.at_s < end_s]

    def tail(self, lines: int = LINES_SHOWN) -> str:
        """The last lines."""
        left_out = len(self._events) - lines
        shown = [f"… {left_out} events before"] if left_out > 0 else []
        return "\n".join([*shown, *map(str, self._events[-lines:])])
