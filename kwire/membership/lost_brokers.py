"""Brokers that have just died: Metadata names them a moment longer.

librdkafka (2.11 and later, seen with 2.16) closes a broker that Metadata does not name any more,
and only then moves its partitions to the leaders that the same answer names: they get lost between
the two threads until its next look at all topics, a second later. An answer that still names the
broker, beside the new leaders, moves them at once. So a broker that was fenced without having
asked to stop is named for as long as such a client needs to look. Only an answer about topics that
were asked for by name does it: so are leaders looked for, and not which brokers there are. It leads
nothing meanwhile, and to a client this is metadata that comes a little late. DescribeCluster and
all decisions go by what is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.kraft.images.delta import MetadataDelta

NAMED_FOR_MS = 2_000
"""librdkafka looks for leaders once a second (`topic.metadata.refresh.fast.interval.ms` is for
partitions without a leader): twice that."""


class LostBrokers:
    """Until when (milliseconds of a steady clock) a dead broker is named."""

    def __init__(self) -> None:
        self._until_ms: dict[int, int] = {}

    def applied(self, delta: MetadataDelta, now_ms: int) -> None:
        """Committed metadata: who was fenced in it without having said goodbye."""
        for broker_id, (old, new) in delta.brokers.items():
            if old is not None and old.is_active and new is not None and new.fenced:
                self._until_ms[broker_id] = now_ms + NAMED_FOR_MS
            elif new is None or not new.fenced:
                self._until_ms.pop(broker_id, None)

    def named(self, broker_id: int, now_ms: int) -> bool:
        """Whether Metadata still names this fenced broker."""
        until_ms = self._until_ms.get(broker_id)
        return until_ms is not None and now_ms < until_ms
