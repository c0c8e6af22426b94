"""A broker follows the topic of schemas when asked: to its end, anew where it changed, bounded."""

from __future__ import annotations

import json

import pytest

from kwire.pending import Pending
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.protocol.records import Record, build_batch
from kwire.protocol.records.header import Codec, parse_header
from kwire.protocol.records.validation import InvalidRecordsError
from kwire.schemas.registry.records import schema_key
from kwire.schemas.registry.work import SchemaWork
from kwire.schemas.validation import batch as batch_checks
from kwire.schemas.validation import checks
from kwire.schemas.validation.batch import TURN_STEPS, PreparedOrFault
from kwire.schemas.validation.checks import OLD_MS, READING_MAX, REFUSED_KEPT_MS, SchemaChecks
from kwire.schemas.validation.closures import prepare
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


def test_a_topic_that_was_not_read_for_long_is_read_from_its_beginning() -> None:
    """What was deleted meanwhile, and cleaned with its tombstone, was there for good."""
    world = World()
    world.topic.add("gone", 1, 1)
    world.topic.add("kept", 1, 2)
    world.refresh()
    world.topic.values[0] = (b"", None)  # the cleaner leaves nothing of either
    world.topic.add("new", 1, 3)
    world.refresh()
    assert world.subjects() == ["gone", "kept", "new"]
    world.turns.time_out()
    assert world.refresh().error() is None
    assert world.subjects() == ["kept", "new"]


def test_what_is_known_holds_while_a_topic_is_read_from_its_beginning_again() -> None:
    """All records were refused once nobody had sent any for an hour and the topic had no leader."""
    world = World()
    for number in range(7):
        world.topic.add(f"s{number}-value", 1, number + 1)
    world.topic.add("t-value", 1, 1)
    world.refresh()
    world.turns.time_out()
    world.topic.failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert code_of(world.refresh()) is ErrorCode.REQUEST_TIMED_OUT
    assert world.check([GOOD]).error() is None
    world.topic.values[0] = (b"", None)
    world.topic.failure, world.topic.held = None, []
    again = world.follower.refresh()
    world.topic.held.pop(0)()
    world.turns.turn()
    assert not again.done  # there are more pages
    assert world.check([GOOD]).error() is None
    assert "s0-value" in world.subjects()
    held, world.topic.held = world.topic.held, None
    held.pop(0)()
    world.turns.turn()
    assert again.done
    assert sorted(world.subjects()) == [*(f"s{number}-value" for number in range(1, 7)), "t-value"]


def test_what_is_known_holds_while_a_topic_without_its_first_records_is_read_again() -> None:
    """It does not begin at 0: that was taken for another topic."""
    world = World()
    world.topic.first = 3
    world.topic.add("t-value", 1, 1)
    world.refresh()
    world.turns.time_out()
    held = world.topic.held = []
    again = world.follower.refresh()
    held.pop(0)()  # 0 is out of range
    world.topic.failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert not again.done
    assert (world.follower.is_loaded, world.subjects()) == (True, ["t-value"])
    world.topic.failure, world.topic.held = None, None
    held.pop(0)()
    world.turns.turn()
    assert again.error() is None
    assert world.subjects() == ["t-value"]


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
    held.pop(0)()  # the topic is loaded; what is read now was asked for by the batch
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
    world.topic.failure = None
    world.refresh()
    world.topic.failure = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
    assert code_of(world.check([GOOD])) is ErrorCode.REQUEST_TIMED_OUT
    assert code_of(world.check([b"plain"])) is ErrorCode.INVALID_RECORD


def test_what_is_deleted_is_not_accepted_while_the_topic_is_loaded() -> None:
    """Two records come at once: the schemas, and only then that the first of them is gone."""
    world = World()
    for at in (1, 2):
        world.topic.add("t-value", at, at)
    world.topic.add("t-value", 1, 1, is_deleted=True)
    world.topic.held = held = []
    waiting = world.check([GOOD])
    held.pop(0)()
    late, kept = world.check([GOOD]), world.check([b"\0\0\0\0\2"])
    assert not late.done
    while held:
        held.pop(0)()
        world.turns.turn()
    assert kept.error() is None
    assert {code_of(waiting), code_of(late)} == {ErrorCode.INVALID_RECORD}


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
    assert len(jobs) == 3


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


