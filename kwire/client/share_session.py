"""A share session with one broker: what a member fetches there, and says of what it got.

One request at a time, each with the next epoch of the session; the first opens it. What is to be
acknowledged waits here for the next request. A session that the broker does not know any more (its
connection has ended, above all) begins anew: what was acquired by the old one is lost to it, and
acknowledgements of that fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.visible import one_buffer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, refreshes_metadata
from kwire.protocol.records import Record, iterate_headers, read_batch

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
LAST_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF
LOST = (ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH)

Key = tuple[bytes, int]
"""(topic id, partition)."""
Types = dict[Key, dict[int, int]]
"""What is said of each offset."""
_Data: TypeAlias = "m.ShareFetchResponse.PartitionData"
_Batches: TypeAlias = list[tuple[int, int, list[int]]]


class Arrived(NamedTuple):
    """A record that the member has, and how often it was delivered."""

    key: Key
    record: Record
    delivery_count: int


class Failure(NamedTuple):
    """Offsets of which an acknowledgement failed, and why."""

    key: Key
    offsets: list[int]
    error: ClientError


class ShareSession:
    """See the module. `moved` has partitions that this broker does not lead any more, `lock_ms` is
    for how long records are acquired (0: not known yet)."""

    def __init__(self, cluster: Cluster, group: str, member_id: str, node_id: int) -> None:
        self.node_id = node_id
        self.moved: set[Key] = set()
        self.lock_ms = 0
        self.failures: list[Failure] = []
        self._cluster = cluster
        self._group = group
        self._member_id = member_id
        self._epoch = 0
        self._known: dict[Key, None] = {}
        self._said: Types = {}
        self._turn = asyncio.Lock()

    def say(self, key: Key, offset: int, kind: int) -> None:
        """Acknowledge with the next request."""
        self._said.setdefault(key, {})[offset] = kind

    async def fetch(
        self,
        wanted: Iterable[Key],
        *,
        wait_ms: int,
        records_max: int,
        bytes_max: int,
        limited: bool,
    ) -> list[Arrived]:
        """Records of these partitions, and nothing of others. ClientError."""
        async with self._turn:
            wanted = dict.fromkeys(wanted)
            said, self._said = self._said, {}
            if not self._epoch:
                self._lost(said)
                said = {}
            shape = m.ShareFetchRequest
            added = [key for key in wanted if key not in self._known]
            topics: dict[bytes, list[m.ShareFetchRequest.FetchPartition]] = {}
            for key in dict.fromkeys([*added, *said]):
                topics.setdefault(key[0], []).append(
                    shape.FetchPartition(
                        partition_index=key[1],
                        acknowledgement_batches=[
                            shape.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=types
                            )
                            for first, last, types in batches_of(said.get(key, {}))
                        ],
                    )
                )
            forgotten: dict[bytes, list[int]] = {}
            for topic_id, index in self._known:
                if (topic_id, index) not in wanted:
                    forgotten.setdefault(topic_id, []).append(index)
            request = shape(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=self._epoch,
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=bytes_max,
                max_records=records_max,
                batch_size=records_max,
                share_acquire_mode=RECORD_LIMIT if limited else BATCH_OPTIMIZED,
                topics=[
                    shape.FetchTopic(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
                forgotten_topics_data=[
                    shape.ForgottenTopic(topic_id=topic_id, partitions=indexes)
                    for topic_id, indexes in forgotten.items()
                ],
            )
            timeout_s = self._cluster.settings.request_timeout_s + wait_ms / 1000
            try:
                response = await self._cluster.call(request, self.node_id, timeout_s=timeout_s)
                _check(response.error_code, response.error_message)
            except ClientError as error:
                self._failed(said, error)
                raise
            self._went_on()
            self._known = wanted
            self.lock_ms = response.acquisition_lock_timeout_ms
            return self._taken(response, said)

    def _taken(self, response: m.ShareFetchResponse, said: Types) -> list[Arrived]:
        arrived: list[Arrived] = []
        for topic in response.responses:
            for data in topic.partitions:
                key = topic.topic_id, data.partition_index
                if data.acknowledge_error_code:
                    error = RequestFailed(
                        data.acknowledge_error_code, "acknowledge", data.acknowledge_error_message
                    )
                    self.failures.append(Failure(key, sorted(said.get(key, ())), error))
                if data.error_code:
                    if not refreshes_metadata(data.error_code):
                        raise RequestFailed(data.error_code, "share fetch", data.error_message)
                    self.moved.add(key)
                    continue
                arrived += self._records(key, data)
        return arrived

    def _records(self, key: Key, data: _Data) -> list[Arrived]:
        """The records among what was acquired; the other offsets have none, which is said."""
        counts = {
            offset: acquired.delivery_count
            for acquired in data.acquired_records
            for offset in range(acquired.first_offset, acquired.last_offset + 1)
        }
        arrived: list[Arrived] = []
        if counts and data.records:
            buffer = one_buffer(data.records)
            try:
                for position, header in iterate_headers(buffer):
                    if header.is_control:
                        continue
                    arrived += [
                        Arrived(key, record, counts.pop(record.offset))
                        for record in read_batch(buffer, position)
                        if record.offset in counts
                    ]
            except KafkaError as error:
                raise RequestFailed(error.code, "share fetch", error.message) from None
        for offset in counts:
            self.say(key, offset, GAP)
        return arrived

    async def acknowledge(self, *, renewed: Types | None = None, is_last: bool = False) -> None:
        """Send what waits to be acknowledged, or renew. What fails is in `failures`; ClientError
        where no answer came."""
        async with self._turn:
            if renewed is None:
                said, self._said = self._said, {}
            else:
                said = renewed
            if not self._epoch:
                self._lost(said)
                return
            if not said and not is_last:
                return
            shape = m.ShareAcknowledgeRequest
            topics: dict[bytes, list[m.ShareAcknowledgeRequest.AcknowledgePartition]] = {}
            for (topic_id, index), types in said.items():
                topics.setdefault(topic_id, []).append(
                    shape.AcknowledgePartition(
                        partition_index=index,
                        acknowledgement_batches=[
                            shape.AcknowledgementBatch(
                                first_offset=first, last_offset=last, acknowledge_types=kinds
                            )
                            for first, last, kinds in batches_of(types)
                        ],
                    )
                )
            request = shape(
                group_id=self._group,
                member_id=self._member_id,
                share_session_epoch=LAST_EPOCH if is_last else self._epoch,
                topics=[
                    shape.AcknowledgeTopic(topic_id=topic_id, partitions=partitions)
                    for topic_id, partitions in topics.items()
                ],
            )
            if renewed is not None:
                request.is_renew_ack = True
            try:
                response = await self._cluster.call(request, self.node_id)
                _check(response.error_code, response.error_message)
            except ClientError as error:
                self._failed(said, error)
                raise
            if is_last:
                self._begin_anew()
            else:
                self._went_on()
            for topic in response.responses:
                for data in topic.partitions:
                    if data.error_code:
                        key = topic.topic_id, data.partition_index
                        failed = RequestFailed(data.error_code, "acknowledge", data.error_message)
                        self.failures.append(Failure(key, sorted(said.get(key, ())), failed))

    # -- the session

    def _went_on(self) -> None:
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def _begin_anew(self) -> None:
        self._epoch = 0
        self._known = {}

    def _failed(self, said: Types, error: ClientError) -> None:
        """No answer, or one that refuses all of it."""
        self._begin_anew()
        for key, types in said.items():
            self.failures.append(Failure(key, sorted(types), error))

    def _lost(self, said: Types) -> None:
        if said:
            self._failed(said, RequestFailed(ErrorCode.SHARE_SESSION_NOT_FOUND, "acknowledge"))


def _check(code: int, message: str | None) -> None:
    if code in LOST:
        raise _Lost(code, "share session", message)
    if code:
        raise RequestFailed(code, "share session", message)


class _Lost(RequestFailed):
    """The session has to be opened anew."""

    @property
    def is_retriable(self) -> bool:
        return True


def batches_of(types: dict[int, int]) -> _Batches:
    """(first offset, last offset, types) of what is said of single offsets: one type where it is
    the same for all."""
    batches: _Batches = []
    for offset in sorted(types):
        kind = types[offset]
        if batches and batches[-1][1] == offset - 1:
            first, _, kinds = batches[-1]
            kinds.append(kind)
            batches[-1] = first, offset, kinds
        else:
            batches.append((offset, offset, [kind]))
    return [
        (first, last, kinds[:1] if len(set(kinds)) == 1 else kinds)
        for first, last, kinds in batches
    ]
