"""`kwire share dead` and `kwire share redrive` against a live Apache Kafka 4.4 (needs a JVM): the
dead letters are those that its share group wrote, the transactions are its own."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from functools import partial

from kwire.testing.cluster import wait_for
from tests.golden.coordinator.dead_letter_dialogues import PROPERTIES
from tests.support.kafka import running_kafka
from tests.support.share.member import REJECT, Member, set_group_config
from tests.support.wire import WireClient, produce_values

SOURCE, LETTERS, GROUP = "work", "dlq.work", "workers"
COUNT = 400
ENABLED = {"errors.deadletterqueue.group.enable": "true"}
SETTINGS = {**PROPERTIES, "transaction.state.log.num.partitions": "1"}


def command(bootstrap: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kwire", *arguments, "-b", bootstrap]


def kwire(bootstrap: str, *arguments: str) -> str:
    done = subprocess.run(
        command(bootstrap, *arguments), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def _has_letters(bootstrap: str) -> bool:
    listed = kwire(bootstrap, "share", "dead", GROUP, "--no-originals", "--count", "0", "--json")
    return len(listed.splitlines()) == COUNT


def test_what_kafka_buried_is_sent_once_over_a_kill(tmp_path: pathlib.Path) -> None:
    with running_kafka(tmp_path, SETTINGS) as bootstrap, WireClient(bootstrap) as client:
        client.create_topic(SOURCE)
        client.create_topic(LETTERS, configs=ENABLED)
        values = [b"%d" % i for i in range(COUNT)]
        produce_values(client, SOURCE, 0, values)
        set_group_config(
            client,
            GROUP,
            share_auto_offset_reset="earliest",
            errors_deadletterqueue_topic_name=LETTERS,
        )
        key = (client.topic_id(SOURCE), 0)
        member = Member(bootstrap, GROUP, [SOURCE])
        member.join(1)
        taken = 0
        while taken < COUNT:
            acquired = member.acquire([key], records_max=COUNT).responses[0].partitions[0]
            batches = [(x.first_offset, x.last_offset) for x in acquired.acquired_records]
            said = member.acknowledge({key: [(first, last, [REJECT]) for first, last in batches]})
            assert said.responses[0].partitions[0].error_code == 0
            taken += sum(last - first + 1 for first, last in batches)
        wait_for(partial(_has_letters, bootstrap), "all dead letters")
        redrive = subprocess.Popen(
            command(bootstrap, "share", "redrive", GROUP, "--json"), stdout=subprocess.PIPE
        )
        assert redrive.stdout is not None
        first = redrive.stdout.readline()
        redrive.kill()
        redrive.wait()
        redrive.stdout.close()
        assert json.loads(first)["what"] == "sent"
        kwire(bootstrap, "share", "redrive", GROUP)
        assert kwire(bootstrap, "share", "redrive", GROUP) == "0 sent\n"
        read = kwire(bootstrap, "consume", SOURCE, "--read-committed").splitlines()
        assert sorted(read) == sorted([f"{i}" for i in range(COUNT)] * 2)
        member.close()
