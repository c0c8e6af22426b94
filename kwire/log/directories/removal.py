"""The directories of deleted partitions: out of the way at once, removed later, off the loop."""

from __future__ import annotations

import logging
from functools import partial

from kwire.kept_errors import kept
from kwire.log.directories.shortages import Key, Shortages, error_text
from kwire.log.files import Files, passes, remove_tree
from kwire.log.flushing import Flusher, SyncRequest
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError

logger = logging.getLogger(__name__)


class Removals:
    """What a log manager gives up, after `delay_ms`.

    A directory that cannot be renamed in a shortage is tried again: its space may be what is
    missing. Before that no other log is made in its place (`free_name`), which would begin with
    the records of the deleted one.
    """

    def __init__(
        self, files: Files, scheduler: Scheduler, delay_ms: int, shortages: Shortages
    ) -> None:
        self._files = files
        self._scheduler = scheduler
        self._delay_ms = delay_ms
        self._shortages = shortages
        self._in_the_way: dict[str, str] = {}  # path -> its name as a deleted one

    def give_up(self, key: Key, path: str, target: str, flusher: Flusher) -> Pending[None]:
        """Rename `path` to `target`; done when that is durable. Fails with KafkaError."""
        self._in_the_way[path] = target
        try:
            self.free_name(path)
        except OSError as error:
            if passes(error):
                name = f"{key[0]} (deleted)"
                again = partial(self._again, path)
                self._shortages.add((name, key[1]), error_text(error), again)
            return Pending.failed(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}"))
        request = SyncRequest()
        request.directories.append(path.rpartition("/")[0])
        return flusher.request(request)

    def free_name(self, path: str) -> None:
        """Rename the directory of a deleted partition that is still at `path`. Raises OSError."""
        target = self._in_the_way.get(path)
        if target is not None:
            self._files.rename(path, target)
            del self._in_the_way[path]
            self.remove_later(target)

    def _again(self, path: str) -> Pending[None]:
        try:
            self.free_name(path)
        except OSError as error:
            return Pending.failed(kept(error))
        return Pending.completed(None)

    def remove_later(self, path: str) -> None:
        """Remove a directory with all in it."""
        self._scheduler.call_later(self._delay_ms, partial(self._remove, path))

    def _remove(self, path: str) -> None:
        job = partial(remove_tree, self._files, path)
        self._scheduler.run(job).add_done_callback(partial(self._removed, path))

    def _removed(self, path: str, done: Pending[None]) -> None:
        error = done.error()
        if error is not None:
            logger.warning("%s cannot be removed: %s", path, error)
        self._shortages.hurry()
