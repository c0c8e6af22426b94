"""Incremental fetch sessions (KIP-227).

A client names its partitions once; later fetches name only what changed, and replies carry only
partitions with something new. A session lives in a bounded cache
(`max.incremental.fetch.session.cache.slots`): a new one takes the place of one that was not used
for two minutes, or of one that is smaller or less privileged (a consumer's for a follower's) and
older than that; else the client gets no session and keeps sending full fetches.

    epoch of the request   meaning
    0                      full fetch; a session is opened (one named by its id is closed)
    -1                     full fetch without a session (one named by its id is closed)
    n                      the n-th incremental fetch of the session
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_

from kwire.clock import Random
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.partition import Partition
from kwire.replica.quiet_read import HostedPartitions, QuietRead, quiet_read
from kwire.replica.reading import ReadLimits, ReadResult

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
EPOCH_MAX = 0x7FFFFFFF
EVICTION_MS = 120_000

SessionKey = tuple[bytes | str, int]
"""A partition within a session: topic id (version 13 and later) or name, and index."""


class SessionPartition:
    """One partition of a fetch, and what a session remembers of it: what was asked and answered
    last. As a `ReadRequest` it is what is read."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "local_log_start_offset",
        "log_start_offset",
        "name",
        "partition_bytes_max",
        "topic",
    )

    def __init__(self, topic: bytes | str, request: m.FetchRequest.FetchPartition) -> None:
        self.topic = topic
        # What the topic of an id was called when it was last there.
        self.name = None if isinstance(topic, bytes) else topic
        self.index = request.partition
        self.high_watermark = -1
        self.local_log_start_offset = -1
        self.update(request)

    def update(self, request: m.FetchRequest.FetchPartition) -> None:
        """Take over what a FetchPartition asks for."""
        self.fetch_offset = request.fetch_offset
        # Any negative epoch is none at all in a Fetch (measured on Apache Kafka 4.4).
        self.current_leader_epoch = max(request.current_leader_epoch, -1)
        self.last_fetched_epoch = request.last_fetched_epoch
        self.log_start_offset = request.log_start_offset
        self.partition_bytes_max = request.partition_max_bytes

    def is_told(self, partition: Partition) -> bool:
        """Whether the client knows the partition's positions."""
        log = partition.log
        return (
            log is not None
            and log.high_watermark == self.high_watermark
            and log.log_start_offset == self.local_log_start_offset
        )

    def must_answer(self, result: ReadResult) -> bool:
        """Whether a result has something new for the client; remembers it."""
        is_new = result.size_bytes > 0
        if result.high_watermark != self.high_watermark:
            self.high_watermark = result.high_watermark
            is_new = True
        if result.log_start_offset != self.local_log_start_offset:
            self.local_log_start_offset = result.log_start_offset
            is_new = True
        if result.preferred_replica >= 0:
            is_new = True
        if result.error_code or result.diverging_epoch is not None:
            self.high_watermark = -1  # so that the next success is answered as well
            is_new = True
        return is_new


