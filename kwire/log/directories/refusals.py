"""What a node cannot write to, and why: for `kwire info`, health checks and the simulation."""

from __future__ import annotations

from kwire.log.directories.manager import LogManager

METADATA_NAME = "__cluster_metadata-0"


def refusals(log_manager: LogManager, metadata_waits_for: str) -> list[tuple[str, str]]:
    """(partition, reason) of what refuses appends, for a shortage or for good; the metadata log
    first, where it waits for something."""
    found = [(METADATA_NAME, metadata_waits_for)] if metadata_waits_for else []
    for (topic, partition), refusal in log_manager.shortages.refused.items():
        found.append((f"{topic}-{partition}", refusal.reason))
    for log in log_manager.logs():
        if log.error is not None and not log.is_short:
            found.append((log.name, log.error.message or log.error.code.name))
    return found
