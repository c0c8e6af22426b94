"""Data directories that Apache Kafka 4.4 wrote, and what Kafka says is in them."""

from __future__ import annotations

import gzip
import json
import subprocess
from base64 import b64decode
from pathlib import Path
from typing import Any

from kwire.log.partition.config import LogConfig
from kwire.log.partition.partition_log import PartitionLog
from kwire.log.types import FetchSlices, Isolation
from kwire.protocol.records import BatchHeader, Record, iterate_headers, read_batch

DATA = Path(__file__).parent.parent / "golden" / "data"
INT_MAX = 2**31 - 1


def unpack(name: str, target: Path) -> Path:
    """A fresh copy of the directory `clean` or `killed` (sparse files stay sparse)."""
    target.mkdir(parents=True, exist_ok=True)
    archive = DATA / f"datadir-{name}.tar.gz"
    subprocess.run(["tar", "-xSf", str(archive), "-C", str(target)], check=True)
    return target


def expected(name: str) -> dict[str, Any]:
    """Kafka's facts about the directory."""
    with gzip.open(DATA / f"expected-{name}.json.gz") as file:
        facts: dict[str, Any] = json.load(file)
    return facts


def config_of(facts: dict[str, Any], topic: str) -> LogConfig:
    """A topic's config as the facts have it, as far as the shape of the log depends on it."""
    values: dict[str, Any] = {}
    for name, text in facts["topics"][topic].get("configs", {}).items():
        values[name] = _typed(name, text)
    return LogConfig.from_values(values)


def _typed(name: str, text: str) -> Any:
    if name == "cleanup.policy":
        return text.split(",")
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if name.endswith("ratio") else int(text)
    except ValueError:
        return text


def batches(log: PartitionLog, isolation: Isolation, bytes_max: int = 3000) -> list[Any]:
    """[(header, data, aborted)] of all batches that the isolation shows, read in small steps."""
    found: list[Any] = []
    offset = log.log_start_offset
    while True:
        slices = log.read(offset, bytes_max, isolation=isolation)
        assert isinstance(slices, FetchSlices)
        if not slices.buffers:
            return found
        for buffer in slices.buffers:
            for position, header in iterate_headers(buffer):
                data = bytes(buffer[position : position + header.size_bytes])
                found.append((header, data, slices.aborted))
        assert slices.next_offset > offset
        offset = slices.next_offset


def records(log: PartitionLog) -> list[list[Any]]:
    """All data records in the shape of the facts: keys, values and headers as bytes."""
    found = []
    for header, data, _ in batches(log, Isolation.LOG_END):
        if header.is_control:
            continue
        for record in read_batch(data):
            if record.offset >= log.log_start_offset:
                found.append(_row(header, record))
    return found


def _row(header: BatchHeader, record: Record) -> list[Any]:
    kind = 1 if header.is_log_append_time else 0
    headers = [
        [name.encode() if isinstance(name, str) else name, value] for name, value in record.headers
    ]
    return [
        record.offset,
        record.timestamp,
        kind,
        record.key,
        record.value,
        headers,
        header.partition_leader_epoch,
    ]


def expected_records(facts: dict[str, Any]) -> list[list[Any]]:
    def raw(text: str | None) -> bytes | None:
        return None if text is None else b64decode(text)

    return [
        [
            offset,
            timestamp,
            kind,
            raw(key),
            raw(value),
            [[raw(n), raw(v)] for n, v in headers],
            epoch,
        ]
        for offset, timestamp, kind, key, value, headers, epoch in facts["records"]
    ]


def committed_offsets(log: PartitionLog) -> list[int]:
    """Offsets that a read_committed consumer shows, by the rules that clients follow."""
    found: list[int] = []
    offset = log.log_start_offset
    while True:
        slices = log.read(offset, 3000, isolation=Isolation.COMMITTED)
        assert isinstance(slices, FetchSlices)
        if not slices.buffers:
            return found
        waiting = sorted(slices.aborted or [], key=lambda entry: entry[1])
        aborting: set[int] = set()
        for buffer in slices.buffers:
            for position, header in iterate_headers(buffer):
                while waiting and waiting[0][1] <= header.last_offset:
                    aborting.add(waiting.pop(0)[0])
                if header.is_control:
                    aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    found += [
                        record.offset
                        for record in read_batch(buffer, position, header)
                        if record.offset >= log.log_start_offset
                    ]
        offset = slices.next_offset


def list_offset(log: PartitionLog, query: dict[str, Any]) -> list[int] | None:
    """[timestamp, offset, epoch] as ListOffsets answers; None for queries above the log."""
    if "timestamp" in query:
        found = log.offset_for_timestamp(query["timestamp"])
    elif query["spec"] == "max_timestamp":
        found = log.max_timestamp_offset()
    elif query["spec"] in ("earliest", "earliest_local"):
        return [-1, log.log_start_offset, log.leader_epochs.epoch_for(log.log_start_offset)]
    elif query["spec"] == "latest":
        return [-1, log.high_watermark, log.leader_epochs.latest]
    else:
        return None
    return [-1, -1, -1] if found is None else list(found)


def producers(log: PartitionLog) -> list[dict[str, int]]:
    """As DescribeProducers tells them."""
    return [
        {
            "coordinator_epoch": entry.coordinator_epoch,
            "epoch": entry.epoch,
            "last_sequence": entry.last_sequence,
            "last_timestamp": entry.last_timestamp,
            "producer_id": entry.producer_id,
            "txn_start_offset": entry.transaction_first_offset,
        }
        for entry in log.active_producers()
    ]
