"""Broker sessions: who was heard of when, and what a heartbeat may ask for.

This is the controller's only state that is not in the metadata log: contact times and how far a
broker has read. A new active controller starts with every unfenced broker just heard of, as Kafka
does, so nothing is lost when it is forgotten; but not the broker of the node that led before and
was silent since: Kafka waits a whole session more for it. What a heartbeat leads to:

- FENCED: a wish to shut down gives SHUTDOWN_NOW; without a wish to stay fenced, a broker that has
  read its own registration gets UNFENCED; else it stays FENCED.
- UNFENCED: a wish for fencing gives FENCED, together with one to shut down SHUTDOWN_NOW; a wish to
  shut down gives CONTROLLED_SHUTDOWN while the broker leads partitions, else SHUTDOWN_NOW.
- CONTROLLED_SHUTDOWN: stays while the broker leads anything and until every active broker has read
  the records that moved its partitions; then SHUTDOWN_NOW.

A controller that comes late to the end of a session was itself stopped or busy: heartbeats wait in
its sockets, and who has sent them is not gone. It reads for half a session more before it fences
anybody (KAFKA-15019 was about the same for a controller with too much to do).

A broker need not be silent for a session if its process is known to be gone: its machine refuses
connections (`Controller.broker_refused`).

Source: KIP-631; measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from kwire.kraft.images.cluster import BrokerImage
from kwire.protocol import messages as m

STILL_MOVING = 1 << 62
"""An offset that no broker has read: partitions of one that shuts down are still to be moved."""

LATE_MS = 1000
"""So late to the end of a session is a controller that was away."""


class BrokerState(IntEnum):
    """What the controller thinks of a broker (BrokerControlState)."""

    FENCED = 0
    UNFENCED = 1
    CONTROLLED_SHUTDOWN = 2
    SHUTDOWN_NOW = 3

    @property
    def is_fenced(self) -> bool:
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


class _Session:
    __slots__ = ("fenced", "metadata_offset", "shutdown_offset")

    def __init__(self) -> None:
        self.fenced = True
        self.metadata_offset = -1
        self.shutdown_offset = -1


class Heartbeats:
    """What is known of each broker beside its registration.

    Contact times belong to a broker id and epoch and outlive fencing: until its session is over, no
    other incarnation may take the id. A broker that was told to shut down ends its session itself
    (Kafka 4.4 lets it run out), so that it may come back at once.
    """

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}
        self._contacts: dict[int, tuple[int, int]] = {}  # broker id -> (epoch, last contact)
        self._silent_since_ms: int | None = None  # the oldest contact, once it was asked for
        self._away_until_ms = 0
        self._fencing: set[int] = set()  # brokers whose fencing has begun and not ended

    def reset(
        self,
        brokers: dict[int, BrokerImage],
        now_ms: int,
        leader_heard: tuple[int, int] | None = None,
    ) -> None:
        """Start over with the registered brokers, each unfenced one just heard of, but the broker
        of the node that led the quorum before: it was heard of when that leader was."""
        self._sessions = {}
        self._contacts = {}
        self._fencing = set()
        self._silent_since_ms = None
        self._away_until_ms = now_ms  # before that it was not for us to end sessions
        leader_id, leader_heard_ms = leader_heard or (-1, now_ms)
        for broker in brokers.values():
            self.register(broker.broker_id, broker.fenced)
            if not broker.fenced:
                heard_ms = leader_heard_ms if broker.broker_id == leader_id else now_ms
                self.heard_of(broker.broker_id, broker.epoch, min(heard_ms, now_ms))

    def register(self, broker_id: int, fenced: bool) -> None:
        """A registration or its change was replayed."""
        session = self._sessions.setdefault(broker_id, _Session())
        kept = session.metadata_offset if session.fenced != fenced else -1
        self.touch(broker_id, fenced, kept)

    def remove(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def heard_of(self, broker_id: int, epoch: int, now_ms: int) -> None:
        """A heartbeat of the registered broker arrived; told of late where it is worked off in
        slices, so maybe behind a later one."""
        known = self._contacts.get(broker_id)
        if known is not None and known[0] == epoch:
            now_ms = max(now_ms, known[1])
        self._contacts[broker_id] = (epoch, now_ms)
        self._silent_since_ms = None

    def silences_ms(self, now_ms: int) -> list[tuple[int, int]]:
        """(broker id, how long ago it was heard of) of every broker that has a session."""
        return [(broker, max(0, now_ms - heard)) for broker, (_, heard) in self._contacts.items()]

    def end_session(self, broker_id: int) -> None:
        """Nothing more will be heard of this incarnation."""
        self._contacts.pop(broker_id, None)
        self._silent_since_ms = None

    def fence(self, broker_id: int) -> None:
        """The broker's session is over."""
        self.end_session(broker_id)
        session = self._sessions.get(broker_id)
        if session is not None:
            session.fenced = True
            session.shutdown_offset = -1

    def begin_fencing(self, broker_id: int) -> None:
        """The broker stays fenced, whatever its heartbeats say, until `end_fencing`."""
        self._fencing.add(broker_id)

    def end_fencing(self, broker_id: int) -> None:
        self._fencing.discard(broker_id)

    def is_fenced(self, broker_id: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is None or session.fenced

    def touch(self, broker_id: int, fenced: bool, metadata_offset: int) -> None:
        """What a heartbeat says and leads to; a fenced broker has left controlled shutdown."""
        session = self._sessions.setdefault(broker_id, _Session())
        session.fenced = fenced
        session.metadata_offset = metadata_offset
        if fenced:
            session.shutdown_offset = -1

    def enter_controlled_shutdown(self, broker_id: int, offset: int) -> None:
        """Remember the offset that all others must have read before the broker may go."""
        session = self._sessions.get(broker_id)
        if session is not None and not session.fenced and session.shutdown_offset < 0:
            session.shutdown_offset = offset

    def moved(self, broker_id: int, offset: int) -> None:
        """The last partition has moved of a broker in controlled shutdown, by the record at
        `offset`."""
        if self.is_shutting_down(broker_id):
            self._sessions[broker_id].shutdown_offset = offset

    def has_valid_session(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether this incarnation was heard of within the session timeout."""
        contact = self._contacts.get(broker_id)
        if contact is None or contact[0] != epoch:
            return False
        return contact[1] + self.session_timeout_ms >= now_ms

    def is_silent_since(self, broker_id: int, epoch: int, since_ms: int) -> bool:
        """Whether this incarnation has a session and was not heard of after `since_ms`."""
        contact = self._contacts.get(broker_id)
        return contact is not None and contact[0] == epoch and contact[1] <= since_ms

    def state(self, broker_id: int) -> BrokerState:
        session = self._sessions.get(broker_id)
        if session is None or session.fenced:
            return BrokerState.FENCED
        if session.shutdown_offset >= 0:
            return BrokerState.CONTROLLED_SHUTDOWN
        return BrokerState.UNFENCED

    def is_shutting_down(self, broker_id: int) -> bool:
        return self.state(broker_id) == BrokerState.CONTROLLED_SHUTDOWN

    def next_deadline_ms(self) -> int | None:
        """When the next session ends, or None."""
        if not self._contacts:
            return None
        if self._silent_since_ms is None:
            self._silent_since_ms = min(contact_ms for _, contact_ms in self._contacts.values())
        return max(self._silent_since_ms + self.session_timeout_ms + 1, self._away_until_ms)

    def stale_broker(self, now_ms: int) -> tuple[int, int] | None:
        """(id, epoch) of the broker that was silent longest, if its session is over."""
        deadline_ms = self.next_deadline_ms()
        if deadline_ms is None or now_ms < deadline_ms:
            return None
        if now_ms - deadline_ms >= LATE_MS:
            self._away_until_ms = now_ms + self.session_timeout_ms // 2
            return None
        stale = [
            (contact_ms, broker_id, epoch)
            for broker_id, (epoch, contact_ms) in self._contacts.items()
            if contact_ms + self.session_timeout_ms < now_ms
        ]
        return min(stale)[1:] if stale else None

    def next_state(
        self,
        broker_id: int,
        request: m.BrokerHeartbeatRequest,
        registration_offset: int,
        leads_any: Callable[[int], bool],
    ) -> tuple[BrokerState, BrokerState]:
        """(state now, state that a BrokerHeartbeatRequest leads to)."""
        current = self.state(broker_id)
        if broker_id in self._fencing:
            return BrokerState.FENCED, BrokerState.FENCED
        if current == BrokerState.FENCED:
            return current, self._from_fenced(request, registration_offset)
        if current == BrokerState.UNFENCED:
            return current, self._from_unfenced(broker_id, request, leads_any)
        if leads_any(broker_id):
            return current, current
        session = self._sessions[broker_id]
        if session.shutdown_offset <= self._lowest_active_offset():
            return current, BrokerState.SHUTDOWN_NOW
        return current, current

    def _from_fenced(
        self, request: m.BrokerHeartbeatRequest, registration_offset: int
    ) -> BrokerState:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        caught_up = request.current_metadata_offset >= registration_offset
        if not request.want_fence and caught_up:
            return BrokerState.UNFENCED
        return BrokerState.FENCED

    def _from_unfenced(
        self,
        broker_id: int,
        request: m.BrokerHeartbeatRequest,
        leads_any: Callable[[int], bool],
    ) -> BrokerState:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if request.want_shut_down:
            if leads_any(broker_id):
                return BrokerState.CONTROLLED_SHUTDOWN
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED

    def _lowest_active_offset(self) -> int:
        offsets = [
            session.metadata_offset
            for session in self._sessions.values()
            if not session.fenced and session.shutdown_offset < 0
        ]
        return min(offsets, default=1 << 63)