class Held(World):
    """Schemas are parsed when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[str, SchemaWork, Pending[PreparedOrFault]]] = []
        self.checks = SchemaChecks(self.follower, self.turns, lambda: self.now_ms, self._read)

    def _read(self, topic: str, closure: SchemaWork) -> Pending[PreparedOrFault]:
        self.reads.append((topic, closure, Pending()))
        return self.reads[-1][2]

    def parse(self) -> None:
        """The first that waits."""
        _, closure, found = self.reads.pop(0)
        found.complete(prepare(closure))


def test_who_asks_for_a_schema_that_is_being_parsed_waits_for_that() -> None:
    world = Held()
    world.topic.add("t-value", 1, 1)
    waiting = [world.check([GOOD + b"\2"], deep=True), world.check([GOOD], deep=True)]
    assert len(world.reads) == 1
    world.parse()
    assert waiting[0].error() is None
    assert waiting[0].done
    assert code_of(waiting[1]) is ErrorCode.INVALID_RECORD


def test_a_schema_that_cannot_be_parsed_at_this_moment_is_no_fault_of_the_record() -> None:
    world = Held()
    world.topic.add("t-value", 1, 1)
    pending = world.check([GOOD + b"\2"], deep=True)
    world.reads.pop()[2].fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT))
    assert code_of(pending) is ErrorCode.REQUEST_TIMED_OUT
    again = world.check([GOOD + b"\2"], deep=True)
    world.parse()
    assert again.done
    assert again.error() is None


def test_who_waits_too_long_is_told_to_try_again_and_finds_it_parsed_then() -> None:
    world = Held()
    world.topic.add("t-value", 1, 1)
    pending = world.check([GOOD + b"\2"], deep=True)
    world.turns.time_out()
    assert code_of(pending) is ErrorCode.REQUEST_TIMED_OUT
    again = world.check([GOOD + b"\2"], deep=True)
    assert len(world.reads) == 1
    world.parse()
    assert again.done
    assert again.error() is None


def test_the_schemas_of_a_topic_that_wait_to_be_parsed_are_bounded() -> None:
    """A batch that names more is checked in rounds; another batch is told to try again."""
    world = Held()
    for at in range(1, 2 * READING_MAX + 1):
        world.topic.add("t-value", at, at, f'{{"type":"fixed","name":"F","size":{at}}}')
    heads = [b"\0" + at.to_bytes(4, "big") for at in range(1, 2 * READING_MAX + 1)]
    values = [head + bytes(at) for at, head in enumerate(heads, 1)]
    first = world.check(list(values), deep=True)
    assert len(world.reads) == READING_MAX
    assert code_of(world.check([values[-1]], deep=True)) is ErrorCode.REQUEST_TIMED_OUT
    for _ in range(2 * READING_MAX):
        world.parse()
        world.turns.turn()
    assert first.done
    assert first.error() is None


def test_what_was_refused_is_parsed_anew_after_a_while() -> None:
    """For want of memory, or of a package that is installed meanwhile."""
    world = Held()
    world.topic.add("t-value", 1, 1)
    refused = world.check([GOOD + b"\2"], deep=True)
    world.reads.pop()[2].complete("its schema cannot be read: It takes too much memory to read")
    assert code_of(refused) is ErrorCode.INVALID_RECORD
    assert code_of(world.check([GOOD + b"\2"], deep=True)) is ErrorCode.INVALID_RECORD
    assert not world.reads
    world.now_ms += REFUSED_KEPT_MS + 1
    again = world.check([GOOD + b"\2"], deep=True)
    world.parse()
    assert again.done
    assert again.error() is None


def test_the_text_of_what_is_kept_parsed_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHARACTERS_MAX", 300)
    world = World()
    for at in range(1, 6):
        told = f'{{"type":"fixed","name":"F","size":0,"doc":"{"x" * 60}{at}"}}'
        world.topic.add("t-value", at, at, told)
        assert world.check([b"\0" + at.to_bytes(4, "big")], deep=True).error() is None
    assert [schema_id for schema_id, _ in world.checks.prepared] == [4, 5]


def test_a_document_that_takes_long_is_checked_by_the_worker() -> None:
    """1000 items against 600 alternatives: more than a turn of the loop has; more than a record of
    its size may take, and the record is refused, whatever it says."""
    world = World()
    schema = json.dumps({"items": {"allOf": [{"type": "integer"}] * 600}})
    world.topic.add("t-value", 1, 1, schema, schema_type="JSON")
    jobs: list[object] = []
    run = world.turns.run
    world.turns.run = lambda job: (jobs.append(job), run(job))[1]  # type: ignore[method-assign]
    assert world.check([GOOD + b"[1,2]", GOOD + b"[]"], deep=True).error() is None
    assert not jobs
    assert world.check([GOOD + b"[1,2,3,4,5,6]", GOOD + b"[7]"], deep=True).error() is None
    assert len(jobs) == 1
    items = json.dumps([1] * 1000).encode()
    error = world.check([GOOD + b"[]", GOOD + items], deep=True).error()
    assert isinstance(error, InvalidRecordsError)
    assert [one.batch_index for one in error.record_errors] == [1]
    why = "takes too long to check by id 1: its 3005 bytes have 80100 steps"
    assert why in error.record_errors[0].message


def test_a_turn_of_the_loop_ends_after_its_steps() -> None:
    world = World()
    schema = json.dumps({"allOf": [{"type": "integer"}] * 500})
    world.topic.add("t-value", 1, 1, schema, schema_type="JSON")
    assert world.check([GOOD + b"1"], deep=True).error() is None
    batch = build_batch([Record(value=GOOD + b"1")] * 50)
    rules = TopicRules("t", None, SideRules("value", TOPIC_NAME), True)
    answer = world.checks.check(rules, batch, parse_header(batch))
    assert isinstance(answer, Pending)
    turns = 0
    while not answer.done:
        world.turns.due.pop(0)()
        turns += 1
    assert answer.error() is None
    assert turns >= 50 * 1000 // TURN_STEPS - 1


def test_what_the_worker_does_for_a_batch_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_checks, "WORKER_STEPS_MAX", 15_000)
    world = World()
    schema = json.dumps({"items": {"allOf": [{"type": "integer"}] * 600}})
    world.topic.add("t-value", 1, 1, schema, schema_type="JSON")
    error = world.check([GOOD + b"[1,2,3,4,5,6]"] * 3, deep=True).error()
    assert isinstance(error, InvalidRecordsError)
    assert "send fewer records in one" in error.record_errors[0].message
    assert len(error.record_errors) < 3
