"""Ids that a cluster gives out, and what another cluster gave out in their place. Pure.

    producer_id, producer_epoch         an epoch belongs to its producer id
    member_id, leader (of JoinGroup)    members of groups
    topic_id                            topics
    session_id                          fetch sessions
    node_id, leader_id, broker_id, ...  nodes
    client_instance_id                  clients that push metrics

What the recorded replies say is laid beside what is answered now; the first meaning of an id stays.
"""

from __future__ import annotations

from kwire.trace.bounded import BoundedMap
from kwire.trace.json_values import Json, JsonObject

PRODUCER, MEMBER, TOPIC, SESSION, NODE, INSTANCE = (
    *("producer id", "member", "topic id", "fetch session"),
    *("node", "client instance"),
)
KINDS: dict[str, str] = {
    "producer_id": PRODUCER,
    "v3_and_below_producer_id": PRODUCER,
    "ongoing_txn_producer_id": PRODUCER,
    "member_id": MEMBER,
    "leader": MEMBER,
    "topic_id": TOPIC,
    "session_id": SESSION,
    "node_id": NODE,
    "leader_id": NODE,
    "broker_id": NODE,
    "controller_id": NODE,
    "replica_nodes": NODE,
    "isr_nodes": NODE,
    "offline_replicas": NODE,
    "broker_ids": NODE,
    "preferred_read_replica": NODE,
    "client_instance_id": INSTANCE,
}
"""Name of a field -> what it names; of a list of them, each."""
EPOCHS = {
    "producer_epoch": "producer_id",
    "v3_and_below_producer_epoch": "v3_and_below_producer_id",
    "ongoing_txn_producer_epoch": "ongoing_txn_producer_id",
}
"""Name of an epoch -> that of the id beside it."""
NOBODY: tuple[Json, ...] = (-1, "", "AAAAAAAAAAAAAAAAAAAAAA")
"""Values that name nothing; of sessions 0 as well."""
ENTRIES_MAX = 1_000_000


class Identities:
    """See the module."""

    def __init__(self) -> None:
        self._known: BoundedMap[tuple[str, str], Json] = BoundedMap(ENTRIES_MAX)
        self._taken: BoundedMap[tuple[str, str], bool] = BoundedMap(ENTRIES_MAX)

    def translated(self, kind: str, value: Json) -> Json:
        """What stands for a recorded id here; itself where nothing is known of it."""
        if _is_nobody(kind, value):
            return value
        found = self._known.get((kind, str(value)))
        return value if found is None else found

    def is_known(self, kind: str, value: Json) -> bool:
        """Whether a recorded id has a meaning here."""
        return (kind, str(value)) in self._known

    def is_taken(self, kind: str, value: Json) -> bool:
        """Whether an id of here has the meaning of a recorded one."""
        return (kind, str(value)) in self._taken

    def learn(self, recorded: Json, answered: Json) -> None:
        """Lay a recorded reply beside what is answered now; lists in the same order."""
        if isinstance(recorded, dict) and isinstance(answered, dict):
            for name, value in recorded.items():
                other = answered.get(name)
                if name in KINDS:
                    self._learn_ids(KINDS[name], value, other)
                elif name in EPOCHS:
                    self._pair(_epoch_kind(recorded, name), value, other)
                else:
                    self.learn(value, other)
        elif isinstance(recorded, list) and isinstance(answered, list):
            for mine, theirs in zip(recorded, answered):
                self.learn(mine, theirs)

    def _learn_ids(self, kind: str, recorded: Json, answered: Json) -> None:
        if isinstance(recorded, list) and isinstance(answered, list):
            for mine, theirs in zip(recorded, answered):
                self._pair(kind, mine, theirs)
        else:
            self._pair(kind, recorded, answered)

    def _pair(self, kind: str, recorded: Json, answered: Json) -> None:
        if not isinstance(recorded, int | str) or not isinstance(answered, int | str):
            return
        if _is_nobody(kind, recorded) or _is_nobody(kind, answered):
            return
        key = kind, str(recorded)
        if key not in self._known and (kind, str(answered)) not in self._taken:
            self._known.put(key, answered)
            self._taken.put((kind, str(answered)), True)

    def mapped(self, value: Json) -> Json:
        """The same with what recorded ids mean here."""
        if isinstance(value, list):
            return [self.mapped(item) for item in value]
        if not isinstance(value, dict):
            return value
        made: JsonObject = {}
        for name, held in value.items():
            if name in KINDS:
                kind = KINDS[name]
                made[name] = (
                    [self.translated(kind, item) for item in held]
                    if isinstance(held, list)
                    else self.translated(kind, held)
                )
            elif name in EPOCHS:
                made[name] = self.translated(_epoch_kind(value, name), held)
            else:
                made[name] = self.mapped(held)
        return made


def _epoch_kind(value: JsonObject, name: str) -> str:
    return f"epoch of {value.get(EPOCHS[name])}"


def _is_nobody(kind: str, value: Json) -> bool:
    return value in NOBODY or (kind == SESSION and value == 0)
