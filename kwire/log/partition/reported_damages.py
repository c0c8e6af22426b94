"""Damages that readers of a log come across: no start reads all of it."""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

REPORTED_MAX = 100  # of one log


class ReportedDamages:
    """Reports each damage of a log once."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        self._reported: dict[str, None] | None = None  # most logs have none

    def report(self, directory: str, damage: str) -> None:
        if self._reported is None:
            self._reported = {}
        if damage not in self._reported and len(self._reported) < REPORTED_MAX:
            self._reported[damage] = None
            logger.error("%s: %s; `kwire log verify` tells more", directory, damage)
