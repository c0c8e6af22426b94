"""Writes of which the cause comes once, and nobody waits for them: a topic was deleted.

What the log refuses, or a shard that is being loaded or is to be, is tried again after a pause
for as long as this broker leads the partition.
"""

from __future__ import annotations

from functools import partial
from typing import Generic, TypeVar

from kwire.coordinator.runtime import CoordinatorRuntime, Operation
from kwire.coordinator.shard_interface import Loop, Shard
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

S = TypeVar("S", bound=Shard)

#: The pause of the timers of Apache Kafka 4.4's coordinators (CoordinatorTimer) after a failure.
RETRY_MS = 500

# The records are in the log, or it is a bug that comes back.
_OVER = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_SERVER_ERROR})


class RepeatedWrites(Generic[S]):
    """Writes to the shards of `runtime`. Operations may run more than once."""

    def __init__(self, runtime: CoordinatorRuntime[S], loop: Loop) -> None:
        self._runtime = runtime
        self._loop = loop

    def write(self, partition: int, operation: Operation[S, None]) -> None:
        """Run `operation` until what it decides is taken."""
        written = self._runtime.write(partition, operation)
        written.add_done_callback(partial(self._written, partition, operation))

    def write_all(self, operation: Operation[S, None]) -> None:
        """`write` to every partition led here."""
        for partition in self._runtime.partitions():
            self.write(partition, operation)

    def _written(self, partition: int, operation: Operation[S, None], done: Pending[None]) -> None:
        error = done.error()
        if not isinstance(error, KafkaError) or error.code in _OVER:
            return
        # A shard that has failed is loaded again.
        if self._runtime.state(partition) is not None:
            self._loop.call_at(
                self._loop.time() + RETRY_MS / 1000, partial(self.write, partition, operation)
            )
