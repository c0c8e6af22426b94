"""Transactions: messages and offsets of groups that are there all, or not at all.

    init -> messages, offsets (any number) -> commit | abort -> messages, offsets ...

`init` gives a producer id and epoch, which all other calls bring: who has them of an `init` before
the last one is fenced. A transaction lives in the HTTP process where it was begun. One that nobody
has used for its timeout is aborted and forgotten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Literal

from msgspec import Meta, Struct

from kwire.client.errors import ClientError
from kwire.client.offsets import Position
from kwire.client.producer import Outgoing
from kwire.client.shared_producer import BATCH_BYTES
from kwire.client.transactional_producer import RecordTooLarge, TransactionalProducer
from kwire.http.purposes.rest.clients import Client
from kwire.http.purposes.rest.expiring import Expiring
from kwire.http.purposes.rest.groups import by_partition, check_partitions
from kwire.http.purposes.rest.messages import Published
from kwire.http.purposes.rest.problems import Offset, Problem, throttled
from kwire.http.purposes.rest.publishing import Publishing, check_sizes, too_large
from kwire.http.purposes.rest.records import Messages, last_partition, to_records
from kwire.http.purposes.rest.route import (
    Answered,
    AnyRoute,
    B,
    Call,
    Handler,
    Nothing,
    Reply,
    Route,
)
from kwire.http.purposes.rest.shapes import (
    INT64_MAX,
    LIST_MAX,
    Group,
    GroupOffset,
    GroupOffsets,
    Topic,
    whole,
)
from kwire.protocol.records import Record
from kwire.protocol.records.build import record_size
from kwire.protocol.records.header import HEADER_SIZE

TIMEOUT_MS = 60_000
TIMEOUT_MS_MAX = 900_000
TRANSACTIONS_MAX = 1000
INT16_MAX = 2**15 - 1

TransactionalId = Annotated[str, whole("[^/]{1,249}", "1 to 249 characters, none of them a slash")]
ProducerId = Annotated[int, Meta(ge=0, le=INT64_MAX)]
Epoch = Annotated[int, Meta(ge=0, le=INT16_MAX)]


class Init(Struct, frozen=True, forbid_unknown_fields=True):
    """Who begins transactions, and after how long without a call one is aborted."""

    transactional_id: TransactionalId
    timeout_ms: Annotated[int, Meta(ge=1000, le=TIMEOUT_MS_MAX)] = TIMEOUT_MS


class Begun(Struct, frozen=True):
    """What all calls of its transactions bring."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class OfTransaction(Struct, frozen=True, forbid_unknown_fields=True):
    """Whose transaction it is."""

    transactional_id: TransactionalId


class SendInTransaction(Struct, frozen=True, forbid_unknown_fields=True):
    """Messages for a topic."""

    producer_id: ProducerId
    producer_epoch: Epoch
    topic: Topic
    messages: Messages


class OffsetsInTransaction(Struct, frozen=True, forbid_unknown_fields=True):
    """Offsets of a group, which are committed with the transaction."""

    producer_id: ProducerId
    producer_epoch: Epoch
    group: Group
    offsets: Annotated[list[GroupOffset], Meta(min_length=1, max_length=LIST_MAX)]


class End(Struct, frozen=True, forbid_unknown_fields=True):
    """Who ends it."""

    producer_id: ProducerId
    producer_epoch: Epoch


class Ended(Struct, frozen=True):
    """How the transaction has ended."""

    transactional_id: str
    state: Literal["committed", "aborted"]


class _Transaction:
    """One producer's. After an error it can only be aborted. `identity` is by what the caller names
    it: with transaction version 2 that of the producer changes with each transaction."""

    def __init__(self, producer: TransactionalProducer) -> None:
        self.producer = producer
        self.identity = producer.identity
        self.failed_by = ""

    async def close(self) -> None:
        await self.producer.abort()


