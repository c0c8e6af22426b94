"""Transactions' requests of this broker to itself, without a request: markers, and verification.

`write_marker` is also what WriteTxnMarkers does with each marker.
"""

from __future__ import annotations

from typing import Protocol

from kwire.clock import Clock
from kwire.coordinator.coordinator_log import ACKS_ALL
from kwire.coordinator.group.coordinator import TOPIC as OFFSETS_TOPIC
from kwire.coordinator.transaction.markers import MarkersToWrite
from kwire.kept_errors import anew
from kwire.log.types import Origin
from kwire.pending import Pending, after
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records.control import TransactionMarker
from kwire.server.leader_hints import missing_partition_error
from kwire.server.parts import Coordinators, Metadata, Replicas

CLIENT_VERSION_OF_BROKER = 2

Partition = tuple[str, int]


class MarkerParts(Protocol):
    """What markers are written with; `Parts` has it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def coordinators(self) -> Coordinators: ...

    @property
    def metadata(self) -> Metadata: ...

    @property
    def replicas(self) -> Replicas: ...


class LocalTransactions:
    """`LocalPartitions` of transaction/markers.py and `LocalCoordinator` of verifier.py."""

    def __init__(self, node_id: int, parts: MarkerParts) -> None:
        self.node_id = node_id
        self._parts = parts

    def write(self, markers: list[MarkersToWrite]) -> list[list[Pending[int]]]:
        """Append every marker, then write what was appended: nothing else of this turn is worth
        waiting for, and the producers' next transactions wait for it."""
        parts = self._parts
        written: list[list[Pending[int]]] = []
        touched: dict[Partition, None] = {}
        for prepared, coordinator_epoch, partitions in markers:
            touched.update(dict.fromkeys(partitions))
            written.append(
                [
                    after(
                        write_marker(
                            parts,
                            topic,
                            index,
                            producer_id=prepared.producer_id,
                            producer_epoch=prepared.producer_epoch,
                            commit=prepared.commit,
                            coordinator_epoch=coordinator_epoch,
                            transaction_version=prepared.transaction_version,
                        ),
                        marker_code,
                    )
                    for topic, index in partitions
                ]
            )
        for topic, index in touched:
            partition = parts.replicas.partition(topic, index)
            if partition is not None and partition.log is not None:
                try:
                    partition.log.write_tail()
                except KafkaError:
                    pass  # whoever waits for the write gets the error
        return written

    def ask(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        add: bool,
    ) -> Pending[dict[Partition, ErrorCode]]:
        """Ask the coordinator; the codes are those of AddPartitionsToTxn."""
        transactions = self._parts.coordinators.transactions
        owner = (transactional_id, producer_id, producer_epoch, partitions)
        if add:
            return after(
                transactions.add_partitions(*owner, CLIENT_VERSION_OF_BROKER),
                lambda done: dict.fromkeys(partitions, _code(done.error())),
            )

        def codes(done: Pending[dict[Partition, ErrorCode]]) -> dict[Partition, ErrorCode]:
            error = done.error()
            return done.result() if error is None else dict.fromkeys(partitions, _code(error))

        return after(transactions.verify_partitions(*owner), codes)


def _code(error: Exception | None) -> ErrorCode:
    if error is None:
        return ErrorCode.NONE
    if not isinstance(error, KafkaError):
        raise anew(error)
    return ErrorCode(error.code)


def write_marker(
    parts: MarkerParts,
    topic: str,
    index: int,
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> Pending[None]:
    """Append the marker that ends a transaction to a partition that this broker leads; done when
    it is committed. In `__consumer_offsets` it also decides the offsets of the transaction."""
    wall_ms = parts.clock.wall_ms()
    marker = TransactionMarker(producer_id, producer_epoch, commit, coordinator_epoch, wall_ms)
    if topic == OFFSETS_TOPIC:
        return parts.coordinators.groups.complete_transaction(
            index, marker.batch(), producer_id, producer_epoch, commit, transaction_version
        )
    try:
        partition = parts.replicas.partition(topic, index)
        if partition is None:
            raise KafkaError(missing_partition_error(parts.metadata.image.topics, topic, index))
        info = partition.append(
            marker,
            acks=ACKS_ALL,
            wall_ms=wall_ms,
            origin=Origin.COORDINATOR,
            transaction_version=transaction_version,
        )
    except KafkaError as error:
        return Pending.failed(error)
    committed: Pending[None] = Pending()
    waiter = partition.wait_for_commit(
        info.last_offset + 1, lambda code: _settle(committed, ErrorCode(code))
    )
    if waiter is None:
        committed.complete(None)
    else:
        committed.set_on_cancel(waiter.cancel)
    return committed


def marker_code(write: Pending[None]) -> int:
    """What WriteTxnMarkers answers for a marker."""
    error = write.error()
    if error is None:
        return 0
    if not isinstance(error, KafkaError):
        raise anew(error)
    if error.code == ErrorCode.NOT_COORDINATOR:
        return int(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return int(error.code)


def _settle(committed: Pending[None], code: ErrorCode) -> None:
    if code == ErrorCode.NONE:
        committed.complete(None)
    else:
        committed.fail(KafkaError(code))
