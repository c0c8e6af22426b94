"""How long a partition waits before its shard is built again, when that failed before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kwire.log.files import passes
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

PAUSE_MS, PAUSE_MS_MAX = 20, 1000
LOADS_KEPT = 50


class Reloads:
    """Failures in a row, by partition: the first one costs no pause. `times_s` is how long the
    last loads took; only metrics read it."""

    def __init__(self) -> None:
        self.times_s: deque[float] = deque(maxlen=LOADS_KEPT)
        self._failures: dict[int, int] = {}

    def pause_ms(self, partition: int) -> int:
        """It failed (again): how long to wait now."""
        failures = self._failures.get(partition, 0)
        self._failures[partition] = failures + 1
        return min(PAUSE_MS << min(failures, 10), PAUSE_MS_MAX) if failures else 0

    def succeeded(self, partition: int) -> None:
        """What was decided after a load is written: the next failure is a first one again."""
        if self._failures:
            self._failures.pop(partition, None)

    def watch(
        self, partition: int, written: Pending[None] | None, failed: Callable[[], None]
    ) -> None:
        """Once what was decided after a load is written, the next failure is a first one again;
        `failed` is called if it cannot be."""
        if written is None or (written.done and written.error() is None):
            self._failures.pop(partition, None)
            return

        def done(written: Pending[None]) -> None:
            if written.error() is None:
                self._failures.pop(partition, None)
            else:
                failed()

        written.add_done_callback(done)


def may_pass(error: Exception) -> bool:
    """Whether a load that failed so may succeed later: its log is out of order for now."""
    return passes(error) or (
        isinstance(error, KafkaError) and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    )
