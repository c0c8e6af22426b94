"""Batches on their way to the leaders of their partitions, one attempt at a time."""

from __future__ import annotations

from typing import TypeAlias

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed, Unanswered
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, is_retriable, refreshes_metadata

TIMEOUT_MS = 30_000
ALL = -1
VERSION_MAX = 12
"""The last version that names topics."""
EXPLICIT_VERSION_MAX = 11
"""The last version whose partitions are added to a transaction by a request of its own."""

_Answer: TypeAlias = "m.ProduceResponse.PartitionProduceResponse"


class Appending:
    """How batches are appended: `acks` is -1 for all replicas in sync, 1 for the leader, 0 for no
    answer; with `is_idempotent` they have sequence numbers, and may be sent twice. `version_max` is
    that of the requests. A broker that holds back a producer reads nothing more of its connection;
    with `leaves_throttled` what else is on its way there is sent again over a new one."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL,
        is_idempotent: bool,
        transactional_id: str | None = None,
        leaves_throttled: bool = False,
    ) -> None:
        self._cluster = cluster
        self._acks = acks
        self._is_idempotent = is_idempotent
        self._transactional_id = transactional_id
        self._leaves_throttled = leaves_throttled
        self.version_max = VERSION_MAX if transactional_id is None else EXPLICIT_VERSION_MAX
        self.throttled_until_s = 0.0
        """Until when the broker holds back what is sent, by the producer's quota."""

    async def attempt(
        self, topic: str, index: int, batch: bytearray, *, over: Cluster | None = None
    ) -> int:
        """Send a batch once, `over` the connections of this cluster where one is given; its offset,
        -1 without acks. ClientError; one that says so is retriable."""
        cluster = over or self._cluster
        leader = await _leader(cluster, topic, index)
        data = m.ProduceRequest.PartitionProduceData(index=index, records=batch)
        named = m.ProduceRequest.TopicProduceData(name=topic, partition_data=[data])
        request = m.ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[named],
        )
        try:
            if self._acks == 0:
                connection = await cluster.connection(leader)
                await connection.send_only(request, self.version_max)
                return -1
            response = await cluster.call(request, leader, version_max=self.version_max)
            if response.throttle_time_ms > 0:
                now_s = cluster.loop.time()
                self.throttled_until_s = now_s + response.throttle_time_ms / 1000
                if self._leaves_throttled:
                    cluster.leave_connections()
        except Unanswered as error:
            cluster.forget_topic(topic)
            if self._is_idempotent:
                raise _SentAgain(str(error)) from None
            raise
        except ClientError as error:
            if error.is_retriable:
                cluster.forget_topic(topic)
            raise
        return _judged(cluster, topic, index, response.responses[0].partition_responses[0])


async def _leader(cluster: Cluster, topic: str, index: int) -> int:
    """One that was there when the send began may be unknown to a broker that starts."""
    try:
        return await cluster.leader(topic, index)
    except RequestFailed as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        raise _NotThereNow(error.code, f"topic {topic}") from None


def _judged(cluster: Cluster, topic: str, index: int, answer: _Answer) -> int:
    code = answer.error_code
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        return answer.base_offset
    if refreshes_metadata(code) or is_retriable(code):
        cluster.forget_topic(topic)
    message = answer.error_message
    if answer.record_errors:
        first = answer.record_errors[0]
        message = (
            f"{message or ErrorCode(code).name} (record {first.batch_index}: "
            f"{first.batch_index_error_message})"
        )
    raise RequestFailed(code, f"{topic}-{index}", message)


class _NotThereNow(RequestFailed):
    """It was there a moment ago."""

    @property
    def is_retriable(self) -> bool:
        return True


class _SentAgain(Unanswered):
    """Nobody knows whether the batch was kept; its sequence numbers tell the broker."""

    @property
    def is_retriable(self) -> bool:
        return True
