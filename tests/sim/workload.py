"""What clients do during a history, and what each of them may expect.

Every actor is a coroutine on a client host that goes on, through every fault, until `stop` is set
and what it has begun is finished; retries are those of Kafka's clients. Values are
`source:number:text`; the model checks the order of each source's numbers in the log itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import Record, build_batch
from kwire.testing.simulation import SimulatedHost
from tests.sim.checkers import Checkers
from tests.sim.client import Retry, RoutingClient
from tests.sim.model import CommittedLog

TOPICS = {"plain": 2, "exact": 2}
SHORT_TOPIC = "short"
SHORT_CONFIGS = {"retention.ms": "4000"}
"""Its segments are rolled and deleted during a history."""

ADMIN_TOPICS_MAX = 6
THINK_S = 0.8
BATCHES_KNOWN = 5
"""Of a producer, with which a leader compares what comes again."""

REJECTED = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_RECORD,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
)
"""Answers that a producer that does everything right must never get."""


class Actor:
    """A client with a task to do. `operations` counts what was answered."""

    def __init__(self, host: SimulatedHost, name: str, checkers: Checkers) -> None:
        self.client = RoutingClient(host, name)
        self.name = name
        self.checkers = checkers
        self.operations = 0
        self.stop = False
        self.draw = host.simulation.random.below

    async def run(self) -> None:
        raise NotImplementedError

    def log_of(self, topic: str, index: int) -> CommittedLog | None:
        return self.checkers.by_name.get((topic, index))

    def batch(self, values: list[bytes], **options: Any) -> bytes:
        """A batch of values, stamped with this host's time."""
        wall_ms = self.client.host.clock.wall_ms()
        return bytes(
            build_batch(
                [Record(i, wall_ms, None, value, []) for i, value in enumerate(values)], **options
            )
        )

    def _request(
        self, topic: str, index: int, records: bytes, transactional_id: str | None = None
    ) -> Any:
        request = m.ProduceRequest
        return request(
            acks=-1,
            timeout_ms=2000,
            transactional_id=transactional_id,
            topic_data=[
                request.TopicProduceData(
                    name=topic,
                    partition_data=[request.PartitionProduceData(index=index, records=records)],
                )
            ],
        )

    async def produce(
        self,
        topic: str,
        index: int,
        records: bytes,
        *,
        version: int = 9,
        transactional_id: str | None = None,
    ) -> tuple[int, int]:
        """One attempt; error code and base offset. Retry."""
        address, epoch = await self.client.leader(topic, index)
        message = self._request(topic, index, records, transactional_id)
        try:
            response = await self.client.ask(address, message, version)
        except Retry:
            self.client.forget_leader(topic, index)
            raise
        answer = response.responses[0].partition_responses[0]
        if answer.error_code:
            self.client.forget_leader(topic, index)
        else:
            self.operations += 1
        is_old = epoch < self.checkers.newest_leader_epoch.get((topic, index), -1)
        if is_old and answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise Retry(f"{address[0]} is cut off and does not know that another one leads")
        return int(answer.error_code), int(answer.base_offset)

    def acknowledged(self, topic: str, index: int, base: int, values: list[bytes]) -> None:
        """An answer to acks=all came: the records are committed, there and nowhere else."""
        log = self.log_of(topic, index)
        for number, value in enumerate(values):
            found = None if log is None else log.values.get(base + number)
            if found != value:
                self.checkers.fail(
                    f"{self.name}: {value!r} was acknowledged at {base + number} of "
                    f"{topic}-{index}, committed there is {found!r}"
                )


class Administrator(Actor):
    """Creates a topic now and then; one whose creation is acknowledged is committed metadata."""

    async def run(self) -> None:
        number = 0
        while not self.stop:
            await self.client.pause(2.0)
            if number < ADMIN_TOPICS_MAX:
                name = f"admin-{number}"
                await create_topics(self.client, {name: 1})
                number += 1
                self.client.note(f"created {name}")
                if name not in self.checkers.topics:
                    self.checkers.fail(f"{name} was said to be created, and is not committed")
            self.operations += 1


async def create_topics(
    client: RoutingClient, topics: dict[str, int], configs: dict[str, str] | None = None
) -> None:
    """Make topics, whatever it takes."""
    request = m.CreateTopicsRequest
    missing = dict(topics)
    while missing:
        try:
            response = await client.ask(
                client.any_broker(),
                request(
                    topics=[
                        request.CreatableTopic(
                            name=name,
                            num_partitions=n,
                            replication_factor=3,
                            configs=[
                                request.CreatableTopicConfig(name=key, value=value)
                                for key, value in (configs or {}).items()
                            ],
                        )
                        for name, n in missing.items()
                    ],
                    timeout_ms=3000,
                ),
                7,
                5.0,
            )
        except Retry:
            await client.pause()
            continue
        for topic in response.topics:
            if topic.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                missing.pop(topic.name, None)
        if missing:
            await client.pause()


