"""What a log knows about its producers: sequences, epochs, open transactions (KIP-98, KIP-890).

The rules are Apache Kafka 4.4's: a producer's last five batches are remembered, a repeated one
is answered with its first offsets, a gap is refused, a fenced epoch is refused. State changes
only in `replay_batch`, `take_next` and the loading, truncation and expiry functions; `check_*`
raise.
"""

from __future__ import annotations

from typing import NamedTuple

from kwire.log.partition.batch_rules import Marker
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.log.types import CompletedTransaction, Origin
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import BatchHeader

BATCHES_KEPT = 5
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
EPOCH_MAX = 32767
SEQUENCE_MAX = 0x7FFFFFFF


class BatchMetadata(NamedTuple):
    """One of a producer's last batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MAX


_new_metadata = tuple.__new__
Kept = tuple[tuple[BatchMetadata, ...], int, int, int, int]
"""What a producer was: its batches, coordinator epoch, epoch, last timestamp, and where its
transaction begins."""


class ProducerEntry:
    """One producer's state; -1 wherever there is none."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.epoch = NO_EPOCH
        self.batches: tuple[BatchMetadata, ...] = ()
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        if header.producer_epoch != self.epoch:
            return None
        last, first = header.last_sequence, header.base_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def set_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = ()

    def kept(self) -> Kept:
        """What `put_back` makes an entry of again: cheaper than one."""
        return (
            self.batches,
            self.coordinator_epoch,
            self.epoch,
            self.last_timestamp,
            self.transaction_first_offset,
        )

    @classmethod
    def put_back(cls, producer_id: int, kept: Kept) -> ProducerEntry:
        """A producer as it was."""
        entry = cls(producer_id)
        entry.batches, entry.coordinator_epoch, entry.epoch, entry.last_timestamp = kept[:4]
        entry.transaction_first_offset = kept[4]
        return entry

    def copy(self) -> ProducerEntry:
        return ProducerEntry.put_back(self.producer_id, self.kept())


class VerificationGuard:
    """Proof that the transaction coordinator knows of a transaction (compared by identity)."""

    __slots__ = ()


ONGOING = VerificationGuard()
"""What `begin_verification` gives for a transaction that is already open: nothing to verify."""


class _Verification:
    __slots__ = ("epoch", "guard", "lowest_sequence", "supports_epoch_bump", "wall_ms")

    def __init__(self, sequence: int, epoch: int, supports_epoch_bump: bool, wall_ms: int) -> None:
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        self.wall_ms = wall_ms


