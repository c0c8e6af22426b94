"""`bench/small.py` measures what it says: its frames are taken, and what is refused is counted."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import small
from bench.brokers import Broker
from bench.build import build
from bench.frames import one_record_frame
from bench.run import OURS
from bench.side_by_side import run
from bench.small_loads import LOADS, Load, SmallRequests

CONNECTIONS, REQUESTS = 10, 1000

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tools"), ("blast",))


@pytest.fixture(scope="module")
def served(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[small.Served]:
    scratch = tmp_path_factory.mktemp("small")
    (command,) = small.started(scratch, scratch, [OURS]).values()
    broker = Broker(OURS, command, scratch / "log")
    try:
        made = small.Served(broker, tools, scratch)
        made.open()
        yield made
    finally:
        broker.stop()


def few(name: str) -> Load:
    """A load with fewer connections."""
    return dataclasses.replace(LOADS[name], connections=CONNECTIONS)


@pytest.mark.parametrize(
    "name",
    [
        "Produce of one record, acks=1",
        "the same, idempotent, acks=all",
        "OffsetCommit",
        "Fetch of a session, nothing new",
        "Metadata of one topic",
    ],
)
def test_its_requests_are_taken_by_plain_roads(
    served: small.Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "PROBE", REQUESTS)
    figures, share = served.measured(name, few(name), 0, 0)
    assert figures["per_s"] > 0
    assert share is not None
    # The first ones of a connection may not be known yet.
    assert 1 - 4 * CONNECTIONS / REQUESTS <= share <= 1


def test_answers_with_an_error_are_counted(
    served: small.Served, tools: Path, tmp_path: Path
) -> None:
    frames = {
        "produce": one_record_frame("nowhere", 1, 100),
        "metadata": asyncio.run(SmallRequests("").metadata(1))
        .frames[0]
        .replace(b"bench", b"other"),
    }
    for kind, frame in frames.items():
        (tmp_path / kind).write_bytes(frame)
        told = run(tools / "blast", kind, served.broker.port, 1, 1, 100, tmp_path / kind)
        assert (told["done"], told["err"]) == (100, 100), kind


def test_a_counter_and_a_checksum_that_are_not_kept_up_are_refused(
    served: small.Served, tools: Path, tmp_path: Path
) -> None:
    """So what the options of blast do is what has the requests of these loads taken."""
    requests = SmallRequests(served.broker.address)
    for load in (few("the same, idempotent, acks=all"), few("Fetch of a session, nothing new")):
        frames = asyncio.run(load.make(requests, 1))
        (tmp_path / load.kind).write_bytes(frames.frames[0])
        counter = frames.options[-2:]
        options = counter if load.kind == "produce" else ()
        told = run(
            tools / "blast", *options, load.kind, served.broker.port, 1, 1, 10,
            tmp_path / load.kind,
        )  # fmt: skip
        assert told["done"] == 10
        assert told["err"] == 9, load.kind


def test_the_table_has_a_row_for_each_load_with_its_goals() -> None:
    ours = {"per_s": 3000.0, "cpu_us": 12.0, "p50_ms": 1.0, "p99_ms": 2.0}
    theirs = {"per_s": 2000.0, "cpu_us": 20.0, "p50_ms": 1.0, "p99_ms": 2.0}
    name = "Heartbeat"
    made = small.table(
        {name: {"kafka": [theirs], "kwire": [ours]}}, {name: {"kwire": [0.5, 0.99]}}, "kafka"
    )
    row = made.splitlines()[-1]
    assert row == (
        "| Heartbeat | kwire | 3,000 | 2,000 | 1.50 (met) | 12.0 | 13 (met) | 20.0 | 0.60 (missed) "
        "| 2.00 | 2.00 | 74.5% (missed) |"
    )


def test_the_share_is_that_of_one_api_in_all_versions() -> None:
    metrics = (
        'kafka_network_requestmetrics_requests_total{request="Fetch",version="4"} 10\n'
        'kafka_network_requestmetrics_requests_total{request="Fetch",version="12"} 30\n'
        'kafka_network_requestmetrics_requests_total{request="FetchConsumer",version="4"} 7\n'
        'kwire_requests_plain_total{request="Fetch"} 25\n'
    )
    assert small.answered(metrics, "Fetch") == (40, 25)
    assert small.answered(metrics, "Produce") == (0, 0)
    assert small.answered(metrics.replace("plain", "other"), "Fetch") is None
