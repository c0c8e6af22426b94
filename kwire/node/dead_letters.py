"""Dead letters of share groups, bound to configs, metadata, the logs led here and peers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from kwire.clock import Clock
from kwire.config.dynamic import DynamicConfig
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.types import FetchSlices, Isolation
from kwire.node.group_configs import GroupConfigs
from kwire.pending import Pending, after, as_pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import iterate_headers
from kwire.protocol.records.reading import iterate_batch
from kwire.replica.manager import ReplicaManager
from kwire.share.changes import DeadLetterCause, Transition
from kwire.share.dead_letter_queue import DeadLetterQueue, Originals
from kwire.share.dead_letters import (
    DELIVERED_TOO_OFTEN,
    REJECTED,
    TOPIC_CONFIGS,
    DeadLetters,
    DeadLetterTopic,
    Original,
    size_of,
)
from kwire.share.led_partition import LedPartition

TOPIC_NAME = "errors.deadletterqueue.topic.name"
COPIES = "errors.deadletterqueue.copy.record.enable"
# share.version from which share groups have dead letters.
SHARE_VERSION = 2
STEP_BYTES = 256 * 1024

Send = Callable[[int, m.ProduceRequest], Pending[m.ProduceResponse]]
CreateTopics = Callable[[m.CreateTopicsRequest], Pending[m.CreateTopicsResponse]]


class GroupDeadLetters:
    """`kwire.share.led_partition.DeadLetterWriter`: what groups give up goes to their topics."""

    def __init__(self, queue: DeadLetterQueue) -> None:
        self._queue = queue

    def write(self, led: LedPartition, transition: Transition) -> Pending[None]:
        hosted = led.partition
        is_rejected = transition.cause is DeadLetterCause.REJECTED
        return self._queue.write(
            DeadLetters(
                led.group_id,
                hosted.topic,
                hosted.topic_id,
                hosted.index,
                transition.first_offset,
                transition.last_offset,
                transition.delivery_count,
                REJECTED if is_rejected else DELIVERED_TOO_OFTEN,
            )
        )

    def close(self) -> None:
        """Nothing is written any more."""
        self._queue.close()


class DeadLetterSettings:
    """`kwire.share.dead_letters.Settings` over the configs of now."""

    def __init__(
        self, configs: GroupConfigs, dynamic: DynamicConfig, image: Callable[[], MetadataImage]
    ) -> None:
        self._configs = configs
        self._dynamic = dynamic
        self._image = image

    @property
    def topic_name_prefix(self) -> str:
        return str(self._dynamic["errors.deadletterqueue.topic.name.prefix"] or "")

    @property
    def creates_topics(self) -> bool:
        return bool(self._dynamic["errors.deadletterqueue.auto.create.topics.enable"])

    def topic_of(self, group_id: str) -> str:
        return str(self._configs.value(group_id, TOPIC_NAME) or "")

    def copies_records(self, group_id: str) -> bool:
        return bool(self._configs.value(group_id, COPIES))

    def has_dead_letters(self, group_id: str) -> bool:
        """Whether what a group gives up goes to a topic first."""
        version = self._image().features.finalized.get("share.version", 0)
        return version >= SHARE_VERSION and bool(self.topic_of(group_id))


class DeadLetterEffects:
    """`kwire.share.dead_letter_queue.Effects` of a broker."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        dynamic: DynamicConfig,
        image: Callable[[], MetadataImage],
        replicas: ReplicaManager,
        send: Send,
        create_topics: CreateTopics,
        timeout_ms: int,
    ) -> None:
        self._loop = loop
        self._dynamic = dynamic
        self._image = image
        self._replicas = replicas
        self._send = send
        self._create_topics = create_topics
        self._timeout_ms = timeout_ms

    def find(self, topic: str) -> DeadLetterTopic | None:
        image = self._image()
        known = image.topics.by_name.get(topic)
        if known is None or not known.partitions:
            return None
        values = self._dynamic.topic_values_of(topic)
        leaders = []
        for index in range(len(known.partitions)):
            found = known.partitions.get(index)
            broker = None if found is None else image.brokers.get(found.leader)
            leaders.append(broker.broker_id if broker is not None and broker.is_active else None)
        size = values["max.message.bytes"]
        assert isinstance(size, int)
        return DeadLetterTopic(
            known.topic_id,
            tuple(leaders),
            bool(values["errors.deadletterqueue.group.enable"]),
            size,
        )

    def create(self, topic: str) -> Pending[int]:
        shape = m.CreateTopicsRequest
        configs = [
            shape.CreatableTopicConfig(name=name, value=value)
            for name, value in TOPIC_CONFIGS.items()
        ]
        wanted = shape.CreatableTopic(
            name=topic, num_partitions=-1, replication_factor=-1, configs=configs
        )
        created = self._create_topics(shape(topics=[wanted], timeout_ms=self._timeout_ms))
        return after(created, _created_code)

    def produce(self, node_id: int, request: m.ProduceRequest) -> Pending[m.ProduceResponse]:
        return self._send(node_id, request)

    def read(self, letters: DeadLetters, first_offset: int, bytes_max: int) -> Pending[Originals]:
        found: Pending[Originals] = Pending()
        _Reading(self._loop, self._replicas, letters, bytes_max, found).step(first_offset)
        return found


