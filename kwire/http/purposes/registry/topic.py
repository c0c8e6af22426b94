"""The topic of a registry, read when somebody asks: nothing is read while nobody does.

Who asks for all that is committed waits for one fetch that begins after the question; those who
ask while one is under way share the next.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import NamedTuple

from kwire.client.cluster import Cluster
from kwire.client.configs import Configs, Resource
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.fetching import Fetcher
from kwire.client.topics import Topics
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.machine import Registry
from kwire.schemas.registry.records import Written
from kwire.schemas.registry.state import UNREAD_MS_MAX

logger = logging.getLogger(__name__)

TIMEOUT_S = 15.0
RECORDS_A_TURN = 200
"""Replayed before others of the loop have their turn."""
PASSED_OVER_LOGGED_MAX = 20
_FORBIDDEN = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


class RegistrySettings(NamedTuple):
    """Where schemas are kept; the topic is made when the first of them is."""

    topic: str = "_schemas"
    replication_factor: int = 3
    """Of a topic that is made; where there are fewer brokers, as many as there are."""


class SchemaTopic:
    """See the module. `registry` is what the topic says so far, of another object once the topic
    was made anew or read again; RegistryError from everything that asks."""

    def __init__(self, settings: RegistrySettings) -> None:
        self.settings = settings
        self.registry = Registry()
        self.position = 0
        """The offset of the next record."""
        self.journal: list[Written] | None = None
        """What is read from now on, for who wants to know whether it wrote something."""
        self._caught_up_s = math.inf
        self._again: Registry | None = None
        """What is read from the beginning again; until it is whole, `registry` holds."""
        self.topic_id = b""
        """Of the topic that was read; empty while there is none."""
        self._reading = asyncio.Lock()
        self._waited: asyncio.Task[None] | None = None
        self._passed_over = 0

    async def caught_up(self, cluster: Cluster) -> None:
        """Everything that is committed now has been replayed."""
        if self._waited is None:
            self._waited = cluster.loop.create_task(self._next(cluster))
            self._waited.add_done_callback(_look_at)
        await asyncio.shield(self._waited)

    def look_if_old(self, cluster: Cluster) -> None:
        """Whoever is answered from memory does not wait; what comes later knows more."""
        if self._waited is None and self._is_old(cluster):
            self._waited = cluster.loop.create_task(self._next(cluster))
            self._waited.add_done_callback(_look_at)

    def _is_old(self, cluster: Cluster) -> bool:
        return cluster.loop.time() - self._caught_up_s > UNREAD_MS_MAX / 1000

    async def _next(self, cluster: Cluster) -> None:
        async with self._reading:
            self._waited = None  # who comes from now on needs a later answer
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await self._read(cluster)
            except TimeoutError:
                raise RegistryError(
                    Code.TIMED_OUT, f"{self.settings.topic} was not read within {TIMEOUT_S:g} s"
                ) from None
            except ClientError as error:
                raise named(error) from None

    async def _read(self, cluster: Cluster) -> None:
        name = self.settings.topic
        fetcher = Fetcher(cluster, wait_ms=0)
        end = -1
        # Who wants to know what was written from now on does not go back.
        is_old = self._is_old(cluster) and self.journal is None and self._again is None
        while True:
            try:
                await self._know(cluster)
                found = await fetcher.fetch({(name, 0): 0 if is_old else self.position})
            except RequestFailed as error:
                if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    self._begin_anew(b"", 0)
                    return
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and is_old:
                    # Records at its beginning were deleted: what is known holds.
                    is_old = False
                    self._again, self.position = Registry(), await self._earliest(cluster)
                    continue
                is_old = False
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE and self.position > 0:
                    self._begin_anew(self.topic_id, 0)
                    cluster.forget_topic(name)
                    continue
                if error.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    self.position = await self._earliest(cluster)
                    continue
                raise
            part = found.get((name, 0))
            if part is None:
                continue  # its leader has moved
            if is_old:
                is_old = False
                self._again, self.position = Registry(), 0
            end = max(end, part.high_watermark) if end < 0 else end
            await self._replay(part.records)
            self.position = max(self.position, part.next_offset)
            if self.position >= end:
                self._caught_up_s = cluster.loop.time()
                if self._again is not None:
                    self.registry, self._again = self._again, None
                return

    async def _know(self, cluster: Cluster) -> None:
        """One that was deleted and made again is another topic."""
        topic = await cluster.topic(self.settings.topic)
        if len(topic.partitions) != 1:
            raise RegistryError(
                Code.STORE_FAILED,
                f"topic {self.settings.topic} has {len(topic.partitions)} partitions: a registry "
                "keeps the order of its records in one",
            )
        if self.topic_id not in (b"", topic.topic_id):
            self._begin_anew(topic.topic_id, 0)
        self.topic_id = topic.topic_id

    async def _earliest(self, cluster: Cluster) -> int:
        from kwire.client.offsets import EARLIEST, Offsets

        name = (self.settings.topic, 0)
        return (await Offsets(cluster).at([name], EARLIEST))[name]

    def _begin_anew(self, topic_id: bytes, position: int) -> None:
        if self.position > 0:
            logger.warning("topic %s was made anew: it is read again", self.settings.topic)
        self.topic_id = topic_id
        self.position = position
        self.registry, self._again = Registry(), None

    async def _replay(self, records: list[Record]) -> None:
        registry = self.registry if self._again is None else self._again
        for at, record in enumerate(records):
            if record.offset < self.position:
                continue
            why = registry.replay(record.key, record.value, record.timestamp)
            if why:
                self._log_passed_over(record.offset, why)
            if self.journal is not None and record.key is not None:
                self.journal.append((record.key, record.value))
            self.position = record.offset + 1
            if at % RECORDS_A_TURN == RECORDS_A_TURN - 1:
                await asyncio.sleep(0)

    def _log_passed_over(self, offset: int, why: str) -> None:
        self._passed_over += 1
        if self._passed_over <= PASSED_OVER_LOGGED_MAX:
            logger.warning("%s, offset %d is passed over: %s", self.settings.topic, offset, why)

    # -- the topic itself

    async def make(self, cluster: Cluster) -> None:
        """Have it there, compacted, with one partition."""
        name = self.settings.topic
        try:
            await cluster.topic(name)
            await self._check_compacted(cluster)
        except RequestFailed as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            await self._create(cluster)

    async def _create(self, cluster: Cluster) -> None:
        brokers = (await cluster.metadata([])).brokers
        try:
            await Topics(cluster).create(
                self.settings.topic,
                partitions=1,
                replication=max(1, min(self.settings.replication_factor, len(brokers))),
                configs={"cleanup.policy": "compact"},
            )
        except RequestFailed as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        cluster.forget_topic(self.settings.topic)
        await cluster.topic(self.settings.topic, is_new=True)

    async def _check_compacted(self, cluster: Cluster) -> None:
        try:
            described = await Configs(cluster).describe(
                Resource.TOPIC, self.settings.topic, ["cleanup.policy"]
            )
        except RequestFailed as error:
            if error.code in _FORBIDDEN:
                return  # whoever may write need not see configs
            raise
        policy = next((config.value for config in described), None) or ""
        if [one.strip() for one in policy.split(",")] != ["compact"]:
            raise RegistryError(
                Code.STORE_FAILED,
                f"topic {self.settings.topic} has cleanup.policy={policy}: schemas would be lost; "
                "set it to compact",
            )


def _look_at(done: asyncio.Task[None]) -> None:
    """Whoever waited for it may be gone."""
    if not done.cancelled():
        done.exception()


def named(error: ClientError) -> RegistryError:
    """What an error of Kafka is to whoever asks by HTTP."""
    if isinstance(error, RequestFailed):
        if error.code in _FORBIDDEN:
            return RegistryError(Code.FORBIDDEN, str(error))
        if error.code in _TOO_LARGE:
            return RegistryError(Code.TOO_LARGE, f"The schema is too large for Kafka: {error}")
    return RegistryError(Code.STORE_FAILED, str(error))
