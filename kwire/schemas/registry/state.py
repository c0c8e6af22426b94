"""All that a registry knows, as its topic says it; only `replay` changes it.

A record that makes no sense is passed over, and said so. A version whose id another schema of its
context has already is passed over too: two registries that did not know of each other gave it
twice, and all who read the topic keep the one that was first.
"""

from __future__ import annotations

from kwire.schemas.registry import records
from kwire.schemas.registry.json_values import JsonObject, read_json
from kwire.schemas.registry.names import DEFAULT, Name, beside, context_of, name_of
from kwire.schemas.registry.records import Key, Writer
from kwire.schemas.registry.version import Version

SubjectVersion = tuple[str, int]
UNREAD_MS_MAX = 3_600_000
"""Whoever has not read the topic for so long reads it from its beginning: what was deleted
meanwhile may have left no record (`delete.retention.ms`, a day by default)."""


def _says_the_same(one: Version, other: Version) -> bool:
    """Whether two texts are one schema, as far as can be seen without reading it: others may print
    the names of an object in another order."""
    if one.schema == other.schema:
        return True
    try:
        return read_json(one.schema.encode()) == read_json(other.schema.encode())
    except ValueError:
        return False


class _Context:
    """The ids of one context."""

    def __init__(self) -> None:
        self.by_id: dict[int, dict[SubjectVersion, None]] = {}
        """Where an id is registered, deleted ones too, in the order of registration."""
        self.by_guid: dict[str, int] = {}
        self.id_max = 0
        """The highest one that was ever given."""


