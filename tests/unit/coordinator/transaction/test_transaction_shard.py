"""The transaction shard's decisions: every state against every request, epochs, time-outs, reloads.

What each case answers was measured on Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kwire.coordinator.shard_interface import CoordinatorRecord, Moment, Result
from kwire.coordinator.transaction import end, partitions, queries
from kwire.coordinator.transaction.end import ANSWERS, EndRequest
from kwire.coordinator.transaction.init_producer import (
    InitRequest,
    ProducerIdNeededError,
    init_producer_id,
)
from kwire.coordinator.transaction.metadata import fresh, from_record, to_record
from kwire.coordinator.transaction.shard import Prepared, TransactionSettings, TransactionShard
from kwire.coordinator.transaction.states import PREDECESSORS, TransactionState, may_follow
from kwire.protocol.errors import ErrorCode, KafkaError

State = TransactionState
T0 = ("topic", 0)
T1 = ("topic", 1)


class Driven:
    """A shard with the log that its records would be in; commits at once."""

    def __init__(self, version: int = 2, **options: Any) -> None:
        self.version = version
        self.settings = TransactionSettings(**options)
        self.log: list[CoordinatorRecord] = []
        self.prepared: list[Prepared] = []
        self.now_ms = 1_000_000
        self.next_producer_id = 100
        self.shard = self.fresh_shard()
        self.shard.loaded(self.moment)

    def fresh_shard(self) -> TransactionShard:
        return TransactionShard(self.settings, lambda: self.version, self.prepared.append)

    @property
    def moment(self) -> Moment:
        return Moment(self.now_ms, self.now_ms)

    def apply(self, result: Result[Any]) -> Any:
        for record in result.records:
            self.shard.replay(record.key, record.value, len(self.log), -1, -1)
            self.log.append(record)
        follows = None if result.appended is None else result.appended()
        if follows is not None:
            follows.complete(None)
        for pending, answer in self.shard.take_replies():
            pending.complete(answer)
        if isinstance(result.response, end.Refused):
            raise KafkaError(result.response.code)
        return result.response

    def reloaded(self) -> TransactionShard:
        shard = self.fresh_shard()
        for offset, record in enumerate(self.log):
            shard.replay(record.key, record.value, offset, -1, -1)
        return shard

    def init(
        self, tid: str = "t", producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000
    ) -> tuple[int, int]:
        request = InitRequest(tid, timeout_ms, producer_id, epoch)
        try:
            return tuple(self.apply(init_producer_id(self.shard, request, None, self.moment)))
        except ProducerIdNeededError:
            self.next_producer_id += 1
            new = self.next_producer_id
            return tuple(self.apply(init_producer_id(self.shard, request, new, self.moment)))

    def add(self, pid: int, epoch: int, *wanted: tuple[str, int], tid: str = "t") -> None:
        self.apply(
            partitions.add_partitions(
                self.shard, tid, pid, epoch, list(wanted or (T0,)), self.version, self.moment
            )
        )

    def end(self, pid: int, epoch: int, commit: bool, bump: bool = True, tid: str = "t") -> Any:
        request = EndRequest(tid, pid, epoch, commit, bump)
        new_id = None
        if end.needs_producer_id(self.shard, request):
            self.next_producer_id += 1
            new_id = self.next_producer_id
        return self.apply(end.end_transaction(self.shard, request, new_id, self.moment))

    def write_markers(self) -> None:
        prepared, self.prepared[:] = list(self.prepared), []
        for one in prepared:
            self.apply(end.complete(self.shard, one, self.moment))

    def state(self, tid: str = "t") -> State:
        return self.shard.transactions[tid].state


def code_of(call: Callable[[], Any]) -> ErrorCode:
    try:
        call()
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_the_table_allows_just_the_moves_that_it_names() -> None:
    allowed = {
        (None, State.EMPTY),
        (State.EMPTY, State.EMPTY),
        (State.COMPLETE_COMMIT, State.EMPTY),
        (State.COMPLETE_ABORT, State.EMPTY),
        (State.EMPTY, State.ONGOING),
        (State.ONGOING, State.ONGOING),
        (State.COMPLETE_COMMIT, State.ONGOING),
        (State.COMPLETE_ABORT, State.ONGOING),
        (State.ONGOING, State.PREPARE_COMMIT),
        (State.ONGOING, State.PREPARE_ABORT),
        (State.EMPTY, State.PREPARE_ABORT),
        (State.COMPLETE_COMMIT, State.PREPARE_ABORT),
        (State.COMPLETE_ABORT, State.PREPARE_ABORT),
        (State.PREPARE_COMMIT, State.COMPLETE_COMMIT),
        (State.PREPARE_ABORT, State.COMPLETE_ABORT),
        (State.EMPTY, State.DEAD),
        (State.COMPLETE_COMMIT, State.DEAD),
        (State.COMPLETE_ABORT, State.DEAD),
    }
    assert set(PREDECESSORS) == set(State)
    for before in [None, *State]:
        for after in State:
            assert may_follow(before, after) == ((before, after) in allowed), (before, after)


def test_a_move_that_the_table_does_not_name_is_never_written() -> None:
    driven = Driven()
    driven.init()
    current = driven.shard.transactions["t"]
    with pytest.raises(AssertionError, match="may not become"):
        driven.shard.change("t", current._replace(state=State.COMPLETE_COMMIT), None)


def in_state(state: State, version: int = 2) -> tuple[Driven, int, int]:
    """A transactional id brought into `state`; with the producer id and epoch it has there."""
    driven = Driven(version)
    pid, epoch = driven.init()
    if state != State.EMPTY:
        driven.add(pid, epoch, T0)
    if state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT):
        driven.end(pid, epoch, True, version >= 2)
    if state in (State.PREPARE_ABORT, State.COMPLETE_ABORT):
        driven.end(pid, epoch, False, version >= 2)
    if state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT):
        driven.write_markers()
    assert driven.state() == state
    now = driven.shard.transactions["t"]
    return driven, now.producer_id, now.producer_epoch


VERSION_2 = {  # (state, commit): what EndTxn 5 answers to the epoch that the producer has now
    (State.EMPTY, True): ErrorCode.INVALID_TXN_STATE,
    (State.EMPTY, False): ErrorCode.NONE,
    (State.ONGOING, True): ErrorCode.NONE,
    (State.ONGOING, False): ErrorCode.NONE,
    (State.PREPARE_COMMIT, True): ErrorCode.CONCURRENT_TRANSACTIONS,
    (State.PREPARE_COMMIT, False): ErrorCode.INVALID_TXN_STATE,
    (State.PREPARE_ABORT, True): ErrorCode.INVALID_TXN_STATE,
    (State.PREPARE_ABORT, False): ErrorCode.CONCURRENT_TRANSACTIONS,
    (State.COMPLETE_COMMIT, True): ErrorCode.INVALID_TXN_STATE,
    (State.COMPLETE_COMMIT, False): ErrorCode.NONE,
    (State.COMPLETE_ABORT, True): ErrorCode.INVALID_TXN_STATE,
    (State.COMPLETE_ABORT, False): ErrorCode.NONE,
}
VERSION_1 = VERSION_2 | {
    (State.EMPTY, False): ErrorCode.INVALID_TXN_STATE,
    (State.COMPLETE_COMMIT, True): ErrorCode.NONE,
    (State.COMPLETE_COMMIT, False): ErrorCode.INVALID_TXN_STATE,
}


@pytest.mark.parametrize(("state", "commit"), list(ANSWERS))
@pytest.mark.parametrize("version", [1, 2])
def test_an_end_in_every_state(state: State, commit: bool, version: int) -> None:
    driven, pid, epoch = in_state(state, version)
    expected = (VERSION_1 if version == 1 else VERSION_2)[state, commit]
    assert code_of(lambda: driven.end(pid, epoch, commit, version >= 2)) == expected


@pytest.mark.parametrize("commit", [True, False])
def test_a_repeated_end_of_version_2_gets_the_same_answer_and_the_opposite_one_is_invalid(
    commit: bool,
) -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch)
    assert driven.end(pid, epoch, commit) == (pid, epoch + 1)
    assert code_of(lambda: driven.end(pid, epoch, commit)) == ErrorCode.CONCURRENT_TRANSACTIONS
    driven.write_markers()
    written = len(driven.log)
    assert driven.end(pid, epoch, commit) == (pid, epoch + 1)
    assert code_of(lambda: driven.end(pid, epoch, not commit)) == ErrorCode.INVALID_TXN_STATE
    assert len(driven.log) == written


def test_a_late_end_never_touches_the_next_transaction() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch)
    driven.end(pid, epoch, True)
    driven.write_markers()
    driven.add(pid, epoch + 1)
    for commit in (True, False):
        assert code_of(lambda c=commit: driven.end(pid, epoch, c)) != ErrorCode.NONE
    assert driven.state() == State.ONGOING
    driven.end(pid, epoch + 1, True)


def test_a_new_owner_aborts_the_open_transaction_and_fences_the_old_one() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch, T0, T1)
    assert code_of(driven.init) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert driven.state() == State.PREPARE_ABORT
    assert driven.prepared == [Prepared("t", pid, 1, False, (T0, T1), 2)]
    assert code_of(driven.init) == ErrorCode.CONCURRENT_TRANSACTIONS
    driven.write_markers()
    assert driven.init() == (pid, 2)
    assert code_of(lambda: driven.add(pid, epoch)) == ErrorCode.PRODUCER_FENCED
    assert code_of(lambda: driven.end(pid, epoch, True)) == ErrorCode.PRODUCER_FENCED


def test_a_producer_that_names_its_epoch_goes_on_and_may_repeat_itself() -> None:
    driven = Driven()
    pid, _ = driven.init()
    assert driven.init(producer_id=pid, epoch=0) == (pid, 1)
    assert driven.init(producer_id=pid, epoch=0) == (pid, 1)
    assert driven.init(producer_id=pid, epoch=1) == (pid, 2)
    fenced = ErrorCode.PRODUCER_FENCED
    assert code_of(lambda: driven.init(producer_id=pid, epoch=0)) == fenced
    assert code_of(lambda: driven.init(producer_id=pid + 1, epoch=2)) == fenced
    driven.init()
    assert code_of(lambda: driven.init(producer_id=pid, epoch=2)) == fenced


def test_an_exhausted_epoch_means_a_new_producer_id() -> None:
    driven = Driven()
    pid, _ = driven.init()
    last = from_record(to_record(driven.shard.transactions["t"]))
    driven.apply(
        driven.shard.change("t", last._replace(state=State.EMPTY, producer_epoch=32765), None)
    )
    assert driven.init() == (pid, 32766)
    new_pid, epoch = driven.init()
    assert new_pid != pid
    assert epoch == 0


def test_an_end_at_the_last_epoch_moves_on_to_a_new_producer_id_and_may_be_repeated() -> None:
    driven = Driven()
    pid, _ = driven.init()
    last = driven.shard.transactions["t"]
    driven.apply(
        driven.shard.change("t", last._replace(state=State.EMPTY, producer_epoch=32766), None)
    )
    driven.add(pid, 32766)
    new_pid, epoch = driven.end(pid, 32766, True)
    assert new_pid != pid
    assert epoch == 0
    assert driven.prepared[0].producer_epoch == 32767
    driven.write_markers()
    assert driven.end(pid, 32766, True) == (new_pid, 0)
    driven.add(new_pid, 0)


def test_adding_needs_the_owner_and_a_transaction_that_is_not_ending() -> None:
    driven = Driven()
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(lambda: driven.add(1, 0)) == mapping
    pid, epoch = driven.init()
    assert code_of(lambda: driven.add(pid + 1, epoch)) == mapping
    assert code_of(lambda: driven.add(pid, epoch + 1)) == ErrorCode.PRODUCER_FENCED
    driven.add(pid, epoch, T0)
    written = len(driven.log)
    driven.add(pid, epoch, T0)
    assert len(driven.log) == written, "nothing new, nothing written"
    driven.add(pid, epoch, T1)
    assert driven.shard.transactions["t"].partitions == (T0, T1)
    driven.end(pid, epoch, True)
    assert code_of(lambda: driven.add(pid, epoch + 1)) == ErrorCode.CONCURRENT_TRANSACTIONS


def test_verification_names_the_partitions_that_are_not_part_of_the_transaction() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch, T0)
    answer = partitions.verify_partitions(driven.shard, "t", pid, epoch, [T0, T1])
    assert answer == {T0: ErrorCode.NONE, T1: ErrorCode.TRANSACTION_ABORTABLE}
    driven.end(pid, epoch, True)
    driven.write_markers()
    answer = partitions.verify_partitions(driven.shard, "t", pid, epoch + 1, [T0])
    assert answer == {T0: ErrorCode.TRANSACTION_ABORTABLE}


def test_a_transaction_that_is_open_too_long_is_aborted_at_the_next_scan() -> None:
    driven = Driven()
    pid, epoch = driven.init(timeout_ms=15_000)
    driven.add(pid, epoch)
    driven.now_ms += 10_000
    assert driven.shard.expire(driven.moment) is None
    driven.now_ms += 10_000
    result = driven.shard.expire(driven.moment)
    assert result is not None
    driven.apply(result)
    assert driven.prepared == [Prepared("t", pid, epoch + 1, False, (T0,), 2)]
    driven.write_markers()
    assert driven.state() == State.COMPLETE_ABORT
    assert code_of(lambda: driven.end(pid, epoch, True)) != ErrorCode.NONE


def test_kafka_20090_a_transaction_of_the_last_epoch_is_aborted_and_the_id_goes_on() -> None:
    """The epoch that the abort needs is the last there is: at it the transaction never ended, and
    with it the transactional id was lost."""
    driven = Driven()
    pid, _ = driven.init(timeout_ms=15_000)
    last = driven.shard.transactions["t"]
    driven.apply(
        driven.shard.change("t", last._replace(state=State.EMPTY, producer_epoch=32766), None)
    )
    driven.add(pid, 32766)
    driven.now_ms += 20_000
    result = driven.shard.expire(driven.moment)
    assert result is not None
    driven.apply(result)
    assert [prepared.producer_epoch for prepared in driven.prepared] == [32767]
    driven.shard = driven.reloaded()
    driven.prepared.clear()
    driven.apply(driven.shard.loaded(driven.moment))
    driven.write_markers()
    assert driven.state() == State.COMPLETE_ABORT
    new_pid, epoch = driven.init()
    assert (new_pid != pid, epoch) == (True, 0)
    driven.add(new_pid, 0)


def test_idle_ids_expire_and_busy_ones_do_not() -> None:
    driven = Driven(transactional_id_expiration_ms=1000, remove_expired_interval_ms=500)
    driven.init("idle")
    pid, epoch = driven.init("busy", timeout_ms=900_000)
    driven.add(pid, epoch, tid="busy")
    driven.now_ms += 2000
    while (result := driven.shard.expire(driven.moment)) is not None:
        driven.apply(result)
    assert list(driven.shard.transactions) == ["busy"]


def test_prepared_transactions_are_announced_again_after_a_reload() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch)
    driven.end(pid, epoch, True)
    first, driven.prepared[:] = list(driven.prepared), []
    driven.shard = driven.reloaded()
    driven.apply(driven.shard.loaded(driven.moment))
    assert driven.prepared == first
    driven.write_markers()
    assert driven.state() == State.COMPLETE_COMMIT


def test_markers_of_an_earlier_transaction_complete_nothing() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch)
    driven.end(pid, epoch, True)
    late = driven.prepared[0]
    driven.write_markers()
    driven.add(pid, epoch + 1)
    driven.end(pid, epoch + 1, False)
    driven.apply(end.complete(driven.shard, late, driven.moment))
    assert driven.state() == State.PREPARE_ABORT


def test_timeouts_out_of_bounds_are_refused() -> None:
    driven = Driven(transaction_max_timeout_ms=1000)
    for timeout_ms in (0, -1, 1001):
        refused = code_of(lambda t=timeout_ms: driven.init(timeout_ms=t))
        assert refused == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    driven.init(timeout_ms=1000)


def test_queries_show_and_filter() -> None:
    driven = Driven()
    pid, epoch = driven.init("a")
    driven.add(pid, epoch, T0, T1, tid="a")
    driven.init("b")
    driven.now_ms += 500
    described = queries.describe(driven.shard, "a")
    assert described.transaction_state == "Ongoing"
    assert [(t.topic, t.partitions) for t in described.topics] == [("topic", [0, 1])]
    missing = queries.describe(driven.shard, "nobody")
    assert missing.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND

    def names(**wanted: Any) -> list[str]:
        found = queries.list_transactions(driven.shard, queries.ListFilter(**wanted), driven.moment)
        return [one.transactional_id for one in found]

    assert names() == ["a", "b"]
    assert names(states=frozenset({State.EMPTY})) == ["b"]
    assert names(producer_ids=frozenset({pid})) == ["a"]
    assert names(matches=lambda tid: tid == "b") == ["b"]


class RandomProducers(RuleBasedStateMachine):
    """Producers of two transactional ids do what they like, the shard is reloaded at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.driven = Driven()
        self.known: list[tuple[str, int, int]] = []

    def attempt(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except KafkaError:
            return None

    @rule(tid=st.sampled_from("ab"))
    def init(self, tid: str) -> None:
        got = self.attempt(lambda: self.driven.init(tid, timeout_ms=30_000))
        if got is not None:
            self.known.append((tid, *got))

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        if self.known:
            tid, pid, epoch = data.draw(st.sampled_from(self.known))
            where = data.draw(st.sampled_from([T0, T1]))
            self.attempt(lambda: self.driven.add(pid, epoch, where, tid=tid))

    @rule(data=st.data(), commit=st.booleans(), bump=st.booleans())
    def end(self, data: st.DataObject, commit: bool, bump: bool) -> None:
        if self.known:
            tid, pid, epoch = data.draw(st.sampled_from(self.known))
            got = self.attempt(lambda: self.driven.end(pid, epoch, commit, bump, tid))
            if got is not None:
                self.known.append((tid, *got))

    @rule()
    def write_markers(self) -> None:
        self.driven.write_markers()

    @rule(ms=st.integers(1, 40_000))
    def pass_time(self, ms: int) -> None:
        self.driven.now_ms += ms
        while (result := self.driven.shard.expire(self.driven.moment)) is not None:
            self.driven.apply(result)

    @rule()
    def reload(self) -> None:
        self.driven.shard = self.driven.reloaded()
        self.driven.prepared.clear()
        self.driven.apply(self.driven.shard.loaded(self.driven.moment))

    @invariant()
    def a_reload_gives_the_same_state(self) -> None:
        again = self.driven.reloaded()
        assert again.transactions == self.driven.shard.transactions
        assert list(again.ongoing) == list(self.driven.shard.ongoing)
        assert list(again.prepared) == list(self.driven.shard.prepared)

    @invariant()
    def moves_in_the_log_are_legal_and_epochs_never_go_back(self) -> None:
        last: dict[str, Any] = {}
        for record in self.driven.log:
            tid = record.key.transactional_id
            after = from_record(record.value) if record.value is not None else None
            before = last.get(tid)
            if after is not None:
                assert may_follow(before.state if before else None, after.state)
                if before is not None and before.producer_id == after.producer_id:
                    assert after.producer_epoch >= before.producer_epoch
            last[tid] = after


TestRandomProducers = RandomProducers.TestCase
TestRandomProducers.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("partitions", [(), (("topic", 3),)])
@pytest.mark.parametrize("state", [x for x in State if x not in (State.EMPTY, State.DEAD)])
def test_what_is_decided_is_what_its_record_says(
    state: State, partitions: tuple[tuple[str, int], ...]
) -> None:
    """The shard takes over what it has decided, and does not read its own record."""
    before = fresh(7, 60_000, 1)
    after = before._replace(
        state=state, partitions=partitions, previous_producer_id=6, next_producer_id=8,
        producer_epoch=5, next_producer_epoch=4, start_ms=2, last_update_ms=3,
        client_transaction_version=2,
    )  # fmt: skip
    assert from_record(to_record(after)) == after


def test_records_of_partitions_of_several_topics_are_replayed_as_they_are_loaded() -> None:
    driven = Driven()
    pid, epoch = driven.init()
    driven.add(pid, epoch, ("a", 0), ("b", 0))
    driven.add(pid, epoch, ("a", 1))
    assert driven.shard.transactions == driven.reloaded().transactions
