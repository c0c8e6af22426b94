"""The transaction coordinator of a broker: its shards, their producer ids, their markers.

API handlers call this; everything returns a `Pending`. Errors come as KafkaError: those of the
operations, NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS of the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from kwire.clock import Clock
from kwire.coordinator.loading import Worker
from kwire.coordinator.partitioner import partition_for
from kwire.coordinator.runtime import END_OF_TURN, CoordinatorRuntime
from kwire.coordinator.shard_interface import CoordinatorLog, Loop, Moment, Result
from kwire.coordinator.transaction import end, init_producer, partitions, queries
from kwire.coordinator.transaction.end import EndAnswer, EndRequest, Refused
from kwire.coordinator.transaction.init_producer import (
    InitRequest,
    ProducerIdentity,
    ProducerIdNeededError,
)
from kwire.coordinator.transaction.markers import Leaders, LocalPartitions, MarkerSender
from kwire.coordinator.transaction.metadata import Prepared
from kwire.coordinator.transaction.queries import ListFilter
from kwire.coordinator.transaction.shard import TransactionSettings, TransactionShard
from kwire.pending import Pending, after
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError

T = TypeVar("T")
Partition = tuple[str, int]
# Given the shard, a new producer id (None until it asks for one) and the time.
Operation: TypeAlias = Callable[[TransactionShard, int | None, Moment], Result[T]]


class TransactionCoordinator:
    """The transactional ids whose `__transaction_state` partition this broker leads."""

    def __init__(
        self,
        *,
        settings: TransactionSettings,
        transaction_version: Callable[[], int],
        partition_count: Callable[[], int],
        partition_log: CoordinatorLog,
        leaders: Leaders,
        send_markers: Callable[[int, m.WriteTxnMarkersRequest], Pending[m.WriteTxnMarkersResponse]],
        allocate_producer_id: Callable[[], Pending[int]],
        loop: Loop,
        clock: Clock,
        local: LocalPartitions | None = None,
        worker: Worker | None = None,
    ) -> None:
        self._partition_count = partition_count
        self._transaction_version = transaction_version
        self._allocate_producer_id = allocate_producer_id
        self._epochs: dict[int, int] = {}
        self.markers = MarkerSender(
            loop=loop,
            leaders=leaders,
            send=send_markers,
            on_complete=self._markers_written,
            on_fenced=self._markers_fenced,
            local=local,
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            module="transaction-coordinator",
            new_shard=lambda partition: TransactionShard(
                settings, transaction_version, self._prepared
            ),
            partition_log=partition_log,
            loop=loop,
            clock=clock,
            base_sequence=-1,
            worker=worker,
            append_linger_ms=END_OF_TURN,
            # The producer has its answer: its next transaction should not have to wait.
            on_appended=self.markers.flush,
        )

    # --- leadership of the partitions of __transaction_state ---

    def load(self, partition: int, leader_epoch: int) -> None:
        self._epochs[partition] = leader_epoch
        self.runtime.load(partition, leader_epoch)

    def unload(self, partition: int, leader_epoch: int | None = None) -> None:
        shard = self.runtime.shard(partition)
        if shard is not None:
            for transactional_id in shard.prepared:
                self.markers.forget(transactional_id)
        self.runtime.unload(partition, leader_epoch)

    def close(self) -> None:
        self.markers.close()
        self.runtime.close()

    def partition_of(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self._partition_count())

    # --- requests ---

    def init_producer_id(self, request: InitRequest) -> Pending[ProducerIdentity]:
        """See `init_producer.init_producer_id`; an empty transactional id is INVALID_REQUEST."""
        if not request.transactional_id:
            return Pending.failed(KafkaError(ErrorCode.INVALID_REQUEST))
        pending = self._with_producer_id(
            request.transactional_id,
            lambda shard, new_id, moment: init_producer.init_producer_id(
                shard, request, new_id, moment
            ),
        )
        return after(pending, _identity)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        wanted: list[Partition],
        client_transaction_version: int,
    ) -> Pending[None]:
        """See `partitions.add_partitions`."""
        if not transactional_id:
            return Pending.failed(KafkaError(ErrorCode.INVALID_REQUEST))
        return self.runtime.write(
            self.partition_of(transactional_id),
            lambda shard, moment: partitions.add_partitions(
                shard,
                transactional_id,
                producer_id,
                producer_epoch,
                wanted,
                client_transaction_version,
                moment,
            ),
        )

    def verify_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        asked: list[Partition],
    ) -> Pending[dict[Partition, ErrorCode]]:
        """See `partitions.verify_partitions`."""
        if not transactional_id:
            return Pending.failed(KafkaError(ErrorCode.INVALID_REQUEST))
        return self.runtime.read(
            self.partition_of(transactional_id),
            lambda shard, moment: partitions.verify_partitions(
                shard, transactional_id, producer_id, producer_epoch, asked
            ),
        )

    def end_transaction(self, request: EndRequest) -> Pending[EndAnswer]:
        """See `end.end_transaction`."""
        if not request.transactional_id:
            return Pending.failed(KafkaError(ErrorCode.INVALID_REQUEST))

        def operation(
            shard: TransactionShard, new_id: int | None, moment: Moment
        ) -> Result[EndAnswer]:
            if new_id is None and end.needs_producer_id(shard, request):
                raise ProducerIdNeededError
            return end.end_transaction(shard, request, new_id, moment)

        return self._with_producer_id(request.transactional_id, operation)

    def describe(
        self, transactional_id: str
    ) -> Pending[m.DescribeTransactionsResponse.TransactionState]:
        """A DescribeTransactionsResponse.TransactionState."""
        return self.runtime.read(
            self.partition_of(transactional_id),
            lambda shard, moment: queries.describe(shard, transactional_id),
        )

    def list_transactions(
        self, wanted: ListFilter
    ) -> list[Pending[list[m.ListTransactionsResponse.TransactionState]]]:
        """Lists of ListTransactionsResponse.TransactionState, one per partition led here."""
        return self.runtime.read_all(
            lambda shard, moment: queries.list_transactions(shard, wanted, moment)
        )

    # --- producer ids ---

    def _with_producer_id(self, transactional_id: str, operation: Operation[T]) -> Pending[T]:
        """Run an operation that may ask for a producer id, allocating one when it does."""
        answer: Pending[T] = Pending()
        self._attempt(transactional_id, operation, None, answer)
        return answer

    def _attempt(
        self,
        transactional_id: str,
        operation: Operation[T],
        new_producer_id: int | None,
        answer: Pending[T],
    ) -> None:
        def attempted(done: Pending[T]) -> None:
            error = done.error()
            if error is None:
                answer.complete(done.result())
            elif isinstance(error, ProducerIdNeededError):
                self._allocate_producer_id().add_done_callback(allocated)
            else:
                answer.fail(error)

        def allocated(got: Pending[int]) -> None:
            if got.error() is not None:
                answer.fail(KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            else:
                self._attempt(transactional_id, operation, got.result(), answer)

        pending = self.runtime.write(
            self.partition_of(transactional_id),
            lambda shard, moment: operation(shard, new_producer_id, moment),
        )
        pending.add_done_callback(attempted)

    # --- markers ---

    def _prepared(self, prepared: Prepared) -> None:
        partition = self.partition_of(prepared.transactional_id)
        self.markers.start(prepared, self._epochs.get(partition, 0))

    def _markers_written(self, prepared: Prepared) -> None:
        partition = self.partition_of(prepared.transactional_id)
        pending = self.runtime.write(
            partition, lambda shard, moment: end.complete(shard, prepared, moment)
        )
        pending.add_done_callback(lambda done: self._completed(prepared, done))

    def _completed(self, prepared: Prepared, done: Pending[None]) -> None:
        """A completion that the log did not take is tried again by the shard's next scan."""
        if done.error() is not None:
            self._markers_fenced(prepared)

    def _markers_fenced(self, prepared: Prepared) -> None:
        shard = self.runtime.shard(self.partition_of(prepared.transactional_id))
        if shard is not None:
            shard.markers_given_up(prepared.transactional_id)


def _identity(done: Pending[ProducerIdentity | Refused]) -> ProducerIdentity:
    answer = done.result()
    if isinstance(answer, Refused):
        raise KafkaError(answer.code)
    return answer
