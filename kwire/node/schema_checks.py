"""Checks of schemas at publish, bound to configs, metadata, the logs led here and peers.

Nothing of it is made, and no library of schemas is loaded, before a topic asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from kwire.config.dynamic import RESOURCE_TOPIC, DynamicConfig
from kwire.kraft.images.metadata_image import MetadataDelta, MetadataImage
from kwire.log.scheduling import LoopScheduler
from kwire.log.types import FetchSlices, Isolation
from kwire.network.peer import PeerNetwork
from kwire.node.published import PublishedMetadata
from kwire.pending import Answer, Pending, after, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.header import BatchHeader, Buffer
from kwire.replica.manager import ReplicaManager
from kwire.schemas.validation.rules import VALIDATION, TopicRules, rules_of

if TYPE_CHECKING:
    from kwire.node.schema_reading import SchemaReading
    from kwire.schemas.validation.checks import SchemaChecks
    from kwire.schemas.validation.follower import Page

PAGE_BYTES = 128 * 1024
EARLIEST = -2


class NodeSchemaChecks:
    """`kwire.server.parts.SchemaChecks`. `topic` is where the registry keeps schemas; `topics` are
    those that ask for them."""

    def __init__(
        self,
        config: DynamicConfig,
        replicas: ReplicaManager,
        peers: PeerNetwork,
        metadata: PublishedMetadata,
        new_scheduler: Callable[[str], LoopScheduler],
        now_ms: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
        topic: str,
    ) -> None:
        self._config = config
        self._topic = _SchemasTopic(topic, replicas, peers, metadata)
        self._new_scheduler = new_scheduler
        self._now_ms = now_ms
        self._loop = loop
        self._reading: SchemaReading | None = None
        self._checks: SchemaChecks | None = None
        self.topics: dict[str, TopicRules] = {}

    def published(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata: take over what topics ask for."""
        for resource_type, topic in delta.configs:
            if resource_type == RESOURCE_TOPIC:
                overrides = image.configs.get((RESOURCE_TOPIC, topic), {})
                rules = None
                if any(name in overrides for name in VALIDATION.values()):
                    rules = rules_of(topic, self._config.topic_values_of(topic))
                if rules is None:
                    self.topics.pop(topic, None)
                else:
                    self.topics[topic] = rules

    def check(self, topic: str, records: Buffer, header: BatchHeader) -> Answer[None]:
        """None when every record of a batch has the schema its topic asks for."""
        if self._checks is None:
            from kwire.node.schema_reading import SchemaReading
            from kwire.schemas.validation.checks import SchemaChecks
            from kwire.schemas.validation.follower import Follower

            self._reading = SchemaReading(self._loop, self._new_scheduler)
            scheduler = self._new_scheduler("kwire-schemas")
            follower = Follower(self._topic, scheduler)
            self._checks = SchemaChecks(follower, scheduler, self._now_ms, self._reading.read)
        return self._checks.check(self.topics[topic], records, header)

    async def close(self) -> None:
        """No more schemas are parsed; nothing raises."""
        if self._reading is not None:
            await self._reading.close()


class _SchemasTopic:
    """`kwire.schemas.validation.follower.Source`: the log here where this node leads it, else a
    Fetch from its leader."""

    def __init__(
        self,
        name: str,
        replicas: ReplicaManager,
        peers: PeerNetwork,
        metadata: PublishedMetadata,
    ) -> None:
        self._name = name
        self._replicas = replicas
        self._peers = peers
        self._metadata = metadata

    def topic_id(self) -> bytes | None:
        known = self._metadata.image.topics.by_name.get(self._name)
        return None if known is None else known.topic_id

    def read(self, offset: int) -> Pending[Page]:
        hosted = self._replicas.partition(self._name, 0)
        try:
            if hosted is not None and hosted.is_leader:
                outcome = hosted.leader_log().read(
                    offset, PAGE_BYTES, isolation=Isolation.HIGH_WATERMARK, min_one=True
                )
                return after(as_pending(outcome), _page_of_log)
            leader = self._leader()
        except KafkaError as error:
            return Pending.failed(KafkaError(error.code, error.message))
        shape = m.FetchRequest
        wanted = shape.FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=PAGE_BYTES
        )
        topic_id = self.topic_id() or b""
        request = shape(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=PAGE_BYTES,
            session_epoch=-1,
            topics=[shape.FetchTopic(topic=self._name, topic_id=topic_id, partitions=[wanted])],
        )
        return after(self._peers.send(leader, shape.API_KEY, request), _page_of_fetch)

    def start(self) -> Pending[int]:
        hosted = self._replicas.partition(self._name, 0)
        try:
            if hosted is not None and hosted.is_leader:
                return Pending.completed(hosted.leader_log().log_start_offset)
            leader = self._leader()
        except KafkaError as error:
            return Pending.failed(KafkaError(error.code, error.message))
        shape = m.ListOffsetsRequest
        wanted = shape.ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
        request = shape(topics=[shape.ListOffsetsTopic(name=self._name, partitions=[wanted])])
        return after(self._peers.send(leader, shape.API_KEY, request), _start_of)

    def _leader(self) -> int:
        known = self._metadata.image.topics.partition(self._name, 0)
        if known is None or known.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{self._name} has no leader")
        return int(known.leader)


def _page_of_log(done: Pending[FetchSlices]) -> Page:
    from kwire.schemas.validation.follower import Page

    slices = done.result()
    return Page(slices.buffers, slices.high_watermark)


def _page_of_fetch(done: Pending[m.FetchResponse]) -> Page:
    from kwire.schemas.validation.follower import Page

    response = done.result()
    found = [part for topic in response.responses for part in topic.partitions]
    code = ErrorCode(response.error_code or (found[0].error_code if found else 0))
    if code is not ErrorCode.NONE or not found:
        raise KafkaError(code if found else ErrorCode.UNKNOWN_SERVER_ERROR)
    records = found[0].records
    if records is not None and not isinstance(records, (bytes, bytearray, memoryview)):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "records in pieces")
    return Page([records] if records else [], found[0].high_watermark)


def _start_of(done: Pending[m.ListOffsetsResponse]) -> int:
    found = [part for topic in done.result().topics for part in topic.partitions]
    if not found or found[0].error_code:
        raise KafkaError(ErrorCode(found[0].error_code if found else 0))
    return found[0].offset
