"""Progress while one long query runs: what Spark's own counters say of the stages at work."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from kwire.spark.job import Progress
from kwire.spark.report import NO_BREAK, size_text

INTERVAL_S = 5.0
# Executors tell of running tasks every ten seconds, if they are not set to do it more often.
STALLED_S = 20.0


class Watch:
    """`with Watch(spark, progress): ...` tells records, bytes, rate and tasks left now and then.

    The counters are those of Spark's status store; running tasks report with their executors'
    heartbeats, so that what is told may be some seconds old. A job that is to stop ends the query
    at hand, but not one that makes no progress: a cluster that is gone would hold it for minutes.
    """

    def __init__(self, spark: Any, progress: Progress, interval_s: float = INTERVAL_S) -> None:
        self._context = spark.sparkContext
        self._store = spark._jsc.sc().statusStore()
        self._progress = progress
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._last: tuple[float, int] | None = None
        self._moved: tuple[float, int] = (0.0, -1)

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
                line = self.line(now_s := time.monotonic())
                if line and self.is_stalled(now_s):
                    self._progress.say("the batch at hand makes no progress and is given up")
                    self._context.cancelAllJobs()
            except Exception:  # the session ends, or Spark has another way to tell by now
                return
            if line:
                self._progress.say(line)

    def line(self, now_s: float) -> str | None:
        """What there is to tell now; None while nothing runs."""
        stages = self._store.activeStages()
        if stages.isEmpty():
            return None
        records = size_bytes = tasks = done = written = 0
        for at in range(stages.size()):
            stage = stages.apply(at)
            records += stage.inputRecords() + stage.shuffleReadRecords()
            size_bytes += stage.inputBytes() + stage.shuffleReadBytes()
            tasks += stage.numTasks()
            done += stage.numCompleteTasks()
            written += stage.outputBytes() + stage.shuffleWriteBytes()
        if (moved := records + size_bytes + done + written) != self._moved[1]:
            self._moved = (now_s, moved)
        rate = 0.0
        if self._last is not None and records >= self._last[1]:
            rate = (records - self._last[1]) / max(now_s - self._last[0], 1e-3)
        self._last = (now_s, records)
        told = [f"{tasks - done} of {tasks} tasks left"]
        if records:
            told = [f"{records:,} records", f"{rate:,.0f} records/s", *told]
        if size_bytes:  # sources that are no files tell none
            told.insert(1, size_text(size_bytes).replace(NO_BREAK, " "))
        return f"stage {stages.apply(0).stageId()}: {', '.join(told)}"

    def is_stalled(self, now_s: float) -> bool:
        """Whether it is to stop and nothing has happened since long before that."""
        return self._progress.stopping and now_s - self._moved[0] >= STALLED_S
