"""What a node has seen of the metadata quorum, in plain numbers that only metrics read."""

from __future__ import annotations

from collections import deque

TIMES_KEPT = 256
UNCOMMITTED_MAX = 1000


class QuorumCounts:
    """Records that this node has appended as the leader and fetched as a follower, leaders it has
    learnt of, snapshots it has loaded; and of the last commits and elections how long they took,
    in seconds. Time is the loop's."""

    __slots__ = (
        "_leaderless_since_s",
        "_uncommitted",
        "appended_records",
        "commit_times_s",
        "election_times_s",
        "fetched_records",
        "leaders",
        "snapshots_loaded",
    )

    def __init__(self) -> None:
        self.appended_records = self.fetched_records = 0
        self.leaders = self.snapshots_loaded = 0
        self.commit_times_s: deque[float] = deque(maxlen=TIMES_KEPT)
        self.election_times_s: deque[float] = deque(maxlen=TIMES_KEPT)
        self._uncommitted: deque[tuple[int, float]] = deque(maxlen=UNCOMMITTED_MAX)
        self._leaderless_since_s: float | None = None

    def appended(self, base_offset: int, record_count: int, now_s: float) -> None:
        """This node leads, and has appended records."""
        self.appended_records += record_count
        self._uncommitted.append((base_offset + record_count, now_s))

    def committed(self, high_watermark: int, now_s: float) -> None:
        """Everything below is committed."""
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0][0] <= high_watermark:
            self.commit_times_s.append(now_s - uncommitted.popleft()[1])

    def leader_changed(self, leader_id: int | None, now_s: float) -> None:
        """Another node leads, or none is known to."""
        since_s, self._leaderless_since_s = self._leaderless_since_s, None
        if leader_id is None:
            self._leaderless_since_s = now_s if since_s is None else since_s
            self._uncommitted.clear()
            return
        self.leaders += 1
        if since_s is not None:
            self.election_times_s.append(now_s - since_s)