class State:
    """See the module. Subjects are qualified; "" is where what holds for all is kept."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[int, Version]] = {}
        self._contexts: dict[str, _Context] = {}
        self._named: dict[str, None] = {}
        self._referrers: dict[SubjectVersion, dict[SubjectVersion, None]] = {}
        self._configs: dict[str, JsonObject] = {}
        self._modes: dict[str, str] = {}
        self.writer: Writer | None = None
        """Whoever began to write last, where it is kwire's."""

    # -- what is there

    def subjects(self) -> list[str]:
        """All that have versions, deleted ones too, in order."""
        return sorted(self._versions)

    def versions(self, subject: str) -> list[Version]:
        """All of a subject, deleted ones too, in order."""
        found = self._versions.get(subject, {})
        return [found[number] for number in sorted(found)]

    def version(self, subject: str, version: int) -> Version | None:
        return self._versions.get(subject, {}).get(version)

    def live(self, subject: str) -> list[Version]:
        """Those that are not deleted, in order."""
        return [one for one in self.versions(subject) if not one.is_deleted]

    def latest(self, subject: str) -> Version | None:
        """The last one that is not deleted."""
        return next((one for one in reversed(self.versions(subject)) if not one.is_deleted), None)

    def of_id(self, context: str, schema_id: int) -> list[Version]:
        """Every version with an id, deleted ones too, in the order of registration."""
        known = self._contexts.get(context)
        found = known.by_id.get(schema_id, {}) if known is not None else {}
        return [self._versions[subject][version] for subject, version in found]

    def id_of_guid(self, context: str, guid: str) -> int | None:
        known = self._contexts.get(context)
        return None if known is None else known.by_guid.get(guid)

    def id_max(self, context: str) -> int:
        """The highest id that was ever given in a context, 0 before the first."""
        known = self._contexts.get(context)
        return 0 if known is None else known.id_max

    def id_maxima(self) -> dict[str, int]:
        """The same of all contexts."""
        return {name: self._contexts[name].id_max for name in sorted(self._contexts)}

    def referrers(self, subject: str, version: int) -> list[Version]:
        """The versions, deleted ones too, that refer to one."""
        found = self._referrers.get((subject, version), {})
        return [self._versions[other][number] for other, number in found]

    def contexts(self) -> list[str]:
        """The default one first."""
        return [DEFAULT, *sorted(name for name in self._named if name != DEFAULT)]

    def has_context(self, context: str) -> bool:
        return context == DEFAULT or context in self._named

    def config(self, subject: str) -> JsonObject | None:
        return self._configs.get(subject)

    def configured(self) -> list[str]:
        """The scopes that have a config of their own."""
        return sorted(self._configs)

    def mode(self, subject: str) -> str | None:
        return self._modes.get(subject)

    def modes_under(self, prefix: str) -> list[str]:
        """The subjects that begin so and have a mode of their own."""
        return [subject for subject in sorted(self._modes) if subject.startswith(prefix)]

    # -- how it changes

    def replay(self, key: bytes | None, value: bytes | None, timestamp: int) -> str:
        """What a record of the topic says; why it is passed over, empty where it is not."""
        try:
            read = records.read_key(key or b"")
            if read is None:
                return ""
            return self._replay(read, value, timestamp)
        except ValueError as error:
            return str(error)

    def _replay(self, key: Key, value: bytes | None, timestamp: int) -> str:
        match key.kind:
            case records.SCHEMA:
                return self._replay_version(key, value, timestamp)
            case records.CONFIG | records.MODE:
                self._replay_setting(key, value)
            case records.DELETE_SUBJECT if value is not None:
                deleted = records.read_number(records.read_object(value), "version")
                for version in self.versions(key.subject):
                    if version.version <= deleted:
                        self._versions[key.subject][version.version] = version._replace(
                            is_deleted=True
                        )
            case records.CLEAR_SUBJECT if value is not None:
                for subject in self.matching(key.subject):
                    for version in self.versions(subject):
                        if version.is_deleted:
                            self._forget(version)
            case records.CONTEXT:
                if value is None:
                    self._named.pop(key.context, None)
                else:
                    self._named[key.context] = None
            case records.NOOP:
                self._replay_writer(records.read_writer(value))
        return ""

    def _replay_version(self, key: Key, value: bytes | None, timestamp: int) -> str:
        known = self.version(key.subject, key.version)
        if value is None:
            if known is not None:
                self._forget(known)
            return ""
        version = records.read_version(key, value, timestamp)
        context = self._context(context_of(version.subject))
        others = self.of_id(context_of(version.subject), version.id)
        if any(one.key != version.key and not _says_the_same(one, version) for one in others):
            return f"id {version.id} of {version.subject} is another schema's"
        if known is not None:
            self._forget(known)
        self._versions.setdefault(key.subject, {})[key.version] = version
        context.by_id.setdefault(version.id, {})[version.key] = None
        context.by_guid[version.guid] = version.id
        context.id_max = max(context.id_max, version.id)
        for reference in version.references:
            target = beside(version.subject, reference.subject), reference.version
            self._referrers.setdefault(target, {})[version.key] = None
        return ""

    def _forget(self, version: Version) -> None:
        """It is not there any more."""
        subject = self._versions[version.subject]
        del subject[version.version]
        if not subject:
            del self._versions[version.subject]
        context = self._context(context_of(version.subject))
        registered = context.by_id[version.id]
        del registered[version.key]
        if not registered:
            del context.by_id[version.id]
        is_last = not any(one.guid == version.guid for one in self._of(registered))
        if is_last and context.by_guid.get(version.guid) == version.id:
            del context.by_guid[version.guid]
        for reference in version.references:
            target = beside(version.subject, reference.subject), reference.version
            referrers = self._referrers.get(target, {})
            referrers.pop(version.key, None)
            if not referrers:
                self._referrers.pop(target, None)

    def _of(self, registered: dict[SubjectVersion, None]) -> list[Version]:
        return [self._versions[subject][version] for subject, version in registered]

    def _replay_setting(self, key: Key, value: bytes | None) -> None:
        if key.kind == records.CONFIG:
            if value is None:
                self._configs.pop(key.subject, None)
            else:
                found = records.read_object(value)
                found.pop("subject", None)
                self._configs[key.subject] = found
            return
        mode = records.read_object(value).get("mode") if value is not None else None
        if isinstance(mode, str):
            self._modes[key.subject] = mode
        else:
            self._modes.pop(key.subject, None)

    def _replay_writer(self, writer: Writer | None) -> None:
        if writer is None:
            return
        self.writer = writer
        for name, id_max in writer.ids.items():
            context = self._context(name)
            context.id_max = max(context.id_max, id_max)

    def _context(self, name: str) -> _Context:
        return self._contexts.setdefault(name, _Context())

    def matching(self, scope: str) -> list[str]:
        """The subjects that a scope covers: a subject alone, or all of a context."""
        name = name_of(scope)
        if name.subject:
            return [scope] if scope in self._versions else []
        prefix = Name(name.context, "").qualified_context
        return [
            subject
            for subject in self.subjects()
            if (subject.startswith(prefix) if prefix else not subject.startswith(":."))
        ]
