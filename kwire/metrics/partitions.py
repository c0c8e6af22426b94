"""The partitions of this node: who replicates them, their logs, what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwire.log.directories.manager import LogManager
from kwire.log.partition.partition_log import PartitionLog
from kwire.metrics.blocks import Row, in_blocks, single
from kwire.replica.isr_changes import IsrChangeSender
from kwire.replica.manager import ReplicaManager
from kwire.replica.partition import Partition
from kwire.replica.traffic import Traffic

CLUSTER = "kafka_cluster_partition_"
LOG = "kafka_log_log_"
TOPICS = "kafka_server_brokertopicmetrics_"
REPLICAS = "kafka_server_replicamanager_"

TRAFFIC = {
    "messages_in": "messagesin",
    "bytes_in": "bytesin",
    "bytes_out": "bytesout",
    "produce_requests": "totalproducerequests",
    "fetch_requests": "totalfetchrequests",
    "failed_produce_requests": "failedproducerequests",
    "failed_fetch_requests": "failedfetchrequests",
    "bytes_rejected": "bytesrejected",
    "share_fetch_requests": "totalsharefetchrequests",
    "failed_share_fetch_requests": "failedsharefetchrequests",
    "share_acknowledge_requests": "totalshareacknowledgementrequests",
    "failed_share_acknowledge_requests": "failedshareacknowledgementrequests",
}
"""Attribute of Traffic -> the middle of the metric's name, of what there is by topic too."""
TRAFFIC_OF_NODE = {
    **TRAFFIC,
    "invalid_crc_records": "invalidmessagecrcrecords",
    "no_key_records": "nokeycompactedtopicrecords",
    "replication_bytes_in": "replicationbytesin",
    "replication_bytes_out": "replicationbytesout",
}


def read_traffic(replicas: ReplicaManager) -> Iterator[bytes]:
    """What topics were asked, and the node as a whole. By topic only what has happened."""
    names = [f"{TOPICS}{name}_total" for name in TRAFFIC.values()]
    yield from in_blocks(
        ("topic",), names, ((topic, *_counts(traffic)) for topic, traffic in replicas.traffic)
    )
    total = replicas.traffic.total()
    yield single({"kafka_server_delayedproducemetrics_expires_total": total.expired_produces})
    yield single(
        {
            f"{TOPICS}{name}_total": getattr(total, attribute)
            for attribute, name in TRAFFIC_OF_NODE.items()
        }
    )


def _counts(traffic: Traffic) -> list[int | None]:
    return [getattr(traffic, attribute) or None for attribute in TRAFFIC]


class _Totals:
    """What is summed up while the partitions are read."""

    def __init__(self) -> None:
        self.partitions = self.leaders = self.offline = 0
        self.under_replicated = self.under_min_isr = self.at_min_isr = 0
        self.producer_ids = 0


def read_partitions(
    replicas: ReplicaManager, logs: LogManager, isr_changes: IsrChangeSender
) -> Iterator[bytes]:
    """Every partition, then what they come to together."""
    totals = _Totals()
    own = replicas.broker_id
    names = ("underreplicated", "insyncreplicascount", "replicascount", "underminisr", "atminisr")
    partitions = list(replicas)
    yield from in_blocks(
        ("topic", "partition"),
        [*(CLUSTER + name for name in (*names, "laststableoffsetlag"))],
        (_partition_row(partition, own, totals) for partition in partitions),
    )
    yield from read_logs(log for log in logs.logs())
    yield single(
        {
            f"{REPLICAS}partitioncount": totals.partitions,
            f"{REPLICAS}leadercount": totals.leaders,
            f"{REPLICAS}offlinereplicacount": totals.offline,
            f"{REPLICAS}underreplicatedpartitions": totals.under_replicated,
            f"{REPLICAS}underminisrpartitioncount": totals.under_min_isr,
            f"{REPLICAS}atminisrpartitioncount": totals.at_min_isr,
            f"{REPLICAS}produceridcount": totals.producer_ids,
            f"{REPLICAS}isrshrinks_total": isr_changes.shrinks,
            f"{REPLICAS}isrexpands_total": isr_changes.expands,
            f"{REPLICAS}failedisrupdates_total": isr_changes.failed,
        }
    )


def _partition_row(partition: Partition, own: int, totals: _Totals) -> Row:
    """What a follower knows of the others is 0, as in Apache Kafka."""
    state, log = partition.state, partition.log
    totals.partitions += 1
    lag = 0
    if log is None:
        totals.offline += 1
    else:
        if log.producers.first_unstable_offset is not None:
            lag = log.high_watermark - log.last_stable_offset
        totals.producer_ids += len(log.producers.entries)
    if state.leader_id != own or log is None:
        return (partition.topic, str(partition.index), 0, 0, 0, 0, 0, lag)
    in_sync, replicas, min_isr = len(state.isr), len(state.replicas), partition.effective_min_isr()
    under_replicated, under_min = in_sync < replicas, in_sync < min_isr
    totals.leaders += 1
    totals.under_replicated += under_replicated
    totals.under_min_isr += under_min
    totals.at_min_isr += in_sync == min_isr
    return (
        partition.topic,
        str(partition.index),
        int(under_replicated),
        in_sync,
        replicas,
        int(under_min),
        int(in_sync == min_isr),
        lag,
    )


def read_logs(logs: Iterable[PartitionLog]) -> Iterator[bytes]:
    """Sizes and offsets of logs."""
    names = ("size", "numlogsegments", "logstartoffset", "logendoffset", "retentionsizeinpercent")
    return in_blocks(("topic", "partition"), [LOG + name for name in names], map(_log_row, logs))


def _log_row(log: PartitionLog) -> Row:
    size, limit = log.size_bytes, log.config.retention_bytes
    return (
        log.topic,
        str(log.partition),
        size,
        len(log.segments),
        log.log_start_offset,
        log.log_end_offset,
        size * 100 // limit if limit > 0 else 0,
    )
