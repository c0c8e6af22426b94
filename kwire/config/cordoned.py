"""`cordoned.log.dirs` (KIP-1066): log directories that get no new replicas.

A list of entries of `log.dirs` (or `log.dir`), written as they are there, or `*` alone for all.
Source: KIP-1066; texts measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwire.config.errors import ConfigError

CORDONED = "cordoned.log.dirs"
ALL = "*"


def check_cordoned(entries: Sequence[str], log_directories: Sequence[str]) -> None:
    """ConfigError where an entry is no log directory, or `*` is not alone."""
    if ALL in entries:
        if len(entries) > 1:
            raise ConfigError(
                f"requirement failed: When {CORDONED} is set to *, it must not contain other values"
            )
        return
    missing = [entry for entry in entries if entry not in log_directories]
    if missing:
        raise ConfigError(
            f"requirement failed: All entries in {CORDONED} must be present in log.dirs or "
            f"log.dir. Missing entries : {', '.join(missing)}"
        )
