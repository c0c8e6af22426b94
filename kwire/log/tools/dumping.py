"""What is in the files of a data directory, as rows for people and programs (`kwire log dump`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeAlias

from kwire.log.directories.checkpoint_format import parse_checkpoint
from kwire.log.directories.directory import METADATA_PARTITION, parse_name
from kwire.log.directories.identity_files import parse_partition_metadata, parse_properties
from kwire.log.files import Files, SystemFiles
from kwire.log.partition.leader_epochs import parse_epochs
from kwire.log.partition.producer_snapshots import decode_snapshot
from kwire.log.segment.transaction_index import TransactionIndex
from kwire.log.tools.batch_scan import Batch, Problem, scan
from kwire.log.tools.verification import files_of, kind_of, reason_of, unreadable
from kwire.protocol import uuids
from kwire.protocol.errors import KafkaError
from kwire.protocol.records import Record
from kwire.protocol.records.control import parse_control
from kwire.protocol.records.reading import read_batch

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Row = dict[str, Json]

_MODULES = {
    "__consumer_offsets": "group-coordinator",
    "__transaction_state": "transaction-coordinator",
    "__share_group_state": "share-coordinator",
}


def dump(path: str, files: Files | None = None, *, records: bool = False) -> Iterator[Row]:
    """A row for each batch or entry of a file, or of every file of a directory.

    `file` and `kind` come first; `records` adds a row for each record. What cannot be read is a
    row with `error`. Raises OSError.
    """
    files = files or SystemFiles()
    for file in files_of(path, files):
        kind = kind_of(file).name
        if kind == "other":
            continue
        head: Row = {"file": file, "kind": kind}
        try:
            if kind in ("segment", "metadata snapshot"):
                yield from _batches(file, head, files, records)
                continue
            for row in _small(file, kind, files):
                yield head | row
        except ValueError as error:
            yield head | {"error": reason_of(error)}
        except OSError as error:
            if file == path:
                raise
            yield head | {"error": unreadable(file, error).reason}


def _batches(file: str, head: Row, files: Files, records: bool) -> Iterator[Row]:
    problems: list[Problem] = []
    topic = _topic_of(file)
    for batch in scan(file, files, problems.append):
        yield head | _batch_row(batch)
        if records:
            for row in _record_rows(batch, topic):
                yield head | row
    for problem in problems:
        yield head | {"position": problem.position, "error": problem.reason}


def _batch_row(batch: Batch) -> Row:
    header = batch.header
    row: Row = {
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "size_bytes": header.size_bytes,
        "magic": header.magic,
        "codec": header.codec.name.lower(),
        "leader_epoch": header.partition_leader_epoch,
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "append" if header.is_log_append_time else "create",
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
    if header.has_delete_horizon:
        row["delete_horizon_ms"] = header.delete_horizon_ms
    return row


def _record_rows(batch: Batch, topic: str) -> Iterator[Row]:
    try:
        found = read_batch(batch.data, batch.at, batch.header)
    except KafkaError as error:
        yield {"position": batch.position, "error": error.message}
        return
    for record in found:
        row: Row = {
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _shown(record.key),
            "value": _shown(record.value),
        }
        if record.headers:
            row["headers"] = [[_shown(name), _shown(value)] for name, value in record.headers]
        try:
            row |= _decoded(batch, record, topic)
        except (ValueError, KeyError, KafkaError) as error:
            row["error"] = f"cannot be decoded: {error}"
        yield row


def _decoded(batch: Batch, record: Record, topic: str) -> Row:
    """What a record of an internal topic or a control batch means."""
    if batch.header.is_control:
        control = parse_control(record)
        return {"control": control.type.name.lower(), "meaning": repr(control)}
    if topic == METADATA_PARTITION[0]:
        from kwire.protocol.metadata_records import decode_record

        message, version = decode_record(record.value or b"")
        return {"type": type(message).NAME, "version": version, "meaning": repr(message)}
    module = _MODULES.get(topic)
    if module is None or record.key is None:
        return {}
    from kwire.protocol.coordinator_records import decode_key, decode_value, key_type

    key = decode_key(module, record.key)
    meaning = [repr(key)]
    if record.value is not None:
        meaning.append(repr(decode_value(module, key_type(record.key), record.value)))
    return {"type": type(key).NAME, "meaning": " ".join(meaning)}


def _topic_of(file: str) -> str:
    found = parse_name(os.path.basename(os.path.dirname(os.path.abspath(file))))
    return found.topic if found is not None else ""


def _shown(data: bytes | str | None) -> str | None:
    """Text where it is text; bytes that are none as `0x...`."""
    if data is None or isinstance(data, str):
        return data
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return "0x" + bytes(data).hex()
    return text if text.isprintable() else "0x" + bytes(data).hex()


def _small(file: str, kind: str, files: Files) -> Iterator[Row]:
    """The entries of the files that are not batches. Raises ValueError for damaged ones."""
    if kind == "transaction index":
        index, valid = TransactionIndex.load(files, file)
        yield from (entry._asdict() for entry in index.entries)
        if not valid:
            raise ValueError("damaged behind these entries")
        return
    data = files.read_file(file)
    if kind == "offset index":
        yield from _index_rows(data, file, 8)
    elif kind == "time index":
        yield from _index_rows(data, file, 12)
    elif kind == "producer snapshot":
        for entry in decode_snapshot(data):
            yield {
                "producer_id": entry.producer_id,
                "epoch": entry.epoch,
                "last_sequence": entry.last_sequence,
                "last_offset": entry.last_offset,
                "last_timestamp": entry.last_timestamp,
                "coordinator_epoch": entry.coordinator_epoch,
                "transaction_first_offset": entry.transaction_first_offset,
            }
    elif kind == "offsets":
        for (topic, partition), offset in parse_checkpoint(data).items():
            yield {"topic": topic, "partition": partition, "offset": offset}
    elif kind == "epochs":
        for epoch, offset in parse_epochs(data):
            yield {"epoch": epoch, "start_offset": offset}
    elif kind == "partition metadata":
        yield {"topic_id": uuids.to_text(parse_partition_metadata(data))}
    elif kind == "properties":
        yield dict(parse_properties(data))
    else:
        yield {"content": data.decode("utf-8", "replace").strip()}


def _index_rows(data: bytes, file: str, entry_size: int) -> Iterator[Row]:
    base_offset = kind_of(file).base_offset
    count = -(-len(data.rstrip(b"\0")) // entry_size)
    for at in range(0, count * entry_size, entry_size):
        entry = data[at : at + entry_size].ljust(entry_size, b"\0")
        last = int.from_bytes(entry[-4:], "big", signed=True)
        first = int.from_bytes(entry[:-4], "big", signed=True)
        if entry_size == 8:
            yield {"offset": base_offset + first, "position": last}
        else:
            yield {"timestamp": first, "offset": base_offset + last}


def stats(path: str, files: Files | None = None) -> Iterator[Row]:
    """A row for each partition's directory, or for a file of batches alone. Raises OSError."""
    files = files or SystemFiles()
    by_directory: dict[str, list[str]] = {}
    for file in files_of(path, files):
        if kind_of(file).name in ("segment", "metadata snapshot"):
            by_directory.setdefault(os.path.dirname(file), []).append(file)
    for directory, found in by_directory.items():
        segments = [f for f in found if f.endswith(".log")] or found
        head: Row = {"directory": directory}
        yield head | _sum_up(sorted(segments), files)


