"""Replies of raft that need the disk: records to a Fetch, pieces to a FetchSnapshot."""

from __future__ import annotations

import logging

from kwire.kraft.raft import effects as fx
from kwire.kraft.snapshots.files import SnapshotFiles
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import FetchSlices, Isolation
from kwire.pending import Pending, as_pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


def reply_records(log: PartitionLog, effect: fx.ReplyRecords) -> None:
    """Answer with records of the log, maybe later."""
    partition = effect.response.responses[0].partitions[0]
    try:
        found = log.read(
            effect.offset, effect.bytes_max, isolation=Isolation.LOG_END, may_wait=True
        )
    except KafkaError as error:
        partition.error_code = int(error.code)
        effect.reply_to.complete(effect.response)
        return

    def read(done: Pending[FetchSlices]) -> None:
        error = done.error()
        if error is None:
            partition.records = done.result().buffers
        else:
            partition.error_code = int(getattr(error, "code", ErrorCode.KAFKA_STORAGE_ERROR))
        effect.reply_to.complete(effect.response)

    as_pending(found).add_done_callback(read)


def reply_snapshot(snapshots: SnapshotFiles, effect: fx.ReplySnapshot) -> None:
    """Answer with a piece of a stored snapshot."""
    partition = effect.response.topics[0].partitions[0]
    try:
        size_bytes = snapshots.size(effect.snapshot)
        if effect.position >= size_bytes:
            partition.error_code = int(ErrorCode.POSITION_OUT_OF_RANGE)
        else:
            partition.size = size_bytes
            partition.unaligned_records = snapshots.read_piece(
                effect.snapshot, effect.position, effect.bytes_max
            )
    except FileNotFoundError:
        partition.error_code = int(ErrorCode.SNAPSHOT_NOT_FOUND)
    except OSError as error:
        logger.error("a snapshot cannot be read: %s", error)
        partition.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
    effect.reply_to.complete(effect.response)
