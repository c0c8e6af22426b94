"""When the active segment is closed and a new one begun: Kafka's rules beside its size."""

from __future__ import annotations

from kwire.clock import Clock
from kwire.log.partition.config import LogConfig
from kwire.log.segment.segment import Segment
from kwire.log.segment.walking import OFFSET_DELTA_MAX


def must_roll(
    segment: Segment,
    last_offset: int,
    max_timestamp: int,
    config: LogConfig,
    jitter_share: int,
    clock: Clock,
) -> bool:
    """Full indexes, offsets too far apart, age by the timestamps.

    A segment without timestamps has the age of its file. `jitter_share` as for `jitter_ms`.
    """
    if segment.is_full or last_offset - segment.base_offset > OFFSET_DELTA_MAX:
        return True
    first_timestamp = segment.first_timestamp()
    if first_timestamp >= 0:
        waited_ms = max_timestamp - first_timestamp
    else:
        waited_ms = clock.wall_ms() - segment.created_ms
    if waited_ms <= 0:
        return False
    return waited_ms > config.roll_ms - jitter_ms(config, jitter_share)


def jitter_ms(config: LogConfig, share: int) -> int:
    """How much earlier than others a log rolls, so that not all logs of a broker roll at once:
    `share`, of 2**32, of what segment.jitter.ms allows.

    Below both segment.jitter.ms and the age that a segment may have: one of no age would be rolled
    by every append.
    """
    bound_ms = min(config.segment_jitter_ms, config.roll_ms)
    return bound_ms * share >> 32
