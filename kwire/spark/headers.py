"""The headers that replay and mirror add to a record, and how a query reads them.

    kwire-replay-id        the id of the replay
    kwire-replay-source    TOPIC/PARTITION/OFFSET in the archive
    kwire-mirror-path      aliases of the clusters that it has come through, with commas between
    kwire-mirror-offset    its offset in the last of them

Others may write headers of these names too, with whatever they like: what cannot be read is null.
"""

from __future__ import annotations

from typing import Any

REPLAY_ID = "kwire-replay-id"
REPLAY_SOURCE = "kwire-replay-source"
MIRROR_PATH = "kwire-mirror-path"
MIRROR_OFFSET = "kwire-mirror-offset"
OWN_PREFIX = "kwire-"


def header_text(name: str) -> Any:
    """A column: the last header of this name as text; null without."""
    from pyspark.sql import functions as f

    found = f.filter("headers", lambda entry: entry["key"] == name)
    return f.try_element_at(found, f.lit(-1))["value"].cast("string")


def source_place() -> tuple[Any, Any, Any]:
    """Columns: topic, partition and offset that REPLAY_SOURCE names; null what it does not."""
    from pyspark.sql import functions as f

    parts = f.split(header_text(REPLAY_SOURCE), "/")
    partition = f.try_element_at(parts, f.lit(2)).try_cast("int")
    return parts[0], partition, f.try_element_at(parts, f.lit(3)).try_cast("bigint")


def headers_size() -> Any:
    """A column: the bytes of a record's headers, names and values."""
    from pyspark.sql import functions as f

    def one(total: Any, entry: Any) -> Any:
        value = f.coalesce(f.length(entry["value"]), f.lit(0))
        return total + f.octet_length(entry["key"]) + value

    return f.coalesce(f.aggregate("headers", f.lit(0), one), f.lit(0))
