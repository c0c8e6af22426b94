"""The log of a new partition.

Its directory was made for it, so that nothing in it has to be looked at: a node that gets thousands
of partitions at once would spend most of its time on that.
"""

from __future__ import annotations

from kwire.clock import Clock
from kwire.log.files import Files
from kwire.log.flushing import Flusher
from kwire.log.partition.config import LogConfig
from kwire.log.partition.local_log import LocalLog
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.partition.producers import Producers
from kwire.log.scheduling import Scheduler
from kwire.log.segment.open_file_limit import OpenSegments


def begin_log(
    directory: str,
    topic: str,
    partition: int,
    topic_id: bytes,
    config: LogConfig,
    clock: Clock,
    *,
    files: Files,
    scheduler: Scheduler,
    flusher: Flusher,
    open_segments: OpenSegments,
    producer_expiration_ms: int,
    verify_transactions: bool,
) -> PartitionLog:
    """The log whose files are made in `directory`, which holds nothing of a log yet.

    As `open_log` would leave it. Nothing is durable before the directory is synced. Raises OSError.
    """
    name = f"{topic}-{partition}"
    local = LocalLog(
        directory,
        name,
        topic_id,
        config,
        clock,
        files=files,
        scheduler=scheduler,
        flusher=flusher,
        open_segments=open_segments,
    )
    local.begin_in_empty_directory()
    producers = Producers(name, expiration_ms=producer_expiration_ms, verify=verify_transactions)
    log = PartitionLog(topic, partition, topic_id, local, producers, log_start_offset=0)
    local.close()  # segments are opened again when somebody appends or reads
    return log