class _Reading:
    """The originals of one round, read in steps with the loop's turn in between. Where the log
    cannot be read, or is led elsewhere, the rest have none: their dead letters are written without.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        replicas: ReplicaManager,
        letters: DeadLetters,
        bytes_max: int,
        found: Pending[Originals],
    ) -> None:
        self._loop = loop
        self._replicas = replicas
        self._letters = letters
        self._bytes_max = bytes_max
        self._found = found
        self._records: dict[int, Original] = {}
        self._size = 0

    def step(self, offset: int) -> None:
        """Read on from an offset."""
        letters = self._letters
        try:
            hosted = self._replicas.partition_by_id(letters.topic_id, letters.partition)
            if hosted is None:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            outcome = hosted.leader_log().read(
                offset, STEP_BYTES, isolation=Isolation.HIGH_WATERMARK, min_one=True
            )
        except KafkaError:
            self._end(letters.last_offset)
            return
        as_pending(outcome).add_done_callback(partial(self._read, offset))

    def _read(self, offset: int, done: Pending[FetchSlices]) -> None:
        last_offset = self._letters.last_offset
        if done.error() is not None:
            self._end(last_offset)
            return
        slices = done.result()
        try:
            for buffer in slices.buffers:
                stopped_at = self._collect(buffer, offset)
                if stopped_at is not None:
                    self._end(stopped_at)
                    return
        except KafkaError:
            self._end(last_offset)
            return
        if not slices.buffers or slices.next_offset > last_offset:
            self._end(last_offset)
        else:
            self._loop.call_soon(self.step, slices.next_offset)

    def _collect(self, buffer: bytes | bytearray | memoryview, offset: int) -> int | None:
        """Take over records; the last offset that is resolved once there is no room for more. A
        record that no round has room for goes without its key and value."""
        for position, header in iterate_headers(buffer):
            if header.is_control:
                continue
            for records in iterate_batch(buffer, position, header):
                for record in records:
                    if not offset <= record.offset <= self._letters.last_offset:
                        continue
                    size = size_of(record, 0)
                    if size > self._bytes_max:
                        continue
                    if self._size + size > self._bytes_max:
                        return record.offset - 1
                    self._size += size
                    self._records[record.offset] = _kept(record.key), _kept(record.value)
        return None

    def _end(self, resolved_to: int) -> None:
        self._found.complete(Originals(self._records, resolved_to))


def _kept(value: bytes | memoryview | None) -> bytes | None:
    return None if value is None else bytes(value)


def _created_code(done: Pending[m.CreateTopicsResponse]) -> int:
    topics = done.result().topics
    return topics[0].error_code if topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def made_dead_letters(
    loop: asyncio.AbstractEventLoop,
    clock: Clock,
    settings: DeadLetterSettings,
    effects: DeadLetterEffects,
    draw: Callable[[], float],
) -> GroupDeadLetters:
    """What writes dead letters on this broker."""
    return GroupDeadLetters(
        DeadLetterQueue(settings=settings, effects=effects, loop=loop, clock=clock, draw=draw)
    )
