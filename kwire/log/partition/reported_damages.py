"""Damages that readers of a log come across: no start reads all of it."""

from __future__ import annotations

import logging

from kwire.log.partition.local_log import LocalLog

logger = logging.getLogger(__name__)

REPORTED_MAX = 100  # of one log


class ReportedDamages:
    """Reports each damage of a log once."""

    __slots__ = ("_local", "_reported")

    def __init__(self, local: LocalLog) -> None:
        self._local = local
        self._reported: dict[str, None] = {}

    def report(self, damage: str) -> None:
        """Name it in the node's log."""
        if damage not in self._reported and len(self._reported) < REPORTED_MAX:
            self._reported[damage] = None
            directory = self._local.directory
            logger.error("%s: %s; `kwire log verify` tells more", directory, damage)
