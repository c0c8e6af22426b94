"""What of object stores needs no connector: those of hundreds of megabytes are for `make stress`
(test_object_store.py)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from kwire.testing.cluster import Broker
from tests.support import kafka_client as client
from tests.support.spark import Outcome

Run = Callable[..., Outcome]


def test_the_log_store_of_s3_writes_no_commit_without_its_condition(
    spark: Any, tmp_path: pathlib.Path
) -> None:
    """Compiled by Spark; on a file system that does not know the condition a commit is an error,
    and what was there stays."""
    from kwire.spark import s3

    s3._use_log_store(spark, "s3a")
    s3._use_log_store(spark, "s3a")
    conf = spark._jsc.hadoopConfiguration()
    store = spark._jvm.kwire.spark.ConditionalLogStore(conf)
    path = spark._jvm.org.apache.hadoop.fs.Path(f"file://{tmp_path}/commit.json")

    def write(line: str, overwrite: bool) -> None:
        lines = spark._jvm.java.util.ArrayList()
        lines.add(line)
        store.write(path, lines.iterator(), overwrite, conf)

    write("one", True)
    assert (tmp_path / "commit.json").read_text() == "one\n"
    with pytest.raises(Exception, match=s3.CONDITION):
        write("two", False)
    assert (tmp_path / "commit.json").read_text() == "one\n"
    assert spark._jsc.sc().conf().get("spark.delta.logStore.s3a.impl") == s3.LOG_STORE


def test_jobs_say_which_package_is_missing(broker: Broker, run: Run) -> None:
    topic = client.create(broker.bootstrap)
    for lake, words in (
        ("s3a://bucket/lake", "--packages org.apache.hadoop:hadoop-aws:"),
        ("s3:///lake", "names no bucket"),
        ("gs://bucket/lake", "--packages GROUP:ARTIFACT:VERSION"),
    ):
        for arguments in (
            ("archive", "-b", broker.bootstrap, "--topics", topic, "--once", "--lake", lake),
            ("archive", "--maintain-only", "--lake", lake),
            ("query", "SELECT 1", "--lake", lake),
        ):
            done = run(*arguments, "--quiet")
            assert (done.status, done.stderr.count("\n")) == (2, 1), done.stderr
            assert words in done.stderr, done.stderr
            assert lake in done.stderr, done.stderr
