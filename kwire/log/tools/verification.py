"""Looking at the files of a data directory without a broker: what they are, what is wrong.

Of kwire or of Apache Kafka; read only. `verify` checks what a file says against its own rules and
against its neighbours: checksums, shapes, ascending offsets and epochs, index entries that point to
the batch they name, segments that do not overlap.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kwire.log.directories.checkpoint_format import parse_checkpoint
from kwire.log.directories.identity_files import parse_partition_metadata, parse_properties
from kwire.log.files import Files, SystemFiles, UnfitFileError
from kwire.log.partition.leader_epochs import parse_epochs
from kwire.log.partition.producer_snapshots import decode_snapshot
from kwire.log.segment.transaction_index import ENTRY_SIZE as TRANSACTION_ENTRY_SIZE
from kwire.log.segment.transaction_index import TransactionIndex
from kwire.log.tools.batch_scan import Batch, Problem, scan
from kwire.log.tools.epoch_and_abort_checks import AbortCheck, EpochCheck
from kwire.protocol import uuids
from kwire.protocol.errors import KafkaError
from kwire.protocol.records.reading import iterate_batch

UNFINISHED = (".deleted", ".cleaned", ".swap", ".tmp")
NO_DATA = (".lock", ".quarantine", ".part")


class Kind(NamedTuple):
    """What a file is: `name` as below, `base_offset` by its name (-1 without one)."""

    name: str
    base_offset: int


_BY_SUFFIX = {
    ".log": "segment",
    ".index": "offset index",
    ".timeindex": "time index",
    ".txnindex": "transaction index",
    ".snapshot": "producer snapshot",
    ".checkpoint": "metadata snapshot",
}
_BY_NAME = {
    "meta.properties": "properties",
    "partition.metadata": "partition metadata",
    "leader-epoch-checkpoint": "epochs",
    "quorum-state": "quorum state",
    ".kafka_cleanshutdown": "clean shutdown",
}


def kind_of(path: str) -> Kind:
    """What the file's name says it is; `other` for what is none of ours."""
    name = os.path.basename(path)
    if name in _BY_NAME:
        return Kind(_BY_NAME[name], -1)
    if name.endswith("-offset-checkpoint"):
        return Kind("offsets", -1)
    for suffix in UNFINISHED:
        name = name.removesuffix(suffix)
    stem, _ = os.path.splitext(name)
    kind = _BY_SUFFIX.get(name[len(stem) :])
    digits = stem.partition("-")[0]
    if kind is None or not digits.isdecimal() or len(digits) != 20:
        return Kind("other", -1)
    return Kind(kind, int(digits))


def files_of(path: str, files: Files) -> Iterator[str]:
    """The files of a directory and those below it, in order; a file alone is itself."""
    if not files.is_directory(path):
        yield path
        return
    for directory in _directories(path, files, {}):
        for name in files.listing(directory):
            if not name.endswith(NO_DATA):
                yield f"{directory}/{name}"


def _directories(path: str, files: Files, seen: dict[str, None]) -> Iterator[str]:
    """A directory and those below it, each once: links may lead in circles."""
    real = os.path.realpath(path)
    if real in seen:
        return
    seen[real] = None
    yield path
    for name in files.directories(path):
        yield from _directories(f"{path}/{name}", files, seen)


def reason_of(error: OSError | ValueError) -> str:
    """Why something cannot be read, without its path."""
    return str(getattr(error, "strerror", None) or error)


def unreadable(path: str, error: OSError) -> Problem:
    """What cannot be read, by the path in the error where there is one."""
    return Problem(str(error.filename or path), -1, f"cannot be read: {reason_of(error)}")


# -- one file by itself ------------------------------------------------------------------------


def verify_file(path: str, files: Files | None = None, *, deep: bool = False) -> list[Problem]:
    """What is wrong with one file; with `deep` the records of compressed batches too."""
    files = files or SystemFiles()
    kind = kind_of(path)
    if kind.name in ("segment", "metadata snapshot"):
        problems: list[Problem] = []
        _verify_batches(path, kind.base_offset, files, problems, None, deep)
        return problems
    return _verify_small(path, kind, files)


