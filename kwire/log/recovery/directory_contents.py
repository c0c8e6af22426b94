"""What is in a partition's directory: its files by kind, and what a crash left half done.

What compaction had begun to replace is finished or undone, what is no plain file is set aside.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from kwire.log.directories.checkpoint_format import OFFSET_MAX
from kwire.log.directories.identity_files import PARTITION_METADATA
from kwire.log.files import TEMPORARY_SUFFIX, Files, unlink_quietly
from kwire.log.partition.config import LogConfig
from kwire.log.partition.leader_epochs import EPOCHS_FILE
from kwire.log.recovery.quarantine import free_path, set_strange_aside
from kwire.log.segment.segment import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
)
from kwire.protocol.errors import KafkaError

logger = logging.getLogger(__name__)

# Behind it a segment had no room for its records.
BASE_MAX = OFFSET_MAX - (1 << 32)


class FoundFiles(NamedTuple):
    """The files of a partition's directory, sorted by kind: base offset -> size."""

    logs: dict[int, int]
    indexes: dict[int, int]
    time_indexes: dict[int, int]
    transaction_indexes: dict[int, int]
    snapshots: dict[int, int]
    has_epochs: bool


def sort_files(files: Files, directory: str) -> FoundFiles:
    """Sort the files by kind; finish or undo what a crash interrupted."""
    names = set_strange_aside(files, directory, _is_of_a_log)
    if any(name.endswith((SWAP_SUFFIX, CLEANED_SUFFIX, DELETED_SUFFIX, ".tmp")) for name in names):
        _finish_replacements(files, directory, names)
        names = files.listing(directory)
    found = FoundFiles({}, {}, {}, {}, {}, EPOCHS_FILE in names)
    kinds = {
        LOG_SUFFIX: found.logs,
        INDEX_SUFFIX: found.indexes,
        TIME_INDEX_SUFFIX: found.time_indexes,
        TRANSACTION_INDEX_SUFFIX: found.transaction_indexes,
        SNAPSHOT_SUFFIX: found.snapshots,
    }
    for name, size_bytes in names.items():
        stem, dot, suffix = name.partition(".")
        kind = kinds.get(dot + suffix)
        if kind is not None and stem.isdecimal() and len(stem) == 20:
            if int(stem) <= BASE_MAX:
                kind[int(stem)] = size_bytes
                continue
            target = free_path(files, f"{directory}/{name}")
            logger.error("%s/%s: no log has such offsets; kept as %s", directory, name, target)
            files.rename(f"{directory}/{name}", target)
    for table in (found.indexes, found.time_indexes, found.transaction_indexes):
        for orphan in [base for base in table if base not in found.logs]:
            del table[orphan]
            stem = f"{directory}/{orphan:020d}"
            logger.warning("%s: index files without a log; deleting them", stem)
            unlink_quietly(
                files,
                [stem + INDEX_SUFFIX, stem + TIME_INDEX_SUFFIX, stem + TRANSACTION_INDEX_SUFFIX],
            )
    return found


def _is_of_a_log(name: str) -> bool:
    """Whether a file of that name would be taken for one of the log's, or is written by it."""
    stem = name.partition(".")[0]
    is_numbered = len(stem) == 20 and stem.isdecimal()
    return is_numbered or name.removesuffix(TEMPORARY_SUFFIX) in (EPOCHS_FILE, PARTITION_METADATA)


def _finish_replacements(files: Files, directory: str, names: dict[str, int]) -> None:
    """Compaction's two-phase replacement: complete `.swap`, undo `.cleaned`, drop `.deleted`.

    A `.cleaned` means that the switch had not begun for its offset and those above, whose
    originals are then still there.
    """
    gone = [n for n in names if n.endswith((CLEANED_SUFFIX, DELETED_SUFFIX, ".tmp"))]
    cleaned = [_base_of(n) for n in gone if n.endswith(CLEANED_SUFFIX)]
    swaps = [n for n in names if n.endswith(SWAP_SUFFIX)]
    if cleaned:
        originals = [_base_of(n) for n in names if n.endswith(LOG_SUFFIX)]
        for name in list(swaps):
            base = _base_of(name)
            if base >= min(cleaned) and any(original <= base for original in originals):
                swaps.remove(name)
                gone.append(name)
    unlink_quietly(files, [f"{directory}/{name}" for name in gone])
    for name in swaps:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _delete_replaced(files, directory, name, names)
    for name in sorted(swaps, key=lambda n: n.endswith(LOG_SUFFIX + SWAP_SUFFIX)):
        logger.info("%s/%s: completing an interrupted replacement", directory, name)
        target = name[: -len(SWAP_SUFFIX)]
        files.rename(f"{directory}/{name}", f"{directory}/{target}")


def _delete_replaced(files: Files, directory: str, swap: str, names: dict[str, int]) -> None:
    """Remove the segments whose offsets the swapped-in one covers."""
    base = _base_of(swap)
    probe = Segment(files, directory, base, LogConfig(), size_bytes=names[swap], is_new=False)
    probe.use_suffix(SWAP_SUFFIX)
    last_offset = base - 1
    try:
        for _, header in probe.walk(0):
            last_offset = header.last_offset
    except KafkaError:
        logger.error("%s/%s: is damaged behind offset %d", directory, swap, last_offset)
    finally:
        probe.close()
    for name in names:
        stem, dot, suffix = name.partition(".")
        if not stem.isdecimal() or dot + suffix not in (
            LOG_SUFFIX,
            INDEX_SUFFIX,
            TIME_INDEX_SUFFIX,
            TRANSACTION_INDEX_SUFFIX,
        ):
            continue
        if base <= int(stem) <= last_offset:
            unlink_quietly(files, [f"{directory}/{name}"])


def _base_of(name: str) -> int:
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() else 0
