"""Writing checkpoint files off the loop, one write of a file at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kwire.log.directories.checkpoint_contents import CheckpointContents
from kwire.log.directories.directory import LogDirectory
from kwire.log.scheduling import Scheduler
from kwire.pending import Pending, after, gather, settle_all

File = tuple[str, str]

SLICE_LOGS = 1000  # that have moved and are looked at before the loop gets its turn


class CheckpointWriter:
    """Whoever asks for a file that is being written shares its next write, of the offsets of then.

    `failed(directory, error)` hears of what could not be written, before who waits for it does.
    """

    def __init__(
        self,
        contents: CheckpointContents,
        scheduler: Scheduler,
        failed: Callable[[LogDirectory, OSError], None],
    ) -> None:
        self._contents = contents
        self._scheduler = scheduler
        self._failed = failed
        self._waiting: dict[File, list[Pending[None]]] = {}  # by the files that are being written
        self._is_closed = False

    def close(self) -> None:
        """No write begins any more, and who waits for one hears nothing."""
        self._is_closed = True

    def write(self, directory: LogDirectory, name: str) -> Pending[None]:
        """Done when the offsets of now are durable; fails with OSError. Nothing is written where
        the file holds them already."""
        result: Pending[None] = Pending()
        file = directory.path, name
        if file in self._waiting:
            self._waiting[file].append(result)
            return result
        self._waiting[file] = []
        self._gather(directory, name, result, self._contents.moved_count(directory, name))
        return result

    def _gather(self, directory: LogDirectory, name: str, result: Pending[None], left: int) -> None:
        """The last turn takes in what has moved during the others too: no file holds offsets from
        before a truncation, and the slices come to an end while logs go on."""
        if self._is_closed:
            return
        if left > SLICE_LOGS:
            self._contents.take_in(directory, name, SLICE_LOGS)
            left -= SLICE_LOGS
            self._scheduler.call_soon(partial(self._gather, directory, name, result, left))
            return
        offsets = self._contents.offsets(directory, name)
        written = Pending.completed(None)
        if not directory.holds(name, offsets):
            written = self._scheduler.run(directory.checkpoint_job(name, offsets))
        written.add_done_callback(partial(self._written, directory, name, result))

    def _written(
        self, directory: LogDirectory, name: str, result: Pending[None], done: Pending[None]
    ) -> None:
        error = done.error()
        if isinstance(error, OSError):
            self._failed(directory, error)
        waiting = self._waiting.pop((directory.path, name))
        if waiting:
            again = self.write(directory, name)
            again.add_done_callback(lambda done: settle_all(waiting, done.error()))
        settle_all([result], error)


def all_written(written: list[Pending[None]]) -> Pending[None]:
    """Done when all are, with the first error if there is one."""

    def raise_first() -> None:
        for pending in written:
            pending.result()

    return after(gather(written), lambda _: raise_first())
