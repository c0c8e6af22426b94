"""The jobs as commands, before Spark: options, one line for what cannot work, ranges, runs."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from typing import Any

import pytest

from kwire.protocol.records.partitioner import murmur2, partition_of
from kwire.spark import archive, audit, commands, convert, job, mirror, profiles, query, replay
from kwire.spark.archive_source import parse_time
from kwire.spark.job import Progress, one_line, parser_of
from kwire.spark.sending import RateLimit, Runs
from kwire.spark.session import connector_version, jars_in
from kwire.spark.topic_source import limit_ranges, ranges_lag
from kwire.spark.usage import JobError, UsageError

JOBS = [
    *(archive.JOB, replay.JOB, mirror.JOB, audit.JOB, profiles.JOB, query.JOB, convert.JOB),
]


@pytest.mark.parametrize("one", JOBS, ids=lambda one: one.name)
def test_help_has_an_example_that_parses(one: job.Job, capsys: pytest.CaptureFixture[str]) -> None:
    assert job.run_job(one, ["--help"]) == 0
    assert one.example in capsys.readouterr().out
    words = shlex.split(one.example)[3:]
    parser_of(one).parse_args(words)


@pytest.mark.parametrize("one", JOBS, ids=lambda one: one.name)
def test_help_says_what_every_option_is_and_its_default(one: job.Job) -> None:
    parser = parser_of(one)
    text = " ".join(parser.format_help().split())
    for action in parser._actions:
        assert action.help, action.option_strings
        default = action.default
        if isinstance(default, int | float | str) and default and default is not argparse.SUPPRESS:
            told = f"{default:g}" if isinstance(default, float) else default
            assert f"{action.help} (default: {told})" in text, action.option_strings


def test_pyspark_is_not_imported_before_a_job_runs() -> None:
    code = (
        "import sys, kwire.spark.commands as c;"
        "[__import__(m) for m, _ in c.JOBS.values()];"
        "assert not {'pyspark', 'pyarrow', 'pandas', 'confluent_kafka'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pyspark_one_line_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    arguments = ["--lake", str(tmp_path), "--maintain-only"]
    assert job.run_job(archive.JOB, arguments) == job.EXIT_USAGE
    text = capsys.readouterr().err
    assert text.count("\n") == 1
    assert 'pip install "kwire[spark]"' in text


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(one.name in text for one in JOBS)
    assert commands.main(["nosuch"]) == 2
    assert "no job nosuch" in capsys.readouterr().err
    assert {one.name: one.summary for one in JOBS}.keys() == commands.JOBS.keys()


def test_one_line_of_a_long_error() -> None:
    error = RuntimeError("first\n\tat x\nCaused by: java.io.E: outer\n\tat\nCaused by: y: inner\n")
    assert one_line(error) == "RuntimeError: y: inner"
    assert one_line(JobError("plain")) == "plain"
    worker = (
        "[STAGE] Job aborted\nCaused by: org.apache.spark.api.python.PythonException: "
        'Traceback (most recent call last):\n  File "a.py", line 1\n    x\n\n'
        "kwire.spark.sending.SendError: t-0: no\n\n\tat org.apache.spark.X\n"
    )
    assert one_line(RuntimeError(worker)) == "t-0: no"


def test_a_data_file_that_cannot_be_read_is_named() -> None:
    """Only what was wrong with it was told."""
    spark = "[X] Encountered error while reading file file:///lake/a b.parquet.  "
    error = RuntimeError(f"{spark}SQLSTATE: KD001\n\tat x\nCaused by: y.Z: footer is too large: 7")
    assert one_line(error) == "/lake/a b.parquet cannot be read: footer is too large: 7"
    assert one_line(RuntimeError(spark)).endswith("cannot be read: it is not there, or damaged")


def test_ranges_share_a_limit_by_what_there_is() -> None:
    starts = {("a", 0): 0, ("a", 1): 50, ("b", 0): 7}
    ends = {("a", 0): 900, ("a", 1): 150, ("b", 0): 7}
    everything = {("a", 0): (0, 900), ("a", 1): (50, 150)}
    assert limit_ranges(starts, ends, 1000) == everything
    assert limit_ranges(starts, ends, 100) == {("a", 0): (0, 90), ("a", 1): (50, 60)}
    assert limit_ranges(starts, ends, 1) == {("a", 0): (0, 1), ("a", 1): (50, 51)}
    assert ranges_lag(starts, ends) == 1000
    starts, ends, batches = {("a", n): 0 for n in range(3)}, {("a", n): 33 + n for n in range(3)}, 0
    while found := limit_ranges(starts, ends, 34):
        starts |= {key: end for key, (_, end) in found.items()}
        batches += 1
    assert batches == 3  # and none for a record or two that are left over


def test_runs_join_what_is_next_to_each_other_on_both_sides() -> None:
    runs = Runs()
    place = ("t", 0, "u", 0)
    for source, target in ((5, 10), (6, 11), (8, 12), (9, 13), (10, 20)):
        runs.add(place, source, target, 2)
    assert runs.take() == [(*place, 5, 6, 10, 2, 4), (*place, 8, 9, 12, 2, 4)]
    assert runs.take(everything=True) == [(*place, 10, 10, 20, 1, 2)]
    assert runs.take(everything=True) == []


def test_a_rate_limit_sleeps_until_it_is_due() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    limit = RateLimit(100, 1000, lambda: now[0], sleep)
    limit.wait(50, 10)
    assert now == [0.5]
    limit.wait(0, 990)
    assert now == [1.0]
    now[0] = 5.0
    limit.wait(100, 0)
    assert now == [5.0]


def test_murmur2_is_kafkas() -> None:
    # Measured on Apache Kafka 4.4: Utils.murmur2, as signed 32-bit numbers.
    for key, wanted in (
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ):
        value = murmur2(key)
        assert (value - (1 << 32) if value >> 31 else value) == wanted
    assert all(0 <= partition_of(b"%d" % i, 7) < 7 for i in range(100))


def test_times() -> None:
    assert parse_time("1700000000000", "--x") == 1_700_000_000_000
    assert parse_time("2023-11-14T22:13:20", "--x") == 1_700_000_000_000
    assert parse_time("2023-11-14T23:13:20+01:00", "--x") == 1_700_000_000_000
    assert parse_time(None, "--x") is None
    with pytest.raises(UsageError, match="--x soon"):
        parse_time("soon", "--x")


def test_ids_of_replays_follow_from_their_options() -> None:
    parse = parser_of(replay.JOB).parse_args
    one = replay.replay_id(parse(["--lake", "a", "-b", "h"]))
    assert one == replay.replay_id(parse(["-b", "h", "--lake", "a", "--quiet"]))
    assert one != replay.replay_id(parse(["-b", "h", "--lake", "a", "--keys", "x"]))
    assert replay.replay_id(parse(["--id", "mine"])) == "mine"


def test_connector_is_that_of_the_minor_version() -> None:
    assert connector_version("4.2.1") == "4.2.0"
    assert connector_version("4.2.0") == "4.2.0"
    assert connector_version("4.10.3.dev0") == "4.10.0"


def test_jars_of_a_folder(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="no spark-sql-kafka"):
        jars_in(str(tmp_path))
    (tmp_path / "libs").mkdir()
    for name in ("spark-sql-kafka-0-10_2.13-4.2.0.jar", "scala-library.jar", "kafka-clients.jar"):
        (tmp_path / "libs" / name).touch()
    found = [path.rsplit("/", 1)[1] for path in jars_in(str(tmp_path))]
    assert found == ["kafka-clients.jar", "spark-sql-kafka-0-10_2.13-4.2.0.jar"]


def test_progress_tells_records_bytes_rate_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("x")
    progress.add(1500, 2_000_000, 7, "batch 1")
    text = capsys.readouterr().err
    assert text.startswith("x: 1,500 records, 2 MB, ")
    assert text.endswith("B/s, lag 7, batch 1\n")
    progress.size_of = "in files"
    progress.add(0, 0)
    assert ", 2 MB in files, " in capsys.readouterr().err
    assert progress.totals()["records"] == 1500
    progress.stopping = True
    progress.wait(100)


NOWHERE = "127.0.0.1:1"


MIRROR = ("mirror", "-b", NOWHERE, "--to", NOWHERE, "--alias", "a", "--to-alias", "b")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("archive", "-b", NOWHERE, "--topics", ",", "--lake", "{}/l"), "names no topic"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/file/l"), "is no folder"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", " "), "--lake ' ': names no folder"),
        *[
            (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/l", "--tasks", tasks), words)
            for tasks, words in (("-1", "--tasks -1"), ("9" * 9, "--tasks 999"))
        ],
        ((*MIRROR, "--pattern", "a", "--state", " "), "names no folder"),
        (("archive", "--maintain-only", "--lake", "{}/none"), "no archive there"),
        (("archive", "--maintain-only", "--lake", "{}", "--retention-mb", "nan"), "not a finite"),
        (("archive", "--maintain-only", "--lake", "{}", "--retention-days", "9" * 9), "days"),
        (("archive", "--maintain-only", "--lake", "{}", "--files-min", "9" * 30), "64 bits"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}", "--from", "9" * 20), "--from"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}", "--summary", "{}"), "folder"),
        (
            (
                "archive",
                "-b",
                NOWHERE,
                "--topics",
                "a",
                "--lake",
                "{}",
                "-o",
                "metadata.max.age.ms=x",
            ),
            "metadata.max.age.ms",
        ),
        ((*MIRROR, "--pattern", "a", "--state", "{}", "--lag-report", "{}/no/x"), "--lag-report"),
        ((*MIRROR, "--pattern", "a", "--state", "{}", "--retry-seconds", "-1"), "--retry-seconds"),
        ((*MIRROR, "--pattern", "a", "--state", "{}", "--prefix", "a/"), "--prefix"),
        ((*MIRROR, "--pattern", "a", "--state", "{}/file"), "is no folder"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "--retry-seconds", "1e9"), "--retry-seconds"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "--from-time", "--5"), "--from-time"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "--from-time", "9" * 18), "--from-time"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "--partitions", ","), "--partitions"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "--partitions", "-1"), "--partitions"),
        (("replay", "-b", NOWHERE, "--lake", "{}", "-o", "batch.size=x"), "batch.size"),
        (("audit", "--left", "archive:{}/file", "--right", "archive:{}"), "Not a directory"),
        (
            ("audit", "--left", "segments:{}", "--right", "segments:{}", "--report", "{}/no/x"),
            "--report",
        ),
        (
            ("audit", "-b", NOWHERE, "--left", "topic:a", "--right", "topic:a")
            + ("-o", "security.protocol=SSL", "-o", "ssl.truststore.location=/no/file"),
            "ssl",
        ),
        (("profile", "--source", "segments:{}", "--partition-mb", "inf"), "not a finite number"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/old"), "run: kwire spark lake"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/half"), "half converted; run"),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/table"), "is a table itself"),
        (
            ("archive", "-b", NOWHERE, "--topics", "b,t", "--lake", "{}/foreign"),
            "topic.t holds date=2026-01-01/part-0.parquet and no log of a table",
        ),
        (("audit", "--left", "archive:{}/old", "--right", "archive:{}"), "run: kwire spark lake"),
        (("audit", "--left", "archive:{}", "--right", "archive:{}"), "no archive there"),
        (("replay", "-b", NOWHERE, "--lake", "{}/half"), "half converted; run"),
        (("lake", "convert", "--lake", "{}/table"), "is a lake of Delta tables already"),
        (("lake", "convert", "--lake", "{}"), "no lake there"),
        (("lake", "convert"), "--lake is needed"),
        (("query", "select 1"), "--lake or --bootstrap is needed"),
        (("query", "select 1", "--lake", "{}"), "no archive there"),
        (("query", "select 1", "--lake", "{}/table", "--rows", "0"), "--rows 0"),
        (("query", "select 1", "--lake", "{}/table", "--as-of", "soon"), "--as-of soon"),
        (("audit", "--left", "archive:{}/table", "--right", "archive:{}", "--as-of", "-1"), "-1"),
        *[
            (("archive", "-b", place, "--topics", "a", "--lake", "{}/l"), "expected HOST:PORT")
            for place in ("host", "host:", ":1", "h:abc", "http://h:1", "h:65536", ",", "h:1,g")
        ],
        *[
            (
                ("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/l", f"--from={at}"),
                "from 1970",
            )
            for at in ("-1", "-5", "1960-01-01")
        ],
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/" + "n" * 300), "too long"),
        (
            ("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/odd"),
            "odd/_kwire/commits: Not a",
        ),
        (("lake", "convert", "--lake", "{}/odd"), "odd/_kwire/commits: Not a directory"),
        (("query", "select 1", "--lake", "{}/odder"), "Not a directory"),
        (("archive", "--maintain-only", "--lake", "{}/odder"), "Not a directory"),
        (
            ("profile", "--source", "archive:{}/lake", "--topics", "t,none"),
            "--topics none: not in archive:/",
        ),
        (
            ("audit", "--left", "archive:{}/lake", "--right", "archive:{}/lake", "--topics", "no"),
            "--topics no: not in archive:/",
        ),
        (("archive", "-b", NOWHERE, "--topics", "a", "--lake", "file://host{}"), "file:///PATH"),
        (("replay", "-b", NOWHERE, "--lake", "file:lake"), "file:lake: a folder of this machine"),
        (("lake", "convert", "--lake", "file:"), "file:: a folder of this machine"),
        (("audit", "--left", "segments:file://host{}", "--right", "archive:{}"), "file:///PATH"),
        *[
            (
                ("archive", "-b", NOWHERE, "--topics", "a", "--lake", "{}/l", "--decode", "avro")
                + ("--schemas", place),
                words,
            )
            for place, words in (
                ("{}/none", "no such folder"),
                ("{}/file", "no such folder"),
                ("{}/schemas", "no schema there is called ID.avsc"),
                ("{}/" + "n" * 300, "too long"),
            )
        ],
        (("query", "select 1", "-b", NOWHERE, "--as-of", "1"), "--as-of 1: only an archive"),
        (("profile", "--source", "segments:{}", "--as-of", "1"), "--as-of 1: only an archive"),
        (
            ("audit", "-b", NOWHERE, "--left", "topic:a", "--right", "segments:{}")
            + ("--as-of", "2020-01-01"),
            "--as-of 2020-01-01: only an archive",
        ),
        (
            ("audit", "--left", "archive:{}/table", "--right", "segments:{}")
            + ("--right-as-of", "1"),
            "--right-as-of 1: only an archive",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_cannot_work_is_said_in_one_line_before_spark_starts(
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them was a stack, was found when the job had done its work, or was tried again and
    again."""
    for module in ("pyspark", "pyarrow", "pandas", "confluent_kafka"):
        pytest.importorskip(module)
    (tmp_path / "file").write_text("")
    old, log = "_kwire/commits", "topic.t/_delta_log"
    for folder in (f"old/{old}", f"half/{old}", f"half/{log}", "table/_delta_log", f"lake/{log}"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / f"{0:020d}.json").write_text("{}")
    for name, file in (("odd", "_kwire"), ("odder", "topic.t")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text("")
    day = tmp_path / "foreign/topic.t/date=2026-01-01"
    day.mkdir(parents=True)
    for name in (".part-0.parquet.crc", "part-0.parquet"):
        (day / name).write_text("")
    (tmp_path / "schemas").mkdir()
    for name in ("1", "1.proto", "one.avsc", "README"):
        (tmp_path / "schemas" / name).write_text("")
    monkeypatch.setattr("kwire.spark.session.open_session", None)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    name, *rest = (text.replace("{}", str(tmp_path)) for text in arguments)
    assert commands.main([name, *rest]) == job.EXIT_USAGE
    text = capsys.readouterr().err
    assert text.startswith(f"kwire spark {name}: "), text
    assert words in text
    assert text.count("\n") == 1, text


def test_a_broker_that_is_not_there_is_one_line_with_the_reason(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a stack where a job looks before Spark starts, and "Timed out" elsewhere."""
    for module in ("pyspark", "pyarrow", "pandas", "confluent_kafka"):
        pytest.importorskip(module)
    monkeypatch.setattr("kwire.spark.cluster.TIMEOUT_S", 1.0)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    arguments = ["audit", "-b", NOWHERE, "--left", "topic:a", "--right", "topic:a"]
    assert commands.main(arguments) == job.EXIT_FAILED
    text = capsys.readouterr().err
    assert "Connection refused" in text
    assert text.count("\n") == 1, text


def test_a_wrong_setting_of_the_target_is_not_laid_to_the_source(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever option a client's setting came from, --kafka-option was named."""
    for module in ("pyspark", "pyarrow", "pandas", "confluent_kafka"):
        pytest.importorskip(module)
    arguments = ["mirror", "-b", NOWHERE, "--to", NOWHERE, "--alias", "a", "--to-alias", "b"]
    arguments += ["--pattern", "t", "--state", str(tmp_path), "--to-option", "security.protocol=X"]
    assert commands.main(arguments) == job.EXIT_USAGE
    text = capsys.readouterr().err
    assert text == "kwire spark mirror: client setting security.protocol=X: no such protocol\n"


def test_one_name_twice_is_one_topic() -> None:
    assert job.check_topics("b,a,b,") == ["b", "a"]


def test_a_new_session_leaves_the_handlers_of_signals() -> None:
    """PySpark's own cancelled the batch that the first Ctrl-C was to let end. And one that came
    while the JVM started left it behind: it waited for a process that was no more."""
    import signal

    from kwire.spark.session import _own_signals

    came: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {n: signal.signal(n, lambda number, _: came.append(number)) for n in numbers}
    try:
        handlers = {number: signal.getsignal(number) for number in numbers}
        for number in numbers:
            with _own_signals():
                signal.raise_signal(number)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                assert number not in came
            assert came[-1] == number
        assert {number: signal.getsignal(number) for number in numbers} == handlers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (52, "too little memory"),
        (-9, "signal 9, as a system short of memory does"),
        (1, "status 1"),
    ],
)
def test_a_jvm_that_ended_says_how(
    monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    pyspark = pytest.importorskip("pyspark")
    from types import SimpleNamespace

    from kwire.spark.session import lost_jvm

    assert lost_jvm() is None
    ended = SimpleNamespace(wait=lambda seconds: status)
    monkeypatch.setattr(pyspark.SparkContext, "_gateway", SimpleNamespace(proc=ended))
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", SimpleNamespace(_jsc=None))
    told = lost_jvm()
    assert told is not None
    assert words in told


def test_an_interruption_is_one_line_not_py4js_traceback() -> None:
    code = (
        "import logging, os, signal\n"
        "from kwire.spark.job import Progress\n"
        "Progress('x', True).stop_on_signals()\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "except KeyboardInterrupt:\n"
        "    logging.exception('KeyboardInterrupt while sending command.')\n"
        "logging.error('news')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "ERROR:root:news\n"
