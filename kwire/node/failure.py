"""The end of a node that cannot go on."""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)


class Failure:
    """`on_fatal(reason)` is called when the node cannot go on: whoever runs it stops it."""

    def __init__(self, on_fatal: Callable[[str], None]) -> None:
        self._on_fatal = on_fatal
        self.has_failed = False

    def fatal(self, reason: str) -> None:
        """Log why, tell whoever runs the node."""
        logger.error("%s", reason)
        self.has_failed = True
        self._on_fatal(reason)