def _readable(file: str, files: Files, problems: list[Problem]) -> Iterator[Batch]:
    """The batches as far as the file can be read; what is wrong goes to `problems`."""
    try:
        yield from scan(file, files, problems.append)
    except OSError as error:
        problems.append(unreadable(file, error))


def _sum_up(segments: list[str], files: Files) -> Row:
    size_bytes = batches = records = 0
    codecs: dict[str, int] = {}
    first_offset, next_offset, low, high = -1, -1, -1, -1
    producers: dict[int, None] = {}
    transactional = control = 0
    problems: list[Problem] = []
    for file in segments:
        size_bytes += files.size_of(file)
        for batch in _readable(file, files, problems):
            header = batch.header
            batches += 1
            records += header.record_count if header.magic >= 2 else 1
            codec = header.codec.name.lower()
            codecs[codec] = codecs.get(codec, 0) + 1
            if first_offset < 0:
                first_offset = header.base_offset
            next_offset = header.next_offset
            if header.max_timestamp >= 0:
                low = header.max_timestamp if low < 0 else min(low, header.max_timestamp)
                high = max(high, header.max_timestamp)
            if header.producer_id >= 0:
                producers[header.producer_id] = None
            transactional += header.is_transactional
            control += header.is_control
    return {
        "segments": len(segments),
        "size_bytes": size_bytes,
        "batches": batches,
        "records": records,
        "first_offset": first_offset,
        "next_offset": next_offset,
        "first_timestamp": low,
        "last_timestamp": high,
        "codecs": {**codecs},
        "producers": len(producers),
        "transactional_batches": transactional,
        "control_batches": control,
        "problems": len(problems),
    }
