"""Who writes: one registry at a time, whichever of them has something to write.

    1  InitProducerId for a transactional id that all registries of the topic share: this one gets
       the next epoch of its producer id
    2  a NOOP record with that producer id and epoch: from here on the partition refuses records of
       every earlier epoch, and whatever was written before stands in front of it
    3  everything up to that NOOP is read: what is decided then is decided of all that there is

A batch that is refused for its epoch was not written, and somebody else writes: whoever still has
something to write takes over in turn. A batch of which nobody knows whether it was written is
looked for behind the next takeover. Nothing is a transaction: batches have the producer's id and
epoch and no marker, any other registry reads them.

A takeover is good for ROLE_S. So the coordinator does not forget the transactional id, nor the
partition the producer, while somebody writes by them. A coordinator whose epochs are used up gives
another producer id, whose epochs the partition does not compare with those before: the old one is
fenced by a NOOP with an epoch of its own (`Writer` tells which it was).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from kwire.client.appending import Appending
from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.http.purposes.registry.reading import RegistryReading
from kwire.http.purposes.registry.topic import SchemaTopic, named
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.schemas.registry import records
from kwire.schemas.registry.errors import Code, RegistryError
from kwire.schemas.registry.json_values import Json
from kwire.schemas.registry.machine import Decision, Registry, with_maxima
from kwire.schemas.registry.records import Writer, Written

ROLE_S = 600.0
TIMEOUT_S = 30.0
"""For one request; the attempt that is under way then is the last."""
APPEND_TIMEOUT_S = 10.0
PAUSE_S = 0.01
PAUSE_STEPS = 5
PAUSE_STEPS_MAX = 40
"""Pauses between attempts are drawn from more and more steps of PAUSE_S, up to 0.4 s."""
TRANSACTION_TIMEOUT_MS = 60_000
INIT_VERSION_MAX = 5
EPOCH_MAX = 2**15 - 1
_FENCED = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
_REFUSED = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
)
"""Nothing was written, and nothing of it will be the next time."""

Decide = Callable[[Registry], Decision]


class _Role(NamedTuple):
    """A takeover: the producer that one is, of which topic, and until when."""

    producer_id: int
    epoch: int
    topic_id: bytes
    until_s: float


class _NotKnown(Exception):
    """Somebody else writes, or nobody knows whether something was written."""


class SchemaWriter:
    """See the module."""

    def __init__(self, topic: SchemaTopic, reading: RegistryReading) -> None:
        self._topic = topic
        self._reading = reading
        self._role: _Role | None = None
        self._sequence = 0
        self._writing = asyncio.Lock()
        self.takeovers = 0

    @property
    def transactional_id(self) -> str:
        """Whose epochs tell the registries of a topic apart."""
        return self._topic.settings.topic

    async def decided(self, cluster: Cluster, decide: Decide) -> Json:
        """The answer to a request once its records are committed and replayed; RegistryError."""
        await self._topic.caught_up(cluster)
        decision = await self._decision(decide)
        if not decision.records:
            return decision.answer
        async with self._writing:
            self._topic.journal = []
            try:
                return await self._written(cluster, decide)
            except ClientError as error:
                self._role = None
                raise named(error) from None
            finally:
                self._topic.journal = None

    async def _written(self, cluster: Cluster, decide: Decide) -> Json:
        end_s = cluster.loop.time() + TIMEOUT_S
        pending: Decision | None = None
        steps = 1
        while True:
            try:
                await self._take_over(cluster)
                if pending is not None and self._is_written(pending.records):
                    return pending.answer
                await self._topic.caught_up(cluster)
                pending = await self._decision(decide)
                if pending.records:
                    self._topic.journal = []
                    await self._append(cluster, pending.records)
                return pending.answer
            except _NotKnown as error:
                self._role = None
                if cluster.loop.time() > end_s:
                    raise RegistryError(Code.TIMED_OUT, str(error)) from None
            # Who was overtaken takes over at once; who is again and again leaves the others a turn.
            await asyncio.sleep(PAUSE_S * cluster.random.below(steps))
            steps = min(steps + PAUSE_STEPS, PAUSE_STEPS_MAX)

    async def _decision(self, decide: Decide) -> Decision:
        return await self._reading.decided(lambda: self._topic.registry, decide)

    # -- taking over

    async def _take_over(self, cluster: Cluster) -> None:
        loop = cluster.loop
        topic = self._topic
        role = self._role
        if role and role.topic_id == topic.topic_id and loop.time() < role.until_s:
            return
        self._role = None
        await topic.make(cluster)
        await topic.caught_up(cluster)
        until_s = loop.time() + ROLE_S
        producer_id, epoch = await self._initialized(cluster)
        before = topic.registry.state.writer
        if before is not None and before.producer_id != producer_id:
            await self._fence(cluster, before)
        role = _Role(producer_id, epoch, topic.topic_id, until_s)
        self._sequence = 0
        self.takeovers += 1
        maxima = topic.registry.state.id_maxima()
        await self._write(cluster, role, [_announced(role, maxima)])
        if topic.registry.state.id_maxima() != maxima:  # given while this one was taking over
            await self._write(cluster, role, [_announced(role, topic.registry.state.id_maxima())])
        self._role = role

    async def _initialized(self, cluster: Cluster) -> tuple[int, int]:
        async def ask(node_id: int) -> tuple[int, int]:
            request = m.InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            )
            response = await cluster.call(request, node_id, version_max=INIT_VERSION_MAX)
            check(response.error_code, f"transactional id {self.transactional_id}")
            return response.producer_id, response.producer_epoch

        return await cluster.ask_coordinator(Coordinator.TRANSACTION, self.transactional_id, ask)

    async def _fence(self, cluster: Cluster, before: Writer) -> None:
        """Refuse what the producer of an id that is not given any more still sends."""
        if before.epoch >= EPOCH_MAX:
            return
        fence = Writer(before.producer_id, before.epoch + 1, self._topic.registry.state.id_maxima())
        batch = _batch(cluster, [records.writer_record(fence)], fence.producer_id, fence.epoch, 0)
        try:
            await self._sent(cluster, batch)
        except RequestFailed as error:
            if error.code not in _FENCED:
                raise

    # -- writing

    async def _append(self, cluster: Cluster, written: list[Written]) -> None:
        role = self._role
        assert role is not None, "nobody has taken over"
        registry = self._topic.registry
        await self._write(
            cluster, role, with_maxima(registry, written, role.producer_id, role.epoch)
        )

    async def _write(self, cluster: Cluster, role: _Role, written: list[Written]) -> None:
        """Commit a batch and replay it; RegistryError where it cannot be written at all."""
        batch = _batch(cluster, written, role.producer_id, role.epoch, self._sequence)
        try:
            offset = await self._sent(cluster, batch)
        except RequestFailed as error:
            if error.code in _REFUSED:
                raise named(error) from None
            raise _NotKnown(str(error)) from None
        except ClientError as error:
            raise _NotKnown(str(error)) from None
        self._sequence += len(written)
        end_s = cluster.loop.time() + APPEND_TIMEOUT_S
        while cluster.loop.time() < end_s:
            await self._topic.caught_up(cluster)
            if self._topic.position > offset:
                return
            await asyncio.sleep(PAUSE_S)  # a new leader does not show all that is committed at once
        raise _NotKnown(f"offset {offset} of {self._topic.settings.topic} is not shown")

    async def _sent(self, cluster: Cluster, batch: bytearray) -> int:
        appending = Appending(cluster, is_idempotent=True)
        name = self._topic.settings.topic
        return await cluster.retrying(lambda: appending.attempt(name, 0, batch), APPEND_TIMEOUT_S)

    def _is_written(self, written: list[Written]) -> bool:
        """Whether records of which nobody knew it stand in what was read since."""
        journal = self._topic.journal or []
        return any(
            journal[at : at + len(written)] == written
            for at in range(len(journal) - len(written) + 1)
        )


def _announced(role: _Role, maxima: dict[str, int]) -> Written:
    return records.writer_record(Writer(role.producer_id, role.epoch, maxima))


def _batch(
    cluster: Cluster, written: list[Written], producer_id: int, epoch: int, sequence: int
) -> bytearray:
    now_ms = cluster.clock.wall_ms()
    return build_batch(
        [Record(0, now_ms, key, value) for key, value in written],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


__all__ = ["Decide", "SchemaWriter"]
