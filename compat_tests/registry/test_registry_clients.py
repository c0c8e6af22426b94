"""Clients that others wrote, unmodified, on the registry of a broker."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("avro")

from kwire.testing.cluster import Broker, free_ports

HERE = Path(__file__).parent
LIMIT_S = 300


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    (port,) = free_ports(1)
    with Broker(options={"http.listeners": f"http://127.0.0.1:{port}"}):
        yield f"http://127.0.0.1:{port}"


def built(name: str, command: list[str], tool: str) -> Path:
    """A folder where the program was built, once for all runs of this machine."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    root = os.environ.get("CLIENTS_DIR") or f"{tempfile.gettempdir()}/kwire-clients"
    work = Path(root) / "registry" / name
    work.mkdir(parents=True, exist_ok=True)
    for file in (HERE / name).iterdir():
        shutil.copy(file, work)
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode:
        pytest.skip(f"{name} could not be built: {done.stderr[-500:]}")
    return work


def run(command: list[str], work: Path) -> list[str]:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("ok ")]


def test_two_clients_for_node(url: str) -> None:
    install = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"]
    work = built("node", install, "npm")
    assert len(run(["node", "smoke.mjs", url], work)) == 4


def test_franz_go(url: str) -> None:
    work = built("go", ["go", "build", "-o", "smoke", "."], "go")
    assert len(run([str(work / "smoke"), url], work)) == 17
