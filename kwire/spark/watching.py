"""Progress while one long query runs: what Spark's own counters say of the stages at work."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from kwire.spark.job import Progress
from kwire.spark.report import NO_BREAK, size_text

INTERVAL_S = 5.0
# Executors tell of running tasks every ten seconds, if they are not set to do it more often.
STALLED_S = 20.0
SCAN = "BatchScan"
SCANNED = "number of output rows"
# Queries that are looked through for running ones: the newest.
QUERIES = 4


class Watch:
    """`with Watch(spark, progress): ...` tells records, bytes, rate and tasks left now and then.

    The counters are those of Spark's status store; running tasks report with their executors'
    heartbeats, so that what is told may be some seconds old. A job that is to stop ends the query
    at hand, but not one that makes no progress: a cluster that is gone would hold it for minutes.

    With a `local` master these reports hold none of Spark's own counters of a running task: their
    names are left out of what a task gets, and only a report that goes over the network has them
    again. Metrics of queries keep theirs. `scans`: what the sources of the query have read counts,
    which is for queries of one stage.
    """

    def __init__(
        self, spark: Any, progress: Progress, interval_s: float = INTERVAL_S, *, scans: bool = False
    ) -> None:
        self._queries = spark._jsparkSession.sharedState().statusStore() if scans else None
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
        records = max(records, self._scanned())
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

    def _scanned(self) -> int:
        """How many rows the sources of running queries have read."""
        if self._queries is None:
            return 0
        found, count = self._queries, int(self._queries.executionsCount())
        newest = found.executionsList(max(0, count - QUERIES), QUERIES)
        total = 0
        for query in (newest.apply(at) for at in range(newest.size())):
            if not query.completionTime().isDefined():
                number = query.executionId()
                known = found.executionMetrics(number)
                for metric in _metrics_of_scans(found.planGraph(number).allNodes()):
                    value = known.get(metric.accumulatorId())
                    total += int(value.get().replace(",", "")) if value.isDefined() else 0
        return total

    def is_stalled(self, now_s: float) -> bool:
        """Whether it is to stop and nothing has happened since long before that."""
        return self._progress.stopping and now_s - self._moved[0] >= STALLED_S


def _metrics_of_scans(nodes: Any) -> Iterator[Any]:
    for node in (nodes.apply(at) for at in range(nodes.size())):
        if node.name().startswith(SCAN):
            metrics = node.metrics()
            for metric in (metrics.apply(at) for at in range(metrics.size())):
                if metric.name() == SCANNED:
                    yield metric
