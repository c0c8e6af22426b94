"""What a node cannot write to, and why: for `kwire info`, health checks and the simulation."""

from __future__ import annotations

from typing import Protocol

from kwire.log.directories.shortages import Shortages
from kwire.log.partition.partition_log import PartitionLog

METADATA_NAME = "__cluster_metadata-0"


class Logs(Protocol):
    """The logs of a node."""

    @property
    def shortages(self) -> Shortages: ...

    def logs(self) -> list[PartitionLog]: ...


def refusals(hosted: Logs, metadata_waits_for: str) -> list[tuple[str, str]]:
    """(partition, reason) of what refuses appends, for a shortage or for good; the metadata log
    first, where it waits for something."""
    found = [(METADATA_NAME, metadata_waits_for)] if metadata_waits_for else []
    for (topic, partition), refusal in hosted.shortages.refused.items():
        found.append((f"{topic}-{partition}", refusal.reason))
    for log in hosted.logs():
        if log.error is not None and not log.is_short:
            found.append((log.name, log.error.message or log.error.code.name))
    return found
