"""The transaction of a group of posts, and how its only writer is taken over.

There is one transactional id a principal and partition of `__kwire_idempotency_keys`. Whoever opens
it fences whoever had it, and ends what that one has left. A transaction that is open belongs to
somebody who may be about to commit it: it is given `PATIENCE_S` before it is ended.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed
from kwire.client.idempotency import key_records
from kwire.client.idempotency.key_records import KEYS_TOPIC, KeyRecord, Run
from kwire.client.offsets import Partition
from kwire.client.producer import Outgoing
from kwire.client.retries import Backoff
from kwire.client.topics import Topics
from kwire.client.transactional_producer import Fenced, RecordTooLarge, TransactionalProducer
from kwire.client.transactions import Transactions
from kwire.kept_errors import anew
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record
from kwire.protocol.records.build import record_size
from kwire.protocol.records.header import HEADER_SIZE

TRANSACTIONAL_ID_PREFIX = "kwire-rest-"
NAME_CHARACTERS_MAX = 200
TIMEOUT_MS = 10_000
"""Consumers of committed records wait so long for what a node that died has left open."""
PATIENCE_S = 2.0
POLL_MIN_S, POLL_MAX_S = 0.01, 0.1
BATCH_BYTES_MAX = 512 << 10
"""Of the messages in one batch; one that is larger goes alone."""
THROTTLED_S = 60.0
"""How long after a broker has held back what was sent more of it is expected."""
AT_ONCE_BYTES_MAX = 64 << 10
"""Of the messages that go beside each other: what is more may be over the producer's quota, and
whatever is behind it on its connection would have to be sent again."""

_LOST = (
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
)

PARTITIONS = 16
REPLICAS_MAX = 3
TRANSACTIONS_TOPIC = "__transaction_state"
RETENTION_MS = 24 * 3600 * 1000
SEGMENT_MS = 3600 * 1000

Runs: TypeAlias = dict[int, list[Run]]
"""Where the messages of a post are, by partition."""


class Post(NamedTuple):
    """What is to be published: each message with its partition, and the key and the digest of its
    record. `batch_bytes_max` is what the topic takes in one batch."""

    topic: str
    key: bytes
    body: bytes
    messages: list[Outgoing]
    size_bytes: int
    batch_bytes_max: int = BATCH_BYTES_MAX


class _Batch:
    """Messages of one partition; `counts` are how many of them each post has, in their order."""

    def __init__(self) -> None:
        self.messages: list[Outgoing] = []
        self.counts: dict[int, int] = {}
        self.size_bytes = HEADER_SIZE

    def owner(self, at: int) -> int:
        """The post of the message with this index."""
        return [number for number, count in self.counts.items() for _ in range(count)][at]


def _batches(posts: Mapping[int, list[Outgoing]], bytes_max: int) -> list[_Batch]:
    """The messages of posts by number: a post that fits into a batch is in one."""
    found = [_Batch()]
    for number, messages in posts.items():
        sizes = [size_of(message) for message in messages]
        if found[-1].messages and found[-1].size_bytes + sum(sizes) > bytes_max:
            found.append(_Batch())
        for message, size in zip(messages, sizes, strict=True):
            if found[-1].messages and found[-1].size_bytes + size > bytes_max:
                found.append(_Batch())
            found[-1].messages.append(message)
            found[-1].counts[number] = found[-1].counts.get(number, 0) + 1
            found[-1].size_bytes += size
    return found


class PostsRefused(Exception):
    """A part of a group cannot be written."""

    def __init__(self, numbers: tuple[int, ...], error: ClientError) -> None:
        super().__init__(str(error))
        self.numbers = numbers
        self.error = error


class OutcomeUnknown(Exception):
    """Another writer was opened, or nobody says what became of the end."""


def transactional_id(scope: str, partition: int) -> str:
    """Of a principal's posts in a partition of the keys: readable, so that an ACL can name it."""
    name = scope
    if len(name) > NAME_CHARACTERS_MAX or not name.isprintable():
        name = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
    return f"{TRANSACTIONAL_ID_PREFIX}{name}-{partition}"


async def keys_partitions(cluster: Cluster) -> int:
    """How many partitions the topic has, which is made where there is none. ClientError."""
    try:
        return len((await cluster.topic(KEYS_TOPIC)).partitions)
    except RequestFailed as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    replicas = await _replicas(cluster)
    configs = {
        "cleanup.policy": "compact,delete",
        "retention.ms": str(RETENTION_MS + SEGMENT_MS),
        "segment.ms": str(SEGMENT_MS),
        "min.insync.replicas": str(2 if replicas > 2 else 1),
    }
    try:
        await Topics(cluster).create(
            KEYS_TOPIC, partitions=PARTITIONS, replication=replicas, configs=configs
        )
    except RequestFailed as refused:
        if refused.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    return len((await cluster.topic(KEYS_TOPIC, is_new=True)).partitions)


async def _replicas(cluster: Cluster) -> int:
    """As many as the transactions' own topic has, whose loss would be as bad; where that is not to
    be seen, as many as there are nodes for."""
    await cluster.coordinator(Coordinator.TRANSACTION, f"{TRANSACTIONAL_ID_PREFIX}0")
    try:
        topic = await cluster.topic(TRANSACTIONS_TOPIC)
        return len(topic.partitions[0].replica_nodes)
    except ClientError:
        return min(REPLICAS_MAX, len((await cluster.metadata([])).brokers))


