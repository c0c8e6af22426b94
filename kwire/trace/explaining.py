"""What happens on the wire in words: pure, `event(event) -> what is to be said`.

    which errors clients meet, what they do about them, and when it has helped
    why groups rebalance, who was removed and why           explaining_groups.py
    who fences whom, what producers send again              explaining_producers.py
    coordinators that move, connections that end with requests on their way, throttling

An error of one client at one thing is told at its first time, and with its number once it is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwire.trace.bounded import BoundedMap
from kwire.trace.error_counts import name_of
from kwire.trace.error_words import AGAIN, words_of
from kwire.trace.events import CLOSE, LOST, OPEN, REQUEST, RESPONSE, Event
from kwire.trace.explaining_groups import Groups
from kwire.trace.explaining_producers import Producers
from kwire.trace.json_values import Json, JsonObject, number_of, objects_of, text_of

TOLD_BY_GROUPS = frozenset(
    ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "MEMBER_ID_REQUIRED")
    + ("FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH")
)
TOLD_BY_PRODUCERS = frozenset(("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"))
THROTTLE_SAID_MS = 1000.0


class Told(NamedTuple):
    """A sentence. `who` is the client: its id, or its address where it has none."""

    ms: float
    who: str
    text: str

    def __str__(self) -> str:
        return f"{self.ms / 1000:10.3f} s  {self.who}: {self.text}"


class _Trouble:
    """An error of one client at one thing, until that succeeds."""

    def __init__(self, error: str, ms: float) -> None:
        self.error = error
        self.since_ms = ms
        self.times = 1


class Explainer:
    """See the module."""

    def __init__(self) -> None:
        self._connections: BoundedMap[int, tuple[str, str]] = BoundedMap()
        """Number -> (client's address, broker)."""
        self._requests: BoundedMap[tuple[int, int], Event] = BoundedMap()
        self._topic_names: BoundedMap[str, str] = BoundedMap()
        self._coordinators: BoundedMap[str, str] = BoundedMap()
        self._leaders: BoundedMap[str, int] = BoundedMap()
        self._troubles: BoundedMap[tuple[str, str, str], _Trouble] = BoundedMap()
        self._throttled_ms: BoundedMap[str, float] = BoundedMap()
        self._groups = Groups()
        self._producers = Producers(self._label_of_topic)

    def event(self, event: Event) -> list[Told]:
        """What is to be said of what has happened."""
        if event.kind == OPEN:
            self._connections.put(event.connection, (event.client, event.broker))
            return []
        if event.kind == LOST:
            return [Told(event.ms, "trace", event.note)]
        who = self._who(event)
        if event.kind == CLOSE:
            found = list(self._closed(event))
            return [Told(event.ms, who, text) for text in found]
        if event.kind == REQUEST:
            self._requests.put((event.connection, event.correlation_id), event)
            texts = self._asked(event, who)
        elif event.kind == RESPONSE:
            request = self._requests.pop((event.connection, event.correlation_id))
            texts = iter(()) if request is None else self._answered(request, event, who)
        else:
            return []
        return [Told(event.ms, who, text) for text in texts]

    def _who(self, event: Event) -> str:
        address, _ = self._connections.get(event.connection) or ("", "")
        if event.client_id is not None:
            self._connections.put(
                event.connection, (event.client_id or address, self._broker(event))
            )
        return event.client_id or address or f"connection {event.connection}"

    def _broker(self, event: Event) -> str:
        return (self._connections.get(event.connection) or ("", ""))[1]

    def _closed(self, event: Event) -> Iterator[str]:
        broker = self._broker(event)
        self._connections.pop(event.connection)
        if event.note:
            yield (
                f"the connection to {broker} ends: {event.note}"
                + (
                    "; whether they are done nobody knows"
                    if "without a reply" in event.note
                    else ""
                )
            )

    # -- requests

    def _asked(self, event: Event, who: str) -> Iterator[str]:
        if event.body is None:
            if event.note:
                yield f"{event.api or 'a request'}, {event.size_bytes} bytes {event.note}"
            return
        yield from self._groups.asked(event, event.body, who)
        yield from self._producers.asked(event, event.body, who)

    # -- replies

    def _answered(self, request: Event, reply: Event, who: str) -> Iterator[str]:
        if reply.body is None or request.body is None:
            return
        self._learn_topics(reply.body)
        broker = self._broker(reply)
        yield from self._throttle(reply, who)
        yield from self._groups.answered(request, reply, who)
        yield from self._producers.answered(request, reply, who)
        if reply.api == "FindCoordinator":
            yield from self._coordinator(request.body, reply.body, who)
        if reply.api == "Metadata":
            yield from self._metadata(reply.body, who)
        for label, error in self._outcomes(request.body, reply.body):
            yield from self._outcome(reply, label, error, who, broker)

    def _throttle(self, reply: Event, who: str) -> Iterator[str]:
        assert reply.body is not None
        wait_ms = number_of(reply.body, "throttle_time_ms")
        if wait_ms > 0:
            said_ms = self._throttled_ms.get(who)
            if said_ms is None or reply.ms - said_ms > THROTTLE_SAID_MS:
                self._throttled_ms.put(who, reply.ms)
                yield f"waits {wait_ms} ms, as its quota is used up (told by {reply.api})"

    def _outcome(
        self, reply: Event, label: str, error: str, who: str, broker: str
    ) -> Iterator[str]:
        key = who, reply.api, label
        trouble = self._troubles.get(key)
        what = f"{reply.api} of {label}" if label else reply.api
        if not error:
            if trouble is not None:
                self._troubles.pop(key)
                if trouble.error == "MEMBER_ID_REQUIRED":
                    return
                times = "once" if trouble.times == 1 else f"{trouble.times} times"
                took = reply.ms - trouble.since_ms
                yield (
                    f"{what} succeeds at {broker}, {took:.0f} ms after it was refused "
                    f"({trouble.error}, {times})"
                )
            return
        if trouble is not None and trouble.error == error:
            trouble.times += 1
            return
        self._troubles.put(key, _Trouble(error, reply.ms))
        if error in TOLD_BY_GROUPS or error in TOLD_BY_PRODUCERS:
            return  # in their own words
        meaning, action = words_of(error)
        if reply.api in ("Metadata", "FindCoordinator"):
            action = AGAIN
        text = f"{what} at {broker} is answered with {error}"
        yield text + (f": {meaning}; {action}" if meaning else "")

    def _outcomes(self, request: JsonObject, reply: JsonObject) -> Iterator[tuple[str, str]]:
        """(of what, name of the error or nothing) of each part of a reply that has a code."""
        whole = reply.get("error_code")
        if isinstance(whole, int):
            yield self._subject(request), name_of(whole) if whole else ""
        for name in reply:
            yield from self._parts(objects_of(reply, name), "")

    def _parts(self, parts: list[JsonObject], topic: str) -> Iterator[tuple[str, str]]:
        for part in parts:
            index = part.get("partition_index", part.get("partition", part.get("index")))
            own = self._topic(part) or topic
            label = f"{own}-{index}" if isinstance(index, int) else own
            label = label or text_of(part, "group_id") or text_of(part, "key")
            code = part.get("error_code", part.get("partition_error_code"))
            if isinstance(code, int):
                yield label, name_of(code) if code else ""
            for name, value in part.items():
                if isinstance(value, list) and name != "records":
                    yield from self._parts(objects_of(part, name), own)

    def _subject(self, request: JsonObject) -> str:
        if text_of(request, "transactional_id"):
            return f"transactional id {text_of(request, 'transactional_id')}"
        if text_of(request, "group_id"):
            return f"group {text_of(request, 'group_id')}"
        return text_of(request, "key")

    # -- what replies tell of topics, leaders and coordinators

    def _topic(self, part: JsonObject) -> str:
        name = text_of(part, "topic") or text_of(part, "name") or text_of(part, "topic_name")
        return name or self._label_of_topic(text_of(part, "topic_id"))

    def _label_of_topic(self, topic_id: str) -> str:
        return (self._topic_names.get(topic_id) or f"topic {topic_id}") if topic_id else ""

    def _learn_topics(self, body: JsonObject) -> None:
        for topic in objects_of(body, "topics"):
            topic_id, name = text_of(topic, "topic_id"), text_of(topic, "name")
            if topic_id and name:
                self._topic_names.put(topic_id, name)

    def _metadata(self, body: JsonObject, who: str) -> Iterator[str]:
        for topic in objects_of(body, "topics"):
            for partition in objects_of(topic, "partitions"):
                label = f"{self._topic(topic)}-{number_of(partition, 'partition_index')}"
                leader = number_of(partition, "leader_id", -1)
                before = self._leaders.get(label)
                self._leaders.put(label, leader)
                is_moved = before is not None and before != leader
                if is_moved or self._is_in_trouble(who, label):
                    moved = f"; it was broker {before}" if is_moved else ""
                    now = f"is led by broker {leader}" if leader >= 0 else "has no leader"
                    yield f"metadata: {label} {now}{moved}"

    def _is_in_trouble(self, who: str, label: str) -> bool:
        return any((who, api, label) in self._troubles for api in ("Produce", "Fetch"))

    def _coordinator(self, request: JsonObject, body: JsonObject, who: str) -> Iterator[str]:
        kind = "transactional id" if number_of(request, "key_type") == 1 else "group"
        kind = "share partition" if number_of(request, "key_type") == 2 else kind
        rows = objects_of(body, "coordinators") or [{**body, "key": request.get("key")}]
        for row in rows:
            if row.get("error_code"):
                continue
            label = f"{kind} {_text(row.get('key'))}"
            now = f"broker {number_of(row, 'node_id')}"
            before = self._coordinators.get(label)
            self._coordinators.put(label, now)
            if before is not None and before != now:
                yield f"the coordinator of {label} has moved: it is {now}, it was {before}"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
