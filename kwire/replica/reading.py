"""What is asked of a read, and what it finds: plain values, of no API.

Fetch makes its response of them (`kwire/api/fetch.py`), and whoever else reads as a leader's or a
follower's client. `Partition.read` reads one partition, `BoundedRead` several within the limits,
`DelayedRead` waits until there is enough.
"""

from __future__ import annotations

from typing import Protocol

from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import COMMITTED, Isolation
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.structs import Buffer, FilePart

NO_REPLICA = -1


class ReadRequest(Protocol):
    """What is asked of one partition: from where, at which epochs, how much at most.

    `current_leader_epoch` is the leader's as the asker knows it (-1: not checked),
    `last_fetched_epoch` that of the asker's last record (-1: no divergence is looked for),
    `log_start_offset` where a follower's own log begins.
    """

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_bytes_max: int


class ReadLimits:
    """What a request allows: bytes, time, how far it may see, and who asks."""

    __slots__ = (
        "as_files",
        "bytes_max",
        "bytes_min",
        "from_follower",
        "isolation",
        "rack",
        "replica_epoch",
        "replica_id",
        "wait_ms",
    )

    def __init__(
        self,
        bytes_min: int,
        bytes_max: int,
        wait_ms: int,
        isolation: Isolation,
        replica_id: int = NO_REPLICA,
        replica_epoch: int = -1,
        from_follower: bool = False,
        rack: str = "",
        as_files: bool = False,
    ) -> None:
        """`replica_id`: the broker that follows us, -1 (or less) for a consumer.

        `from_follower`: a consumer that may read from any replica (KIP-392), in its `rack`.
        `as_files`: what is read will be sent at once, by a connection that can send from files.
        """
        self.as_files = as_files
        self.from_follower = from_follower
        self.rack = rack
        self.bytes_min = bytes_min
        self.bytes_max = bytes_max
        self.wait_ms = wait_ms
        self.isolation = isolation
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class ReadResult:
    """What a read of one partition found: record batches and positions, or why there are none.

    `buffers` are whole batches in order, the first one holding the offset asked for: views, or file
    slices where that was asked for; None or empty without any, as with an error. `counted_bytes`
    counts towards the limits: `size_bytes`, and the part of a batch behind that a limit cut off.
    `aborted` is [(producer id, first offset)] of the aborted transactions in what was read, None
    where that was not looked at. With an error all offsets are -1. `diverging_epoch` is
    (epoch, end offset) where the asker's log and ours part ways (KIP-595), `preferred_replica` whom
    to ask instead (KIP-392).
    """

    __slots__ = (
        "aborted",
        "buffers",
        "counted_bytes",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "preferred_replica",
        "size_bytes",
    )

    def __init__(
        self,
        high_watermark: int,
        last_stable_offset: int,
        log_start_offset: int,
        aborted: list[tuple[int, int]] | None = None,
        buffers: list[Buffer | FilePart] | None = None,
        size_bytes: int = 0,
        counted_bytes: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted = aborted
        self.buffers = buffers
        self.size_bytes = size_bytes
        self.counted_bytes = counted_bytes
        self.error_code = error_code
        self.diverging_epoch: tuple[int, int] | None = None
        self.preferred_replica = NO_REPLICA

    @classmethod
    def failed(cls, code: ErrorCode) -> ReadResult:
        """An error that reading gave."""
        return cls(-1, -1, -1, error_code=code)

    @classmethod
    def refused(cls, code: ErrorCode) -> ReadResult:
        """An error found before the log was looked at: the aborted transactions are none, where
        they are unknown after a read (measured on Apache Kafka 4.4)."""
        return cls(-1, -1, -1, [], error_code=code)


def nothing_read(log: PartitionLog, isolation: Isolation) -> ReadResult:
    """No batches, and the log's positions: usual at the end of what is shown."""
    return ReadResult(
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        [] if isolation is COMMITTED else None,
    )


def diverging_epoch(log: PartitionLog, request: ReadRequest) -> tuple[int, int] | None:
    """Where the asker's last epoch ends in our log if that is not where it does in its own
    (KIP-595): (epoch, end offset)."""
    epoch, end_offset = log.end_offset_for_epoch(request.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= request.last_fetched_epoch and end_offset >= request.fetch_offset:
        return None
    return epoch, end_offset
