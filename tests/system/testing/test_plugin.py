"""The pytest plugin, in runs of pytest of its own, with several workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import sys
import types
import pytest
from kwire.testing import Cluster

@pytest.mark.parametrize("turn", range(8))
def test_nobody_else_is_met(kafka, turn):
    topic, group = kafka.topic("orders"), kafka.group("g")
    assert kafka.topics() == [] and group.state == "Dead"
    topic.send(str(turn))
    group.commit({("orders", 0): 1})
    topic.assert_records(str(turn))

@pytest.mark.kafka(config={"num.partitions": 3, "auto.create.topics.enable": True})
class TestMarked:
    def test_class(self, kafka):
        kafka.topic("t").send("a")
        assert kafka.topic("t").partitions == 3

    @pytest.mark.kafka(config={"num.partitions": 2})
    def test_the_nearest_wins(self, kafka):
        kafka.topic("t").send("a")
        assert kafka.topic("t").partitions == 2

@pytest.mark.kafka(config=None, process=False)
def test_defaults_that_are_said(kafka):
    assert kafka.topics() == []

@pytest.mark.kafka(config=types.MappingProxyType({"num.partitions": 4}))
def test_any_mapping(kafka):
    assert kafka.topic("t").create().partitions == 4

@pytest.mark.kafka(brokers=2)
def test_more_brokers(kafka):
    assert isinstance(kafka, Cluster) and len(kafka) == 2

def test_cluster(kafka_cluster):
    kafka_cluster.topic("t").send("a")
    assert len(kafka_cluster) == 3
"""

FAILING = """
import pytest

def test_record(kafka):
    kafka.topic("orders").send("a")
    kafka.topic("orders").assert_records("b")

@pytest.mark.kafka(broker=3)
def test_option(kafka): ...

@pytest.mark.kafka(brokers="3")
def test_number(kafka): ...

@pytest.mark.kafka(3)
def test_unnamed(kafka): ...

@pytest.mark.kafka(config={"num.partitions": [1]})
def test_config(kafka): ...

@pytest.mark.kafka(config={"log.dirs": "/tmp/shared"})
def test_directory(kafka): ...

@pytest.mark.kafka(config={"node.id": 7})
def test_identity(kafka_cluster): ...

@pytest.mark.kafka(config={"num.partitions": -5})
def test_value(kafka): ...

@pytest.mark.kafka(config={"unclean.leader.election.enable": "maybe"})
def test_value_of_a_cluster(kafka_cluster): ...

@pytest.mark.kafka(config={"process.roles": "controller"})
def test_role(kafka): ...
"""

UNUSED = """
import sys

def test_nothing_is_imported():
    loaded = [name for name in sys.modules if name.startswith("kwire")]
    assert sorted(loaded) == ["kwire", "kwire.testing", "kwire.testing.plugin"]
"""


def _pytest(directory: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments, "test_it.py"], cwd=directory, capture_output=True, text=True
    )


def test_tests_never_meet_also_with_four_workers(tmp_path: Path) -> None:
    result = _pytest(tmp_path, TESTS, "-n", "4")
    assert result.returncode == 0, result.stdout
    assert "14 passed" in result.stdout


def test_what_fails_is_told_with_the_log_of_the_broker(tmp_path: Path) -> None:
    output = _pytest(tmp_path, FAILING).stdout
    for line in (
        "E       AssertionError: 1 records, expected 1 (- is missing, + is too many):",
        "E       - value='b'",
        "E       + orders-0@0 key=None value='a'",
        "log of kafka",
        "broker 1 is unfenced",
        "pytest.mark.kafka: 'broker' is no option; accepted: brokers=N, config={...}, process=True",
        "pytest.mark.kafka: brokers='3'; accepted: 1 to 9",
        "pytest.mark.kafka: 3 has no name; accepted: brokers=N, config={...}, process=True",
        "pytest.mark.kafka: config 'num.partitions': [1] is a list; accepted are text, numbers, "
        "True and False",
        "pytest.mark.kafka: config 'log.dirs' is the test broker's own; accepted is "
        "Broker(directory=...)",
        "pytest.mark.kafka: config 'node.id' is the test broker's own; the brokers of a cluster "
        "have it from the cluster",
        "broker does not start: Invalid value -5 for configuration num.partitions",
        "Invalid value maybe for configuration unclean.leader.election.enable",
        "pytest.mark.kafka: config 'process.roles': 'controller' has no broker; accepted is "
        "'broker,controller'",
    ):
        assert line in output, output
    refused = output.partition("ERROR at setup of test_option")[2].partition("= FAILURES =")[0]
    for untold in ("plugin.py", "thread_runner.py", "During handling"):
        assert untold not in refused, refused


def test_the_plugin_imports_nothing_where_nobody_uses_it(tmp_path: Path) -> None:
    result = _pytest(tmp_path, UNUSED)
    assert result.returncode == 0, result.stdout