class GroupWriter:
    """See the module."""

    def __init__(self, cluster: Cluster, scope: str, partition: int, *, sending: Cluster) -> None:
        """Messages go over the connections of `sending`, all else over those of `cluster`: the end
        of a transaction does not wait behind its messages for longer than it lasts."""
        self._cluster = cluster
        self._sending = sending
        self._partition = partition
        self._transactions = Transactions(cluster)
        self._producer = TransactionalProducer(
            cluster,
            transactional_id(scope, partition),
            timeout_ms=TIMEOUT_MS,
            leaves_throttled=True,
        )

    async def open(self) -> None:
        """Become the only writer; ClientError."""
        await self._wait_for_the_other()
        await self._producer.open()

    async def _wait_for_the_other(self) -> None:
        """Until the transaction that is open is ended, by whoever has opened it."""
        loop = self._cluster.loop
        end_s = loop.time() + PATIENCE_S
        backoff = Backoff(POLL_MIN_S, POLL_MAX_S, self._cluster.random)
        while loop.time() < end_s:
            try:
                found = await self._transactions.describe(self._producer.transactional_id)
            except RequestFailed as error:
                if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise
                return
            own = (found.producer_id, found.producer_epoch) == self._producer.identity
            if own or found.transaction_state != "Ongoing":
                return
            await asyncio.sleep(backoff.next_s())

    @property
    def throttled_until_s(self) -> float:
        """Until when the broker holds back what is sent, by the producer's quota."""
        return self._producer.throttled_until_s

    async def write(self, posts: Mapping[int, Post]) -> dict[int, Runs]:
        """The messages of posts by number, as a transaction that stays open; of each post where
        its messages are in each partition. PostsRefused, OutcomeUnknown."""
        rows: dict[Partition, dict[int, list[Outgoing]]] = {}
        for number, post in posts.items():
            for message in post.messages:
                assert message.partition is not None, "partitions are chosen before"
                of_partition = rows.setdefault((post.topic, message.partition), {})
                of_partition.setdefault(number, []).append(message)
        try:
            await self._producer.add([*rows, (KEYS_TOPIC, self._partition)])
        except ClientError as error:
            if is_lost(error):
                raise OutcomeUnknown from None
            await self._refuse(tuple(posts), error)
        found: dict[int, Runs] = {number: {} for number in posts}
        batches = {
            partition: _batches(
                of_posts, min((BATCH_BYTES_MAX, *(posts[at].batch_bytes_max for at in of_posts)))
            )
            for partition, of_posts in rows.items()
        }
        is_throttled = self._cluster.loop.time() - self.throttled_until_s < THROTTLED_S
        if is_throttled or sum(post.size_bytes for post in posts.values()) > AT_ONCE_BYTES_MAX:
            for partition, own in batches.items():
                try:
                    await self._send(partition, own, posts, found)
                except PostsRefused as refused:
                    await self._refuse(refused.numbers, refused.error)
            return found
        sending = [
            asyncio.ensure_future(self._send(partition, own, posts, found))
            for partition, own in batches.items()
        ]
        try:
            results = await asyncio.gather(*sending, return_exceptions=True)
        except asyncio.CancelledError:
            await asyncio.gather(*sending, return_exceptions=True)
            raise
        for result in results:
            if isinstance(result, OutcomeUnknown):
                raise OutcomeUnknown
        for result in results:
            if isinstance(result, PostsRefused):
                await self._refuse(result.numbers, result.error)
            if isinstance(result, BaseException):
                raise anew(result)
        return found

    async def _send(
        self,
        partition: Partition,
        batches: Sequence[_Batch],
        posts: Mapping[int, Post],
        found: dict[int, Runs],
    ) -> None:
        """The messages of one partition, those of several posts in one batch."""
        for batch in batches:
            try:
                offsets = await self._producer.send_in_parts(
                    *partition, batch.messages, over=self._sending
                )
            except RecordTooLarge as error:
                number = batch.owner(error.at)
                of_post, wrong = posts[number].messages, batch.messages[error.at]
                at = next(at for at, message in enumerate(of_post) if message is wrong)
                raise PostsRefused((number,), RecordTooLarge(error, at)) from None
            except ClientError as error:
                if is_lost(error):
                    raise OutcomeUnknown from None
                raise PostsRefused(tuple(batch.counts), error) from None
            begin = 0
            for number, count in batch.counts.items():
                runs = _runs(offsets[begin : begin + count])
                found[number].setdefault(partition[1], []).extend(runs)
                begin += count

    async def finish(self, records: Mapping[bytes, KeyRecord]) -> None:
        """The keys' records, and the end of the transaction. PostsRefused with no numbers,
        OutcomeUnknown."""
        last = [
            Outgoing(key=key, value=key_records.encoded(record)) for key, record in records.items()
        ]
        try:
            await self._producer.send_in_parts(
                KEYS_TOPIC, self._partition, last, over=self._sending
            )
        except ClientError as error:
            if is_lost(error):
                raise OutcomeUnknown from None
            await self._refuse((), error)
        try:
            await self._producer.commit()
        except ClientError:
            raise OutcomeUnknown from None

    async def _refuse(self, numbers: tuple[int, ...], error: ClientError) -> None:
        await self._producer.abort()
        raise PostsRefused(numbers, error) from None


def is_lost(error: ClientError) -> bool:
    """Whether it says that the transaction is not the one that this writer has begun: another one
    has ended it, or time has."""
    return isinstance(error, Fenced) or (isinstance(error, RequestFailed) and error.code in _LOST)


def size_of(message: Outgoing) -> int:
    """How many bytes a message takes at most in a batch."""
    return record_size(Record(key=message.key, value=message.value, headers=message.headers))


def _runs(offsets: Sequence[int]) -> Iterator[Run]:
    """Of offsets that go up."""
    begin = 0
    for at in range(1, len(offsets) + 1):
        if at == len(offsets) or offsets[at] != offsets[at - 1] + 1:
            yield Run(offsets[begin], at - begin)
            begin = at
