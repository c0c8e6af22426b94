"""`kwire consume --share`: a worker of a queue from the shell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kwire.testing.cluster import Broker
from tests.support.share.dialogue import OFTEN, PROPERTIES
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_values

COMMAND = (
    'read value; echo "$KWIRE_OFFSET $KWIRE_DELIVERY_COUNT $value"; case $value in'
    " again) [ $KWIRE_DELIVERY_COUNT = 2 ] || exit 75;; never) exit 1;; esac"
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(options={**PROPERTIES, **OFTEN}) as started:
        yield started


def consume(broker: Broker, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kwire", "consume", "-b", broker.bootstrap, *arguments],
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
