"""The small files that say what a directory is: `meta.properties`, `partition.metadata`,
`.kafka_cleanshutdown`.
"""

from __future__ import annotations

import codecs

from kwire.protocol import uuids

META_PROPERTIES = "meta.properties"
META_VERSIONS = ("0", "1")
PARTITION_METADATA = "partition.metadata"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def encode_meta_properties(
    cluster_id: str, node_id: int, directory_id: bytes, wall_ms: int
) -> bytes:
    """A log directory's `meta.properties`, version 1."""
    lines = [
        "#",
        f"#{java_date(wall_ms)}",
        f"cluster.id={cluster_id}",
        f"directory.id={uuids.to_text(directory_id)}",
        f"node.id={node_id}",
        "version=1",
        "",
    ]
    return "\n".join(lines).encode()


def parse_properties(data: bytes) -> dict[str, str]:
    """The entries of a Java properties file of the simple kind that Kafka writes.

    The byte order mark of an editor is skipped.
    """
    values: dict[str, str] = {}
    for line in data.removeprefix(codecs.BOM_UTF8).decode("latin-1").splitlines():
        text = line.strip()
        if not text or text[0] in "#!":
            continue
        name, separator, value = text.partition("=")
        if not separator:
            raise ValueError(f"a line without '=': {text[:80]!r}")
        values[name.strip()] = value.strip().replace("\\=", "=").replace("\\:", ":")
    return values


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """`partition.metadata`: two lines, the second without a line feed."""
    return f"version: 0\ntopic_id: {uuids.to_text(topic_id)}".encode()


def parse_partition_metadata(data: bytes) -> bytes:
    """The topic id; raises ValueError for another version or a damaged file."""
    values: dict[str, str] = {}
    for line in data.decode("ascii").splitlines():
        name, separator, value = line.partition(": ")
        if separator:
            values[name] = value
    if values.get("version") != "0":
        raise ValueError("no version 0")
    topic_id = uuids.from_text(values.get("topic_id", ""))
    if topic_id == uuids.ZERO:
        raise ValueError("the topic id is zero")
    return topic_id


def encode_clean_shutdown(broker_epoch: int) -> bytes:
    return f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode()


def parse_clean_shutdown(data: bytes) -> int:
    """The broker epoch of the node that stopped cleanly, -1 when the file does not say."""
    import json

    try:
        values = json.loads(data)
        epoch = values.get("brokerEpoch", -1) if values.get("version") == 0 else -1
        return epoch if isinstance(epoch, int) else -1
    except (ValueError, AttributeError):
        return -1


def java_date(wall_ms: int) -> str:
    """A moment as Java's Date prints it in UTC: `Fri Nov 27 23:06:30 UTC 2026`."""
    days, second = divmod(wall_ms // 1000, 86_400)
    year, month, day = _civil(days)
    weekday = _DAYS[(days + 3) % 7]
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{weekday} {_MONTHS[month - 1]} {day:02d} {clock} UTC {year}"


def _civil(days: int) -> tuple[int, int, int]:
    """(year, month, day) of a day counted from 1970-01-01 (Gregorian)."""
    days += 719_468
    era, day_of_era = divmod(days, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (1 if month <= 2 else 0), month, day
