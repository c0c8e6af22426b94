"""The follower's side of a fetch session (KIP-227): what a leader already knows is not said again.

The first request of a session names every partition (epoch 0); later ones name what changed and
what is to be forgotten. An error of the session, or an answer without one, begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kwire.log.files import Buffer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode

NO_SESSION, INITIAL_EPOCH, EPOCH_MAX = 0, 0, 0x7FFFFFFF

TopicIdPartition = tuple[bytes, int]
"""Topic id and partition index."""

SESSION_ERRORS = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Asked(NamedTuple):
    """What is asked of one partition."""

    fetch_offset: int
    leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int


class FollowerSession:
    """One follower's session with one leader."""

    def __init__(self) -> None:
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self._known: dict[TopicIdPartition, Asked] = {}

    def reset(self) -> None:
        """Ask for everything anew; the id is still named so that the leader drops the session."""
        self.epoch = INITIAL_EPOCH
        self._known = {}

    def is_told(self, key: TopicIdPartition, asked: Asked) -> bool:
        """Whether the leader knows that this is asked of the partition."""
        return self._known.get(key) == asked

    def fill(
        self,
        request: m.FetchRequest,
        wanted: Mapping[TopicIdPartition, Asked],
        gone: Iterable[TopicIdPartition],
        partition_bytes_max: int,
    ) -> None:
        """Put session and partitions into a FetchRequest (version 13 and later): what is `wanted`
        beside all that was before, without what is `gone` of it."""
        message = m.FetchRequest
        request.session_id, request.session_epoch = self.session_id, self.epoch
        if self.epoch == INITIAL_EPOCH:
            self._known = {}
        known = self._known
        topics: dict[bytes, list[m.FetchRequest.FetchPartition]] = {}
        for key, asked in wanted.items():
            if known.get(key) == asked:
                continue
            known[key] = asked
            topics.setdefault(key[0], []).append(
                message.FetchPartition(
                    partition=key[1],
                    current_leader_epoch=asked.leader_epoch,
                    fetch_offset=asked.fetch_offset,
                    last_fetched_epoch=asked.last_fetched_epoch,
                    log_start_offset=asked.log_start_offset,
                    partition_max_bytes=partition_bytes_max,
                )
            )
        forgotten: dict[bytes, list[int]] = {}
        for key in gone:
            if known.pop(key, None) is not None:
                forgotten.setdefault(key[0], []).append(key[1])
        request.topics = [
            message.FetchTopic(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
        request.forgotten_topics_data = [
            message.ForgottenTopic(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in forgotten.items()
        ]

    def answered(self, code: int, session_id: int) -> bool:
        """Take the answer's head in; False when the session has to begin anew."""
        if code:
            if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self.session_id = NO_SESSION
            self.reset()
            return code not in SESSION_ERRORS
        if session_id == NO_SESSION:
            self.session_id = NO_SESSION
            self.reset()
        else:
            self.session_id = session_id
            self.epoch = 1 if self.epoch == EPOCH_MAX else self.epoch + 1
        return True


def whole_batches_bytes(records: Buffer) -> int:
    """How many bytes at the beginning are whole batches; the last one may be cut off."""
    view = memoryview(records)
    end, size_bytes = 0, len(view)
    while end + 12 <= size_bytes:
        length = int.from_bytes(view[end + 8 : end + 12], "big", signed=True)
        if length < 0 or end + 12 + length > size_bytes:
            break
        end += 12 + length
    return end
