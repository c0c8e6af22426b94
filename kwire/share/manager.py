"""The share partitions that this broker leads, by group and partition; their sessions.

A share partition is opened by the first fetch for it, and goes when the partition is led elsewhere,
when the group's state is another (fenced), or when no member of the group has a session here and
nothing is left to write. Source: KIP-932.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.partition import Partition
from kwire.share.counts import ShareCounts
from kwire.share.led_partition import DeadLetterWriter, Deadlines, LedPartition
from kwire.share.persister import Persister
from kwire.share.sessions import ShareSession, ShareSessions
from kwire.share.settings import ShareSettings

LedKey = tuple[str, bytes, int]
"""(group id, topic id, partition)."""


class ClientConnection(Protocol):
    """The connection of a share session."""

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback()` once when the connection closes."""
        ...


class SharePartitionManager:
    """See the module. `settings(group id)` are a group's configs; `reset_offset(partition, reset)`
    is where a group without state begins."""

    def __init__(
        self,
        *,
        sessions_max: int,
        persister: Persister,
        deadlines: Deadlines,
        now_ms: Callable[[], int],
        settings: Callable[[str], ShareSettings],
        reset_offset: Callable[[Partition, str], int],
        dead_letters: DeadLetterWriter | None = None,
    ) -> None:
        self.sessions = ShareSessions(sessions_max)
        self.counts = ShareCounts()
        self.persister = persister
        self.deadlines = deadlines
        self.dead_letters = dead_letters
        self.now_ms = now_ms
        self.settings = settings
        self.reset_offset = reset_offset
        self._led: dict[LedKey, LedPartition] = {}
        self._connections: dict[object, dict[ShareSession, None]] = {}
        self._waking: dict[LedPartition, None] = {}
        self._is_waking = False

    def __len__(self) -> int:
        """How many share partitions are led here."""
        return len(self._led)

    def __iter__(self) -> Iterator[LedPartition]:
        return iter(list(self._led.values()))

    # -- share partitions

    def led(self, group_id: str, topic_id: bytes, index: int) -> LedPartition | None:
        """The share partition, if a fetch has opened it."""
        return self._led.get((group_id, topic_id, index))

    def open(self, group_id: str, partition: Partition) -> LedPartition:
        """The share partition, being opened if it was not there. NOT_LEADER_OR_FOLLOWER."""
        partition.leader_log()
        key = group_id, partition.topic_id, partition.index
        led = self._led.get(key)
        if led is not None:
            led.check_leadership()
            led = self._led.get(key)
        if led is None:
            led = self._led[key] = LedPartition(self, group_id, partition)
        led.open()
        return led

    def ended(self, led: LedPartition) -> None:
        """See `Surroundings`."""
        key = led.group_id, led.partition.topic_id, led.partition.index
        if self._led.get(key) is led:
            del self._led[key]

    def wake(self, led: LedPartition) -> None:
        """See `Surroundings`: a fetch that is woken may wake others."""
        self._waking[led] = None
        if self._is_waking:
            return
        self._is_waking = True
        try:
            while self._waking:
                first = next(iter(self._waking))
                del self._waking[first]
                first.wake_waiters()
        finally:
            self._is_waking = False

    def leadership_changed(self, partition: Partition) -> None:
        """The partition is led elsewhere, or at another epoch."""
        for led in self._of(partition.topic_id, partition.index):
            led.check_leadership()

    def state_replaced(self, group_id: str, topic_id: bytes, index: int) -> None:
        """The share partition's state was deleted or begins anew: what is known of it is not so any
        more, whoever still has a session."""
        led = self._led.get((group_id, topic_id, index))
        if led is not None:
            led.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    def _of(self, topic_id: bytes, index: int) -> list[LedPartition]:
        if not self._led:
            return []
        return [led for key, led in self._led.items() if key[1:] == (topic_id, index)]

    # -- members

    def open_session(
        self, group_id: str, member_id: str, connection: ClientConnection | None
    ) -> ShareSession:
        """A new session, which ends with its connection. SHARE_SESSION_LIMIT_REACHED."""
        session = self.sessions.open(group_id, member_id)
        if connection is not None:
            opened = self._connections.get(connection)
            if opened is None:
                opened = self._connections[connection] = {}
                connection.add_close_callback(lambda: self._closed(connection))
            opened[session] = None
            session.connection = connection
        return session

    def close_session(self, session: ShareSession) -> bool:
        """Forget a session; its member keeps what it has. Whether it was open."""
        if not self.sessions.remove(session):
            return False
        if session.connection in self._connections:
            self._connections[session.connection].pop(session, None)
        return True

    def _closed(self, connection: ClientConnection) -> None:
        for session in self._connections.pop(connection):
            self.counts.disconnected_sessions += 1
            self.release(session)

    def release(self, session: ShareSession) -> None:
        """Close a session: what its member has is free, also of partitions that it forgot."""
        if not self.close_session(session):
            return
        for key, led in list(self._led.items()):
            if key[0] == session.group_id:
                led.release(session.member_id)
        self.tidy(session.group_id)

    def rested(self, led: LedPartition) -> None:
        """See `Surroundings`."""
        if led.is_idle and not self.sessions.has_members(led.group_id):
            led.end(KafkaError(ErrorCode.GROUP_ID_NOT_FOUND))

    def tidy(self, group_id: str) -> None:
        """Forget the share partitions of a group that has no members here; one that is not idle
        goes when it is."""
        if self.sessions.has_members(group_id):
            return
        for key, led in list(self._led.items()):
            if key[0] == group_id:
                self.rested(led)

    def close(self) -> None:
        """The node stops: nobody waits any more."""
        for led in list(self._led.values()):
            led.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
