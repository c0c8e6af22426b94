"""Records in, for many who send at once: what comes while a batch of its partition is on its way
goes with the next one, whoever sent it.

Of each partition one batch is on its way, so that its records stay in their order; partitions that
one node leads share a request. With `is_idempotent` a batch whose fate is unknown is sent again by
its sequence numbers. What the broker refuses because of one record is taken apart: the records of
others do not fail with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence

from kwire.client.appending import ALL, VERSION_MAX
from kwire.client.cluster import Cluster
from kwire.client.errors import (
    ClientError,
    LoginFailed,
    RequestFailed,
    Unreachable,
    Unsupported,
    check,
)
from kwire.kept_errors import anew
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, is_retriable, refreshes_metadata
from kwire.protocol.records import Record, add_sequence, build_batch
from kwire.protocol.records.build import record_size

BATCH_BYTES = 900_000
"""Below the default of `max.message.bytes`; a record that is larger goes alone."""
RECORDS_MAX = 20_000
WAITING_BYTES_MAX = 64 << 20
TIMEOUT_S = 10.0
"""For a broker to acknowledge a batch, and for a sender to wait."""
ANSWER_TIMEOUT_S = 15.0
IDENTITY_VERSION_MAX = 5
_UNSENT = (Unreachable, LoginFailed, Unsupported)

_OF_ONE_RECORD = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.CORRUPT_MESSAGE,
)
_OF_THE_SEQUENCE = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
)
_TOO_FEW_REPLICAS = (
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)


class Sent:
    """What has become of the records of one partition: `offsets` of those that were kept, -1 where
    the broker does not tell; the others failed by `error`, `failed_at` is the one that is wrong
    where it is known."""

    __slots__ = ("at", "deadline_s", "error", "failed_at", "is_alone", "offsets", "records", "size")

    def __init__(self, records: Sequence[Record], size: int, deadline_s: float) -> None:
        self.records = records
        self.size = size
        self.deadline_s = deadline_s
        self.offsets: list[int] = []
        self.error: ClientError | None = None
        self.failed_at = -1
        self.at = 0
        """How many are in batches."""
        self.is_alone = False
        """Whether it shares no batch with others."""


class _Batch:
    """Records of one partition on their way; `pieces` are runs of a `Sent`, by begin and end."""

    __slots__ = ("is_unsure", "pauses", "pieces", "raw", "records", "sequence")

    def __init__(self, pieces: list[tuple[Sent, int, int]], records: list[Record]) -> None:
        self.pieces = pieces
        self.records = records
        self.raw = bytearray()
        self.sequence = -1
        self.pauses = 0
        self.is_unsure = False
        """Whether it may have been kept by an attempt that has failed."""


class _Partition:
    """What waits for one partition."""

    __slots__ = ("batch", "identity", "index", "is_busy", "limit", "next_sequence", "waiting")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[tuple[Sent, asyncio.Future[None]]] = deque()
        self.batch: _Batch | None = None
        """The one that is sent, or to be sent again."""
        self.is_busy = False
        self.limit = BATCH_BYTES
        self.identity = (-1, -1)
        self.next_sequence = 0

    def cut(self) -> _Batch | None:
        """The next batch."""
        pieces: list[tuple[Sent, int, int]] = []
        records: list[Record] = []
        size = 0
        for sent, _ in self.waiting:
            if sent.at == len(sent.records) or sent.error is not None:
                continue
            if pieces and (sent.is_alone or pieces[0][0].is_alone or len(records) >= RECORDS_MAX):
                break
            begin = end = sent.at
            if size + sent.size <= self.limit:
                end = len(sent.records)
                size += sent.size
            else:
                while end < len(sent.records):
                    of_record = record_size(sent.records[end])
                    if (records or end > begin) and size + of_record > self.limit:
                        break
                    size += of_record
                    end += 1
            if end > begin:
                pieces.append((sent, begin, end))
                records += sent.records[begin:end]
                sent.at = end
            if end < len(sent.records):
                break
        return _Batch(pieces, records) if pieces else None


class Full(ClientError):
    """More waits to be sent than may."""

    @property
    def is_retriable(self) -> bool:
        return True


class SharedProducer:
    """See the module. `acks` is -1 for all replicas in sync, 1 for the leader, 0 for no answer."""

    def __init__(self, cluster: Cluster, *, acks: int = ALL) -> None:
        self.throttled_until_s = 0.0
        """Until when the broker holds back what is sent, by the producer's quota."""
        self._cluster = cluster
        self._acks = acks
        self._is_idempotent = acks == ALL
        self._topics: dict[str, dict[int, _Partition]] = {}
        self._ready: dict[str, dict[_Partition, None]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._is_woken = False
        self._waiting_bytes = 0
        self._identity = (-1, -1)
        self._identifying = asyncio.Lock()

    @property
    def is_busy(self) -> bool:
        """Whether something waits to be acknowledged."""
        return self._waiting_bytes > 0

    async def send(
        self,
        topic: str,
        records: Mapping[int, Sequence[Record]],
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> dict[int, Sent]:
        """Append records by partition, those of each in their order. What became of them is told
        once all are answered; ClientError where nothing was sent."""
        cluster = self._cluster
        deadline_s = cluster.loop.time() + timeout_s
        found = {
            index: Sent(of_partition, sum(map(record_size, of_partition)), deadline_s)
            for index, of_partition in records.items()
        }
        size = sum(sent.size for sent in found.values())
        if self._waiting_bytes and self._waiting_bytes + size > WAITING_BYTES_MAX:
            raise Full(f"{self._waiting_bytes} bytes wait to be sent already")
        partitions = self._topics.setdefault(topic, {})
        ready = self._ready.setdefault(topic, {})
        futures = []
        for index, sent in found.items():
            partition = partitions.get(index)
            if partition is None:
                partition = partitions[index] = _Partition(index)
            future: asyncio.Future[None] = cluster.loop.create_future()
            partition.waiting.append((sent, future))
            futures.append(future)
            if not partition.is_busy:
                ready[partition] = None
        self._waiting_bytes += size
        self._wake()
        try:
            for future in futures:
                await future
        finally:
            self._waiting_bytes -= size
        return found

    async def close(self) -> None:
        """Send no more; what waits fails."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for partitions in self._topics.values():
            for partition in partitions.values():
                for sent, future in partition.waiting:
                    sent.error = sent.error or ClientError("the producer is closed")
                    if not future.done():
                        future.set_result(None)
        self._topics.clear()

    # -- rounds

    def _wake(self) -> None:
        """Begin a round with the loop's next turn: what comes in this one goes with it."""
        if not self._is_woken:
            self._is_woken = True
            self._cluster.loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._is_woken = False
        ready, self._ready = self._ready, {}
        for topic, partitions in ready.items():
            for partition in partitions:
                partition.is_busy = True
            if partitions:
                task = self._cluster.loop.create_task(self._round(topic, list(partitions)))
                self._tasks[task] = None
                task.add_done_callback(lambda done: self._tasks.pop(done, None))

    async def _round(self, topic: str, partitions: list[_Partition]) -> None:
        """Send one batch of each."""
        by_leader: dict[int, list[_Partition]] = {}
        try:
            if self._is_idempotent:
                await self._identify(partitions)
            for partition in partitions:
                leader = await self._cluster.leader(topic, partition.index)
                by_leader.setdefault(leader, []).append(partition)
        except ClientError as error:
            for partition in partitions:
                self._has_batch(partition)
                self._failed(topic, partition, error, was_sent=False)
            return
        for of_leader in by_leader.values():
            for partition in of_leader:
                self._prepare(partition)
        rounds = [self._produce(topic, leader, some) for leader, some in by_leader.items()]
        if len(rounds) == 1:
            await rounds[0]
        else:
            await asyncio.gather(*rounds)

    def _has_batch(self, partition: _Partition) -> bool:
        if partition.batch is None:
            partition.batch = partition.cut()
        return partition.batch is not None

    def _prepare(self, partition: _Partition) -> None:
        """Have a batch that can be sent."""
        batch = partition.batch if self._has_batch(partition) else None
        if batch is not None and not batch.raw:
            producer_id, epoch = partition.identity
            batch.sequence = partition.next_sequence if self._is_idempotent else -1
            batch.raw = build_batch(
                batch.records,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=batch.sequence,
            )

    async def _produce(self, topic: str, leader: int, partitions: list[_Partition]) -> None:
        sending = {one.index: one for one in partitions if one.batch is not None}
        for partition in partitions:
            if partition.batch is None:
                self._done(topic, partition)
        kind = m.ProduceRequest
        data = []
        for index, partition in sending.items():
            assert partition.batch is not None
            data.append(kind.PartitionProduceData(index=index, records=partition.batch.raw))
        if not data:
            return
        request = kind(
            transactional_id=None,
            acks=self._acks,
            timeout_ms=int(TIMEOUT_S * 1000),
            topic_data=[kind.TopicProduceData(name=topic, partition_data=data)],
        )
        try:
            if self._acks == 0:
                connection = await self._cluster.connection(leader)
                await connection.send_only(request, VERSION_MAX)
                for partition in sending.values():
                    self._kept(topic, partition, -1)
                return
            response = await self._cluster.call(
                request, leader, version_max=VERSION_MAX, timeout_s=ANSWER_TIMEOUT_S
            )
        except ClientError as error:
            for partition in sending.values():
                self._failed(topic, partition, error, was_sent=not isinstance(error, _UNSENT))
            return
        if response.throttle_time_ms > 0:
            self.throttled_until_s = self._cluster.loop.time() + response.throttle_time_ms / 1000
        for answered in response.responses:
            for answer in answered.partition_responses:
                answered_one = sending.pop(answer.index, None)
                if answered_one is not None:
                    self._judge(topic, answered_one, answer)
        for partition in sending.values():
            missing = ClientError(f"{topic}-{partition.index}: no answer to a batch")
            self._failed(topic, partition, missing, was_sent=True)

    # -- answers

    def _judge(
        self,
        topic: str,
        partition: _Partition,
        answer: m.ProduceResponse.PartitionProduceResponse,
    ) -> None:
        code = ErrorCode(answer.error_code)
        batch = partition.batch
        assert batch is not None
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._kept(topic, partition, answer.base_offset)
            return
        what = f"{topic}-{partition.index}"
        wrong = answer.record_errors[0] if answer.record_errors else None
        message = answer.error_message
        if wrong is not None and wrong.batch_index_error_message:
            message = wrong.batch_index_error_message
        error = RequestFailed(code, what, message)
        if code in _OF_ONE_RECORD:
            self._take_apart(topic, partition, error, -1 if wrong is None else wrong.batch_index)
        elif code in _TOO_FEW_REPLICAS:
            if code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
                self._advance(partition)
            self._refuse(topic, partition, error)
        elif code in _OF_THE_SEQUENCE:
            self._forget_identity(partition)
            if batch.is_unsure:
                self._refuse(topic, partition, error)
            else:  # what was surely not kept may have other numbers
                batch.raw = bytearray()
                self._again(topic, partition, error)
        elif refreshes_metadata(code):
            batch.is_unsure = True
            self._cluster.forget_topic(topic)
            self._again(topic, partition, error)
        elif is_retriable(code) and self._is_idempotent:
            batch.is_unsure = True
            self._again(topic, partition, error)
        else:
            self._refuse(topic, partition, error)

    def _kept(self, topic: str, partition: _Partition, base_offset: int) -> None:
        batch = partition.batch
        assert batch is not None
        offset = base_offset
        for sent, begin, end in batch.pieces:
            count = end - begin
            if base_offset < 0:
                sent.offsets += [-1] * count
            else:
                sent.offsets += range(offset, offset + count)
                offset += count
        self._advance(partition)
        partition.batch = None
        self._done(topic, partition)

    def _advance(self, partition: _Partition) -> None:
        batch = partition.batch
        assert batch is not None
        if self._is_idempotent:
            partition.next_sequence = add_sequence(batch.sequence, len(batch.records))

    def _take_apart(
        self, topic: str, partition: _Partition, error: RequestFailed, wrong: int
    ) -> None:
        """One record of the batch is refused: find whose it is, and send the others without."""
        batch = partition.batch
        assert batch is not None
        is_size = error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
        if is_size and len(batch.records) > 1:
            if self._cluster.loop.time() > max(sent.deadline_s for sent, _, _ in batch.pieces):
                self._refuse(topic, partition, error)
                return
            # In the measure of `cut`: what is over the limit is never cut the same again.
            partition.limit = sum(map(record_size, batch.records)) // 2
        elif len(batch.pieces) == 1:
            sent, begin, end = batch.pieces[0]
            if 0 <= wrong < end - begin:
                sent.failed_at = begin + wrong
            elif end - begin == 1:
                sent.failed_at = begin
            self._refuse(topic, partition, error)
            return
        else:
            for sent, _, _ in batch.pieces:
                sent.is_alone = True
        for sent, begin, _ in batch.pieces:
            sent.at = begin
        partition.batch = None
        self._done(topic, partition)

    def _failed(
        self, topic: str, partition: _Partition, error: ClientError, *, was_sent: bool
    ) -> None:
        """No answer. What may have been kept is sent again only where the broker can tell."""
        if error.is_retriable or was_sent:
            self._cluster.forget_topic(topic)
        if was_sent and partition.batch is not None:
            partition.batch.is_unsure = True
        may_retry = error.is_retriable or (was_sent and not isinstance(error, RequestFailed))
        if may_retry and (self._is_idempotent or not was_sent):
            self._again(topic, partition, error)
            return
        if was_sent:
            self._forget_identity(partition)
        self._refuse(topic, partition, error)

    def _again(self, topic: str, partition: _Partition, error: ClientError) -> None:
        """Send the same batch once more after a pause, while somebody waits for it."""
        batch = partition.batch
        if batch is None:
            self._done(topic, partition)
            return
        settings, loop = self._cluster.settings, self._cluster.loop
        pause_s = min(settings.backoff_min_s * 2 ** min(batch.pauses, 5), settings.backoff_max_s)
        if loop.time() + pause_s > max(sent.deadline_s for sent, _, _ in batch.pieces):
            self._forget_identity(partition)
            self._refuse(topic, partition, error)
            return
        batch.pauses += 1
        loop.call_later(pause_s, self._ready_again, topic, partition)

    def _ready_again(self, topic: str, partition: _Partition) -> None:
        self._ready.setdefault(topic, {})[partition] = None
        self._wake()

    def _refuse(self, topic: str, partition: _Partition, error: ClientError) -> None:
        """The records of the batch fail, and what their senders have behind them."""
        batch, partition.batch = partition.batch, None
        for sent, _, _ in batch.pieces if batch is not None else ():
            sent.error = anew(error)
        self._done(topic, partition)

    def _done(self, topic: str, partition: _Partition) -> None:
        """Tell those whose records are all answered; go on with the others."""
        waiting = partition.waiting
        while waiting:
            sent, future = waiting[0]
            if sent.error is None and len(sent.offsets) < len(sent.records):
                break
            waiting.popleft()
            if not future.done():
                future.set_result(None)
        partition.is_busy = False
        if waiting:
            self._ready_again(topic, partition)

    # -- who sends

    async def _identify(self, partitions: Sequence[_Partition]) -> None:
        """A producer id and epoch for batches that have none; a new one starts at sequence 0."""
        async with self._identifying:
            if self._identity[0] < 0:
                self._identity = await self._cluster.retrying(self._new_identity)
        for partition in partitions:
            has_numbers = partition.batch is not None and len(partition.batch.raw) > 0
            if partition.identity != self._identity and not has_numbers:
                partition.identity, partition.next_sequence = self._identity, 0

    async def _new_identity(self) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        response = await self._cluster.call(request, version_max=IDENTITY_VERSION_MAX)
        check(response.error_code, "the producer's id")
        return response.producer_id, response.producer_epoch

    def _forget_identity(self, partition: _Partition) -> None:
        """Its sequence numbers cannot be gone on with."""
        if self._identity == partition.identity:
            self._identity = (-1, -1)
        partition.identity = (-1, -1)