def _verify_small(path: str, kind: Kind, files: Files) -> list[Problem]:
    checks: dict[str, Callable[[bytes], object]] = {
        "producer snapshot": decode_snapshot,
        "properties": _parse_meta_properties,
        "partition metadata": parse_partition_metadata,
        "epochs": parse_epochs,
        "offsets": parse_checkpoint,
        "quorum state": _parse_quorum_state,
        "clean shutdown": _parse_clean_shutdown,
    }
    if kind.name in ("offset index", "time index"):
        faults: list[Problem] = []
        form = ">ii" if kind.name == "offset index" else ">qi"
        for _ in _entries(path, form, kind.base_offset, files, faults):
            pass
        return faults
    if kind.name == "transaction index":
        index, valid = TransactionIndex.load(files, path)
        position = len(index.entries) * TRANSACTION_ENTRY_SIZE
        return [] if valid else [Problem(path, position, "no entry in order")]
    check = checks.get(kind.name)
    if check is not None:
        try:
            check(files.read_file(path))
        except ValueError as error:
            return [Problem(path, -1, reason_of(error))]
    return []


def _parse_json(data: bytes, *numbers: str) -> None:
    import json

    try:
        values = json.loads(data)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}") from None
    for name in numbers:
        if not isinstance(values, dict) or type(values.get(name)) is not int:
            raise ValueError(f"has no number {name}")


def _parse_quorum_state(data: bytes) -> None:
    _parse_json(data, "data_version", "leaderId", "leaderEpoch")


def _parse_clean_shutdown(data: bytes) -> None:
    _parse_json(data, "version", "brokerEpoch")


def _parse_meta_properties(data: bytes) -> None:
    values = parse_properties(data)
    for name in ("version", "cluster.id", "node.id"):
        if not values.get(name):
            raise ValueError(f"has no {name}")
    if values["version"] != "1" or not values["node.id"].isdecimal():
        raise ValueError(f"version {values['version']} of node {values['node.id']}")
    if "directory.id" in values:
        uuids.from_text(values["directory.id"])


# -- a segment with its indexes -----------------------------------------------------------------


class _IndexCheck:
    """Compares the entries of a segment's indexes with the batches as they come."""

    def __init__(self, path: str, base_offset: int, files: Files, problems: list[Problem]) -> None:
        stem = path[: -len(".log")]
        self._problems = problems
        self._offsets = _entries(stem + ".index", ">ii", base_offset, files, problems)
        self._times = _entries(stem + ".timeindex", ">qi", base_offset, files, problems)
        self._next_offset = next(self._offsets, None)
        self._next_time = next(self._times, None)
        self._max_timestamp = -1

    def next_batch(self, batch: Batch) -> None:
        header = batch.header
        self._max_timestamp = max(self._max_timestamp, header.max_timestamp)
        entry = self._next_offset
        while entry is not None and entry.second <= batch.position:
            if entry.second != batch.position or entry.first != header.last_offset:
                self._wrong(entry, f"offset {entry.first} at {entry.second} is no batch")
            entry = next(self._offsets, None)
        self._next_offset = entry
        time = self._next_time
        while time is not None and time.second <= header.last_offset:
            is_right = time.second == header.last_offset and time.first == header.max_timestamp
            if not is_right or time.first != self._max_timestamp:
                self._wrong(time, f"timestamp {time.first} is not the largest up to {time.second}")
            time = next(self._times, None)
        self._next_time = time

    def finish(self) -> None:
        for entry, others in ((self._next_offset, self._offsets), (self._next_time, self._times)):
            if entry is not None:
                self._wrong(entry, "an entry behind the last batch")
                for _ in others:
                    pass

    def _wrong(self, entry: _Entry, reason: str) -> None:
        self._problems.append(Problem(entry.path, entry.position, reason))


class _Entry(NamedTuple):
    """Of an offset index (offset, position), of a time index (timestamp, offset)."""

    path: str
    position: int
    first: int
    second: int