class Transactions:
    """The transactions of one caller."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._open: Expiring[_Transaction] = Expiring(client.loop, TRANSACTIONS_MAX, _missing)

    async def init(self, asked: Init) -> Begun:
        """Fence whoever had the transactional id, and abort what was left open."""
        self._open.check_room()
        name = asked.transactional_id
        cluster = self._client.part(Publishing, Publishing).cluster
        producer = TransactionalProducer(cluster, name, timeout_ms=asked.timeout_ms)
        await producer.open()
        self._open.add(name, _Transaction(producer), asked.timeout_ms / 1000)
        return Begun(name, *producer.identity)

    @asynccontextmanager
    async def used(self, name: str, producer_id: int, epoch: int) -> AsyncIterator[_Transaction]:
        """The transaction, if these have it; Problem."""
        async with self._open.used(name) as transaction:
            if transaction.identity != (producer_id, epoch):
                message = f"transactional id {name}: another producer has taken it over"
                raise Problem(409, "fenced", message)
            yield transaction

    @asynccontextmanager
    async def written(
        self, name: str, producer_id: int, epoch: int
    ) -> AsyncIterator[TransactionalProducer]:
        """The same for what becomes a part of it."""
        async with self.used(name, producer_id, epoch) as transaction:
            if transaction.failed_by:
                message = f"transactional id {name}: abort it, for {transaction.failed_by}"
                raise Problem(409, "transaction_to_abort", message)
            try:
                yield transaction.producer
            except ClientError as error:
                transaction.failed_by = str(error)
                raise

    async def abort(self, name: str, asked: End) -> None:
        """End it; one that had failed is to be begun by `init`."""
        async with self.used(name, asked.producer_id, asked.producer_epoch) as transaction:
            await transaction.producer.roll_back()
            if transaction.failed_by:
                self._open.drop(name)

    @property
    def is_busy(self) -> bool:
        """Whether one is open."""
        return len(self._open) > 0

    def check(self, now_s: float) -> None:
        """They expire by themselves."""

    async def close(self) -> None:
        """Abort all."""
        await self._open.close()


def _missing(name: str) -> Problem:
    message = f"transactional id {name} has no transaction here: init, or its timeout is over"
    return Problem(404, "not_found", message, parameter="transactional_id")


def _of(client: Client) -> Transactions:
    return client.part(Transactions, Transactions)


async def init(call: Call[Nothing, Init]) -> Reply:
    """Become the one producer of a transactional id."""
    return Reply(200, await _of(call.client).init(call.body))


async def send(call: Call[OfTransaction, SendInTransaction]) -> Reply:
    """Append messages; readers of committed messages see them after the commit."""
    body, client, name = call.body, call.client, call.parameters.transactional_id
    publishing = client.part(Publishing, Publishing)
    found = await client.cluster.topic(body.topic, partition=last_partition(body.messages))
    count = len(found.partitions)
    unkeyed = publishing.next_unkeyed() % count
    now_ms = client.cluster.clock.wall_ms()
    records, placed = to_records(body.messages, count, unkeyed, now_ms)
    limit = await publishing.limit(body.topic)
    check_sizes(body.messages, records, placed, limit)
    try:
        async with _of(client).written(name, body.producer_id, body.producer_epoch) as producer:
            wait_s = max(publishing.throttled_s, producer.throttled_until_s - client.loop.time())
            if wait_s > 0:
                raise throttled(wait_s)
            offsets = await _appended(producer, body.topic, records, limit)
    except _TooLarge as error:
        rows = [row for row, placed_in in enumerate(placed) if placed_in == error.index]
        raise too_large(rows[error.at], str(error)) from None
    except ClientError:
        client.cluster.forget_topic(body.topic)  # it may be another one by now
        raise
    next_of = {index: iter(of_partition) for index, of_partition in offsets.items()}
    return Reply(200, Published([Offset(index, next(next_of[index])) for index in placed]))


class _TooLarge(RecordTooLarge):
    """The same, `at` among all records for the partition `index`."""

    def __init__(self, error: RecordTooLarge, index: int, at: int) -> None:
        super().__init__(error, at)
        self.index = index


async def _appended(
    producer: TransactionalProducer, topic: str, records: Mapping[int, list[Record]], limit: int
) -> dict[int, list[int]]:
    """The offset of each record, by partition."""
    offsets: dict[int, list[int]] = {}
    for index, of_partition in records.items():
        found = offsets[index] = []
        for batch in _batches(of_partition, min(limit, BATCH_BYTES)):
            outgoing = [
                Outgoing(one.key, one.value, tuple(one.headers), one.timestamp) for one in batch
            ]
            try:
                found += await producer.send_in_parts(topic, index, outgoing)
            except RecordTooLarge as error:
                raise _TooLarge(error, index, len(found) + error.at) from None
    return offsets


def _batches(records: list[Record], bytes_max: int) -> list[list[Record]]:
    found: list[list[Record]] = [[]]
    size = HEADER_SIZE
    for record in records:
        of_record = record_size(record)
        size += of_record
        if found[-1] and size > bytes_max:
            found.append([])
            size = HEADER_SIZE + of_record
        found[-1].append(record)
    return found


async def offsets(call: Call[OfTransaction, OffsetsInTransaction]) -> Reply:
    """Commit offsets of a group with the transaction."""
    body, name = call.body, call.parameters.transactional_id
    shown = GroupOffsets(body.offsets)
    positions = {where: Position(offset) for where, offset in by_partition(shown).items()}
    await check_partitions(call.client.cluster, body.offsets)
    async with _of(call.client).written(name, body.producer_id, body.producer_epoch) as producer:
        await producer.commit_offsets(body.group, positions)
    return Reply(200, shown)


async def commit(call: Call[OfTransaction, End]) -> Reply:
    """All of it is there."""
    body, name = call.body, call.parameters.transactional_id
    async with _of(call.client).written(name, body.producer_id, body.producer_epoch) as producer:
        await producer.commit()
    return Reply(200, Ended(name, "committed"))


async def abort(call: Call[OfTransaction, End]) -> Reply:
    """Nothing of it is there."""
    name = call.parameters.transactional_id
    await _of(call.client).abort(name, call.body)
    return Reply(200, Ended(name, "aborted"))


_REFUSALS = (404, 409)
_PATH = "/transactions/{transactional_id}"


def _of_one(
    what: str,
    handler: Handler[OfTransaction, B],
    body: type[B],
    answer: Answered,
    summary: str,
    refusals: tuple[int, ...] = _REFUSALS,
) -> Route[OfTransaction, B]:
    """A call of the transaction that its path names."""
    return Route(
        "POST",
        f"{_PATH}/{what}",
        handler,
        summary=summary,
        tag="transactions",
        parameters=OfTransaction,
        body=body,
        answers={200: answer},
        refusals=refusals,
    )


ROUTES: list[AnyRoute] = [
    Route(
        "POST",
        "/transactions/init",
        init,
        summary="Begin transactions, and fence whoever had the transactional id",
        description=(
            "What was left open is aborted. The producer id and epoch of the answer belong into "
            "all other calls. A transaction that nobody uses for timeout_ms is aborted."
        ),
        tag="transactions",
        parameters=Nothing,
        body=Init,
        answers={200: Answered(Begun, "The one producer of this transactional id.")},
        refusals=(*_REFUSALS, 429),
    ),
    _of_one(
        "messages",
        send,
        SendInTransaction,
        Answered(Published, "Where they are, once the transaction is committed."),
        "Publish messages in the transaction",
        (*_REFUSALS, 429),
    ),
    _of_one(
        "offsets",
        offsets,
        OffsetsInTransaction,
        Answered(GroupOffsets, "They are committed with the transaction."),
        "Commit offsets of a group with the transaction",
    ),
    _of_one(
        "commit", commit, End, Answered(Ended, "All of it is there."), "Commit the transaction"
    ),
    _of_one(
        "abort", abort, End, Answered(Ended, "Nothing of it is there."), "Abort the transaction"
    ),
]
