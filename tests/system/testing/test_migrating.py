"""What docs/MIGRATING.md shows runs as it stands, but for the ports and the folder."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

from kwire.testing import KafkaContainer, wait_until
from kwire.testing.cluster.ports import free_ports
from tests.support.proxies import kwire

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/MIGRATING.md").read_text()
TESTS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
SHELL = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
OPTIONS = ["-p", "no:cacheprovider", "-q", "--tb=short", "-W", "error"]


def test_the_tests_of_the_page_pass(tmp_path: pathlib.Path) -> None:
    (tmp_path / "test_page.py").write_text("\n".join(TESTS))
    command = [sys.executable, "-m", "pytest", *OPTIONS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(TESTS)} passed" in done.stdout


@pytest.mark.parametrize("script", [each for each in SHELL if "kwire serve" in each])
def test_a_broker_of_the_page_serves(script: str, tmp_path: pathlib.Path) -> None:
    create = next(each for each in SHELL if "topic create" in each).split()
    ports = free_ports(2)
    script = script.replace("9092", str(ports[0])).replace("9093", str(ports[1]))
    if "--listen" not in script and "--env" not in script:
        script = script.replace("kwire serve", f"kwire serve --listen 127.0.0.1:{ports[0]}")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    told = tmp_path / "told"
    with told.open("wb") as output:
        served = subprocess.Popen(
            ["sh", "-ec", script.replace("kwire serve", "exec kwire serve")],
            stdout=output,
            stderr=output,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
        )
    try:
        ready = re.compile(r"^kwire ready on (\S+)$", re.M)
        found = wait_until(lambda: ready.search(told.read_text()), timeout_s=60)
        assert found is not None
        made = kwire(*create[1:], "-b", found[1])
        assert (made.returncode, made.stdout) == (0, "created orders\n"), made.stderr
    finally:
        served.terminate()
        assert served.wait(60) == 0


def test_a_container_at_a_port_of_its_own() -> None:
    (port,) = free_ports(1)
    with KafkaContainer().with_bind_ports(9093, port).with_envs(KAFKA_NUM_PARTITIONS="2") as kafka:
        assert kafka.get_exposed_port(9093) == port
        assert kafka.get_bootstrap_server() == f"127.0.0.1:{port}"


def test_what_a_container_has_beyond_that_is_refused_in_one_line() -> None:
    with pytest.raises(AttributeError, match=r"KafkaContainer has no exec, .*; accepted: .*start"):
        _ = KafkaContainer().exec
