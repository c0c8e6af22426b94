"""What a log says of itself: whose it is, where it begins and ends, whether it works."""

from __future__ import annotations

from collections.abc import Callable

from kwire.protocol.errors import KafkaError


class LogState:
    """The values that parts of a log, and who reads it, look at. It starts with no records.

    `error` is why it takes no appends. `on_moving` hears before an end moves, or it fails,
    `on_refused` of appends while the log is short of something. While it `is_noted`, which who
    notes offsets sets, `on_offsets_moved` hears of the next one that moves.
    """

    __slots__ = (
        "error",
        "high_watermark",
        "is_closed",
        "is_noted",
        "local_log_start_offset",
        "log_end_offset",
        "log_start_offset",
        "name",
        "on_moving",
        "on_offsets_moved",
        "on_refused",
        "partition",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: str, partition: int, topic_id: bytes, name: str, start: int, end: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.name = name
        self.log_start_offset = self.local_log_start_offset = start
        self.high_watermark = 0
        self.log_end_offset = end
        self.is_closed = False
        self.error: KafkaError | None = None
        self.on_moving: Callable[[], None] | None = None
        self.on_refused: Callable[[], None] | None = None
        self.on_offsets_moved: Callable[[LogState], None] | None = None
        self.is_noted = False

    def _set_start(self, offset: int) -> None:
        """The one place where the starts change. Both are moved: nothing is kept elsewhere yet."""
        if self.on_moving is not None:
            self.on_moving()
        self.log_start_offset = self.local_log_start_offset = offset
        self._offsets_moved()

    def _offsets_moved(self) -> None:
        if self.is_noted and self.on_offsets_moved is not None:
            self.is_noted = False
            self.on_offsets_moved(self)
