"""Where the log of a partition ends for those who follow it: by files that a broker is writing."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from kwire.log.directories.checkpoint_format import HIGH_WATERMARKS, parse_checkpoint
from kwire.spark.segment_files import PartitionFiles
from kwire.spark.segment_plan import transactions, walk_headers
from kwire.spark.stores import Store


class PartitionEnd(NamedTuple):
    """A partition's files, and the offset behind the last record that may be read."""

    files: PartitionFiles
    end: int


@dataclasses.dataclass
class _Walked:
    """How far the headers of a log file have been looked at."""

    log: str
    position: int
    end: int


class LogEnds:
    """The ends of partitions; remembers how far it has walked each newest segment."""

    def __init__(self) -> None:
        self._walked: dict[str, _Walked] = {}

    def end(self, store: Store, files: PartitionFiles, committed_only: bool) -> int:
        """The end of what is whole, replicated (by the high watermark's checkpoint, where there is
        one) and, if asked for, in no open transaction."""
        end = self._log_end(store, files)
        watermark = _high_watermark(store, files)
        if watermark is not None:
            end = min(end, watermark)
        if committed_only:
            end = min(end, transactions(store, files)[1])
        return max(end, files.log_start_offset)

    def _log_end(self, store: Store, files: PartitionFiles) -> int:
        newest = files.segments[-1]
        known = self._walked.get(files.path)
        if known is None or known.log != newest.log or known.position > newest.size_bytes:
            known = _Walked(newest.log, 0, newest.base_offset)
        path = f"{files.path}/{newest.log}"
        for position, header in walk_headers(store, path, newest.size_bytes, known.position):
            known.position = position + header.size_bytes
            known.end = header.last_offset + 1
        self._walked[files.path] = known
        return known.end


def _high_watermark(store: Store, files: PartitionFiles) -> int | None:
    """By the checkpoint of the data directory; None without one that names the partition."""
    folder = files.path.rpartition("/")[0] or "/"
    try:
        found = parse_checkpoint(store.read(f"{folder}/{HIGH_WATERMARKS}"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found.get((files.topic, files.partition))
