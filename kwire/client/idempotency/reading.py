"""A partition of `__kwire_idempotency_keys`, read up to its end, open transactions included."""

from __future__ import annotations

import json

from kwire.client.cluster import Cluster
from kwire.client.errors import RequestFailed, check
from kwire.client.idempotency.key_records import KEYS_TOPIC
from kwire.client.idempotency.known_keys import KnownKeys
from kwire.client.offsets import EARLIEST, Offsets
from kwire.client.visible import one_buffer
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError, refreshes_metadata
from kwire.protocol.records import iterate_headers, read_batch
from kwire.protocol.records.control import ControlType, control_type
from kwire.protocol.structs import Buffer

BYTES_MAX = 4 << 20
WAIT_MS = 100
VERSION_MAX = 12
"""The last version that names topics."""


class KeysReader:
    """Reads what concerns one principal (`scope`) in one partition."""

    def __init__(self, cluster: Cluster, scope: str, partition: int, known: KnownKeys) -> None:
        self._cluster = cluster
        self._offsets = Offsets(cluster)
        self._name = (KEYS_TOPIC, partition)
        self._known = known
        self._prefix = json.dumps([scope], separators=(",", ":"))[:-1].encode() + b","

    async def read_up(self) -> None:
        """Have the known keys hold everything up to the high watermark of now. ClientError."""
        end = (await self._offsets.at([self._name]))[self._name]
        if self._known.position > end:  # the topic is another
            await self._restart()
        while self._known.position < end:
            data = await self._cluster.retrying(self._fetched)
            if data is None:
                await self._restart()
            elif data.records:
                self._replay(one_buffer(data.records))

    async def _restart(self) -> None:
        first = (await self._offsets.at([self._name], EARLIEST))[self._name]
        self._known.restart(first)

    async def _fetched(self) -> m.FetchResponse.PartitionData | None:
        """None where the position is not in the log."""
        topic, index = self._name
        kind = m.FetchRequest
        request = kind(
            replica_id=-1,
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=BYTES_MAX,
            isolation_level=0,
            topics=[
                kind.FetchTopic(
                    topic=topic,
                    partitions=[
                        kind.FetchPartition(
                            partition=index,
                            fetch_offset=self._known.position,
                            partition_max_bytes=BYTES_MAX,
                        )
                    ],
                )
            ],
        )
        leader = await self._cluster.leader(topic, index)
        response = await self._cluster.call(request, leader, version_max=VERSION_MAX)
        check(response.error_code, "fetch")
        data = response.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        if refreshes_metadata(data.error_code):
            self._cluster.forget_topic(topic)
        check(data.error_code, f"{topic}-{index}")
        return data

    def _replay(self, buffer: Buffer) -> None:
        try:
            for position, header in iterate_headers(buffer):
                if header.last_offset < self._known.position:
                    continue
                if header.is_control:
                    (marker,) = read_batch(buffer, position)
                    is_committed = control_type(marker) == ControlType.COMMIT
                    self._known.replay_end(header.producer_id, is_committed)
                elif header.is_transactional:
                    for record in read_batch(buffer, position):
                        key, value = record.key, record.value
                        if key is not None and bytes(key[: len(self._prefix)]) == self._prefix:
                            self._known.replay(
                                header.producer_id,
                                bytes(key),
                                None if value is None else bytes(value),
                                record.timestamp,
                            )
                self._known.moved_to(header.next_offset)
        except KafkaError as error:
            topic, index = self._name
            raise RequestFailed(error.code, f"{topic}-{index}", error.message) from None
