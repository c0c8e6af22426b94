"""Removing the directories of deleted partitions: later, off the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kwire.log.files import Files, remove_tree
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending

logger = logging.getLogger(__name__)


def remove_directory_later(
    files: Files, scheduler: Scheduler, path: str, delay_ms: int, then: Callable[[], None]
) -> None:
    """Remove `path` with all in it after the delay, and call `then`."""

    def remove() -> None:
        scheduler.run(lambda: remove_tree(files, path)).add_done_callback(removed)

    def removed(done: Pending[None]) -> None:
        error = done.error()
        if error is not None:
            logger.warning("%s cannot be removed: %s", path, error)
        then()

    scheduler.call_later(delay_ms, remove)
