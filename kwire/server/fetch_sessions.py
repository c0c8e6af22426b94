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

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from kwire.clock import Random
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.replica.bounded_read import ReadTarget
from kwire.replica.partition import Partition
from kwire.replica.quiet_read import HostedPartitions, QuietRead, ReadKind
from kwire.replica.reading import ReadResult
from kwire.replica.traffic import LateCounts

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
EPOCH_MAX = 0x7FFFFFFF
EVICTION_MS = 120_000
QUIET_FROM = 20
"""Partitions of a session of which those where nothing happens are not read. With fewer that is so
once a plain road asks for it."""

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
        "order",
        "partition_bytes_max",
        "quiet_at",
        "topic",
    )

    def __init__(self, topic: bytes | str, request: m.FetchRequest.FetchPartition) -> None:
        self.topic = topic
        # What the topic of an id was called when it was last there.
        self.name = None if isinstance(topic, bytes) else topic
        self.index = request.partition
        self.high_watermark = -1
        self.local_log_start_offset = -1
        self.order = 0  # in a session that looks for partitions where nothing happens
        self.quiet_at: Partition | None = None
        """While it is part of the session's quiet read."""
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
        "moving",
        "next_order",
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
        """Partitions where nothing happens, once it is looked for them."""
        self.moving: dict[SessionPartition, None] = {}
        """The others, in no order; only with `quiet`."""
        self.next_order = 0

    def update(
        self,
        topics: Iterable[m.FetchRequest.FetchTopic],
        forgotten: Iterable[m.FetchRequest.ForgottenTopic],
    ) -> None:
        """Add and change partitions, then drop the forgotten ones."""
        for key, request in partitions_of(topics, self.uses_topic_ids):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = added = SessionPartition(key[0], request)
                self._comes_last(added)
                if self.quiet is not None:
                    self.moving[added] = None
            else:
                self._disturb_one(known)
                known.update(request)
        for topic in forgotten:
            name = topic.topic_id if self.uses_topic_ids else topic.topic
            for index in topic.partitions:
                known = self.partitions.pop((name, index), None)
                if known is not None:
                    self._disturb_one(known)
                    self.moving.pop(known, None)

    def look_for_quiet(
        self, kind: ReadKind, late: dict[LateCounts, None]
    ) -> QuietRead[SessionPartition] | None:
        """What partitions may join that a fetch of this kind finds nothing in (`found_nothing`);
        None where it is not looked for them."""
        if not self.wants_quiet or self.is_closed:
            return None
        quiet = self.quiet
        if quiet is None:
            self.quiet = quiet = QuietRead(kind, late, self._moves)
            self.moving = dict.fromkeys(self.partitions.values())
            for partition in self.moving:
                self._comes_last(partition)
        return quiet if quiet.kind == kind else None

    def found_nothing(
        self, replicas: HostedPartitions, target: ReadTarget[SessionPartition]
    ) -> None:
        """A fetch had nothing to answer of this partition. While it waited another fetch may have
        changed what is asked for."""
        asked, quiet = target.request, self.quiet
        if (
            quiet is not None
            and asked in self.moving
            and asked.is_told(target.partition)
            and quiet.join(replicas, target)
        ):
            del self.moving[asked]
            asked.quiet_at = target.partition

    def moving_in_order(self) -> list[SessionPartition]:
        """Those to read, with `quiet`."""
        return sorted(self.moving, key=ORDER)

    def disturb(self) -> None:
        """The session, or something of it, is about to change: every partition is read again."""
        quiet, self.quiet = self.quiet, None
        if quiet is not None:
            quiet.end()
            self.moving = {}

    def close(self) -> None:
        """It is in no cache any more."""
        self.is_closed = True
        self.disturb()

    def _moves(self, partition: SessionPartition) -> None:
        partition.quiet_at = None
        self.moving[partition] = None

    def _disturb_one(self, partition: SessionPartition) -> None:
        """What is asked of it is about to change."""
        if partition.quiet_at is not None and self.quiet is not None:
            self.quiet.disturbed(partition.quiet_at)

    def _comes_last(self, partition: SessionPartition) -> None:
        partition.order = self.next_order
        self.next_order += 1

    def rotate(self, key: SessionKey) -> None:
        """A partition that gave data is read last next time."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition
            self._comes_last(partition)


ORDER = attrgetter("order")


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
    """The sessions of a broker, at most `slots` of them. `looks_for_quiet`: in those of many
    partitions, what has not moved is not read."""

    def __init__(self, slots: int, random: Random, *, looks_for_quiet: bool = True) -> None:
        self.slots = slots
        self._looks_for_quiet = looks_for_quiet
        self._random = random
        self._sessions: dict[int, FetchSession] = {}
        self.evictions = 0

    @classmethod
    def configured(cls, config: Mapping[str, Any], random: Random) -> FetchSessionCache:
        """That of a broker with these configs."""
        slots = config["max.incremental.fetch.session.cache.slots"]
        return cls(slots, random, looks_for_quiet=config["kwire.plain.requests.enable"])

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
        session.wants_quiet = self._looks_for_quiet and len(listed) >= QUIET_FROM
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