class Sent(NamedTuple):
    """A batch, its values, and the newest leader epoch before it was sent first."""

    records: bytes
    values: list[bytes]
    leader_epoch: int


class IdempotentProducer(Actor):
    """Sends one batch after the other, each until it is acknowledged; acks=all. Some go out twice,
    by two connections."""

    def __init__(
        self, host: SimulatedHost, name: str, checkers: Checkers, topic: str, partitions: int
    ) -> None:
        super().__init__(host, name, checkers)
        self.topic = topic
        self.sent = 0
        self.repeats = False
        self._recent: dict[int, list[Sent]] = {}
        self._partitions = partitions
        self._other = RoutingClient(host, f"{name}-again")
        self._copies: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        producer_id, epoch = await self._producer_id()
        sequences = [0] * self._partitions
        while not self.stop:
            index = self.draw(len(sequences))
            values = [
                b"%s:%d:%s" % (self.name.encode(), self.sent + i, b"x" * self.draw(60))
                for i in range(1 + self.draw(3))
            ]
            self.sent += len(values)
            records = self.batch(
                values,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequences[index],
            )
            if self.draw(8) == 0:
                self._copies = [task for task in self._copies if not task.done()]
                self._copies.append(asyncio.create_task(self._send_copy(index, records)))
            sent = Sent(records, values, self._leader_epoch(index))
            await self._send(index, records, values)
            sequences[index] += len(values)
            recent = self._recent.setdefault(index, [])
            recent.append(sent)
            del recent[:-BATCHES_KNOWN]
            if self.repeats and self.draw(6) == 0:
                for sent in recent:
                    await self._repeat(index, sent)
            await self.client.pause(THINK_S)

    async def _send_copy(self, index: int, records: bytes) -> None:
        """The same batch once more, whenever it arrives and whatever the answer is."""
        await self.client.pause(0.2)
        try:
            address, _ = await self._other.leader(self.topic, index)
            await self._other.ask(address, self._request(self.topic, index, records), 9)
        except Retry:
            self._other.forget_leader(self.topic, index)

    def _leader_epoch(self, index: int) -> int:
        return self.checkers.newest_leader_epoch.get((self.topic, index), -1)

    async def _repeat(self, index: int, sent: Sent) -> None:
        """One of the last five batches once more, as after a lost answer: it is where it was. A
        leader that began later knows as many as its snapshot and its log tell, as Kafka's does."""
        while True:
            try:
                code, base = await self.produce(self.topic, index, sent.records)
            except Retry:
                await self.client.pause()
                continue
            if code == 0:
                self.acknowledged(self.topic, index, base, sent.values)
                return
            if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return
            if code in REJECTED:
                if self._leader_epoch(index) == sent.leader_epoch:
                    self.checkers.fail(
                        f"{self.name}: {self.topic}-{index} refuses one of the last "
                        f"{BATCHES_KNOWN} batches with {ErrorCode(code).name}"
                    )
                return
            await self.client.pause()

    async def _producer_id(self) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
        while True:
            try:
                response = await self.client.ask(self.client.any_broker(), request, 4)
                if response.error_code == 0:
                    return response.producer_id, response.producer_epoch
            except Retry:
                pass
            await self.client.pause()

    async def _send(self, index: int, records: bytes, values: list[bytes]) -> None:
        while True:
            try:
                code, base = await self.produce(self.topic, index, records)
            except Retry:
                await self.client.pause()
                continue
            if code == 0:
                self.acknowledged(self.topic, index, base, values)
                self.client.note(f"acknowledged {self.topic}-{index} {base}+{len(values)}")
                return
            if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return  # older than the five batches that the leader remembers
            if code in REJECTED:
                self.checkers.fail(
                    f"{self.name}: {self.topic}-{index} refuses a batch with {ErrorCode(code).name}"
                )
            await self.client.pause()


