"""Records out: reads of many partitions, each of its leader, and what an application sees of them.

The position of a partition moves over what is not shown too: control records, and with
`committed_only` the records of aborted transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.client.visible import one_buffer, visible_records
from kwire.protocol import messages as m
from kwire.protocol.errors import KafkaError, refreshes_metadata
from kwire.protocol.records import Record, iterate_headers

WAIT_MS = 500
BYTES_MAX = 8 << 20
VERSION_MAX = 12
"""The last version that names topics: one request serves brokers of all ages."""

Partition = tuple[str, int]
_Data: TypeAlias = "m.FetchResponse.PartitionData"


class Fetched(NamedTuple):
    """What one partition had from an offset on; `next_offset` is where to read on. `records` are
    decoded as they are looked at."""

    records: list[Record]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Fetcher:
    """Reads partitions of one cluster; keeps nothing but what `Cluster` does."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        committed_only: bool = False,
        bytes_max: int = BYTES_MAX,
        wait_ms: int = WAIT_MS,
    ) -> None:
        self._cluster = cluster
        self._committed_only = committed_only
        self._bytes_max = bytes_max
        self._wait_ms = wait_ms

    async def fetch(
        self,
        positions: Mapping[Partition, int],
        *,
        wait_ms: int | None = None,
        bytes_max: int | None = None,
    ) -> dict[Partition, Fetched]:
        """What is there at these offsets, of those partitions that had an answer.

        Leaders are asked at once, each waits up to `wait_ms` for something to come. RequestFailed
        OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED and others that reading on does not end; a
        partition whose leader has moved is left out, and found again by the next call.
        """
        by_leader: dict[int, dict[Partition, int]] = {}
        for partition, offset in positions.items():
            leader = await self._cluster.leader(*partition)
            by_leader.setdefault(leader, {})[partition] = offset
        wait = self._wait_ms if wait_ms is None else wait_ms
        bound = self._bytes_max if bytes_max is None else bytes_max
        asked = [
            asyncio.ensure_future(self._fetch_from(leader, wanted, wait, bound))
            for leader, wanted in by_leader.items()
        ]
        try:
            answers = await asyncio.gather(*asked)
        except (Exception, asyncio.CancelledError):
            for one in asked:
                one.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
            raise
        return {name: found for answer in answers for name, found in answer.items()}

    async def _fetch_from(
        self, leader: int, wanted: dict[Partition, int], wait_ms: int, bytes_max: int
    ) -> dict[Partition, Fetched]:
        timeout_s = self._cluster.settings.request_timeout_s + wait_ms / 1000
        request = _request(wanted, bytes_max, wait_ms, self._committed_only)
        try:
            response = await self._cluster.call(
                request, leader, version_max=VERSION_MAX, timeout_s=timeout_s
            )
        except ClientError as error:
            if not error.is_retriable:
                raise
            self._forget(wanted)
            await asyncio.sleep(self._cluster.settings.backoff_min_s)
            return {}
        check(response.error_code, "fetch")
        found: dict[Partition, Fetched] = {}
        for topic in response.responses:
            for data in topic.partitions:
                name = (topic.topic, data.partition_index)
                if name not in wanted:
                    continue
                if refreshes_metadata(data.error_code):
                    self._forget({name: 0})
                    await asyncio.sleep(self._cluster.settings.backoff_min_s)
                    continue
                check(data.error_code, f"{name[0]}-{name[1]}")
                found[name] = _fetched(data, name, wanted[name], self._committed_only)
        return found

    def _forget(self, partitions: Mapping[Partition, int]) -> None:
        for topic, _ in partitions:
            self._cluster.forget_topic(topic)


def _request(
    wanted: dict[Partition, int], bytes_max: int, wait_ms: int, committed_only: bool
) -> m.FetchRequest:
    topics: dict[str, list[m.FetchRequest.FetchPartition]] = {}
    for (topic, index), offset in wanted.items():
        topics.setdefault(topic, []).append(
            m.FetchRequest.FetchPartition(
                partition=index, fetch_offset=offset, partition_max_bytes=bytes_max
            )
        )
    return m.FetchRequest(
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        isolation_level=1 if committed_only else 0,
        topics=[
            m.FetchRequest.FetchTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )


def _fetched(data: _Data, name: Partition, offset: int, committed_only: bool) -> Fetched:
    next_offset = offset
    records: list[Record] = []
    if data.records:
        buffer = one_buffer(data.records)
        try:
            for _, header in iterate_headers(buffer):
                next_offset = max(next_offset, header.next_offset)
            records = [
                record
                for record in visible_records(data, committed_only=committed_only)
                if record.offset >= offset
            ]
        except KafkaError as error:
            code = error.code
            raise RequestFailed(code, f"{name[0]}-{name[1]}", error.message) from None
    return Fetched(
        records,
        next_offset,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
    )
