"""Records in: one batch for each partition among them, each kept once.

The producer is idempotent: a batch that is sent again because nobody knows what became of it is
recognised by its sequence numbers. Batches of a partition go one after the other, partitions beside
each other. A batch that can never succeed costs its sequence: the producer goes on with a new
epoch, which the broker gives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from kwire.client.appending import ALL, Appending
from kwire.client.cluster import Cluster
from kwire.client.errors import ClientError, check
from kwire.kept_errors import anew
from kwire.protocol import messages as m
from kwire.protocol.records import Codec, Record, add_sequence, build_batch
from kwire.protocol.records.partitioner import partition_of

Header = tuple[str | bytes, bytes | None]


class Outgoing(NamedTuple):
    """One record to send: now without a timestamp, where the producer likes without a partition."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    partition: int | None = None


class Kept(NamedTuple):
    """Where a record is; the offset is -1 where the broker does not tell (acks 0)."""

    partition: int
    offset: int


class _Series:
    """The batches of one partition: one at a time, numbered on."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.identity: tuple[int, int] = (-1, -1)
        self.next_sequence = 0


class Producer:
    """See the module. `acks` is -1 for all replicas in sync, 1 for the leader, 0 for no answer;
    only with -1 is it idempotent."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        acks: int = ALL,
        codec: Codec = Codec.NONE,
        idempotent: bool = True,
        create_topics: bool = False,
    ) -> None:
        self._cluster = cluster
        self._codec = codec
        self._is_idempotent = idempotent and acks == ALL
        self._appending = Appending(cluster, acks=acks, is_idempotent=self._is_idempotent)
        self._create_topics = create_topics
        self._identity: tuple[int, int] = (-1, -1)
        self._identifying = asyncio.Lock()
        self._series: dict[tuple[str, int], _Series] = {}
        self._next = 0

    async def send(
        self, topic_name: str, records: Sequence[Outgoing], *, timeout_s: float | None = None
    ) -> list[Kept]:
        """Append records, in their order within each partition; where they are, in their order.

        A record goes to its own partition; else to where Kafka's producers put its key; those
        without a key to one partition, the next call's to the next. Raises the first partition's
        ClientError once all have been answered: other partitions may have kept theirs.
        """
        topic = await self._cluster.topic(topic_name, create=self._create_topics)
        count = len(topic.partitions)
        now_ms = self._cluster.clock.wall_ms()
        rows: dict[int, list[int]] = {}
        for row, each in enumerate(records):
            rows.setdefault(self._choose(each, count), []).append(row)
        self._next += 1
        sending = [
            asyncio.ensure_future(
                self._send_batch(
                    topic_name,
                    index,
                    [made_record(records[row], now_ms) for row in chosen],
                    timeout_s,
                )
            )
            for index, chosen in rows.items()
        ]
        try:
            results = await asyncio.gather(*sending, return_exceptions=True)
        except asyncio.CancelledError:
            for one in sending:
                one.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
            raise
        kept: list[Kept] = [Kept(-1, -1)] * len(records)
        failed: Exception | None = None
        for (index, chosen), result in zip(rows.items(), results, strict=True):
            if isinstance(result, BaseException):
                failed = failed or _an_exception(result)
                continue
            for at, row in enumerate(chosen):
                kept[row] = Kept(index, -1 if result < 0 else result + at)
        if failed is not None:
            raise anew(failed)
        return kept

    def _choose(self, record: Outgoing, count: int) -> int:
        if record.partition is not None:
            return record.partition
        if record.key is not None:
            return partition_of(record.key, count)
        return self._next % count

    async def _send_batch(
        self, topic: str, index: int, records: list[Record], timeout_s: float | None
    ) -> int:
        """The offset of the first one."""
        series = self._series.get((topic, index))
        if series is None:
            series = self._series[topic, index] = _Series()
        async with series.lock:
            if not self._is_idempotent:
                batch = build_batch(records, codec=self._codec)
                return await self._cluster.retrying(
                    lambda: self._appending.attempt(topic, index, batch), timeout_s
                )
            await self._identify(series)
            producer_id, epoch = series.identity
            batch = build_batch(
                records,
                codec=self._codec,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=series.next_sequence,
            )
            try:
                offset = await self._cluster.retrying(
                    lambda: self._appending.attempt(topic, index, batch), timeout_s
                )
            except BaseException:
                # Whether it was kept is not known, or its numbers cannot be used by another.
                if self._identity == series.identity:
                    self._identity = (-1, -1)
                series.identity = (-1, -1)
                raise
            series.next_sequence = add_sequence(series.next_sequence, len(records))
            return offset

    async def _identify(self, series: _Series) -> None:
        """A producer id and epoch for the series; a new one starts at sequence 0."""
        async with self._identifying:
            if self._identity[0] < 0:
                self._identity = await self._cluster.retrying(self._new_identity)
        if series.identity != self._identity:
            series.identity, series.next_sequence = self._identity, 0

    async def _new_identity(self) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        response = await self._cluster.call(request, version_max=5)
        check(response.error_code, "the producer's id")
        return response.producer_id, response.producer_epoch


def _an_exception(error: BaseException) -> Exception:
    """What a send ended with; one that was cancelled is an error to the others of its call."""
    return error if isinstance(error, Exception) else ClientError("the send was cancelled")


def made_record(outgoing: Outgoing, now_ms: int) -> Record:
    """What is sent for it: with the time of now where it has none."""
    timestamp = now_ms if outgoing.timestamp is None else outgoing.timestamp
    return Record(0, timestamp, outgoing.key, outgoing.value, list(outgoing.headers))
