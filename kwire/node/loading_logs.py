"""Loading a node's logs at its start while its loop goes on: heartbeats, the quorum.

After a clean stop a log is opened in no time, on the loop. Otherwise batches are checked and
indexes built anew, which threads do, `num.recovery.threads.per.data.dir` at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING

from kwire.kraft.images.metadata_image import MetadataImage
from kwire.log.directories.loading import ExpectedTopic, Opening
from kwire.log.directories.manager import LogManager
from kwire.log.files import SystemFiles

if TYPE_CHECKING:
    from concurrent.futures import Executor

logger = logging.getLogger(__name__)

SLICE_S = 0.02
# However many a config says: more than that only cost memory.
THREADS_MAX = 64


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
    try:
        for opening in manager.loading(expected_topic):
            if opening is None:
                await workers.finish(0)
            elif opening.is_long and workers.count:
                workers.begin(opening)
                await workers.finish(workers.count)
            else:
                opening.finish()
            if loop.time() >= slice_ends_s:
                await asyncio.sleep(0)
                slice_ends_s = loop.time() + SLICE_S
    finally:
        workers.close()


def tell_missing(manager: LogManager, image: MetadataImage, broker_id: int) -> None:
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


class _Workers:
    """Threads that open logs; they are finished in the order in which they were begun."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.count = count
        self._loop = loop
        self._executor: Executor | None = None
        self._begun: deque[tuple[Opening, asyncio.Future[None]]] = deque()

    def begin(self, opening: Opening) -> None:
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(self.count, thread_name_prefix="kwire-recovery")
        job = self._loop.run_in_executor(self._executor, opening.open)
        self._begun.append((opening, job))

    async def finish(self, left: int) -> None:
        """Finish the oldest until no more than `left` are under way."""
        while len(self._begun) > left:
            opening, job = self._begun.popleft()
            await job
            opening.finish()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True)
