"""What share groups have done at this broker, in plain integers that only grow.

No state depends on them; only `kwire/metrics` reads them. Measured on Apache Kafka 4.4: an
acknowledgement counts by record when it is written, also for records that are done with already;
gaps do not count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from kwire.pending import Pending
from kwire.share.changes import AcknowledgedBatch
from kwire.share.states import AcknowledgeType

LOADS_KEPT = 1024


class ShareCounts:
    """`acknowledgements` by their type; how many share partitions were `loads`, and how long the
    last ones took; share fetches that waited until their time was over; sessions that ended with
    their connections. Locks that ran out are counted by each `LedPartition`."""

    __slots__ = (
        "acknowledgements",
        "disconnected_sessions",
        "expired_fetches",
        "load_times_ms",
        "loads",
    )

    def __init__(self) -> None:
        self.acknowledgements = [0] * len(AcknowledgeType)
        self.loads = 0
        self.load_times_ms: deque[int] = deque(maxlen=LOADS_KEPT)
        self.expired_fetches = self.disconnected_sessions = 0

    def loaded(self, time_ms: int) -> None:
        """A share partition has its state."""
        self.loads += 1
        self.load_times_ms.append(time_ms)

    def acknowledged(self, batches: Iterable[AcknowledgedBatch], done: Pending[None]) -> None:
        """The acknowledgements of a partition are written, or were refused."""
        if done.error() is not None:
            return
        counts = self.acknowledgements
        for batch in batches:
            if len(batch.types) == 1:
                counts[batch.types[0]] += batch.last_offset - batch.first_offset + 1
            else:
                for kind in batch.types:
                    counts[kind] += 1
