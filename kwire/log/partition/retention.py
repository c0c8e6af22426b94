"""Which old segments go: by time, by size, and below the log's start (Apache Kafka 4.4's rules)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kwire.log.partition.config import LogConfig
from kwire.log.segment.segment import Segment
from kwire.log.segment.segment_list import Segments


class Rule(NamedTuple):
    """Whether a segment goes, by its contents and the base offset of the one behind it (None for
    the last one), and the name of the rule."""

    reason: str
    applies: Callable[[Segment, int | None], bool]


def rules(
    config: LogConfig, segments: Segments, log_start_offset: int, wall_ms: int
) -> Iterator[Rule]:
    """The rules of a log one after the other, each for the segments that the one before left."""
    if len(segments) > 1:  # none goes that has no other behind it
        yield Rule(
            "log start offset",
            lambda segment, next_base: next_base is not None and next_base <= log_start_offset,
        )
    if not config.deletes:
        return
    if config.retention_bytes >= 0:
        excess = segments.size_bytes - config.retention_bytes
        if excess >= 0:
            yield Rule("retention.bytes", _Excess(excess).takes)
    if config.retention_ms >= 0:
        limit_ms = wall_ms - config.retention_ms
        yield Rule(
            "retention.ms", lambda segment, next_base: segment.largest_timestamp() < limit_ms
        )


class _Excess:
    """Bytes by which a log is too large."""

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = size_bytes

    def takes(self, segment: Segment, next_base: int | None) -> bool:
        if self._size_bytes - segment.size_bytes < 0:
            return False
        self._size_bytes -= segment.size_bytes
        return True


def oldest(
    segments: Segments, rule: Rule, *, next_offset: int, high_watermark: int, segments_max: int
) -> list[Segment]:
    """The oldest segments, as long as the rule applies to them.

    Only those that are wholly below the high watermark, and not an empty active one.
    """
    found: list[Segment] = []
    for at, segment in enumerate(segments):
        if len(found) == segments_max:
            break
        next_base = segments.next_base(at)
        end_offset = next_offset if next_base is None else next_base  # unwritten ones too
        is_empty_active = next_base is None and not segment.assigned_bytes
        if high_watermark < end_offset or is_empty_active or not rule.applies(segment, next_base):
            break
        found.append(segment)
    return found
