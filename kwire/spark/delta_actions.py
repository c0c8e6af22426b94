"""Actions of the Delta protocol: what goes into a commit, and what is read of one.

delta-spark reads actions as JSON too, by a reader of all that an action can be. Making that reader
costs half a CPU-second; what is part of most commits is made without it.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

READER_MAX, WRITER_MAX = 3, 7


class AddedFile(NamedTuple):
    """A data file of a commit; the path is relative to the table."""

    path: str
    records: int
    size_bytes: int


class KnownIds(NamedTuple):
    """The transaction ids of one version. `place`: the table's id and the version."""

    place: tuple[str, int]
    applications: Mapping[str, int]


def metadata_action(jvm: Any, content: Mapping[str, Any]) -> Any:
    """delta-spark's `Metadata` of the protocol's `metaData`."""
    actions = jvm.org.apache.spark.sql.delta.actions
    to = jvm.org.apache.spark.api.python.PythonUtils
    provider, options = content["format"]["provider"], content["format"].get("options") or {}
    return actions.Metadata(
        content["id"],
        content.get("name"),
        content.get("description"),
        actions.Format(provider, to.toScalaMap(_java_map(jvm, options))),
        content["schemaString"],
        to.toSeq(_java_list(jvm, content["partitionColumns"])),
        to.toScalaMap(_java_map(jvm, content.get("configuration") or {})),
        _long(jvm, content.get("createdTime")),
    )


def transaction_action(jvm: Any, name: str, version: int, time_ms: int) -> Any:
    """delta-spark's `SetTransaction` of the protocol's `txn`."""
    return jvm.org.apache.spark.sql.delta.actions.SetTransaction(name, version, _long(jvm, time_ms))


def remove_action(file: Any, time_ms: int) -> dict[str, Any]:
    """The `remove` of a row of `DeltaTable.files`."""
    return {
        "remove": {
            "path": file.path,
            "deletionTimestamp": time_ms,
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": file.partitionValues,
            "size": file["size"],
        }
    }


def transaction_ids(text: str) -> dict[str, int]:
    """Versions by ids, of delta-spark's SetTransactions as text, a line each.

    >>> transaction_ids("SetTransaction(a,b,7,Some(1795999686338))")
    {'a,b': 7}
    """
    lines = (line.removeprefix("SetTransaction(") for line in text.split("\n") if line)
    parts = (line.rsplit(",", 2) for line in lines)
    return {name: int(number) for name, number, _ in parts}


def added_file(action: Mapping[str, Any]) -> AddedFile:
    """A file by its `add` action."""
    statistics = json.loads(action.get("stats") or "{}")
    path = urllib.parse.unquote(action["path"])
    return AddedFile(path, int(statistics.get("numRecords", 0)), int(action["size"]))


def newer_protocol(commit: bytes) -> str | None:
    """The protocol that a commit asks for, where delta-spark knows none so new; else None.

    >>> newer_protocol(b'{"protocol":{"minReaderVersion":4,"minWriterVersion":8}}')
    'protocol 4 (readers) and 8 (writers)'
    """
    for line in commit.splitlines():
        try:
            found = json.loads(line)["protocol"]
            reader, writer = int(found["minReaderVersion"]), int(found["minWriterVersion"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if reader > READER_MAX or writer > WRITER_MAX:
            return f"protocol {reader} (readers) and {writer} (writers)"
    return None


def _long(jvm: Any, number: int | None) -> Any:
    """Scala's Option of a long: Py4J would pass a small number as an int."""
    if number is None:
        return jvm.scala.Option.empty()
    return jvm.scala.jdk.javaapi.OptionConverters.toScala(jvm.java.util.OptionalLong.of(number))


def _java_map(jvm: Any, content: Mapping[str, str]) -> Any:
    found = jvm.java.util.HashMap()
    for name, value in content.items():
        found.put(name, value)
    return found


def _java_list(jvm: Any, content: Iterable[str]) -> Any:
    found = jvm.java.util.ArrayList()
    for value in content:
        found.add(value)
    return found