class FetchSession:
    """One session: its partitions in the order in which they are read."""

    __slots__ = (
        "cached_size",
        "created_ms",
        "epoch",
        "is_closed",
        "last_used_ms",
        "partitions",
        "privileged",
        "quiet",
        "session_id",
        "uses_topic_ids",
        "wants_quiet",
    )

    def __init__(
        self, session_id: int, privileged: bool, uses_topic_ids: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: dict[SessionKey, SessionPartition] = {}
        self.cached_size = 0
        self.is_closed = False
        """It is in no cache any more; fetches of it may still wait."""
        self.wants_quiet = False
        """Whether somebody has asked for `quiet`."""
        self.quiet: QuietRead[SessionPartition] | None = None
        """What a fetch finds that changes nothing of the session, while that is nothing."""

    def update(
        self,
        topics: Iterable[m.FetchRequest.FetchTopic],
        forgotten: Iterable[m.FetchRequest.ForgottenTopic],
    ) -> None:
        """Add and change partitions, then drop the forgotten ones."""
        for key, request in partitions_of(topics, self.uses_topic_ids):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = SessionPartition(key[0], request)
            else:
                known.update(request)
        for topic in forgotten:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                self.partitions.pop((name, index), None)

    def found_nothing(
        self,
        replicas: HostedPartitions,
        targets: Sequence[ReadTarget[SessionPartition]],
        limits: ReadLimits,
    ) -> None:
        """A fetch has read `targets`, and there was nothing to answer. While it waited the session
        may have been closed, or another fetch may have changed what it asks for."""
        if (
            self.wants_quiet
            and self.quiet is None
            and not self.is_closed
            and len(targets) == len(self.partitions)
            and all(map(is_, (each.request for each in targets), self.partitions.values()))
            and all(target.request.is_told(target.partition) for target in targets)
        ):
            self.quiet = quiet_read(replicas, targets, limits, self._quiet_over)

    def disturb(self) -> None:
        """The session, or something of it, is about to change."""
        if self.quiet is not None:
            self.quiet.disturbed()

    def close(self) -> None:
        """It is in no cache any more."""
        self.is_closed = True
        self.disturb()

    def _quiet_over(self) -> None:
        self.quiet = None

    def rotate(self, key: SessionKey) -> None:
        """A partition that gave data is read last next time."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


def partitions_of(
    topics: Iterable[m.FetchRequest.FetchTopic], uses_topic_ids: bool
) -> Iterable[tuple[SessionKey, m.FetchRequest.FetchPartition]]:
    """(key, FetchPartition) of a request's topics, in order."""
    for topic in topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for request in topic.partitions:
            yield (name, request.partition), request


def next_epoch(epoch: int) -> int:
    """The epoch after `epoch`; it wraps to 1 and a final one stays."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == EPOCH_MAX else epoch + 1


class FetchSessionCache:
    """The sessions of a broker, at most `slots` of them."""

    def __init__(self, slots: int, random: Random) -> None:
        self.slots = slots
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions hold."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def resume(self, session_id: int, epoch: int, uses_topic_ids: bool) -> FetchSession | ErrorCode:
        """The session of an incremental fetch, or the error of the whole request."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def get(self, session_id: int) -> FetchSession | None:
        """A session by its id."""
        return self._sessions.get(session_id)

    def used(self, session: FetchSession, now_ms: int) -> None:
        """An incremental fetch was accepted: next epoch."""
        session.epoch = next_epoch(session.epoch)
        session.last_used_ms = now_ms
        del self._sessions[session.session_id]
        self._sessions[session.session_id] = session  # least recently used ones are in front

    def remove(self, session_id: int) -> None:
        """Close a session; does nothing for an unknown one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def create(
        self,
        partitions: Iterable[SessionPartition],
        *,
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> FetchSession | None:
        """Open a session for these partitions, or None when there is no room for it."""
        listed = {(partition.topic, partition.index): partition for partition in partitions}
        if len(self._sessions) >= self.slots and not self._evict(privileged, len(listed), now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = 1 + self._random.below(EPOCH_MAX)
        session = FetchSession(session_id, privileged, uses_topic_ids, now_ms)
        session.partitions = listed
        session.cached_size = len(listed)
        self._sessions[session_id] = session
        return session

    def _evict(self, privileged: bool, size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms > EVICTION_MS:
            victim = oldest
        else:
            candidates = [
                session
                for session in self._sessions.values()
                if now_ms - session.created_ms > EVICTION_MS
                and (privileged or not session.privileged)
            ]
            if not candidates:
                return False
            victim = min(candidates, key=lambda s: (s.privileged, s.cached_size, s.session_id))
            if (victim.privileged, victim.cached_size) >= (privileged, size):
                return False
        self.remove(victim.session_id)
        self.evictions += 1
        return True
