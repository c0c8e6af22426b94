"""`kwire share dead` and `kwire share redrive`: each dead letter is sent once, over kills too."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from kwire.cli import app
from kwire.client.dead_letters.redrive import progress_group, transactional_id
from kwire.protocol import messages as m
from kwire.protocol.records import Record, build_batch
from kwire.share.dead_letters import REJECTED, DeadLetters, headers
from kwire.testing.cluster import Broker, wait_for
from tests.support.share.dialogue import PROPERTIES
from tests.support.share.member import set_group_config
from tests.support.wire import WireClient, produce_request

KILLS, LETTERS = 4, 1200
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Records here are of 1970: retention would take them 30 seconds after its start."""
    options = {**PROPERTIES, "log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}
    with Broker(options=options) as started:
        yield started


def command(broker: Broker, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "kwire", *arguments, "-b", broker.bootstrap]


class Done(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


def kwire(broker: Broker, *arguments: str) -> Done:
    """A command in this process: most of one of its own is its start."""
    out = io.TextIOWrapper(io.BytesIO(), errors="backslashreplace", newline="")
    told = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        status = app.main([*arguments, "-b", broker.bootstrap])
        out.flush()
    assert isinstance(out.buffer, io.BytesIO)
    shown = out.buffer.getvalue().decode(errors="backslashreplace")
    return Done(status, shown, told.getvalue())


def lines(broker: Broker, *arguments: str) -> Lines:
    done = kwire(broker, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, ""), done
    return [json.loads(line) for line in done.stdout.splitlines()]


def produce(client: WireClient, topic: str, partition: int, records: Sequence[Record]) -> None:
    batch = bytes(build_batch(records))
    answer = client.call(produce_request(topic, {partition: batch}), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def letter_of(group: str, topic: str, partition: int, offset: int, at_ms: int) -> Record:
    letters = DeadLetters(group, topic, bytes(16), partition, offset, offset, 1, REJECTED)
    return Record(timestamp=at_ms, headers=headers(letters, offset))


def filled(
    broker: Broker, name: str, count: int, partitions: int = 1, **configs: str
) -> tuple[str, str]:
    """A topic with `count` records in each partition, and a dead letter of each; (letter topic,
    group)."""
    letters, group = f"dlq.{name}", f"{name}-workers"
    options = {key.replace("_", "."): value for key, value in configs.items()}
    with WireClient(broker.bootstrap) as client:
        client.create_topic(name, partitions=partitions, configs=options)
        client.create_topic(letters, partitions=partitions)
        for index in range(partitions):
            records = [
                Record(i, 1000, b"k%d" % i, b"%s-%d-%d" % (name.encode(), index, i), [("n", b"v")])
                for i in range(count)
            ]
            produce(client, name, index, records)
            dead = [letter_of(group, name, index, i, 2000) for i in range(count)]
            produce(client, letters, index, dead)
        set_group_config(client, group, errors_deadletterqueue_topic_name=letters)
    return letters, group


def values(broker: Broker, topic: str) -> list[str]:
    done = kwire(broker, "consume", topic, "--read-committed")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_is_sent_once_however_often_the_redrive_is_killed(broker: Broker) -> None:
    """SIGKILL after a number of told records by chance: somewhere in a later transaction."""
    _, group = filled(broker, "kills", LETTERS // 2, partitions=2)
    chance = random.Random(7)
    told = 0
    for _ in range(KILLS):
        redrive = subprocess.Popen(
            command(broker, "share", "redrive", group, "--json"),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert redrive.stdout is not None
        told += len(list(itertools.islice(redrive.stdout, chance.randint(1, LETTERS // 5))))
        redrive.kill()
        redrive.wait()
        redrive.stdout.close()
    assert told < LETTERS
    last = kwire(broker, "share", "redrive", group)
    assert last.returncode == 0, last.stderr
    wanted = [f"kills-{p}-{i}" for p in range(2) for i in range(LETTERS // 2)]
    assert sorted(values(broker, "kills")) == sorted(wanted * 2)
    again = kwire(broker, "share", "redrive", group)
    assert (again.returncode, again.stdout) == (0, "0 sent\n")


def test_a_kill_within_a_transaction_is_undone_by_the_next_redrive(broker: Broker) -> None:
    letters, group = filled(broker, "within", LETTERS)
    identity = transactional_id(letters, 0, group)
    redrive = subprocess.Popen(
        command(broker, "share", "redrive", group), stdout=subprocess.DEVNULL
    )
    with WireClient(broker.bootstrap) as client:

        def is_open() -> bool:
            asked = m.DescribeTransactionsRequest(transactional_ids=[identity])
            found = client.call(asked, 0).transaction_states[0]
            return found.transaction_state == "Ongoing" or redrive.poll() is not None

        wait_for(is_open, "a transaction")
    redrive.kill()
    redrive.wait()
    assert kwire(broker, "share", "redrive", group).returncode == 0
    assert sorted(values(broker, "within")) == sorted([f"within-0-{i}" for i in range(LETTERS)] * 2)


def test_two_redrives_at_once_send_each_once(broker: Broker) -> None:
    _, group = filled(broker, "two", LETTERS)
    both = [
        subprocess.Popen(
            command(broker, "share", "redrive", group),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for one in both:
        _, error = one.communicate(timeout=120)
        assert one.returncode == 0 or (error.count("\n") == 1 and "another" in error), error
    assert kwire(broker, "share", "redrive", group).returncode == 0
    assert sorted(values(broker, "two")) == sorted([f"two-0-{i}" for i in range(LETTERS)] * 2)


def test_filters_send_parts_and_the_rest_stays(broker: Broker) -> None:
    letters, group = filled(broker, "parts", 10)
    dry = lines(broker, "share", "redrive", group, "--dry-run", "--where", "offset < 3")
    assert [(one["what"], one["offset"]) for one in dry] == [("would be sent", i) for i in range(3)]
    assert len(values(broker, "parts")) == 10
    for where, sent in (("offset = 4", [4]), ("offset >= 3 and header.n = v", [3, 5, 6, 7, 8, 9])):
        told = lines(broker, "share", "redrive", group, "--where", where)
        assert [one["offset"] for one in told] == sent
    dead = lines(broker, "share", "dead", group)
    assert [one["state"] for one in dead] == ["waiting"] * 3 + ["settled"] * 7
    assert dead[0] | {"written": 0} == {
        "letter": {"topic": letters, "partition": 0, "offset": 0},
        "topic": "parts",
        "partition": 0,
        "offset": 0,
        "group": group,
        "written": 0,
        "deliveries": 1,
        "reason": "Offset rejected by client.",
        "state": "waiting",
        "original": "read",
        "timestamp": 1000,
        "key": "k0",
        "value": "parts-0-0",
        "headers": [["n", "v"]],
    }
    assert [one["offset"] for one in lines(broker, "share", "redrive", group, "-c", "2")] == [0, 1]
    assert [one["offset"] for one in lines(broker, "share", "redrive", group)] == [2]
    read = lines(broker, "consume", "parts", "--read-committed")
    again = [one for one in read if one["offset"] >= 10]
    assert sorted(one["value"] for one in again) == [f"parts-0-{i}" for i in range(10)]
    assert {(one["partition"], str(one["headers"])) for one in again} == {(0, "[['n', 'v']]")}


def test_what_retention_and_compaction_took_is_named_and_settled(broker: Broker) -> None:
    _, group = filled(broker, "taken", 5)
    with WireClient(broker.bootstrap) as client:
        kind = m.DeleteRecordsRequest
        partition = kind.DeleteRecordsPartition(partition_index=0, offset=3)
        topic = kind.DeleteRecordsTopic(name="taken", partitions=[partition])
        answer = client.call(kind(topics=[topic], timeout_ms=5000), 2)
        assert answer.topics[0].partitions[0].error_code == 0
    done = kwire(broker, "share", "redrive", group)
    assert done.stdout.splitlines() == [
        *(
            f"gone: taken-0 offset {i}: retention took it (dlq.taken-0 offset {i})"
            for i in range(3)
        ),
        "2 sent to taken, 3 gone",
    ]
    assert kwire(broker, "share", "redrive", group).stdout == "0 sent\n"
    dead = kwire(broker, "share", "dead", group).stdout.splitlines()
    assert dead[1].endswith("\tsettled\t\t(retention took it)")


def test_originals_that_compaction_took_are_named_and_not_sent(broker: Broker) -> None:
    _, group = filled(
        broker,
        "compacted",
        3,
        cleanup_policy="compact",
        segment_ms="50",
        min_cleanable_dirty_ratio="0.01",
    )

    later = itertools.count(10_000, 10_000)

    def is_cleaned() -> bool:  # the segments roll by the times of their records
        produce(client, "compacted", 0, [Record(0, next(later), b"k0", b"later")])
        return "compacted-0-0" not in values(broker, "compacted")

    with WireClient(broker.bootstrap) as client:
        wait_for(is_cleaned, "the first value of k0 is gone")
    told = lines(broker, "share", "redrive", group)
    assert [(one["what"], one["offset"]) for one in told] == [
        ("gone", 0),
        ("sent", 1),
        ("sent", 2),
    ]
    assert kwire(broker, "share", "redrive", group).stdout == "0 sent\n"


def test_a_gap_that_compaction_left_is_named(broker: Broker) -> None:
    letters, group = filled(broker, "gaps", 2)
    with WireClient(broker.bootstrap) as client:
        # Control records of a transaction: an offset that has no record, as after compaction.
        produce(client, "gaps", 0, [Record(0, 1000, b"x", b"last")])
        begun = client.call(
            m.InitProducerIdRequest(transactional_id="gaps", transaction_timeout_ms=5000), 4
        )
        added = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="gaps",
            v3_and_below_producer_id=begun.producer_id,
            v3_and_below_producer_epoch=begun.producer_epoch,
            v3_and_below_topics=[
                m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="gaps", partitions=[0])
            ],
        )
        client.call(added, 3)
        ended = m.EndTxnRequest(
            transactional_id="gaps",
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
            committed=True,
        )
        assert client.call(ended, 3).error_code == 0
        produce(client, "gaps", 0, [Record(0, 1000, b"y", b"behind")])
        produce(client, letters, 0, [letter_of(group, "gaps", 0, 3, 2000)])
    done = kwire(broker, "share", "redrive", group)
    assert done.stdout.splitlines() == [
        "gone: gaps-0 offset 3: there is no record any more: compaction took it "
        "(dlq.gaps-0 offset 2)",
        "2 sent to gaps, 1 gone",
    ]


def test_a_topic_that_is_missing_or_made_anew_gets_nothing_that_was_not_its_own(
    broker: Broker,
) -> None:
    letters, group = filled(broker, "anew", 3)
    assert kwire(broker, "topic", "delete", "anew").returncode == 0
    left = kwire(broker, "share", "redrive", group)
    assert left.stdout.splitlines()[0] == (
        f"left: anew-0 offset 0: the topic does not exist ({letters}-0 offset 0)"
    )
    assert left.stdout.splitlines()[-1] == "0 sent, 3 left"
    with WireClient(broker.bootstrap) as client:
        client.create_topic("anew")
        produce(client, "anew", 0, [Record(0, 9000, b"k", b"another"), Record(1, 500, b"k", b"o")])
    told = lines(broker, "share", "redrive", group, "--where", "offset != 1")
    assert [(one["what"], one["reason"]) for one in told] == [
        ("left", "the record there is younger than the dead letter: the topic was made anew"),
        ("left", "it is behind the end of the partition: the topic was made anew"),
    ]
    assert values(broker, "anew") == ["another", "o"]
    trusting = lines(broker, "share", "redrive", group, "--trust-offsets", "-w", "offset = 0")
    assert [one["what"] for one in trusting] == ["sent"]


def test_copies_stand_for_originals_that_are_gone(broker: Broker) -> None:
    letters, group = filled(broker, "copied", 1)
    with WireClient(broker.bootstrap) as client:
        copy = letter_of(group, "copied", 0, 7, 2000)
        produce(client, letters, 0, [copy._replace(key=b"K", value=b"copy")])
        same = letter_of(group, "copied", 0, 0, 2000)
        produce(client, letters, 0, [same._replace(key=b"k0", value=b"copied-0-0")])
        other = letter_of(group, "copied", 0, 0, 2000)
        produce(client, letters, 0, [other._replace(value=b"was another")])
    done = kwire(broker, "share", "redrive", group)
    assert done.stdout.splitlines() == [
        "sent: copied-0 offset 7, from the copy in the dead letter (dlq.copied-0 offset 1)",
        "sent: copied-0 offset 0, from the copy in the dead letter (dlq.copied-0 offset 3)",
        "4 sent to copied",
    ]
    assert values(broker, "copied")[1:] == ["copied-0-0", "copy", "copied-0-0", "was another"]


def test_forged_records_and_letters_of_others_are_passed_over(broker: Broker) -> None:
    letters, group = filled(broker, "forged", 1)
    with WireClient(broker.bootstrap) as client:
        other = letter_of("others", "forged", 0, 0, 2000)
        internal = letter_of(group, "__consumer_offsets", 0, 0, 2000)
        bad = other._replace(headers=[*other.headers, ("__dlq.errors.offset", b"1")])
        produce(client, letters, 0, [other, internal, bad, Record(timestamp=1, value=b"plain")])
    told = lines(broker, "share", "redrive", group)
    assert [one["what"] for one in told] == ["sent", *["no dead letter"] * 3]
    dead = kwire(broker, "share", "dead", group)
    assert len(dead.stdout.splitlines()) == 2
    assert dead.stderr.splitlines() == [
        f"kwire: no dead letter: {letters}-0 offset {offset}: {reason}"
        for offset, reason in (
            (2, "__dlq.errors.topic names __consumer_offsets, which no share group reads"),
            (3, "__dlq.errors.offset is there twice"),
            (4, "__dlq.errors.topic is missing"),
        )
    ]


def test_what_the_topic_takes_no_more_is_named_and_stays(broker: Broker) -> None:
    _, group = filled(broker, "small", 3)
    with WireClient(broker.bootstrap) as client:
        noise = random.Random(1).randbytes(4000)
        produce(client, "small", 0, [Record(0, 1000, b"k", noise)])
        produce(client, "dlq.small", 0, [letter_of(group, "small", 0, 3, 2000)])
    altered = kwire(broker, "topic", "alter", "small", "-o", "max.message.bytes=1000")
    assert altered.returncode == 0
    told = lines(broker, "share", "redrive", group)
    assert [(one["what"], one["offset"]) for one in told] == [
        *(("sent", offset) for offset in range(3)),
        ("left", 3),
    ]
    assert told[-1]["reason"].startswith("small-0: ")
    read = values(broker, "small")
    assert [read.count(f"small-0-{i}") for i in range(3)] == [2, 2, 2]


def test_progress_that_is_none_and_topics_that_are_missing_are_told_in_one_line(
    broker: Broker,
) -> None:
    letters, group = filled(broker, "told", 1)
    with WireClient(broker.bootstrap) as client:
        kind = m.OffsetCommitRequest
        committed = kind.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=0, committed_metadata="mine"
        )
        topic = kind.OffsetCommitRequestTopic(name=letters, partitions=[committed])
        request = kind(
            group_id=progress_group(group),
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[topic],
        )

        def is_committed() -> bool:
            return int(client.call(request, 8).topics[0].partitions[0].error_code) == 0

        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[progress_group(group)])
        client.call(find, 4)
        wait_for(is_committed, "the offset is committed")
        set_group_config(client, "lost", errors_deadletterqueue_topic_name="dlq.nowhere")
    cases = {
        (group,): "not the progress of a redrive",
        ("lost",): "the dead letter topic dlq.nowhere of group lost does not exist",
        ("nobody",): "group nobody has no dead letter topic",
        ("nobody", "--topic", "dlq.none"): "dlq.none of group nobody does not exist",
        ("lost", "--where", "age > x"): "--where: age x: expected a time",
    }
    for arguments, told in cases.items():
        refused = kwire(broker, "share", "redrive", *arguments)
        assert refused.returncode in (1, 2)
        assert (refused.stdout, refused.stderr.count("\n")) == ("", 1), refused
        assert told in refused.stderr
    assert kwire(broker, "share", "dead", "nobody").returncode == 1
    assert [one["state"] for one in lines(broker, "share", "dead", group)] == [None]
