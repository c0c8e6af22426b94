"""How jobs end: signals, summaries of jobs that failed, clusters that do not answer any more."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from kwire.spark import cluster, job, replay, session, watching
from kwire.spark.job import Progress
from kwire.spark.usage import JobError, UsageError

LONG_S = 60.0


@pytest.mark.parametrize(("in_batches", "number"), [(True, 15), (True, 2), (False, 15), (False, 2)])
def test_signals_end_a_batch_or_the_job(in_batches: bool, number: int) -> None:
    import signal

    before = {signal.SIGTERM: signal.getsignal(15), signal.SIGINT: signal.getsignal(2)}
    progress = Progress("x", quiet=True)
    try:
        progress.stop_on_signals()
        # Before its loop there is no batch to wait for, whatever the job.
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        progress.has_batches = in_batches
        if in_batches:
            signal.raise_signal(number)
            assert progress.stopping
            number = signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        progress.ended = True
        signal.raise_signal(number)
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (JobError("it failed"), 3, "it failed"),
        (UsageError("not so"), 2, "not so"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_a_job_that_failed_has_a_summary_too(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    error: BaseException,
    status: int,
    line: str,
) -> None:
    """Only those that ended well had: the file told of the run before, with its status 0."""
    path = tmp_path / "summary.json"

    def run(options: argparse.Namespace, progress: Progress) -> Any:
        assert not path.exists()
        if status:
            raise error
        return 0, {}

    def ends(status: int) -> dict[str, Any]:
        one = job.Job("x", "", "", "", lambda _: None, lambda _: None, run)
        assert job.run_job(one, ["--summary", str(path)]) == status
        out = capsys.readouterr()
        assert out.err == (f"kwire spark x: {line}\n" if status else "")
        assert path.read_text() == out.out
        return dict(json.loads(out.out))

    monkeypatch.setattr(job, "_require_installed", lambda *_: None)
    monkeypatch.setattr(Progress, "stop_on_signals", lambda _: None)
    status, found = 0, status
    assert ends(0)["status"] == 0
    status = found
    told = ends(status)
    assert (told["job"], told["status"], told["error"]) == ("x", status, line)


def test_nobody_has_to_read_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe whose reader had ended made batches fail, and a traceback of the end."""

    class Closed:
        def write(self, text: str) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    Progress("x").say("a line")


def test_a_job_that_is_to_stop_waits_for_no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """It waited forty seconds for each answer, thirty of them where no signal ended it."""
    pytest.importorskip("confluent_kafka")

    monkeypatch.setattr(cluster, "LOOK_S", 0.01)
    monkeypatch.setattr(cluster, "STOPPING_S", 0.01)
    asked = threading.Event()
    over = threading.Event()

    class Silent:
        def list_topics(self, timeout: float) -> None:
            asked.set()
            over.wait(LONG_S)

        def list_consumer_groups(self, **_: Any) -> Future[None]:
            asked.set()
            return Future()

        def poll(self, seconds: float) -> None:
            pass

    lost = cluster.Cluster("127.0.0.1:1", stopping=asked.is_set)
    lost._admin = Silent()  # type: ignore[assignment]
    try:
        for call in (lost.topic_names, lambda: lost.groups(".*")):
            asked.clear()
            with pytest.raises(JobError, match="no answer, and it is to stop"):
                call()
            assert not over.is_set()
    finally:
        over.set()


def test_a_replay_that_is_interrupted_waits_for_no_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its watcher was joined while that one waited for a broker that was gone."""
    pytest.importorskip("confluent_kafka")

    asked, over, waited = threading.Event(), threading.Event(), threading.Event()

    class Silent:
        def offsets(self, *_: Any) -> dict[Any, int]:
            asked.set()
            over.wait(LONG_S)
            waited.set()
            return {}

    monkeypatch.setattr(replay, "WATCH_S", 0.01)
    options = argparse.Namespace(id="x", bootstrap="127.0.0.1:1", settings={})
    one = replay.Replay(options, Progress("replay", quiet=True))
    one.cluster = Silent()  # type: ignore[assignment]
    one.target_partitions = []

    def interrupted() -> None:
        with one.watched(10, 0):
            asked.wait(LONG_S)
            raise KeyboardInterrupt

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert not waited.is_set()
    finally:
        over.set()


def test_a_query_that_makes_no_progress_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mirror whose target was gone went on for --retry-seconds behind SIGTERM."""
    from unittest.mock import MagicMock

    monkeypatch.setattr(watching, "STALLED_S", 10.0)
    spark, progress = MagicMock(), Progress("x", quiet=True)
    stage = MagicMock()
    for name in ("inputRecords", "inputBytes", "shuffleReadRecords", "shuffleReadBytes"):
        getattr(stage, name).return_value = 0
    for name in ("numTasks", "numCompleteTasks", "outputBytes", "shuffleWriteBytes", "stageId"):
        getattr(stage, name).return_value = 0
    stages = spark._jsc.sc().statusStore().activeStages()
    stages.isEmpty.return_value = False
    stages.size.return_value = 1
    stages.apply.return_value = stage
    watch = watching.Watch(spark, progress)
    for now_s, records, stopping, stalled in (
        (100.0, 5, False, False),
        (120.0, 5, False, False),
        (125.0, 6, True, False),
        (134.0, 6, True, False),
        (135.0, 6, True, True),
        (136.0, 7, True, False),
    ):
        stage.inputRecords.return_value = records
        progress.stopping = stopping
        watch.line(now_s)
        assert watch.is_stalled(now_s) is stalled, now_s
    # Nothing is said of what is not known, and little is not nothing.
    line = watch.line(200.0)
    assert line is not None
    assert "7 records, " in line
    assert "B" not in line
    stage.inputBytes.return_value = 5_000
    line = watch.line(201.0)
    assert line is not None
    assert "7 records, 5 KB, " in line
    times = iter([200.0, 220.0, 220.0])
    monkeypatch.setattr(watching, "time", SimpleNamespace(monotonic=lambda: next(times)))
    cancelled = threading.Event()
    spark.sparkContext.cancelAllJobs.side_effect = cancelled.set
    with watching.Watch(spark, progress, 0.001):
        assert cancelled.wait(LONG_S)


