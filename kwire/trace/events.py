"""What a trace consists of: one event a line, in the order in which they happened.

    field           of             what
    event           all            trace (the first line), open, request, response, close, lost
    ms              all            since the trace began
    connection      all but trace  a number, from 1 on
    client, broker  open           addresses, host:port
    id              request, response   the correlation id
    client_id       request, response
    api, key, version   request, response
    bytes           request, response   of the frame without its size
    took_ms         response       since its request had come
    errors          response       names of error codes in it -> how often
    body            request, response   the message by Kafka's field names, in snake case
    note            any            why there is no body, how many requests had no reply, ...

A `response` stands behind its `request`. A request without a reply is never followed by one.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.trace.json_values import JsonObject, from_line, number_of, text_of, to_line

TRACE, OPEN, REQUEST, RESPONSE, CLOSE, LOST = (
    "trace",
    "open",
    "request",
    "response",
    "close",
    "lost",
)
KINDS = (TRACE, OPEN, REQUEST, RESPONSE, CLOSE, LOST)
FORMAT = 1
MS_MAX = 1e15
"""No trace is as long: a number beyond it is damage."""


class Event(NamedTuple):
    """One line; see the module. `body` of the first line says how the trace was made."""

    kind: str
    ms: float = 0.0
    connection: int = 0
    client: str = ""
    broker: str = ""
    correlation_id: int = 0
    client_id: str | None = None
    api: str = ""
    api_key: int = -1
    version: int = -1
    size_bytes: int = 0
    took_ms: float = 0.0
    errors: dict[str, int] = {}
    body: JsonObject | None = None
    note: str = ""

    def to_line(self) -> str:
        """As it is written."""
        shown: JsonObject = {"event": self.kind, "ms": round(self.ms, 3)}
        if self.kind == TRACE:
            return to_line({**shown, "format": FORMAT, **(self.body or {})})
        shown["connection"] = self.connection
        if self.kind == OPEN:
            shown.update(client=self.client, broker=self.broker)
        if self.kind in (REQUEST, RESPONSE):
            shown["id"] = self.correlation_id
            shown["client_id"] = self.client_id
            shown.update(api=self.api, key=self.api_key, version=self.version)
            shown["bytes"] = self.size_bytes
            if self.kind == RESPONSE:
                shown["took_ms"] = round(self.took_ms, 3)
                shown["errors"] = dict(self.errors)
            shown["body"] = self.body
        if self.note:
            shown["note"] = self.note
        return to_line(shown)


def parse_event(line: str) -> Event:
    """The event of a line; ValueError, which says what is wrong with it."""
    value = from_line(line)
    kind = text_of(value, "event")
    if kind not in KINDS:
        raise ValueError("no event of a trace")
    if kind == TRACE:
        if value.get("format") != FORMAT:
            raise ValueError(f"format {value.get('format')}; {FORMAT} is known here")
        return Event(TRACE, body=value)
    errors, body, client_id = value.get("errors"), value.get("body"), value.get("client_id")
    counts = errors if isinstance(errors, dict) else {}
    return Event(
        kind,
        ms=_time(value, "ms"),
        connection=number_of(value, "connection"),
        client=text_of(value, "client"),
        broker=text_of(value, "broker"),
        correlation_id=number_of(value, "id"),
        client_id=client_id if isinstance(client_id, str) else None,
        api=text_of(value, "api"),
        api_key=number_of(value, "key", -1),
        version=number_of(value, "version", -1),
        size_bytes=number_of(value, "bytes"),
        took_ms=_time(value, "took_ms"),
        errors={name: count for name, count in counts.items() if isinstance(count, int)},
        body=body if isinstance(body, dict) else None,
        note=text_of(value, "note"),
    )


def _time(value: JsonObject, name: str) -> float:
    found = value.get(name, 0.0)
    if not isinstance(found, int | float) or not -MS_MAX <= found <= MS_MAX:
        raise ValueError(f"{name} is no number of milliseconds")
    return float(found)
