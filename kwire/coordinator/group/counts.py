"""What the groups of a coordinator have done, in plain integers that only grow.

Counted as Apache Kafka 4.4 does (measured): when it is decided, whatever then becomes of
the records. No state of a group depends on them; only `kwire/metrics` reads them.
"""

from __future__ import annotations


class GroupCounts:
    """Partitions whose offsets were committed, deleted by OffsetDelete, or went by their age;
    rebalances of classic groups that ended, and new epochs of consumer and share groups but for
    those of members that leave."""

    __slots__ = (
        "completed_rebalances",
        "consumer_rebalances",
        "offset_commits",
        "offset_deletions",
        "offset_expirations",
        "share_rebalances",
    )

    def __init__(self) -> None:
        self.offset_commits = self.offset_deletions = self.offset_expirations = 0
        self.completed_rebalances = self.consumer_rebalances = self.share_rebalances = 0
