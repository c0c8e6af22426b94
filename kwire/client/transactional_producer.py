"""Transactions of one producer: records and offsets of groups that are there all, or not at all.

`open` ends what another producer with the same transactional id has left, and fences it: what it
sends from then on is refused (Fenced). Where the cluster has transaction version 2 (KIP-890), what
is written adds its partition and group, and the end of a transaction gives the epoch of the next
one, so that nothing that was on its way can be taken for a part of that. Elsewhere partitions and
groups are added by requests of their own, as by every broker since 0.11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from kwire.client.appending import EXPLICIT_VERSION_MAX, VERSION_MAX, Appending
from kwire.client.cluster import Cluster, Coordinator
from kwire.client.errors import ClientError, RequestFailed, check
from kwire.client.offsets import Partition, Position
from kwire.client.producer import Outgoing, made_record
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Codec, add_sequence, build_batch

T = TypeVar("T")

TIMEOUT_MS = 30_000
"""After which the coordinator aborts a transaction that nobody ends."""
ABORT_TIMEOUT_S = 5.0
OPEN_VERSION_MAX = 5
ADD_VERSION_MAX = 3
EXPLICIT_COMMIT_VERSION_MAX = 4
EXPLICIT_END_VERSION_MAX = 4
"""The last versions before a transaction takes what is written without a request for it."""
COMMIT_VERSION_MAX = 5
"""The last version that names topics."""
END_VERSION_MAX = 5
TRANSACTION_VERSION = "transaction.version"
IMPLICIT_FROM = 2
"""The level of it at which a transaction does."""
_FENCED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)


_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


class Fenced(ClientError):
    """Another producer with the same transactional id was opened since, or the coordinator has
    aborted a transaction that took too long."""


class RecordTooLarge(RequestFailed):
    """No batch of the topic can hold a record; `at` is its index among those that were sent."""

    def __init__(self, error: RequestFailed, at: int) -> None:
        ClientError.__init__(self, str(error))
        self.code = error.code
        self.at = at


class Identity(NamedTuple):
    """Who a transaction is of: no two producers that were opened have the same."""

    producer_id: int
    epoch: int


class TransactionalProducer:
    """See the module; ClientError from all of them. One transaction at a time, by one task, but
    for batches of different partitions that were added: those may go beside each other. After
    an error the transaction is ended by `abort`, and the next one begins with `open`. `identity` is
    that of the transaction that is open or comes next. `over` is the cluster by whose connections
    batches go, where it is not that of the producer."""

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str,
        *,
        timeout_ms: int = TIMEOUT_MS,
        leaves_throttled: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._appending = Appending(
            cluster,
            is_idempotent=True,
            transactional_id=transactional_id,
            leaves_throttled=leaves_throttled,
        )
        self.identity = Identity(-1, -1)
        self._sequences: dict[Partition, int] = {}
        self._added: dict[Partition, None] = {}
        self._is_begun = False
        self._is_implicit = False  # what is written adds itself to the transaction

    async def open(self) -> None:
        """Become the one producer of this transactional id; waits until what the one before has
        left is ended."""
        self._is_begun = False
        self._added.clear()
        self._sequences.clear()

        async def ask(node_id: int) -> Identity:
            request = m.InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
            )
            connection = await self._cluster.connection(node_id)
            response = await connection.call(request, OPEN_VERSION_MAX)
            self._check(response.error_code)
            self._is_implicit = connection.finalized(TRANSACTION_VERSION) >= IMPLICIT_FROM
            return Identity(response.producer_id, response.producer_epoch)

        self.identity = await self._ask(ask)
        self._appending.version_max = VERSION_MAX if self._is_implicit else EXPLICIT_VERSION_MAX

    async def send(
        self,
        topic: str,
        partition: int,
        records: Sequence[Outgoing],
        *,
        codec: Codec = Codec.NONE,
        over: Cluster | None = None,
    ) -> int:
        """Append one batch to a partition as a part of the transaction, which begins with its
        first; the offset of the first record."""
        cluster = over or self._cluster
        self._is_begun = True
        await self.add([(topic, partition)])
        sequence = self._sequences.get((topic, partition), 0)
        now_ms = self._cluster.clock.wall_ms()
        batch = build_batch(
            [made_record(record, now_ms) for record in records],
            codec=codec,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        try:
            offset = await cluster.retrying(
                lambda: self._appending.attempt(topic, partition, batch, over=over)
            )
        except RequestFailed as error:
            raise self._named(error) from None
        self._sequences[topic, partition] = add_sequence(sequence, len(records))
        return offset

    async def send_in_parts(
        self,
        topic: str,
        partition: int,
        records: Sequence[Outgoing],
        *,
        over: Cluster | None = None,
    ) -> list[int]:
        """The same by smaller batches where the topic does not take one; the offset of each.
        RecordTooLarge names the one that is too large alone."""
        offsets: list[int] = []
        parts = [records]
        while parts:
            part = parts.pop()
            try:
                first = await self.send(topic, partition, part, over=over)
            except RequestFailed as error:
                if error.code not in _TOO_LARGE:
                    raise
                if len(part) == 1:
                    raise RecordTooLarge(error, len(offsets)) from None
                half = len(part) // 2
                parts += [part[half:], part[:half]]
            else:
                offsets += range(first, first + len(part))
        return offsets

    async def commit_offsets(self, group: str, positions: Mapping[Partition, Position]) -> None:
        """Commit offsets of a group without members as a part of the transaction."""
        identity = self.identity
        self._is_begun = True

        async def add(node_id: int) -> None:
            request = m.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                group_id=group,
            )
            response = await self._cluster.call(request, node_id, version_max=ADD_VERSION_MAX)
            self._check(response.error_code, f"group {group}")

        if not self._is_implicit:
            await self._ask(add)
        version_max = COMMIT_VERSION_MAX if self._is_implicit else EXPLICIT_COMMIT_VERSION_MAX
        request = _commit_request(self.transactional_id, identity, group, positions)

        async def commit(node_id: int) -> None:
            response = await self._cluster.call(request, node_id, version_max=version_max)
            for topic in response.topics:
                for one in topic.partitions:
                    what = f"group {group}, {topic.name}-{one.partition_index}"
                    self._check(one.error_code, what)

        await self._cluster.ask_coordinator(Coordinator.GROUP, group, commit)

    async def commit(self) -> None:
        """End the transaction: all of it is there. An error other than Fenced leaves open which
        of both it is: `open`, and what is committed then, tells."""
        await self._end(True)

    @property
    def throttled_until_s(self) -> float:
        """Until when the broker holds back what is sent, by the producer's quota."""
        return self._appending.throttled_until_s

    async def roll_back(self) -> None:
        """End the transaction: nothing of it is there. ClientError where it could not be ended."""
        await self._end(False)

    async def abort(self) -> None:
        """End the transaction: nothing of it is there. What cannot be ended now is ended by the
        next `open`, or by the coordinator in the end."""
        if not self._is_begun:
            return
        try:
            async with asyncio.timeout(ABORT_TIMEOUT_S):
                await self._end(False)
        except (ClientError, TimeoutError):
            self._is_begun = False

    async def _end(self, is_committed: bool) -> None:
        if not self._is_begun:
            return
        identity = self.identity
        version_max = END_VERSION_MAX if self._is_implicit else EXPLICIT_END_VERSION_MAX

        async def ask(node_id: int) -> Identity:
            request = m.EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                committed=is_committed,
            )
            response = await self._cluster.call(request, node_id, version_max=version_max)
            self._check(response.error_code)
            return Identity(response.producer_id, response.producer_epoch)

        ended = await self._ask(ask)
        self._is_begun = False
        self._added.clear()
        if self._is_implicit:
            self.identity = ended
            self._sequences.clear()

    async def add(self, partitions: Iterable[Partition]) -> None:
        """Make partitions a part of the transaction by one request: batches for those that are
        may be sent beside each other. Where batches add their partitions themselves, nothing is
        asked."""
        if self._is_implicit:
            return
        topics: dict[str, list[int]] = {}
        for topic, index in dict.fromkeys(partitions):
            if (topic, index) not in self._added:
                topics.setdefault(topic, []).append(index)
        if not topics:
            return
        identity = self.identity
        self._is_begun = True

        async def ask(node_id: int) -> None:
            kind = m.AddPartitionsToTxnRequest
            request = kind(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=identity.producer_id,
                v3_and_below_producer_epoch=identity.epoch,
                v3_and_below_topics=[
                    kind.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                    for name, indexes in topics.items()
                ],
            )
            response = await self._cluster.call(request, node_id, version_max=ADD_VERSION_MAX)
            refused: list[tuple[int, str]] = []
            for answered in response.results_by_topic_v3_and_below:
                for one in answered.results_by_partition:
                    what = f"{answered.name}-{one.partition_index}"
                    refused.append((one.partition_error_code, what))
            # Where one is refused, all others are not attempted: the one says why.
            for code, what in sorted(refused, key=lambda it: it[0] == _NOT_ATTEMPTED):
                self._check(code, what)

        await self._ask(ask)
        for name, indexes in topics.items():
            self._added.update({(name, index): None for index in indexes})

    async def _ask(self, ask: Callable[[int], Awaitable[T]]) -> T:
        return await self._cluster.ask_coordinator(
            Coordinator.TRANSACTION, self.transactional_id, ask
        )

    def _check(self, code: int, what: str | None = None) -> None:
        try:
            check(code, what or f"transactional id {self.transactional_id}")
        except RequestFailed as error:
            raise self._named(error) from None

    def _named(self, error: RequestFailed) -> ClientError:
        if error.code not in _FENCED:
            return error
        return Fenced(
            f"transactional id {self.transactional_id}: another producer has taken it over, or the "
            f"transaction was open for more than {self._timeout_ms} ms"
        )


def _commit_request(
    transactional_id: str,
    identity: Identity,
    group: str,
    positions: Mapping[Partition, Position],
) -> m.TxnOffsetCommitRequest:
    kind = m.TxnOffsetCommitRequest
    topics: dict[str, list[m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
    for (topic, index), position in positions.items():
        topics.setdefault(topic, []).append(
            kind.TxnOffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=position.offset,
                committed_metadata=position.metadata,
            )
        )
    return kind(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=identity.producer_id,
        producer_epoch=identity.epoch,
        topics=[
            kind.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
