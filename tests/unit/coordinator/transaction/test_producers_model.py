"""Producers, their coordinator and the logs they write to, with high watermarks that lag.

The model: producers begin, write, commit, abort, lose answers, are taken over, run out of time; the
coordinator is reloaded, or loses what was not committed; high watermarks of its log and of the data
move when they like. A shard made from the log is the live one after every step, the last stable
offset never goes back, and nothing of an aborted transaction is ever visible. When it is quiet,
every transaction is whole or not there at all, and those that were acknowledged are there.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kwire.coordinator import batches
from kwire.coordinator.transaction.end import EndRequest
from kwire.coordinator.transaction.init_producer import InitRequest
from kwire.coordinator.transaction.markers import MarkersToWrite
from kwire.coordinator.transaction.service import TransactionCoordinator
from kwire.coordinator.transaction.shard import TransactionSettings, TransactionShard
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import Isolation, Origin
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch, iterate_headers, read_batch
from kwire.protocol.records.control import end_transaction_marker
from tests.support.coordinators import ManualClock, ManualLoop, MemoryLog, open_batches
from tests.support.logs import World

IDS = st.sampled_from(["a", "b"])
INDEXES = st.integers(0, 1)
TOPIC = "data"
TIMEOUT_MS = 20_000


class Transaction:
    """What a producer knows of one: its values by partition, and how it ended."""

    def __init__(self) -> None:
        self.values: dict[int, list[int]] = {}
        self.outcome = "open"  # committed, aborted, or unknown when nobody has said


class Producer:
    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[int, int] = {}
        self.current = Transaction()
        self.is_busy = False  # an answer is on its way


class LocalPartitions:
    """The data, as the coordinator of the same broker reaches it."""

    node_id = 1

    def __init__(self, model: TransactionMachine) -> None:
        self._model = model

    def write(self, markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        return [[self._marker(x, index) for _, index in x.partitions] for x in markers]

    def _marker(self, marker: MarkersToWrite, index: int) -> Pending[int]:
        prepared, log = marker.prepared, self._model.data[index]
        wall_ms = self._model.clock.wall_ms()
        batch = end_transaction_marker(
            prepared.producer_id, prepared.producer_epoch, prepared.commit,
            marker.coordinator_epoch, wall_ms,
        )  # fmt: skip
        try:
            info = log.append_as_leader(
                batch, leader_epoch=0, origin=Origin.COORDINATOR,
                transaction_version=prepared.transaction_version, wall_ms=wall_ms,
            )  # fmt: skip
        except KafkaError as error:
            return Pending.completed(int(error.code))
        self._model.disks[index].scheduler.turn()
        answer: Pending[int] = Pending()
        self._model.markers.append((index, info.last_offset + 1, answer))
        return answer


class Leaders:
    def leader_of(self, topic: str, partition: int) -> int | None:
        return LocalPartitions.node_id

    def exists(self, topic: str, partition: int) -> bool:
        return True


class TransactionMachine(RuleBasedStateMachine):
    @initialize(lagging=st.booleans(), data_lags=st.booleans())
    def start(self, lagging: bool, data_lags: bool) -> None:
        self.loop = ManualLoop()
        self.clock = ManualClock(self.loop)
        self.log = MemoryLog(lagging=lagging)
        self.data_lags = data_lags
        self.disks = [World(), World()]
        self.data: list[PartitionLog] = [x.log for x in self.disks]
        self.stable = [0, 0]
        self.markers: list[tuple[int, int, Pending[int]]] = []
        self.next_id = 100
        self.coordinator = self.new_coordinator()
        self.epoch = 0
        self.reload()
        self.producers = {x: Producer(x) for x in ("a", "b")}
        self.done: list[Transaction] = []
        self.values = 0

    def new_coordinator(self) -> TransactionCoordinator:
        made = TransactionCoordinator(
            settings=TransactionSettings(abort_timed_out_interval_ms=5000),
            transaction_version=lambda: 2, partition_count=lambda: 1, partition_log=self.log,
            leaders=Leaders(), send_markers=self.no_peers, allocate_producer_id=self.allocate,
            loop=self.loop, clock=self.clock, local=LocalPartitions(self),
        )  # fmt: skip
        self.log.listener = made.runtime.high_watermark_advanced
        return made

    def no_peers(self, node_id: int, request: Any) -> Pending[Any]:
        raise AssertionError("there is no other broker")

    def allocate(self) -> Pending[int]:
        self.next_id += 1
        return Pending.completed(self.next_id)

    def reload(self) -> None:
        self.epoch += 1
        self.coordinator.unload(0)
        self.coordinator.load(0, self.epoch)
        self.loop.run()

    # ------------------------------------------------------------------ producers

    def ended(self, producer: Producer, outcome: str) -> None:
        producer.current.outcome = outcome
        self.done.append(producer.current)
        producer.current = Transaction()

    @rule(name=IDS, names_itself=st.booleans(), hears=st.booleans())
    def begin(self, name: str, names_itself: bool, hears: bool) -> None:
        """InitProducerId, by the owner or who takes over; what was open is unknown to it."""
        producer = self.producers[name]
        if producer.current.values:
            self.ended(producer, "unknown")
        request = InitRequest(name, TIMEOUT_MS)
        if names_itself and producer.epoch >= 0:
            request = InitRequest(name, TIMEOUT_MS, producer.producer_id, producer.epoch)

        def answered(done: Pending[Any]) -> None:
            if done.error() is None and hears:
                producer.producer_id, producer.epoch = done.result()
                producer.sequences.clear()

        self.coordinator.init_producer_id(request).add_done_callback(answered)

    @rule(name=IDS, index=INDEXES)
    def write(self, name: str, index: int) -> None:
        """Produce 12: the broker adds the partition, then appends."""
        producer = self.producers[name]
        if producer.epoch < 0:
            return
        self.values += 1
        value, transaction = self.values, producer.current
        transaction.values.setdefault(index, [])
        pid, epoch, log = producer.producer_id, producer.epoch, self.data[index]
        sequence = producer.sequences.get(index, 0)
        guard = log.begin_verification(pid, epoch, sequence=sequence)

        def added(done: Pending[Any]) -> None:
            if done.error() is None:
                batch = build_batch(
                    [Record(0, 1, None, str(value).encode(), [])], producer_id=pid,
                    producer_epoch=epoch, base_sequence=sequence, transactional=True,
                )  # fmt: skip
                try:
                    info = log.append_as_leader(
                        batch, leader_epoch=0, guard=guard, transaction_version=2, wall_ms=0
                    )
                except KafkaError:
                    return
                if info.duplicate:  # a batch of that sequence was on its way: this one is not there
                    return
                transaction.values[index].append(value)
                producer.sequences[index] = sequence + 1
                self.disks[index].scheduler.turn()
                self.data_moves(index, 0 if self.data_lags else 1000)

        self.coordinator.add_partitions(name, pid, epoch, [(TOPIC, index)], 2).add_done_callback(
            added
        )

    @rule(name=IDS, commit=st.booleans(), hears=st.booleans())
    def end(self, name: str, commit: bool, hears: bool) -> None:
        """EndTxn 5; one whose answer is lost leaves a producer that has to begin anew."""
        producer = self.producers[name]
        if producer.epoch < 0 or producer.is_busy:
            return
        transaction = producer.current
        request = EndRequest(name, producer.producer_id, producer.epoch, commit, True)
        answered: list[None] = []
        producer.is_busy = True

        def settle(done: Pending[Any]) -> None:
            answered.append(None)
            producer.is_busy = False
            if producer.current is not transaction:
                return
            if done.error() is not None or not hears:
                if transaction.values and not passes(done.error()):
                    self.ended(producer, "unknown")
                if not passes(done.error()):
                    producer.epoch = -1
                return
            producer.producer_id, producer.epoch = done.result()
            producer.sequences.clear()
            self.ended(producer, "committed" if commit else "aborted")

        self.coordinator.end_transaction(request).add_done_callback(settle)

    # ------------------------------------------------------------------ the world

    @rule()
    def the_turn_ends(self) -> None:
        self.loop.run()

    @rule(ms=st.sampled_from([100, 5000, 25_000]))
    def time_passes(self, ms: int) -> None:
        self.loop.advance(ms)

    @rule(count=st.integers(1, 3))
    def decisions_are_committed(self, count: int) -> None:
        self.log.commit(0, self.log.high_watermark(0) + count)

    @rule(index=INDEXES, count=st.integers(1, 3))
    def data_moves(self, index: int, count: int) -> None:
        log = self.data[index]
        offset = min(log.log_end_offset, log.high_watermark + count)
        log.update_high_watermark(offset)
        waiting, self.markers = self.markers, []
        for at, end, answer in waiting:
            if at == index and end <= offset:
                answer.complete(0)
            else:
                self.markers.append((at, end, answer))

    @rule()
    def leadership_moves_here_and_back(self) -> None:
        self.reload()

    @rule()
    def crash(self) -> None:
        """A coordinator without a memory, and a log without what was not committed."""
        self.coordinator.close()
        self.log.truncate(0)
        self.coordinator = self.new_coordinator()
        self.reload()

    @rule()
    def it_is_quiet(self) -> None:
        """Everything is committed, and what was left open runs out of time."""
        for producer in self.producers.values():
            if producer.current.values:
                self.ended(producer, "unknown")
            producer.epoch = -1
        for _ in range(20):
            self.log.commit_all()
            for index in range(2):
                self.data_moves(index, 1000)
            self.loop.advance(5000)
        shard = self.coordinator.runtime.shard(0)
        assert shard is not None
        assert not shard.ongoing
        assert not shard.prepared
        for index, log in enumerate(self.data):
            assert log.last_stable_offset == log.high_watermark == log.log_end_offset, index
        visible = self.visible()
        for transaction in self.done:
            found = [x in visible[i] for i, values in transaction.values.items() for x in values]
            expected = {"committed": [True], "aborted": [False], "unknown": [True, False]}
            assert set(found) <= set(expected[transaction.outcome]), vars(transaction)
            assert len(set(found)) <= 1, vars(transaction)

    # ------------------------------------------------------------------ invariants

    def visible(self) -> list[set[int]]:
        """The values that read_committed shows, by partition."""
        shown = []
        for log in self.data:
            found = log.read(0, 1 << 20, isolation=Isolation.COMMITTED, min_one=True)
            aborted = sorted(found.aborted, key=lambda x: x[1])
            open_aborts: set[int] = set()
            values: set[int] = set()
            data = b"".join(bytes(x) for x in found.buffers)
            for position, header in iterate_headers(data):
                while aborted and aborted[0][1] <= header.last_offset:
                    open_aborts.add(aborted.pop(0)[0])
                if header.is_control:
                    open_aborts.discard(header.producer_id)
                elif header.producer_id not in open_aborts:
                    values |= {int(x.value or b"0") for x in read_batch(data, position, header)}
            shown.append(values)
        return shown

    @invariant()
    def nothing_aborted_is_visible(self) -> None:
        visible = self.visible()
        for transaction in self.done:
            if transaction.outcome == "aborted":
                for index, values in transaction.values.items():
                    assert not visible[index] & set(values)

    @invariant()
    def what_is_open_is_not_visible(self) -> None:
        visible = self.visible()
        for producer in self.producers.values():
            if not producer.is_busy and producer.epoch >= 0:
                for index, values in producer.current.values.items():
                    assert not visible[index] & set(values) or self.was_ended(producer)

    def was_ended(self, producer: Producer) -> bool:
        """By somebody else, or by an end that it takes for undone."""
        shard = self.coordinator.runtime.shard(0)
        current = None if shard is None else shard.transactions.get(producer.transactional_id)
        return current is None or (current.producer_id, current.producer_epoch) != (
            producer.producer_id, producer.epoch,
        )  # fmt: skip

    @invariant()
    def the_last_stable_offset_never_goes_back(self) -> None:
        for index, log in enumerate(self.data):
            assert self.stable[index] <= log.last_stable_offset <= log.high_watermark
            self.stable[index] = log.last_stable_offset

    @invariant()
    def a_shard_from_the_log_is_the_live_one(self) -> None:
        live = self.coordinator.runtime.shard(0)
        if live is None:
            return
        fresh = TransactionShard(TransactionSettings(), lambda: 2, lambda prepared: None)
        decided = self.log.batches.get(0, []) + open_batches(self.coordinator.runtime)
        for batch in decided:
            for _ in batches.replay_steps(fresh, "transaction-coordinator", memoryview(batch), 0):
                pass
        assert fresh.transactions == live.transactions
        assert (fresh.ongoing, fresh.prepared) == (live.ongoing, live.prepared)


def passes(error: Exception | None) -> bool:
    """Whether a producer asks again."""
    return isinstance(error, KafkaError) and error.code in (
        ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    )  # fmt: skip


TransactionMachine.TestCase.settings = settings(
    max_examples=120, stateful_step_count=50, deadline=None
)
TestTransactionModel = TransactionMachine.TestCase
