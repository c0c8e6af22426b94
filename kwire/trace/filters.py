"""Which exchanges of a trace are wanted."""

from __future__ import annotations

from typing import NamedTuple

from kwire.protocol.api_keys import API_KEYS
from kwire.trace.events import Event
from kwire.trace.json_values import Json, JsonObject, objects_of, text_of

TOPIC_FIELDS = frozenset(
    ("topic", "topic_name", "name", "topics", "topic_names", "subscribed_topic_names")
    + ("topic_id", "resource_name")
)
GROUP_FIELDS = frozenset(
    ("group_id", "group", "groups", "groups_names", "group_ids", "key", "coordinator_keys")
)
TOPICS_MAX = 100_000


class Filters(NamedTuple):
    """All that are set have to hold. `apis` are Kafka's names."""

    client_id: str | None = None
    apis: tuple[str, ...] = ()
    topic: str | None = None
    group: str | None = None
    errors_only: bool = False
    slower_than_ms: float | None = None

    @property
    def needs_reply(self) -> bool:
        """Whether a request can only be judged together with its reply."""
        return self.errors_only or self.slower_than_ms is not None or self.topic is not None

    def to_json(self) -> JsonObject:
        """Those that are set, as the first line of a trace has them."""
        shown: JsonObject = {}
        for name, value in self._asdict().items():
            if value not in (None, False, ()):
                shown[name] = list(value) if isinstance(value, tuple) else value
        return shown


def api_names(texts: list[str]) -> tuple[str, ...]:
    """Kafka's names of APIs as people write them, or their numbers; ValueError."""
    known = {info.name.lower(): info.name for info in API_KEYS.values()}
    known.update((str(int(key)), info.name) for key, info in API_KEYS.items())
    found = []
    for text in texts:
        if text.lower() not in known:
            from difflib import get_close_matches

            near = get_close_matches(text.lower(), known, n=1)
            hint = f"; did you mean {known[near[0]]}?" if near else "; kwire api lists them"
            raise ValueError(f"{text}: no API of Kafka{hint}")
        found.append(known[text.lower()])
    return tuple(found)


class Wanted:
    """Judges events; it learns from replies which id a topic has."""

    def __init__(self, filters: Filters) -> None:
        self.filters = filters
        self._topic_ids: set[str] = set()

    def request(self, event: Event) -> bool:
        """Whether a request may be wanted, as far as it alone can tell."""
        filters = self.filters
        if filters.client_id is not None and event.client_id != filters.client_id:
            return False
        if filters.apis and event.api not in filters.apis:
            return False
        return filters.group is None or _names(event.body, GROUP_FIELDS, {filters.group})

    def exchange(self, request: Event, reply: Event | None) -> bool:
        """Whether a request that may be wanted is, by its reply; None: it has none."""
        filters = self.filters
        if filters.errors_only and reply is not None and not reply.errors:
            return False
        slow = filters.slower_than_ms
        if slow is not None and reply is not None and reply.took_ms <= slow:
            return False
        if filters.topic is None:
            return True
        names = {filters.topic, *self._topic_ids}
        return _names(request.body, TOPIC_FIELDS, names) or (
            reply is not None and _names(reply.body, TOPIC_FIELDS, names)
        )

    def without_reply(self, request: Event) -> bool:
        """Whether a request is wanted that by its nature has no reply: no error, and not slow."""
        filters = self.filters
        if filters.errors_only or filters.slower_than_ms is not None:
            return False
        return self.exchange(request, None)

    def learn(self, event: Event) -> None:
        """A reply may say which id the topic has."""
        if self.filters.topic is None or event.body is None:
            return
        for topic in objects_of(event.body, "topics"):
            if self.filters.topic in (text_of(topic, "name"), text_of(topic, "topic")):
                topic_id = text_of(topic, "topic_id")
                if topic_id and len(self._topic_ids) < TOPICS_MAX:
                    self._topic_ids.add(topic_id)


def _names(value: Json, fields: frozenset[str], names: set[str], inside: bool = False) -> bool:
    """Whether one of the fields, wherever it stands, is one of the names or a list with one."""
    if isinstance(value, dict):
        return any(_names(part, fields, names, name in fields) for name, part in value.items())
    if isinstance(value, list):
        return any(_names(part, fields, names, inside) for part in value)
    return inside and value in names
