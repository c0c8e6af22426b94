"""A registry over a log in memory: what is decided is written, and read like any topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwire.schemas.registry.json_values import Json, JsonObject
from kwire.schemas.registry.machine import Decision, Registry, with_maxima
from kwire.schemas.registry.records import Written
from kwire.schemas.registry.registering import register
from kwire.schemas.registry.requests import schema_request
from kwire.schemas.registry.version import Version

PRODUCER, EPOCH = 7, 0


class SchemaLog:
    """See the module. `records` are all that were written, in order."""

    def __init__(self, records: Sequence[Written] = ()) -> None:
        self.registry = Registry()
        self.records: list[Written] = []
        self.write(list(records))

    def write(self, records: list[Written]) -> None:
        for key, value in records:
            why = self.registry.replay(key, value, 1)
            assert not why, why
            self.records.append((key, value))

    def do(self, decide: Callable[[Registry], Decision]) -> Json:
        """The answer to a request, once its records are replayed."""
        decision = decide(self.registry)
        if decision.records:
            self.write(with_maxima(self.registry, decision.records, PRODUCER, EPOCH))
        return decision.answer

    def register(self, subject: str, schema: str, **fields: Json) -> JsonObject:
        """Register an Avro schema, or one of another `schemaType`."""
        request = schema_request({"schema": schema, **fields})
        answer = self.do(lambda registry: register(registry, subject, request, normalize=False))
        assert isinstance(answer, dict)
        return answer

    def compacted(self) -> list[Written]:
        """The last record of each key, as the log cleaner leaves them in the end."""
        last = {key: at for at, (key, _) in enumerate(self.records)}
        return [
            (key, value)
            for at, (key, value) in enumerate(self.records)
            if last[key] == at and value is not None
        ]


def shown_state(registry: Registry) -> list[object]:
    """All that a registry knows, to compare."""
    state = registry.state
    versions = [_plain(one) for name in state.subjects() for one in state.versions(name)]
    scopes = [*state.configured(), *state.modes_under(""), ""]
    maxima = state.id_maxima()
    ids = [
        (context, one, sorted(version.key for version in state.of_id(context, one)))
        for context, highest in maxima.items()
        for one in range(1, highest + 1)
    ]
    referrers = [
        (one.key, sorted(other.key for other in state.referrers(*one.key)))
        for name in state.subjects()
        for one in state.versions(name)
    ]
    guids = [
        (context, one.guid, state.id_of_guid(context, one.guid))
        for context in maxima
        for name in state.subjects()
        for one in state.versions(name)
    ]
    settings = [(scope, state.config(scope), state.mode(scope)) for scope in scopes]
    return [
        versions,
        settings,
        {context: highest for context, highest in maxima.items() if highest},
        ids,
        referrers,
        guids,
        state.contexts(),
    ]


def _plain(version: Version) -> Version:
    return version._replace(timestamp=0)
