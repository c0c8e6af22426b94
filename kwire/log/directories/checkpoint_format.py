"""The text files of a log directory that hold an offset for each partition.

Line `0` (version), a line with the number of entries, then a line `topic partition offset` for
each; every line ends with a line feed. Without entries: `0\\n0\\n`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
CLEANER_POINTS = "cleaner-offset-checkpoint"

OFFSET_MAX = (1 << 63) - 1

Offsets = dict[tuple[str, int], int]


def encode_checkpoint(offsets: Mapping[tuple[str, int], int]) -> bytes:
    """The file's bytes, entries in the mapping's order."""
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def parse_checkpoint(data: bytes) -> Offsets:
    """The entries; an empty file has none. Raises ValueError naming what is wrong."""
    if not data:
        return {}
    lines = data.decode("ascii").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if len(lines) < 2 or lines[0] != "0":
        raise ValueError("no version 0 and number of entries at the beginning")
    offsets: Offsets = {}
    for topic, partition, offset in _entries(lines[2:]):
        if partition < 0 or offset < 0:
            raise ValueError(f"a negative number for {topic}-{partition}")
        if offset > OFFSET_MAX:
            raise ValueError(f"{offset} is no offset")
        offsets[topic, partition] = offset
    if len(lines) - 2 != int(lines[1]):
        raise ValueError(f"{len(lines) - 2} entries where {lines[1]} are announced")
    return offsets


def _entries(lines: Iterable[str]) -> Iterable[tuple[str, int, int]]:
    for line in lines:
        words = line.split(" ")
        if len(words) != 3:
            raise ValueError(f"a line that is not topic, partition and offset: {line[:80]!r}")
        yield words[0], int(words[1]), int(words[2])
