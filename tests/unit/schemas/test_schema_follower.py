"""A broker follows the topic of schemas when asked: to its end, anew where it changed, bounded."""

from __future__ import annotations

import pytest

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.header import Codec, parse_header
from kwire.protocol.records.validation import InvalidRecordsError
from kwire.schemas.registry.records import schema_key
from kwire.schemas.validation.checks import OLD_MS
from kwire.schemas.validation.rules import TOPIC_NAME, SideRules, TopicRules
from tests.support.schema_checks import World


def code_of(pending: Pending[None]) -> ErrorCode:
    error = pending.error()
    assert isinstance(error, KafkaError)
    return error.code


def test_it_reads_to_the_end_in_pages() -> None:
    world = World()
    for number in range(7):
        world.topic.add(f"s{number}", 1, number + 1)
    assert world.topic.reads == 0
    assert world.refresh().done
    assert len(world.subjects()) == 7
    assert world.topic.reads == 4


def test_who_asks_while_it_reads_gets_what_came_after_that_read_began() -> None:
    """The page on its way was read before the schema was registered."""
    world = World()
    world.topic.held = held = []
    first = world.follower.refresh()
    world.topic.add("late", 1, 1)
    second = world.follower.refresh()
    held.pop(0)()
    world.turns.turn()
    assert first.done
    assert not second.done
    held.pop(0)()
    world.turns.turn()
    assert second.done
    assert world.subjects() == ["late"]


def test_a_topic_made_anew_is_read_anew() -> None:
    world = World()
    world.topic.add("old", 1, 1)
    world.refresh()
    world.topic.id, world.topic.values = b"2" * 16, []
    world.topic.add("new", 1, 1)
    world.refresh()
    assert world.subjects() == ["new"]
    world.topic.id = None
    assert world.refresh().error() is None
    assert world.subjects() == []


def test_a_log_that_was_cut_is_read_from_its_beginning() -> None:
    world = World()
    for number in range(3):
        world.topic.add(f"s{number}", 1, number + 1)
    world.refresh()
    world.topic.first, world.topic.values = 100, []
    world.topic.add("s3", 1, 4)
    assert world.refresh().error() is None
    assert world.subjects() == ["s3"]


@pytest.mark.parametrize("how", ["error", "silence"])
def test_what_cannot_be_read_is_told_to_all_and_tried_again(how: str) -> None:
    world = World()
    if how == "error":
        world.topic.failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    else:
        world.topic.held = []
    waiting = [world.follower.refresh(), world.follower.refresh()]
    for _ in range(2):
        world.turns.turn()
        world.turns.time_out()
    assert [code_of(pending) for pending in waiting] == [ErrorCode.REQUEST_TIMED_OUT] * 2
    world.topic.failure, world.topic.held = None, None
    world.topic.add("s", 1, 1)
    assert world.refresh().error() is None
    assert world.subjects() == ["s"]


GOOD = b"\0\0\0\0\1"


def test_a_known_schema_is_accepted_without_reading_anything() -> None:
    world = World()
    world.topic.add("t-value", 1, 1)
    assert world.check([GOOD, None, GOOD + b"x"]).error() is None
    reads = world.topic.reads
    assert world.check([GOOD] * 100).error() is None
    assert world.topic.reads == reads


def test_an_unknown_schema_is_refused_only_after_the_topic_was_read_to_its_end() -> None:
    world = World()
    world.topic.held = held = []
    pending = world.check([GOOD, b"\0\0\0\0\2"])
    assert not pending.done
    world.topic.add("t-value", 1, 1)
    held.pop(0)()
    world.turns.turn()
    error = pending.error()
    assert isinstance(error, InvalidRecordsError)
    assert [one.batch_index for one in error.record_errors] == [0, 1]


def test_it_is_never_accepted_where_schemas_cannot_be_read() -> None:
    world = World()
    world.topic.failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert code_of(world.check([GOOD])) is ErrorCode.REQUEST_TIMED_OUT
    assert code_of(world.check([b"plain"])) is ErrorCode.INVALID_RECORD


def test_a_schema_that_was_deleted_is_refused_after_a_while() -> None:
    world = World()
    world.topic.add("t-value", 1, 1)
    assert world.check([GOOD]).error() is None
    world.topic.values.append((schema_key("t-value", 1), None))
    world.now_ms += OLD_MS + 1
    world.check([GOOD])
    assert code_of(world.check([GOOD])) is ErrorCode.INVALID_RECORD


def test_large_batches_are_checked_in_turns() -> None:
    world = World()
    world.topic.add("t-value", 1, 1)
    world.refresh()
    batch = build_batch([Record(value=GOOD)] * 1000 + [Record(value=b"x")])
    rules = TopicRules("t", None, SideRules("value", TOPIC_NAME), False)
    answer = world.checks.check(rules, batch, parse_header(batch))
    assert isinstance(answer, Pending)
    assert world.checks.held_bytes == len(batch)
    turns = 0
    while not answer.done:
        world.turns.due.pop(0)()
        turns += 1
    assert turns >= 5
    assert code_of(answer) is ErrorCode.INVALID_RECORD
    assert world.checks.held_bytes == 0


def test_a_deep_check_parses_a_schema_once() -> None:
    world = World()
    world.topic.add("t-value", 1, 1, '{"type":"array","items":"null"}')
    assert world.check([GOOD + b"\0"], deep=True).error() is None
    assert list(world.checks.prepared) == [(1, world.follower.state.versions("t-value")[0].guid)]
    # An array that says it has 2^40 items of no bytes.
    endless = GOOD + b"\x80\x80\x80\x80\x80\x40\0"
    assert code_of(world.check([endless], deep=True)) is ErrorCode.INVALID_RECORD


def test_what_is_large_is_decoded_by_the_worker() -> None:
    """And each record at fault is named, in order."""
    world = World()
    world.topic.add("t-value", 1, 1, '{"type":"array","items":"bytes"}')
    jobs: list[object] = []
    run = world.turns.run
    world.turns.run = lambda job: (jobs.append(job), run(job))[1]  # type: ignore[method-assign]
    item = b"\x80\x80\x02" + bytes(16_384)
    good, bad = GOOD + b"\x02" + item + b"\0", GOOD + b"\x02" + item
    error = world.check([bad, GOOD + b"\x01", good, bad], deep=True).error()
    assert isinstance(error, InvalidRecordsError)
    assert [one.batch_index for one in error.record_errors] == [0, 1, 3]
    assert len(jobs) == 4  # one parses the schema


def test_a_schema_that_cannot_be_read_is_a_fault_of_the_record() -> None:
    world = World()
    world.topic.add("t-value", 1, 1, "no schema")
    error = world.check([GOOD], deep=True).error()
    assert isinstance(error, InvalidRecordsError)
    assert "its schema cannot be read" in error.record_errors[0].message


def test_a_batch_that_is_damaged_is_not_accepted() -> None:
    world = World()
    batch = bytes(build_batch([Record(value=GOOD)] * 3, codec=Codec.GZIP))
    damaged = batch[:70] + b"\xff\xff\xff" + batch[73:]
    rules = TopicRules("t", None, SideRules("value", TOPIC_NAME), False)
    with pytest.raises(KafkaError):
        world.checks.check(rules, damaged, parse_header(damaged))