def sequence(*values: Any) -> Any:
    """A Seq of Scala's, as Py4J has it."""
    return SimpleNamespace(
        isEmpty=lambda: not values, size=lambda: len(values), apply=lambda at: values[at]
    )


def option(value: Any) -> Any:
    return SimpleNamespace(isDefined=lambda: value is not None, get=lambda: value)


def test_records_of_running_tasks_are_told_with_a_local_master() -> None:
    """Spark's own counters of a running task say 0 there: until the first of its tasks had ended an
    archive told no records."""
    from unittest.mock import MagicMock

    def query(number: int, ended: int | None) -> Any:
        return SimpleNamespace(executionId=lambda: number, completionTime=lambda: option(ended))

    def metric(name: str, number: int) -> Any:
        return SimpleNamespace(name=lambda: name, accumulatorId=lambda: number)

    def node(name: str, *metrics: Any) -> Any:
        return SimpleNamespace(name=lambda: name, metrics=lambda: sequence(*metrics))

    stage = MagicMock()
    for name in ("inputRecords", "inputBytes", "shuffleReadRecords", "shuffleReadBytes"):
        getattr(stage, name).return_value = 0
    for name in ("numTasks", "numCompleteTasks", "outputBytes", "shuffleWriteBytes", "stageId"):
        getattr(stage, name).return_value = 0
    spark = MagicMock()
    spark._jsc.sc().statusStore().activeStages.return_value = sequence(stage)
    queries = spark._jsparkSession.sharedState().statusStore()
    queries.executionsCount.return_value = 2
    queries.executionsList.return_value = sequence(query(7, 1), query(8, None))
    queries.planGraph.return_value.allNodes.return_value = sequence(
        node("BatchScan kafka", metric("number of output rows", 3), metric("other", 4)),
        node("BatchScan kafka", metric("number of output rows", 5)),
        node("BatchScan kafka", metric("number of output rows", 6)),
        node("Project"),
        node("Filter", metric("number of output rows", 3)),
    )
    known = {3: "1,200", 4: "9", 5: "34"}
    queries.executionMetrics.side_effect = lambda number: SimpleNamespace(
        get=lambda metric: option(known.get(metric) if number == 8 else None)
    )
    line = watching.Watch(spark, Progress("x", quiet=True), scans=True).line(1.0)
    assert line is not None
    assert "1,234 records, " in line
    # Not asked for, and where a cluster's executors have told more.
    line = watching.Watch(spark, Progress("x", quiet=True)).line(1.0)
    assert line is not None
    assert "records" not in line
    stage.inputRecords.return_value = 5_000
    line = watching.Watch(spark, Progress("x", quiet=True), scans=True).line(1.0)
    assert line is not None
    assert "5,000 records, " in line


@pytest.mark.parametrize("status", [0, 1])
def test_what_spark_says_while_it_starts_is_told_only_where_it_fails(
    status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def start() -> None:
        with session.quiet_start():
            subprocess.run(["sh", "-c", f"echo WARN >&2; exit {status}"], check=True)

    if status:
        with pytest.raises(subprocess.CalledProcessError):
            start()
    else:
        start()
    os.write(2, b"behind\n")
    assert capfd.readouterr().err == ("WARN\n" if status else "") + "behind\n"


def test_what_spark_says_once_it_runs_is_passed_on(capfd: pytest.CaptureFixture[str]) -> None:
    with session.quiet_start():
        process = subprocess.Popen(
            ["sh", "-c", "echo early >&2; echo up; read _; echo late >&2"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
    process.communicate(b"\n")
    told = ""
    while "late" not in told:
        told += capfd.readouterr().err
    assert told == "late\n"