class TransactionalProducer(Actor):
    """Transactions over several partitions; some abort, some are given up by a restart.

    `outcomes` holds, for every value, True (the commit was confirmed), False (aborted, or never
    asked to commit) or None (nobody knows); all values of a transaction share it.
    """

    def __init__(
        self, host: SimulatedHost, name: str, checkers: Checkers, *, implicit: bool
    ) -> None:
        super().__init__(host, name, checkers)
        self.implicit = implicit  # KIP-890 part 2: produce adds the partition, EndTxn bumps
        self.transactions: list[tuple[bool | None, list[tuple[int, bytes]]]] = []
        self.sent = 0
        self._identity = (-1, -1)
        self._sequences: dict[int, int] = {}
        self._touched: dict[int, None] = {}  # partitions of the transaction under way
        self._owed: dict[int, int] = {}  # those of the one before -> its producer id

    async def run(self) -> None:
        await self._begin_anew()
        while not self.stop:
            values: list[tuple[int, bytes]] = []
            outcome: bool | None = False
            try:
                await self._write(values)
                if self.draw(10) == 0:  # it dies in the middle, and comes back
                    self.client.note("gives a transaction up")
                    await self._begin_anew()
                else:
                    commit = self.draw(4) > 0
                    outcome = None if commit else False
                    if await self._end(commit):
                        outcome = commit
                        self.operations += 1
                    else:
                        await self._begin_anew()
            except _Fenced as fenced:
                self.client.note(f"transaction lost: {fenced}")
                await self._begin_anew()
            self.transactions.append((outcome, values))
            self.client.note(f"transaction of {len(values)} records: {outcome}")
            await self.client.pause(THINK_S)

    async def _begin_anew(self) -> None:
        request = m.InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=8000)
        while True:
            try:
                response = await self.client.ask_coordinator(1, self.name, request, 4)
            except Retry:
                await self.client.pause()
                continue
            if response.error_code == 0:
                self._ended()
                self._settled()
                self._identity = response.producer_id, response.producer_epoch
                self._sequences = {}
                return
            self._maybe_moved(response.error_code)
            await self.client.pause()

    def _ended(self) -> None:
        """The transaction under way is over: it owes a marker to every partition of it."""
        self._owed.update(dict.fromkeys(self._touched, self._identity[0]))
        self._touched.clear()

    def _settled(self, besides: int | None = None) -> None:
        """The coordinator lets the next transaction begin: the last one has all of its markers."""
        for index, producer_id in self._owed.items():
            log = self.log_of("exact", index)
            if index != besides and log is not None and log.is_open(producer_id):
                self.checkers.fail(
                    f"{self.name}: the last transaction of producer {producer_id} is complete, and "
                    f"open in exact-{index}"
                )
        self._owed.clear()

    def _maybe_moved(self, code: int) -> None:
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self.client.forget_coordinator(1, self.name)

    async def _write(self, values: list[tuple[int, bytes]]) -> None:
        for _ in range(1 + self.draw(3)):
            index = self.draw(TOPICS["exact"])
            if not self.implicit:
                await self._add_partition(index)
            batch = [
                b"%s:%d:%s" % (self.name.encode(), self.sent + i, b"y" * self.draw(40))
                for i in range(1 + self.draw(2))
            ]
            self.sent += len(batch)
            values += [(index, value) for value in batch]
            sequence = self._sequences.get(index, 0)
            records = self.batch(
                batch,
                producer_id=self._identity[0],
                producer_epoch=self._identity[1],
                base_sequence=sequence,
                transactional=True,
            )
            await self._send(index, records, batch)
            self._sequences[index] = sequence + len(batch)

    async def _add_partition(self, index: int) -> None:
        request = m.AddPartitionsToTxnRequest
        message = request(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._identity[0],
            v3_and_below_producer_epoch=self._identity[1],
            v3_and_below_topics=[request.AddPartitionsToTxnTopic(name="exact", partitions=[index])],
        )
        while True:
            try:
                response = await self.client.ask_coordinator(1, self.name, message, 3)
                topics = response.results_by_topic_v3_and_below
                code = topics[0].results_by_partition[0].partition_error_code
            except Retry:
                await self.client.pause()
                continue
            if code == 0:
                self._settled()
                return
            self._fence_or_go_on(code)
            await self.client.pause()

    async def _send(self, index: int, records: bytes, values: list[bytes]) -> None:
        version = 12 if self.implicit else 11
        self._touched[index] = None
        while True:
            try:
                code, base = await self.produce(
                    "exact", index, records, version=version, transactional_id=self.name
                )
            except Retry:
                await self.client.pause()
                continue
            if code == 0:
                self._settled(index)
                self.acknowledged("exact", index, base, values)
                return
            if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return
            self._fence_or_go_on(code)
            await self.client.pause()

    async def _end(self, commit: bool) -> bool:
        """End it; False when it was ended otherwise."""
        request = m.EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._identity[0],
            producer_epoch=self._identity[1],
            committed=commit,
        )
        version = 5 if self.implicit else 4
        while True:
            try:
                response = await self.client.ask_coordinator(1, self.name, request, version)
            except Retry:
                await self.client.pause()
                continue
            code = response.error_code
            if code == 0:
                self._ended()
                if self.implicit:
                    self._identity = response.producer_id, response.producer_epoch
                    self._sequences = {}
                return True
            try:
                self._fence_or_go_on(code)
            except _Fenced as fenced:
                self.client.note(f"end {commit}: {fenced}")
                return False
            await self.client.pause()

    def _fence_or_go_on(self, code: int) -> None:
        self._maybe_moved(code)
        if code in (
            ErrorCode.INVALID_PRODUCER_EPOCH,
            ErrorCode.PRODUCER_FENCED,
            ErrorCode.INVALID_TXN_STATE,
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            ErrorCode.TRANSACTION_ABORTABLE,
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ):
            raise _Fenced(ErrorCode(code).name)


class _Fenced(Exception):
    """The transaction is over, by a time-out or a newer life of the producer."""
