"""Which batches and markers of transactions compaction may drop, found while it goes over a log.

Records of aborted transactions go. A marker goes only once a pass has found no batch of its
transaction any more, and then not before its delete horizon has passed (Kafka's rules).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kwire.log.partition.batch_rules import Marker
from kwire.log.segment.transaction_index import AbortedTransaction
from kwire.protocol.records import BatchHeader


class CleanedTransactions:
    """The transactions that a pass has begun and not ended; batches come in log order.

    `keep(entry)` hears of aborted transactions of which a batch was found: they stay in the
    transaction index of the segment that the marker goes into.
    """

    def __init__(
        self,
        aborted: Iterable[AbortedTransaction],
        keep: Callable[[AbortedTransaction], None] = lambda entry: None,
    ) -> None:
        self._waiting = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        self._observed: dict[int, bool] = {}  # producers of those of which a batch was found
        self._ongoing_committed: dict[int, bool] = {}
        self.keep = keep

    def observe_data(self, header: BatchHeader) -> bool:
        """A data batch; whether its records were aborted."""
        self._begin(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._observed[header.producer_id] = True
            return True
        self._ongoing_committed[header.producer_id] = True
        return False

    def observe_control(self, header: BatchHeader, marker: Marker | None) -> bool:
        """A control batch with its marker; whether no batch of its transaction is left.

        `marker` is None for an emptied batch, which may go, and for other control records,
        which may not.
        """
        self._begin(header.last_offset)
        if marker is None:
            return header.record_count == 0
        if not marker.aborted:
            return self._ongoing_committed.pop(header.producer_id, None) is None
        entry = self._ongoing_aborted.pop(header.producer_id, None)
        if self._observed.pop(header.producer_id, None) is None or entry is None:
            return True
        self.keep(entry)
        return False

    def _begin(self, offset: int) -> None:
        """Transactions that begin up to `offset` are under way."""
        waiting = self._waiting
        while waiting and waiting[-1].first_offset <= offset:
            entry = waiting.pop()
            self._ongoing_aborted.setdefault(entry.producer_id, entry)
