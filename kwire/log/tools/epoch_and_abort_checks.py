"""What the small files of a partition say, compared with the batches: aborted transactions, epochs.

`kwire log verify` feeds every batch of a partition's directory, in order, to these.
"""

from __future__ import annotations

from kwire.log.files import Files
from kwire.log.partition.batch_rules import read_marker
from kwire.log.partition.leader_epochs import EPOCHS_FILE, LeaderEpochs, parse_epochs
from kwire.log.segment.transaction_index import ENTRY_SIZE, TransactionIndex
from kwire.log.tools.batch_scan import Batch
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import MAGIC_CURRENT

Faults = list[tuple[str, int, str]]  # path, position, reason


class EpochCheck:
    """The epoch file against the epochs in the batches; the first difference counts."""

    def __init__(self, directory: str, files: Files) -> None:
        self.path = f"{directory}/{EPOCHS_FILE}"
        self.faults: Faults = []
        self._epochs: LeaderEpochs | None = LeaderEpochs()
        try:
            self._epochs.entries = parse_epochs(files.read_file(self.path))
        except (FileNotFoundError, ValueError):
            self._epochs = None  # the latter is reported by the check of the file itself
            if not files.exists(self.path):
                self.faults.append((self.path, -1, "is missing"))

    def next_batch(self, batch: Batch) -> None:
        """The next batch of the partition, in the order of the log."""
        header, epochs = batch.header, self._epochs
        if (
            epochs is None
            or not epochs.entries
            or header.magic < MAGIC_CURRENT
            or header.partition_leader_epoch < 0
        ):
            return
        known = epochs.epoch_for(header.base_offset)
        if known < 0 and epochs.latest >= header.partition_leader_epoch:
            return  # below the log's start, which lies behind the first segment's beginning
        if known != header.partition_leader_epoch:
            reason = (
                f"has epoch {known} for offset {header.base_offset}, whose batch has "
                f"{header.partition_leader_epoch}"
            )
            self.faults.append((self.path, -1, reason))
            self._epochs = None


class AbortCheck:
    """The transaction indexes of a partition against its markers.

    An abort whose transaction's records are there must be in the index of the segment with its
    marker; an entry's marker must be one, unless compaction has removed it.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: dict[int, int] = {}  # producer id -> first offset of its transaction
        self._path = ""
        self._entries: dict[int, tuple[int, int, int]] = {}  # marker -> position, producer, first
        self.faults: Faults = []

    def begin(self, path: str) -> None:
        """The batches of the segment with this transaction index follow."""
        self._path, self._entries = path, {}
        try:
            index, _ = TransactionIndex.load(self._files, path)
        except FileNotFoundError:
            return
        for at, entry in enumerate(index.entries):
            where = at * ENTRY_SIZE
            self._entries[entry.last_offset] = where, entry.producer_id, entry.first_offset

    def next_batch(self, batch: Batch) -> None:
        """The next batch of the segment that was begun."""
        header = batch.header
        if header.producer_id < 0:
            return
        if not header.is_control:
            if header.is_transactional and header.record_count:
                self._open.setdefault(header.producer_id, header.base_offset)
            self._check_no_markers(header.base_offset, header.last_offset)
            return
        first = self._open.pop(header.producer_id, None)
        entry = self._entries.pop(header.last_offset, None)
        try:
            marker = read_marker(batch.data[batch.at : batch.at + header.size_bytes])
        except KafkaError:
            return  # reported by the check of the batch
        if marker is None:
            return
        if entry is not None:
            where, producer, known = entry
            if not marker.aborted or producer != header.producer_id:
                reason = f"offset {header.last_offset} is no abort of producer {producer}"
                self.faults.append((self._path, where, reason))
            elif first is not None and known > first:
                reason = f"offset {known} where the transaction begins at {first}"
                self.faults.append((self._path, where, reason))
        elif marker.aborted and first is not None:
            reason = (
                f"the transaction of producer {header.producer_id} that was aborted at offset "
                f"{header.last_offset} is missing: its records would be shown"
            )
            self.faults.append((self._path, -1, reason))

    def _check_no_markers(self, first_offset: int, last_offset: int) -> None:
        """Batches with data hold no marker."""
        if not self._entries:
            return
        for marker in [at for at in self._entries if first_offset <= at <= last_offset]:
            where, producer, _ = self._entries.pop(marker)
            reason = f"offset {marker} is no abort of producer {producer}"
            self.faults.append((self._path, where, reason))

    def finish(self, end_offset: int) -> None:
        """The segment is over, which ends at `end_offset`."""
        for marker, (where, producer, _) in self._entries.items():
            if marker >= end_offset:
                reason = f"an abort of producer {producer} behind the last batch"
                self.faults.append((self._path, where, reason))
