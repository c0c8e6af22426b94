"""Share sessions: what a member fetches, named once, on one connection (KIP-932).

    epoch of the request   meaning
    0                      a ShareFetch opens the session; one the member had is closed
    n                      the n-th request of the session: what changed is named
    -1                     the last request: acknowledgements are taken, what is left is released

A broker has at most `group.share.max.share.sessions`; there is no room for more until one closes. A
session ends with its connection, too. Source: KIP-932; measured on Apache Kafka 4.4.

A session that names ever more partitions, known or not, would take memory and, with each request,
time without end: beyond PARTITIONS_MAX, or PARTITIONS_OF_ALL_MAX of all sessions together, the
request is refused as one session too many is (measured: Apache Kafka 4.4 has no bound).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.protocol.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF
PARTITIONS_MAX = 10_000
"""Of one session: more than a broker leads for one member."""
PARTITIONS_OF_ALL_MAX = 1_000_000

SessionKey = tuple[str, str]
"""(group id, member id)."""
PartitionKey = tuple[bytes, int]
"""(topic id, partition)."""


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; it wraps to 1."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


class ShareSession:
    """One member's session. A partition is `owed` an answer, even an empty one, when it is new and
    after an error."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "owed", "partitions")

    def __init__(self, group_id: str, member_id: str) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection: object = None
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.partitions: dict[PartitionKey, None] = {}
        self.owed: set[PartitionKey] = set()

    @property
    def key(self) -> SessionKey:
        return self.group_id, self.member_id

    def gave(self, keys: Iterable[PartitionKey]) -> None:
        """Records of these were answered: they go behind the others (measured on Apache Kafka
        4.4)."""
        for key in keys:
            if key in self.partitions:
                del self.partitions[key]
                self.partitions[key] = None


class ShareSessions:
    """The share sessions of a broker, at most `sessions_max`."""

    def __init__(self, sessions_max: int) -> None:
        self.sessions_max = sessions_max
        self.partition_count = 0
        self._sessions: dict[SessionKey, ShareSession] = {}
        self._members: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(list(self._sessions.values()))

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        return self._sessions.get((group_id, member_id))

    def has_members(self, group_id: str) -> bool:
        """Whether any member of the group has a session here."""
        return group_id in self._members

    def open(self, group_id: str, member_id: str) -> ShareSession:
        """A new session. SHARE_SESSION_LIMIT_REACHED."""
        if len(self._sessions) >= self.sessions_max:
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group_id, member_id)
        self._sessions[session.key] = session
        self._members[group_id] = self._members.get(group_id, 0) + 1
        return session

    def resume(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request; SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH. A final
        epoch fits every session; else the epoch moves on."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = next_epoch(epoch)
        return session

    def update(
        self,
        session: ShareSession,
        added: Iterable[PartitionKey],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Add partitions, then drop the forgotten ones. SHARE_SESSION_LIMIT_REACHED, with nothing
        changed, where there would be too many of them."""
        new = dict.fromkeys(key for key in added if key not in session.partitions)
        dropped = dict.fromkeys(key for key in forgotten if key in session.partitions or key in new)
        grown = len(new) - len(dropped)
        if grown > 0 and (
            len(session.partitions) + grown > PARTITIONS_MAX
            or self.partition_count + grown > PARTITIONS_OF_ALL_MAX
        ):
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self.partition_count += grown
        session.partitions.update(new)
        session.owed.update(new)
        for key in dropped:
            del session.partitions[key]
            session.owed.discard(key)

    def remove(self, session: ShareSession) -> bool:
        """Close it; whether it was open."""
        if self._sessions.get(session.key) is not session:
            return False
        del self._sessions[session.key]
        self.partition_count -= len(session.partitions)
        left = self._members[session.group_id] - 1
        if left:
            self._members[session.group_id] = left
        else:
            del self._members[session.group_id]
        return True
