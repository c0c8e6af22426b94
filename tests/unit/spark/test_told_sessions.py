"""What is told of a session: packages, stores that cannot be reached, a JVM that ends."""

from __future__ import annotations

import argparse
import os
import socket
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from kwire.spark import audit, session
from kwire.spark.job import run_job
from kwire.spark.lake_files import open_lake_files
from kwire.spark.usage import UsageError

pytest.importorskip("pyspark")


def test_a_jvm_that_ends_leaves_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """PySpark's server of accumulators wrote one of socketserver, before the line that says why."""
    from pyspark.accumulators import _start_update_server

    server = _start_update_server("secret", False)
    try:
        for silent in (False, True):
            if silent:
                session._say_nothing_of_accumulators(SimpleNamespace(_accumulatorServer=server))
            with socket.create_connection(server.server_address) as jvm:  # type: ignore[arg-type]
                jvm.sendall(b"cut")
                jvm.shutdown(socket.SHUT_WR)
                assert jvm.recv(1) == b""  # the handler has ended
            assert ("Traceback" in capsys.readouterr().err) is not silent
    finally:
        server.shutdown()


@pytest.mark.parametrize(
    ("root", "java", "words"),
    [
        (
            "foo://x/y",
            'org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "foo"',
            'scheme "foo"; --packages GROUP:ARTIFACT:VERSION brings its connector',
        ),
        (
            "gs://bucket/lake",
            "java.io.IOException: getFileStatus\nCaused by: a.b.NoSuchBucket: it does not exist",
            "gs://bucket/lake: NoSuchBucket: it does not exist",
        ),
    ],
)
def test_a_store_that_cannot_be_reached_is_one_line(root: str, java: str, words: str) -> None:
    spark = MagicMock()
    spark._jvm.org.apache.hadoop.fs.Path.return_value.getFileSystem.side_effect = OSError(java)
    with pytest.raises(UsageError) as refused:
        open_lake_files(root, spark)
    assert words in str(refused.value)
    assert str(refused.value).startswith(f"{root}: ")
    assert "\n" not in str(refused.value)


def test_packages_stand_beside_the_jobs_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("hadoop-aws", "a:b", "a:b:1,", "a:b:1 c:d:2"):
        assert run_job(audit.JOB, ["--packages", wrong, "--left", "a", "--right", "b"]) == 2
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    for name in ("PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    options = argparse.Namespace(master="local[1]", jars="", packages="a:b:1,c:d:2")
    settings = session._own_settings(options, needs_kafka=True, needs_delta=True, needs_avro=False)
    names = settings["spark.jars.packages"].split(",")
    assert [name.split(":")[0] for name in names] == ["org.apache.spark", "io.delta", "a", "c"]


def test_a_jvm_of_this_machine_compiles_what_runs_often_and_others_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    for name in ("PYSPARK_PYTHON", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    for master, known in (("local[2]", session.COMPILING), ("spark://host:7077", None)):
        options = argparse.Namespace(master=master, jars="", packages=None)
        settings = session._own_settings(
            options, needs_kafka=True, needs_delta=True, needs_avro=False
        )
        assert settings.get("spark.driver.extraJavaOptions") == known


@pytest.mark.parametrize(
    ("packages", "line"),
    [
        ("a:b:1, org.apache.hadoop:hadoop-aws:9.9.9", "--packages org.apache.hadoop:hadoop-aws"),
        ("a:b:1", "org.apache.hadoop:hadoop-aws"),
        ("", "org.apache.hadoop:hadoop-aws"),
    ],
)
def test_a_package_that_is_nowhere_is_one_line(
    packages: str, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It was Ivy's report with a stack of Java, and a status that says: run it again."""
    told = "Exception: [unresolved dependency: org.apache.hadoop#hadoop-aws;9.9.9: not found]\n"

    def start() -> None:
        with session.quiet_start(packages):
            os.write(2, b":: USE VERBOSE OR DEBUG MESSAGE LEVEL\n" + told.encode())
            raise RuntimeError("Java gateway process exited before sending its port number.")

    with pytest.raises(UsageError) as refused:
        start()
    by_others = "" if "--packages" in line else " (needed by what --packages or the job names)"
    assert str(refused.value).startswith(f"{line}:9.9.9: not found{by_others}, or Maven's")
    assert capfd.readouterr().err == ""
