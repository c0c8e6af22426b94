"""For how long a group has been behind: lag in seconds, of lag in offsets seen again and again.

Every reading of a partition's end is a point (when, end). A group at offset N is behind since the
end passed N: between two points that lie on a line. Of what was there before the first point
nothing is known: the age of that point is the least that it can be, and so is that of the newest
record.
"""

from __future__ import annotations

from bisect import bisect_right

POINTS_MAX = 120
PARTITIONS_MAX = 200_000


class LagHistory:
    """The points of all partitions. Time is in seconds, and does not go back."""

    def __init__(self) -> None:
        self._points: dict[tuple[str, str], tuple[list[float], list[int]]] = {}

    def saw(self, topic: str, partition: str, end: int, now_s: float) -> None:
        """The partition can be read up to `end` now."""
        key = topic, partition
        times, ends = self._points.get(key) or ([], [])
        if ends and end < ends[-1]:  # another log, or one that was cut
            times, ends = [], []
        if len(ends) >= 2 and ends[-1] == ends[-2] == end:
            times[-1] = now_s
            return
        if times and times[-1] == now_s:
            return
        times.append(now_s)
        ends.append(end)
        if len(times) > POINTS_MAX:  # every second of the older half goes
            half = POINTS_MAX // 2
            times[:half] = times[:half:2]
            ends[:half] = ends[:half:2]
        self._points[key] = times, ends
        if len(self._points) > PARTITIONS_MAX:
            self._points.pop(next(iter(self._points)))

    def seconds(
        self, topic: str, partition: str, offset: int, now_s: float, age_s: float = 0.0
    ) -> float | None:
        """For how long a group at `offset` is behind; 0 if it is not, None if nothing is known.
        `age_s` is that of the partition's newest record, which such a group has not read."""
        points = self._points.get((topic, partition))
        if points is None:
            return None
        times, ends = points
        if offset >= ends[-1]:
            return 0.0
        at = bisect_right(ends, offset) - 1
        if at < 0:
            return max(age_s, now_s - times[0])
        # The end stood at `ends[at] <= offset` and then passed it.
        width = ends[at + 1] - ends[at]
        passed_s = times[at] + (times[at + 1] - times[at]) * (offset - ends[at]) / width
        return max(0.0, now_s - passed_s)