class Producers:
    """The producers of one log and its open transactions.

    `first_unstable_offset` is where the first transaction begins that is open or whose end is not
    replicated yet, None without one.
    """

    def __init__(self, name: str, *, expiration_ms: int = 86_400_000, verify: bool = True) -> None:
        self.name = name
        self.expiration_ms = expiration_ms
        self.verify = verify
        self.entries: dict[int, ProducerEntry] = {}
        self.first_unstable_offset: int | None = None
        # first offset -> producer id; dicts keep their order: offsets only grow
        self._ongoing: dict[int, int] = {}
        # first offset -> last offset of transactions whose marker is not below the high watermark
        self._unreplicated: dict[int, int] = {}
        self._verifications: dict[int, _Verification] = {}
        # What producers were before the batches that are not written yet; None: unknown
        self._before: dict[int, Kept | None] = {}

    # -- reading ----------------------------------------------------------------------------

    def last_stable_offset_after(self, completed: CompletedTransaction) -> int:
        """What the last stable offset is once `completed` has ended."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and entry.transaction_first_offset != NO_OFFSET
            and entry.epoch == epoch
        )

    # -- verification (KIP-890) -------------------------------------------------------------

    def is_stale(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has written here with a later epoch: its batch is refused before
        anybody is asked about it (KAFKA-19690)."""
        entry = self.entries.get(producer_id)
        return entry is not None and epoch < entry.epoch

    def begin_verification(
        self,
        producer_id: int,
        epoch: int,
        *,
        sequence: int = 0,
        supports_epoch_bump: bool = True,
        wall_ms: int = 0,
    ) -> VerificationGuard:
        """A guard to hand to the append once the coordinator has answered."""
        if self.has_ongoing_transaction(producer_id, epoch):
            return ONGOING
        known = self._verifications.get(producer_id)
        if known is None:
            known = _Verification(sequence, epoch, supports_epoch_bump, wall_ms)
            self._verifications[producer_id] = known
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, sequence
        elif epoch == known.epoch and sequence < known.lowest_sequence:
            known.lowest_sequence = sequence
        return known.guard

    # -- checks -----------------------------------------------------------------------------

    def check_data(
        self,
        header: BatchHeader,
        base_offset: int,
        origin: Origin,
        guard: VerificationGuard | None,
    ) -> BatchMetadata | None:
        """Whether a batch with a producer id may follow: None, or the batch it repeats.

        Raises KafkaError: INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH, OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        entry = self.entries.get(header.producer_id)
        if origin == Origin.CLIENT and entry is not None:
            duplicate = entry.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        if (
            self.verify
            and header.is_transactional
            and origin in (Origin.CLIENT, Origin.COORDINATOR)
            and not self.has_ongoing_transaction(header.producer_id, header.producer_epoch)
        ):
            # A stale epoch is refused first: its producer can recover from that (KAFKA-19690).
            self._check_epoch(
                entry, header.producer_id, header.producer_epoch, base_offset, origin, -1
            )
            known = self._verifications.get(header.producer_id)
            if guard is None or known is None or known.guard is not guard:
                raise KafkaError(
                    ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
                )
        self._check_epoch(entry, header.producer_id, header.producer_epoch, base_offset, origin, -1)
        if origin == Origin.CLIENT:
            self._check_sequence(entry, header, base_offset)
        is_open = entry is not None and entry.transaction_first_offset != NO_OFFSET
        if is_open and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {header.producer_id} at offset "
                f"{base_offset} in partition {self.name}",
            )
        return None

    def continues(self, header: BatchHeader) -> ProducerEntry | None:
        """The producer of which a batch of no transaction is the next one, where it is known here:
        `check_data` has nothing to say about it then, and `take_next` takes it over."""
        entry = self.entries.get(header.producer_id)
        if (
            entry is not None
            and entry.epoch == header.producer_epoch
            and entry.batches
            and entry.batches[-1].last_sequence + 1 == header.base_sequence
            and entry.transaction_first_offset == NO_OFFSET
            and header.producer_id not in self._verifications
        ):
            return entry
        return None

    def check_marker(
        self,
        header: BatchHeader,
        coordinator_epoch: int,
        base_offset: int,
        origin: Origin,
        transaction_version: int = 0,
    ) -> None:
        """Whether a transaction marker may follow.

        Raises KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.entries.get(header.producer_id)
        self._check_epoch(
            entry,
            header.producer_id,
            header.producer_epoch,
            base_offset,
            origin,
            transaction_version,
        )
        if (
            entry is not None
            and entry.coordinator_epoch > coordinator_epoch
            and origin != Origin.REPLICATION
        ):
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset "
                f"{base_offset} in partition {self.name}: {coordinator_epoch} (zombie), "
                f"{entry.coordinator_epoch} (current)",
            )

    def _check_epoch(
        self,
        entry: ProducerEntry | None,
        producer_id: int,
        epoch: int,
        offset: int,
        origin: Origin,
        transaction_version: int,
    ) -> None:
        current = entry.epoch if entry is not None else NO_EPOCH
        strict = transaction_version >= 2  # a marker of KIP-890 comes with a bumped epoch
        if epoch > current or (epoch == current and not strict):
            return
        if strict and epoch == current:
            is_open = entry is not None and entry.transaction_first_offset != NO_OFFSET
            if not is_open or epoch == EPOCH_MAX:
                return  # the marker again, after its transaction has ended
        if origin == Origin.REPLICATION:
            return
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"Epoch of producer {producer_id} at offset {offset} in {self.name} is {epoch}, which "
            f"is {'smaller than or equal to' if strict else 'smaller than'} the last seen epoch "
            f"{current}",
        )

    def _check_sequence(
        self, entry: ProducerEntry | None, header: BatchHeader, offset: int
    ) -> None:
        first = header.base_sequence
        where = f"producer {header.producer_id} at offset {offset} in partition {self.name}"
        known = self._verifications.get(header.producer_id)
        if known is not None:
            if known.supports_epoch_bump and first != 0 and (entry is None or not entry.batches):
                raise _out_of_order(
                    f"Invalid sequence number for {where}: {first} (incoming seq. number), "
                    "expected 0: the producer has no state here"
                )
            if first > known.lowest_sequence:
                raise _out_of_order(
                    f"Out of order sequence number for {where}: {first} (incoming seq. number), "
                    f"{known.lowest_sequence} (earliest seen sequence)"
                )
        if entry is None or entry.epoch == NO_EPOCH:
            return  # nothing known (any more): any sequence is accepted
        if header.producer_epoch != entry.epoch:
            if first != 0:
                raise _out_of_order(
                    f"Invalid sequence number for new epoch of {where}: {header.producer_epoch} "
                    f"(request epoch), {first} (seq. number), {entry.epoch} (current producer "
                    "epoch)"
                )
            return
        last = entry.last_sequence
        if first != last + 1 and not (first == 0 and last == SEQUENCE_MAX):
            raise _out_of_order(
                f"Out of order sequence number for {where}: {first} (incoming seq. number), "
                f"{last} (current end sequence number)"
            )

    # -- changes ----------------------------------------------------------------------------

    def replay_batch(self, header: BatchHeader, marker: Marker | None) -> AbortedTransaction | None:
        """Take over a batch that has its place in the log: one just appended, or one read again.

        `marker` is what a control batch says, None where that is no end of a transaction or cannot
        be read. Returns the transaction that the batch has aborted, for the transaction index.
        """
        if not header.is_control:
            self.append_data(header, header.base_offset)
            return None
        if marker is None:
            return None
        completed = self.append_marker(
            header,
            header.base_offset,
            marker.coordinator_epoch,
            marker.timestamp,
            aborted=marker.aborted,
        )
        if completed is None:
            return None
        stable = self.last_stable_offset_after(completed)
        self.complete_transaction(completed)
        if not completed.aborted:
            return None
        return AbortedTransaction(
            completed.producer_id, completed.first_offset, completed.last_offset, stable
        )

    def append_data(self, header: BatchHeader, base_offset: int) -> None:
        """Take over a checked data batch that got `base_offset`."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        if header.producer_epoch != entry.epoch:
            entry.set_epoch(header.producer_epoch)
        _add_batch(entry, header, header.last_sequence, base_offset)
        if header.is_transactional:
            if entry.transaction_first_offset == NO_OFFSET:
                entry.transaction_first_offset = base_offset
                self._ongoing[base_offset] = producer_id
                if self.first_unstable_offset is None:
                    self.first_unstable_offset = base_offset
            self._verifications.pop(producer_id, None)

    def take_next(self, entry: ProducerEntry, header: BatchHeader) -> None:
        """`remember` and `replay_batch` of a batch of a producer that it `continues`."""
        if entry.producer_id not in self._before:
            self._before[entry.producer_id] = entry.kept()
        last_sequence = (header.base_sequence + header.last_offset_delta) & SEQUENCE_MAX
        _add_batch(entry, header, last_sequence, header.base_offset)

    def append_marker(
        self,
        header: BatchHeader,
        offset: int,
        coordinator_epoch: int,
        timestamp: int,
        *,
        aborted: bool,
    ) -> CompletedTransaction | None:
        """Take over a checked marker; the transaction it ended, None for an empty one."""
        producer_id = header.producer_id
        entry = self.entries.get(producer_id)
        if entry is None:
            entry = self.entries[producer_id] = ProducerEntry(producer_id)
        first_offset = entry.transaction_first_offset
        entry.set_epoch(header.producer_epoch)
        entry.transaction_first_offset = NO_OFFSET
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        self._verifications.pop(producer_id, None)
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, aborted)

    def remember(self, producer_id: int) -> None:
        """A batch of this producer gets its place, and is not written yet."""
        if producer_id not in self._before:
            entry = self.entries.get(producer_id)
            self._before[producer_id] = None if entry is None else entry.kept()

    def written(self) -> None:
        """All that was taken over is in the file."""
        if self._before:
            self._before.clear()

    def take_back(self, end_offset: int) -> None:
        """Be as before the batches from `end_offset` on, none of which was written."""
        for producer_id, kept in self._before.items():
            if kept is None:
                self.entries.pop(producer_id, None)
            else:
                self.entries[producer_id] = ProducerEntry.put_back(producer_id, kept)
        self._ongoing = {first: id_ for first, id_ in self._ongoing.items() if first < end_offset}
        for first, last in list(self._unreplicated.items()):
            if last >= end_offset:
                del self._unreplicated[first]
        for producer_id in self._before:
            known = self.entries.get(producer_id)
            if known is not None and known.transaction_first_offset != NO_OFFSET:
                self._ongoing[known.transaction_first_offset] = producer_id
        self._ongoing = dict(sorted(self._ongoing.items()))
        self._before.clear()
        self._find_first_unstable()

    def complete_transaction(self, completed: CompletedTransaction) -> None:
        """Move an ended transaction from the open ones to those that are not replicated yet."""
        if self._ongoing.pop(completed.first_offset, None) is None:
            return
        self._unreplicated[completed.first_offset] = completed.last_offset
        if len(self._unreplicated) > 1:
            self._unreplicated = dict(sorted(self._unreplicated.items()))

    def high_watermark_updated(self, high_watermark: int) -> None:
        """Forget ended transactions whose marker is below the high watermark."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }
            self._find_first_unstable()

    def log_start_moved(self, log_start_offset: int) -> None:
        """Ended transactions below the new start no longer hold anything back."""
        for first, last in list(self._unreplicated.items()):
            if last < log_start_offset:
                del self._unreplicated[first]
        self._find_first_unstable()

    def expire(self, wall_ms: int) -> list[int]:
        """Forget producers that were silent for too long; returns their ids, ascending."""
        gone = sorted(
            entry.producer_id for entry in self.entries.values() if self._is_expired(entry, wall_ms)
        )
        for producer_id in gone:
            del self.entries[producer_id]
        stale = [
            producer_id
            for producer_id, known in self._verifications.items()
            if wall_ms - known.wall_ms >= self.expiration_ms
        ]
        for producer_id in stale:
            del self._verifications[producer_id]
        return gone

    def clear(self) -> None:
        self.entries.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._before.clear()
        self.first_unstable_offset = None

    def take_over(self, other: Producers) -> None:
        """Be the producers of the same log elsewhere, with what is verified just now."""
        self.entries = {key: entry.copy() for key, entry in other.entries.items()}
        self._ongoing = dict(other._ongoing)
        self._unreplicated = dict(other._unreplicated)
        self._verifications = dict(other._verifications)
        self.first_unstable_offset = other.first_unstable_offset

    def load(self, entries: list[ProducerEntry], wall_ms: int) -> None:
        """Start from a snapshot's entries, without those that have expired."""
        self.clear()
        for entry in entries:
            if self._is_expired(entry, wall_ms):
                continue
            self.entries[entry.producer_id] = entry
            if entry.transaction_first_offset != NO_OFFSET:
                self._ongoing[entry.transaction_first_offset] = entry.producer_id
        self._ongoing = dict(sorted(self._ongoing.items()))
        self._find_first_unstable()

    def _find_first_unstable(self) -> None:
        ongoing = next(iter(self._ongoing), None)
        ended = next(iter(self._unreplicated), None)
        if ongoing is None or ended is None:
            self.first_unstable_offset = ended if ongoing is None else ongoing
        else:
            self.first_unstable_offset = min(ongoing, ended)

    def _is_expired(self, entry: ProducerEntry, wall_ms: int) -> bool:
        return (
            entry.transaction_first_offset == NO_OFFSET
            and wall_ms - entry.last_timestamp >= self.expiration_ms
        )


def _add_batch(
    entry: ProducerEntry, header: BatchHeader, last_sequence: int, base_offset: int
) -> None:
    delta, timestamp = header.last_offset_delta, header.max_timestamp
    batch: BatchMetadata = _new_metadata(  # without the price of a call of the class
        BatchMetadata, (last_sequence, base_offset + delta, delta, timestamp)
    )
    entry.batches = entry.batches[1 - BATCHES_KEPT :] + (batch,)
    entry.last_timestamp = timestamp


def _out_of_order(message: str) -> KafkaError:
    return KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, message)