def _entries(
    path: str, form: str, base_offset: int, files: Files, problems: list[Problem]
) -> Iterator[_Entry]:
    """The entries of an index; zeros behind them are no fault."""
    layout = struct.Struct(form)
    try:
        data = files.read_file(path)
    except FileNotFoundError:
        problems.append(Problem(path, -1, "is missing"))
        return
    except UnfitFileError as error:
        problems.append(Problem(path, -1, reason_of(error)))
        return
    body = data.rstrip(b"\0")
    count = -(-len(body) // layout.size)
    if len(data) % layout.size:
        problems.append(Problem(path, len(data) - len(data) % layout.size, "half an entry"))
    last = (-1, -1)
    for at in range(count):
        fields = layout.unpack_from(data.ljust((at + 1) * layout.size, b"\0"), at * layout.size)
        is_offsets = form == ">ii"
        if not (fields[0] > last[0] and fields[1] > last[1] - (0 if is_offsets else 1)):
            problems.append(Problem(path, at * layout.size, "an entry that does not ascend"))
            return
        last = fields
        first, second = fields
        if is_offsets:
            first += base_offset
        else:
            second += base_offset
        yield _Entry(path, at * layout.size, first, second)


def _verify_batches(
    path: str,
    base_offset: int,
    files: Files,
    problems: list[Problem],
    indexes: _IndexCheck | None,
    deep: bool,
    others: Sequence[EpochCheck | AbortCheck] = (),
) -> int:
    """Check a file's batches; returns the offset behind the last one."""
    expected, epoch = base_offset, -1
    if kind_of(path).name == "metadata snapshot":
        expected = 0
    for batch in scan(path, files, problems.append):
        header = batch.header
        first = header.base_offset if header.magic >= 2 else header.last_offset
        if first < expected or header.last_offset < first:
            reason = f"offset {first} where {expected} or more is due"
            problems.append(Problem(path, batch.position, reason))
        if header.magic >= 2 and header.partition_leader_epoch < epoch:
            reason = f"leader epoch {header.partition_leader_epoch} behind {epoch}"
            problems.append(Problem(path, batch.position, reason))
        epoch = max(epoch, header.partition_leader_epoch)
        expected = max(expected, header.next_offset)
        if indexes is not None:
            indexes.next_batch(batch)
        for other in others:
            other.next_batch(batch)
        if deep:
            _verify_records(path, batch, problems)
    if indexes is not None:
        indexes.finish()
    return expected


def _verify_records(path: str, batch: Batch, problems: list[Problem]) -> None:
    try:
        count = sum(map(len, iterate_batch(batch.data, batch.at, batch.header)))
    except KafkaError as error:
        problems.append(Problem(path, batch.position, f"records: {error.message}"))
        return
    if batch.header.magic >= 2 and count != batch.header.record_count:
        reason = f"{count} records where {batch.header.record_count} are announced"
        problems.append(Problem(path, batch.position, reason))


# -- a directory ------------------------------------------------------------------------------


def verify(path: str, files: Files | None = None, *, deep: bool = False) -> Iterator[Problem]:
    """What is wrong with a file, a partition's directory or a whole data directory.

    Raises OSError for a file alone that cannot be read; in a directory that is something wrong.
    """
    files = files or SystemFiles()
    if not files.is_directory(path):
        yield from verify_file(path, files, deep=deep)
        return
    at = path
    try:
        for at in _directories(path, files, {}):
            yield from _verify_directory(at, files, deep)
    except OSError as error:
        yield unreadable(at, error)


def _verify_directory(path: str, files: Files, deep: bool) -> Iterator[Problem]:
    try:
        names = list(files.listing(path))
        yield from _verify_segments(path, names, files, deep)
    except OSError as error:
        yield unreadable(path, error)
        return
    for name in names:
        kind = kind_of(name)
        if kind.name in ("segment", "offset index", "time index") or name.endswith(NO_DATA):
            continue
        try:
            yield from verify_file(f"{path}/{name}", files, deep=deep)
        except OSError as error:
            yield unreadable(f"{path}/{name}", error)


def _verify_segments(path: str, names: list[str], files: Files, deep: bool) -> Iterator[Problem]:
    logs = [n for n in names if kind_of(n).name == "segment" and n.endswith(".log")]
    end_offset = -1
    aborts = AbortCheck(files)
    epochs = EpochCheck(path, files) if any(files.size_of(f"{path}/{n}") for n in logs) else None
    others = (aborts,) if epochs is None else (aborts, epochs)
    for name in sorted(logs):
        problems: list[Problem] = []
        base_offset = kind_of(name).base_offset
        file = f"{path}/{name}"
        if base_offset < end_offset:
            reason = f"begins before offset {end_offset}, where the segment before it ends"
            problems.append(Problem(file, 0, reason))
        is_empty = files.size_of(file) == 0
        indexes = None if is_empty else _IndexCheck(file, base_offset, files, problems)
        aborts.begin(file[: -len(".log")] + ".txnindex")
        try:
            end_offset = _verify_batches(file, base_offset, files, problems, indexes, deep, others)
            aborts.finish(end_offset)
        except OSError as error:
            problems.append(unreadable(file, error))
        yield from problems
    for fault in (*aborts.faults, *(epochs.faults if epochs is not None else ())):
        yield Problem(*fault)
    stems = {name[:20] for name in logs}
    for name in names:
        is_index = kind_of(name).name in ("offset index", "time index", "transaction index")
        if is_index and name[:20] not in stems and not name.endswith(UNFINISHED):
            yield Problem(f"{path}/{name}", -1, "an index without a segment")
