"""Loading a node's logs at its start while its loop goes on: heartbeats, the quorum.

After a clean stop a log is opened in no time, on the loop. Otherwise batches are checked and
indexes built anew, which threads do, `num.recovery.threads.per.data.dir` at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kwire.config.dynamic import DynamicConfig
from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.directories.directory import LogDirectoryError
from kwire.log.directories.loading import ExpectedTopic, Opening
from kwire.log.directories.manager import LogManager
from kwire.log.files import SystemFiles
from kwire.node.start_error import StartError
from kwire.node.waiting import end_of
from kwire.pending import Pending

if TYPE_CHECKING:
    from concurrent.futures import Executor

logger = logging.getLogger(__name__)

SLICE_S = 0.02
# However many a config says: more than that only cost memory.
THREADS_MAX = 64
OPENED_IN_A_ROW_MAX = 16
"""Of many logs a thread is handed some at a time: handing over costs as much as to open one."""


async def load_logs(
    manager: LogManager,
    expected_topic: ExpectedTopic,
    loop: asyncio.AbstractEventLoop,
    threads: int,
) -> None:
    """Load what `expected_topic` names; see `loading.load_directories`. LogDirectoryError."""
    threads = min(threads, THREADS_MAX)
    workers = _Workers(loop, threads if isinstance(manager.files, SystemFiles) else 0)
    slice_ends_s = loop.time() + SLICE_S
    row: list[Opening] = []
    try:
        for opening in manager.loading(expected_topic):
            if opening is None:
                workers.begin(row)
                row = []
                await workers.finish(0)
            elif opening.is_long and workers.count:
                row.append(opening)
                if len(row) >= workers.row:
                    workers.begin(row)
                    row = []
                    await workers.finish(workers.count)
            else:
                opening.finish()
            if loop.time() >= slice_ends_s:
                await asyncio.sleep(0)
                slice_ends_s = loop.time() + SLICE_S
    finally:
        workers.close()


def warn_of_missing(manager: LogManager, image: MetadataImage, broker_id: int) -> None:
    """Name the replicas of this broker whose logs are nowhere: empty ones take their place.

    Unless a directory is offline: then `placement.assigned` refuses to.
    """
    if any(directory.error is not None for directory in manager.directories):
        return
    for name, topic in sorted(image.topics.by_name.items()):
        for index, partition in topic.partitions.items():
            if broker_id in partition.replicas and manager.get(name, index) is None:
                logger.warning(
                    "no log of %s-%d is in any log directory; it begins anew", name, index
                )


class LogLoading:
    """Loads the logs that the metadata expects here; `loaded()` begins to follow the metadata.

    Heartbeats and the quorum go on in between. `image()` is the published metadata.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        config: DynamicConfig,
        logs: LogManager,
        *,
        broker_id: int,
        image: Callable[[], MetadataImage],
        loaded: Callable[[], Pending[None]],
    ) -> None:
        self._loop = loop
        self._config = config
        self._logs = logs
        self._broker_id = broker_id
        self._image = image
        self._loaded = loaded

    async def run(self) -> None:
        """Return when all are loaded, and the metadata is followed; StartError."""
        threads = self._config["num.recovery.threads.per.data.dir"]
        try:
            await load_logs(self._logs, self._expected, self._loop, threads)
        except LogDirectoryError as error:
            raise StartError(str(error)) from None
        for log in self._logs.logs():
            if self._expected(log.topic, log.partition) != log.topic_id:
                self._logs.delete(log.topic, log.partition)  # it was deleted meanwhile
        warn_of_missing(self._logs, self._image(), self._broker_id)
        await end_of(self._loop, self._loaded())

    def _expected(self, topic: str, index: int) -> bytes | None:
        """The id of the topic whose partition has a replica here."""
        known = self._image().topics.by_name.get(topic)
        partition = None if known is None else known.partitions.get(index)
        if known is None or partition is None or self._broker_id not in partition.replicas:
            return None
        return known.topic_id


class _Workers:
    """Threads that open logs; they are finished in the order in which they were begun."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.count = count
        self._opened = 0  # of logs so far
        self._loop = loop
        self._executor: Executor | None = None
        self._begun: deque[tuple[Sequence[Opening], asyncio.Future[None]]] = deque()

    @property
    def row(self) -> int:
        """How many a thread is handed next: few large logs are opened side by side."""
        return min(OPENED_IN_A_ROW_MAX, 1 + self._opened // (4 * self.count))

    def begin(self, openings: Sequence[Opening]) -> None:
        """Have a thread open these, one after the other."""
        if not openings:
            return
        self._opened += len(openings)
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(self.count, thread_name_prefix="kwire-recovery")
        job = self._loop.run_in_executor(self._executor, _open, openings)
        self._begun.append((openings, job))

    async def finish(self, left: int) -> None:
        """Finish the oldest until no more than `left` rows are under way."""
        while len(self._begun) > left:
            openings, job = self._begun.popleft()
            await job
            for opening in openings:
                opening.finish()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True)


def _open(openings: Sequence[Opening]) -> None:
    for opening in openings:
        opening.open()
