"""From what passes by to a trace: events in their order, as far as they are wanted.

Where a filter needs the reply, a request is written together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kwire.trace.bounded import BoundedMap
from kwire.trace.events import CLOSE, LOST, OPEN, REQUEST, RESPONSE, TRACE, Event
from kwire.trace.filters import Filters, Wanted
from kwire.trace.json_values import JsonObject

KEPT_BYTES_MAX = 1 << 20
"""Of a key or a value: more than that is not written."""


class Selection:
    """Passes on the events that are wanted."""

    def __init__(self, filters: Filters) -> None:
        self._wanted = Wanted(filters)
        self._held: BoundedMap[tuple[int, int], Event] = BoundedMap()
        """Requests that wait for their replies, by connection and id."""

    def select(self, event: Event) -> Iterator[Event]:
        """What is to be written, now that this has happened."""
        if event.kind in (TRACE, OPEN, LOST):
            yield event
        elif event.kind == REQUEST:
            if self._wanted.request(event):
                yield from self._hold(event)
        elif event.kind == RESPONSE:
            yield from self._reply(event)
        elif event.kind == CLOSE:
            of_connection = [key for key in self._held.keys() if key[0] == event.connection]  # noqa: SIM118
            for key in of_connection:
                request = self._held.pop(key)
                if (
                    request is not None
                    and self._wanted.filters.needs_reply
                    and self._wanted.exchange(request, None)
                ):
                    yield request
            yield event

    def _hold(self, event: Event) -> Iterator[Event]:
        needs_reply = self._wanted.filters.needs_reply
        if not needs_reply:
            yield event
        if event.body is not None and event.api == "Produce" and event.body.get("acks") == 0:
            if needs_reply and self._wanted.without_reply(event):
                yield event  # it will never have one
            return
        held = event if needs_reply else event._replace(body=None)
        self._held.put((event.connection, event.correlation_id), held)

    def _reply(self, event: Event) -> Iterator[Event]:
        self._wanted.learn(event)
        request = self._held.pop((event.connection, event.correlation_id))
        if request is None:
            if event.api_key < 0 and not self._wanted.filters.to_json():
                yield event  # a reply that belongs to nothing
            return
        if not self._wanted.filters.needs_reply:
            yield event
        elif self._wanted.exchange(request, event):
            yield request
            yield event


Sink = Callable[[Event], None]


class Recorder:
    """Hands events on to whoever writes or explains them. `now_ms()` is the time since it began."""

    def __init__(self, now_ms: Callable[[], float], filters: Filters, kept_bytes: int) -> None:
        self.now_ms = now_ms
        self.kept_bytes = kept_bytes
        self._filters = filters
        self._selection = Selection(filters)
        self._sinks: list[Sink] = []
        self._connections = 0

    def add(self, sink: Sink) -> None:
        """Who hears of what is wanted."""
        self._sinks.append(sink)

    def begins(self, source: str, wall_ms: int) -> None:
        """The first line; `source` says where this was seen."""
        body: JsonObject = {"source": source, "started_ms": wall_ms}
        body["kept_bytes"] = self.kept_bytes
        body["filters"] = self._filters.to_json()
        self.happened(Event(TRACE, body=body))

    def opened(self, client: str, broker: str) -> int:
        """A connection was opened; its number."""
        self._connections += 1
        self.happened(Event(OPEN, self.now_ms(), self._connections, client, broker))
        return self._connections

    def closed(self, connection: int, unanswered: list[str], why: str = "") -> None:
        """It is gone; `unanswered` are the APIs of requests that had no reply."""
        parts = [why] if why else []
        if unanswered:
            parts.append(f"{len(unanswered)} requests without a reply: {', '.join(unanswered[:5])}")
        self.happened(Event(CLOSE, self.now_ms(), connection, note="; ".join(parts)))

    def happened(self, event: Event) -> None:
        """Write it, if it is wanted."""
        for wanted in self._selection.select(event):
            for sink in self._sinks:
                sink(wanted)
