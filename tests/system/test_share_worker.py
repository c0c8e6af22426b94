"""`kwire consume --share`: a worker of a queue from the shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwire.testing.cluster import Broker
from tests.support.share.dialogue import OFTEN, PROPERTIES
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_values

QUEUES = Path(__file__).parents[2] / "docs" / "QUEUES.md"
COMMAND = (
    'read value; echo "$KWIRE_OFFSET $KWIRE_DELIVERY_COUNT $value"; case $value in'
    " again) [ $KWIRE_DELIVERY_COUNT = 2 ] || exit 75;; never) exit 1;; esac"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**PROPERTIES, **OFTEN}) as started:
        yield started


def consume(broker: Broker, *arguments: str) -> subprocess.CompletedProcess[str]:
    return kwire(broker, "consume", *arguments)


def kwire(broker: Broker, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", *arguments, "-b", broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def filled(broker: Broker, name: str, *values: bytes) -> None:
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name)
        produce_values(client, name, 0, list(values))
        set_group_config(client, f"{name}-workers", share_auto_offset_reset="earliest")


def test_a_command_accepts_releases_and_rejects_by_its_exit_status(broker: Broker) -> None:
    filled(broker, "jobs", b"done\n", b"again\n", b"never\n")
    done = consume(broker, "jobs", "--share", "jobs-workers", "--exec", COMMAND, "-c", "4")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "0 1 done",
        "1 1 again",
        "1 2 again",
        "2 1 never",
    ]


def test_a_command_that_cannot_be_run_ends_the_worker_and_its_record_stays(broker: Broker) -> None:
    """A misspelt command would otherwise reject, and so lose, every record of the queue."""
    filled(broker, "kept", b"1")
    for command, status in (("/nowhere/work.sh", 127), ("/", 126)):
        ended = consume(broker, "kept", "--share", "kept-workers", "--exec", command)
        assert (ended.returncode, ended.stdout) == (1, "")
        told = f"kwire: {command}: exit status {status}, it cannot be run; kept-0 offset 0 is given"
        assert told in ended.stderr
        assert "Traceback" not in ended.stderr
    read = consume(broker, "kept", "--share", "kept-workers", "-c", "1")
    assert (read.returncode, read.stdout) == (0, "1\n")


def test_a_command_that_a_signal_ends_releases_its_record(broker: Broker) -> None:
    """Who stops a worker, or has no memory left for it, says nothing about the record."""
    command = "echo $KWIRE_DELIVERY_COUNT; [ $KWIRE_DELIVERY_COUNT = 3 ] || kill -9 $$"
    nested = f"sh -c '{command}'; exit $?"
    for given in (command, nested):
        name = f"killed-{given is nested}"
        filled(broker, name, b"1")
        done = consume(broker, name, "--share", f"{name}-workers", "--exec", given, "-c", "3")
        assert (done.returncode, done.stdout) == (0, "1\n2\n3\n")


def test_kwire_group_alter_says_where_a_new_group_begins(broker: Broker) -> None:
    with WireClient(broker.bootstrap) as client:
        client.create_topic("early")
        produce_values(client, "early", 0, [b"1"])
    altered = kwire(broker, "group", "alter", "new", "-o", "share.auto.offset.reset=earliest")
    assert (altered.returncode, altered.stdout, altered.stderr) == (0, "altered new\n", "")
    read = consume(broker, "early", "--share", "new", "-c", "1")
    assert (read.returncode, read.stdout) == (0, "1\n")
    for wrong in (("-o", "share.auto.offset.rest=earliest"), ("-o", "share.auto.offset.reset=x")):
        refused = kwire(broker, "group", "alter", "new", *wrong)
        assert refused.returncode == 1
        assert refused.stderr.startswith("kwire: group new: ")
        assert refused.stderr.count("\n") == 1
    assert kwire(broker, "group", "alter", "new").returncode == 2
    unset = kwire(broker, "group", "alter", "new", "--unset", "share.auto.offset.reset")
    assert unset.returncode == 0


def test_the_walk_of_queues_md_works_as_it_is_written(tmp_path: Path) -> None:
    walk = QUEUES.read_text().partition("\n## From SQS or RabbitMQ")[2].partition("\n## ")[0]
    commands = "".join(walk.split("```")[1::2])
    with Broker() as running:
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            env={**os.environ, "KWIRE_BOOTSTRAP": running.bootstrap, "PATH": search},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["3 records sent to mail"]
    lines = done.stdout.splitlines()
    assert lines.count("sent hello") == 1
    assert lines.count("mailers: share group, Empty, 0 members") == 1
    dead = [line for line in lines if line.startswith("__dlq.errors.topic=mail")]
    assert len(dead) == 2
    assert any("delivery.count=1," in line and line.endswith("bad") for line in dead)
    assert any("delivery.count=3," in line and line.endswith("busy") for line in dead)
    listed = [line.split("\t") for line in lines if line.startswith("dlq.mail-")]
    assert sorted(line[3:] for line in listed) == [
        ["1", "Offset rejected by client.", "waiting", "", "bad"],
        ["3", "Offset delivery count exceeded the threshold.", "waiting", "", "busy"],
    ]
    dry, *sent = [line for line in lines if "sent to mail" in line]
    assert dry == "1 would be sent to mail"
    assert sent == ["1 sent to mail"] * 2


def test_what_is_printed_is_accepted_and_no_more_is_taken(broker: Broker) -> None:
    filled(broker, "lines", b"1", b"2", b"3")
    for wanted, count in (("1\n2\n", "2"), ("3\n", "1")):
        printed = consume(broker, "lines", "--share", "lines-workers", "-c", count)
        assert (printed.returncode, printed.stdout, printed.stderr) == (0, wanted, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--exec", "true"), "--share GROUP"),
        (("--share", "g", "--group", "h"), "exclude each other"),
        (("--share", "g", "--offset", "0"), "share.auto.offset.reset"),
    ],
)
def test_what_a_share_group_has_no_use_for_is_refused(
    broker: Broker, arguments: tuple[str, ...], told: str
) -> None:
    refused = consume(broker, "jobs", *arguments)
    assert refused.returncode == 2
    assert told in refused.stderr


def test_a_group_of_another_kind_is_refused_before_anything_is_read(broker: Broker) -> None:
    filled(broker, "kinds", b"1", b"2")
    assert consume(broker, "kinds", "--share", "kinds-workers", "-c", "1").returncode == 0
    assert consume(broker, "kinds", "--group", "readers").stdout == "1\n2\n"
    for arguments, told in (
        (("--group", "kinds-workers"), "group kinds-workers is a share group: work for it with"),
        (("--share", "readers"), "group readers is a classic group: read for it with --group"),
    ):
        refused = consume(broker, "kinds", *arguments)
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
        assert refused.stderr.startswith(f"kwire: {told}")
    rest = consume(broker, "kinds", "--share", "kinds-workers", "-c", "1")
    assert (rest.returncode, rest.stdout) == (0, "2\n")
