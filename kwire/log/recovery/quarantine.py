"""Damaged bytes are kept beside the segment, in a `.quarantine` file, before they are cut out."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.log.files import Files, write_fully
from kwire.log.recovery.segment_check import READ_BYTES, Damage
from kwire.log.segment.segment import Segment

logger = logging.getLogger(__name__)

KEPT_BYTES_MAX = 1 << 31  # more than any segment has: what is behind cannot be a part of it
QUARANTINE_SUFFIX = ".quarantine"


def quarantine(segment: Segment, damage: list[Damage]) -> None:
    """Copy damaged bytes beside the segment before they are cut out, and name them."""
    for item in damage:
        if _is_zeros(segment, item):
            logger.warning(
                "%s: %d zeros at byte %d; cutting them out",
                segment.log_path,
                item.size_bytes,
                item.position,
            )
            continue
        path = free_path(segment.files, f"{segment.log_path}.{item.position}")
        logger.error(
            "%s: %s at byte %d, offset %d; its %d bytes are kept in %s",
            segment.log_path,
            item.reason,
            item.position,
            item.next_offset,
            item.size_bytes,
            path,
        )
        handle = segment.files.open(path, create=True)
        try:
            at = 0
            size_bytes = min(item.size_bytes, KEPT_BYTES_MAX)
            while at < size_bytes:
                wanted = min(READ_BYTES, size_bytes - at)
                data = segment.pread(wanted, item.position + at)
                if not data:
                    break
                write_fully(segment.files, handle, [data], at)
                at += len(data)
            segment.files.fdatasync(handle)
        finally:
            segment.files.close(handle)


def free_path(files: Files, stem: str) -> str:
    """`STEM.quarantine`, or `STEM.N.quarantine` where earlier damage is kept under that name."""
    path, number = stem + QUARANTINE_SUFFIX, 0
    while files.exists(path):
        number += 1
        path = f"{stem}.{number}{QUARANTINE_SUFFIX}"
    return path


def set_strange_aside(
    files: Files, directory: str, is_ours: Callable[[str], bool]
) -> dict[str, int]:
    """Rename what is no plain file and has the name of one of ours (`is_ours`): a directory, a
    pipe, a link to nowhere. Reading it may never end, and writing the file fails. Returns the plain
    files with their sizes, in name order. Raises OSError.
    """
    sizes, others = files.contents(directory)
    for name in [name for name in others if is_ours(name)]:
        target = free_path(files, f"{directory}/{name}")
        logger.error("%s/%s is no plain file; it is kept as %s", directory, name, target)
        files.rename(f"{directory}/{name}", target)
    return sizes


def _is_zeros(segment: Segment, item: Damage) -> bool:
    """Whether the bytes are what is unused of a segment that was allocated ahead."""
    zeros = bytes(READ_BYTES)
    for at in range(0, min(item.size_bytes, KEPT_BYTES_MAX), READ_BYTES):
        data = segment.pread(min(READ_BYTES, item.size_bytes - at), item.position + at)
        if data != (zeros if len(data) == READ_BYTES else bytes(len(data))):
            return False
    return True


def salvage(segment: Segment, damage: list[Damage]) -> None:
    """Replace a segment's log by one without the damaged bytes, atomically."""
    files = segment.files
    path = segment.log_path + ".tmp"
    handle = files.open(path, create=True)
    try:
        files.truncate(handle, 0)
        target = source = 0
        for item in [*damage, Damage(segment.size_bytes, 0, 0, None, "")]:
            while source < item.position:
                data = segment.pread(min(READ_BYTES, item.position - source), source)
                target += write_fully(files, handle, [data], target)
                source += len(data)
            source = item.position + item.size_bytes
        files.fdatasync(handle)
    finally:
        files.close(handle)
    segment.close()
    files.rename(path, segment.log_path)
    files.sync_directory(segment.directory)
    segment.size_bytes = segment.assigned_bytes = target
