"""Fixtures of the produce/fetch/metadata/admin checks, over those of conftest.py.

Settings come from options or from the environment:
  --broker-pid / CHECKS_BROKER_PID    process id of the --bootstrap broker, for memory checks
  CHECKS_BROKER_STATE                 a JSON file with its present `pid`, where restarts change it
  --kafka-libs / CHECKS_KAFKA_LIBS    folder with Apache Kafka's jars, for checks that run its tools
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import pytest

from tests import wire as w


def add_options(group):
    """The options of this file and of the list of cases that are not for now."""
    group.addoption(
        "--broker-pid", type=int, default=None, help="process id of the broker, for memory checks"
    )
    group.addoption(
        "--kafka-libs", default=None, metavar="DIR", help="folder with Apache Kafka's jars"
    )
    group.addoption(
        "--all", action="store_true", default=False, help="also run what not_yet.tsv leaves out"
    )


def setting(config, option, env):
    return config.getoption(option, default=None) or os.environ.get(env) or None


@pytest.fixture
def c(bootstrap):
    """One connection to the shared broker. Topics made with `w.create_topic` are deleted after the test."""
    w.CREATED.clear()
    with w.Conn(bootstrap) as conn:
        yield conn
    w.drop_created(bootstrap)


@pytest.fixture
def broker_pid(request):
    """Process id of the broker, or None (memory assertions are then left out)."""
    state = os.environ.get("CHECKS_BROKER_STATE")
    if state:
        return int(json.loads(pathlib.Path(state).read_text())["pid"])
    v = setting(request.config, "--broker-pid", "CHECKS_BROKER_PID")
    return int(v) if v else None


@pytest.fixture
def kafka_tool(request):
    """kafka_tool(class, *args, input=None, timeout=60): run a class of Apache Kafka's jars; gives (rc, stdout, stderr)."""
    libs = setting(request.config, "--kafka-libs", "CHECKS_KAFKA_LIBS")
    if not libs or not os.path.isdir(libs):
        pytest.skip("needs --kafka-libs DIR")

    def run(cls, *args, input=None, timeout=60):
        p = subprocess.run(
            ["java", "-Xmx256m", "-cp", os.path.join(libs, "*"), cls, *args],
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return p.returncode, p.stdout, p.stderr

    run.libs = libs
    return run
