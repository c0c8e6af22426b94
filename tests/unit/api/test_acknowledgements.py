"""What a Produce waits for: each partition's acknowledgement, or the end of its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire.api.shared.acknowledgements import Acknowledgements
from kwire.pending import Pending
from kwire.protocol import messages as m
from kwire.protocol.errors import ErrorCode, KafkaError
from kwire.replica.traffic import Traffic
from kwire.server.context import RequestContext
from tests.support.parts import made_parts

Result = m.ProduceResponse.PartitionProduceResponse
WRITTEN: Pending[None] = Pending.completed(None)


class Deadlines:
    """Remembers the one deadline."""

    def __init__(self) -> None:
        self.fire: Callable[[], None] | None = None
        self.cancelled = False

    def add(self, delay_ms: int, callback: Callable[[], None]) -> Deadlines:
        self.fire = callback
        return self

    def cancel(self) -> None:
        self.cancelled = True


class Committing:
    """A partition whose commits come when the test says so."""

    def __init__(self, enough: bool = True) -> None:
        self.enough = enough
        self.callbacks: list[Callable[[ErrorCode], None]] = []
        self.forgotten = 0
        self.traffic = Traffic()

    def wait_for_commit(self, end: int, callback: Callable[[ErrorCode], None]) -> Committing:
        self.callbacks.append(callback)
        return self

    def cancel(self) -> None:
        self.forgotten += 1

    def enough_replicas(self) -> bool:
        return self.enough


@pytest.fixture
def deadlines() -> Deadlines:
    return Deadlines()


@pytest.fixture
def waiting(deadlines: Deadlines) -> Acknowledgements:
    context = RequestContext(made_parts(deadlines=deadlines), None, 0, 9, 1, None)
    return Acknowledgements(context, m.ProduceResponse())


def test_without_anything_to_wait_for_the_response_is_there(waiting: Acknowledgements) -> None:
    assert isinstance(waiting.outcome(1, 100), m.ProduceResponse)


def test_the_last_write_answers_and_a_failed_one_is_told(waiting: Acknowledgements) -> None:
    writes: list[Pending[None]] = [Pending(), Pending()]
    results = [Result(base_offset=7), Result(base_offset=8)]
    for result, written in zip(results, writes, strict=True):
        waiting.wait_for_write(result, written)
    assert waiting.outcome(1, 100) is waiting
    writes[0].complete(None)
    assert not waiting.done
    writes[1].fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert waiting.done
    assert [(x.error_code, x.base_offset) for x in results] == [(0, 7), (56, -1)]


def test_what_was_written_keeps_its_offsets_where_a_later_write_ends_the_wait_for_its_commit(
    waiting: Acknowledgements,
) -> None:
    """Its replicas may have it; what the write that failed was to have, nobody has."""
    partition: Any = Committing()
    failed: Pending[None] = Pending()
    results = [Result(base_offset=7, log_start_offset=3), Result(base_offset=8, log_start_offset=3)]
    waiting.wait_for_commit(results[0], partition, 8, WRITTEN)
    waiting.wait_for_commit(results[1], partition, 9, failed)
    assert waiting.outcome(-1, 100) is waiting
    failed.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    for callback in partition.callbacks:
        callback(ErrorCode.KAFKA_STORAGE_ERROR)
    assert waiting.done
    told = [(x.error_code, x.base_offset, x.log_start_offset) for x in results]
    assert told == [(56, 7, 3), (56, -1, -1)]


def test_an_acknowledgement_before_all_is_appended_answers_nothing(
    waiting: Acknowledgements,
) -> None:
    first: Pending[None] = Pending()
    waiting.wait_for_write(Result(), first)
    first.complete(None)
    assert not waiting.done
    assert isinstance(waiting.outcome(1, 100), m.ProduceResponse)


@pytest.mark.parametrize(
    ("enough", "code", "told"),
    [
        (True, ErrorCode.NONE, ErrorCode.NONE),
        (False, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (True, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_commit_answers(
    waiting: Acknowledgements,
    deadlines: Deadlines,
    enough: bool,
    code: ErrorCode,
    told: ErrorCode,
) -> None:
    partition: Any = Committing(enough)
    result = Result()
    waiting.wait_for_commit(result, partition, 5, WRITTEN)
    assert waiting.outcome(-1, 100) is waiting
    partition.callbacks[0](code)
    assert (waiting.done, deadlines.cancelled, result.error_code) == (True, True, told)
    assert waiting.has_failed == (told != ErrorCode.NONE)


def test_what_is_led_elsewhere_when_its_commit_is_to_be_waited_for_answers_at_once(
    waiting: Acknowledgements,
) -> None:
    class Elsewhere(Committing):
        def wait_for_commit(self, end: int, callback: Callable[[ErrorCode], None]) -> Committing:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    partition: Any = Elsewhere()
    result = Result()
    waiting.wait_for_commit(result, partition, 5, WRITTEN)
    assert isinstance(waiting.outcome(-1, 100), m.ProduceResponse)
    assert (result.error_code, waiting.has_failed) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, True)


def test_the_end_of_its_time_answers_and_forgets(
    waiting: Acknowledgements, deadlines: Deadlines
) -> None:
    partition: Any = Committing()
    result = Result()
    waiting.wait_for_commit(result, partition, 5, WRITTEN)
    waiting.outcome(-1, 100)
    assert deadlines.fire is not None
    deadlines.fire()
    assert (waiting.done, partition.forgotten) == (True, 1)
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    assert partition.traffic.expired_produces == 1


def test_its_time_begins_once_the_log_has_it(
    waiting: Acknowledgements, deadlines: Deadlines
) -> None:
    """A slow disk was answered REQUEST_TIMED_OUT, and the record was there all the same: who sent
    it again doubled it. Apache Kafka counts from its append on."""
    partition: Any = Committing()
    writes: list[Pending[None]] = [Pending(), Pending()]
    for written in writes:
        waiting.wait_for_commit(Result(), partition, 5, written)
    waiting.outcome(-1, 100)
    writes[0].complete(None)
    assert deadlines.fire is None
    writes[1].complete(None)
    assert deadlines.fire is not None
    deadlines.fire()
    assert waiting.done


def test_who_no_longer_waits_is_forgotten(waiting: Acknowledgements, deadlines: Deadlines) -> None:
    partition: Any = Committing()
    waiting.wait_for_commit(Result(), partition, 5, WRITTEN)
    waiting.outcome(-1, 100)
    waiting.cancel()
    assert (partition.forgotten, deadlines.cancelled) == (1, True)
