"""`KAFKA_*` environment variables as settings, in the form Kafka's container image uses.

`KAFKA_LOG_SEGMENT_BYTES` is `log.segment.bytes`: the prefix goes, letters become small, `_`
becomes a dot, `__` an underscore and `___` a dash. Variables that Kafka's image keeps for
itself, that container platforms inject for a service called kafka, or that applications use for
their own connection are no settings (`data/environment_ignored.txt`). `CLUSTER_ID` formats empty
directories, as in Kafka's image, where the environment is a node's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from kwire.config.definitions import DATA

PREFIX = "KAFKA_"
KWIRE_PREFIX = "KWIRE_"
CLUSTER_ID = "CLUSTER_ID"
_OF_A_NODE = (
    "KAFKA_NODE_ID",
    "KAFKA_BROKER_ID",
    "KAFKA_PROCESS_ROLES",
    "KAFKA_CONTROLLER_QUORUM_VOTERS",
    "KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS",
)
_REPLACEMENTS = {1: ".", 2: "_", 3: "-"}


def setting_name(variable: str) -> str:
    """`KAFKA_A_B__C___D` -> `a.b_c-d`."""
    parts: list[str] = []
    body = variable[len(PREFIX) :]
    position = 0
    while position < len(body):
        if body[position] != "_":
            parts.append(body[position].lower())
            position += 1
            continue
        end = position
        while end < len(body) and body[end] == "_":
            end += 1
        parts.append(_REPLACEMENTS.get(end - position, body[position:end]))
        position = end
    return "".join(parts)


def cluster_id_of(environment: Mapping[str, str], *, container: bool = False) -> str | None:
    """The cluster's id to format with, None without one.

    `CLUSTER_ID` has no prefix and may be anybody's: it counts in a container of the broker's own,
    and beside variables that say which node of a cluster this is.
    """
    if container or any(name in environment for name in _OF_A_NODE):
        return environment.get(CLUSTER_ID, "").strip() or None
    return None


def settings_of(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Setting name -> (value, variable name), of every `KAFKA_*` variable that is a setting."""
    found = {name: value for name, value in sorted(environment.items()) if name.startswith(PREFIX)}
    if not found:
        return {}
    ignored = _ignored_patterns()
    return {
        setting_name(variable): (value, variable)
        for variable, value in found.items()
        if not _matches_any(variable, ignored)
    }


def _ignored_patterns() -> list[str]:
    path = os.path.join(DATA, "environment_ignored.txt")
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _matches_any(variable: str, patterns: list[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(variable, pattern) for pattern in patterns)
