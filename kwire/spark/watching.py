"""Progress while one long query runs: what Spark's own counters say of the stages at work."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from kwire.spark.job import Progress

INTERVAL_S = 5.0


class Watch:
    """`with Watch(spark, progress): ...` tells records, bytes, rate and tasks left now and then.

    The counters are those of Spark's status store; running tasks report with their executors'
    heartbeats, so that what is told may be some seconds old.
    """

    def __init__(self, spark: Any, progress: Progress, interval_s: float = INTERVAL_S) -> None:
        self._store = spark._jsc.sc().statusStore()
        self._progress = progress
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._last: tuple[float, int] | None = None

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._interval_s):
            try:
                line = self.line(time.monotonic())
            except Exception:  # the session ends, or Spark has another way to tell by now
                return
            if line:
                self._progress.say(line)

    def line(self, now_s: float) -> str | None:
        """What there is to tell now; None while nothing runs."""
        stages = self._store.activeStages()
        if stages.isEmpty():
            return None
        records = size_bytes = tasks = done = 0
        for at in range(stages.size()):
            stage = stages.apply(at)
            records += stage.inputRecords() + stage.shuffleReadRecords()
            size_bytes += stage.inputBytes() + stage.shuffleReadBytes()
            tasks += stage.numTasks()
            done += stage.numCompleteTasks()
        rate = 0.0
        if self._last is not None and records >= self._last[1]:
            rate = (records - self._last[1]) / max(now_s - self._last[0], 1e-3)
        self._last = (now_s, records)
        return (
            f"stage {stages.apply(0).stageId()}: {records:,} records, {size_bytes / 1e6:,.1f} MB, "
            f"{rate:,.0f} records/s, {tasks - done} of {tasks} tasks left"
        )
