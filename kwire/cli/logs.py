"""Log lines on stderr: `2026-01-31 12:00:00,123 INFO kwire.node.node: text`."""

from __future__ import annotations

import logging
import sys


def start_logging(level: int = logging.INFO) -> None:
    """Write what kwire logs to stderr, one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.raiseExceptions = False
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
